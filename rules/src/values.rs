//! Checks the values of a rule file's keys, so that all that is wrong is reported at once, each at its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use crate::keys::Takes;
use crate::yaml::Value;

/// A value that its key does not take.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The bytes of the value in its front matter. `None` where the format of the file has no narrower place.
    pub(crate) span: Option<Range<usize>>,
}

impl Wrong {
    pub(crate) fn new(message: String) -> Self {
        Self { message, help: None, span: None }
    }

    pub(crate) fn help(self, help: String) -> Self {
        Self { help: Some(help), ..self }
    }

    fn at(self, span: Range<usize>) -> Self {
        Self { span: Some(span), ..self }
    }
}

/// Names the type of a value of TOML in a sentence: `found an integer`.
pub fn toml_type(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a floating-point number",
        DeValue::Boolean(true) => "true",
        DeValue::Boolean(false) => "false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Reports what is wrong with a value of TOML; `key` is its name as written.
pub(crate) fn check_toml(key: &str, takes: Takes, value: &Spanned<DeValue<'_>>) -> Vec<Wrong> {
    let must = |what: &str| {
        vec![Wrong::new(format!("`{key}` must be {what}, found {}", toml_type(value.get_ref()))).at(value.span())]
    };
    match (takes, value.get_ref()) {
        (Takes::List | Takes::Text | Takes::ManifestOnly, DeValue::String(_)) | (Takes::Flag, DeValue::Boolean(_)) => {
            Vec::new()
        }
        (Takes::List, DeValue::Array(entries)) => {
            let strange = entries.iter().filter(|entry| !matches!(entry.get_ref(), DeValue::String(_)));
            let wrong = |entry: &Spanned<DeValue<'_>>| {
                let found = toml_type(entry.get_ref());
                Wrong::new(format!("an element of `{key}` must be a string, found {found}")).at(entry.span())
            };
            strange.map(wrong).collect()
        }
        (Takes::Number, DeValue::Integer(number)) => {
            let fits = i64::from_str_radix(number.as_str(), number.radix()).is_ok_and(|n| u32::try_from(n).is_ok());
            let wrong = || Wrong::new(format!("`{key}` must be between 0 and {}", u32::MAX)).at(value.span());
            (!fits).then(wrong).into_iter().collect()
        }
        (Takes::OneOf(words), DeValue::String(word)) => {
            check_word(key, words, word).map(|wrong| wrong.at(value.span())).into_iter().collect()
        }
        (Takes::List, _) => must("a string or a list of strings"),
        (Takes::Flag, _) => must("true or false"),
        (Takes::Number, _) => must("an integer"),
        (Takes::OneOf(_) | Takes::Text | Takes::ManifestOnly, _) => must("a string"),
    }
}

/// Converts a value of YAML, where every scalar is a string, to the type that the key takes; `key` is its name as written.
pub(crate) fn from_yaml(key: &str, takes: Takes, value: &Value) -> Result<toml::Value, Wrong> {
    if let (Value::Many(many), Takes::List) = (value, takes) {
        return Ok(many.iter().map(|one| one.text.clone()).collect::<Vec<_>>().into());
    }
    let text = value.text();
    let must = |what: &str| Wrong::new(format!("`{key}` must be {what}, found \"{}\"", text.escape_debug()));
    Ok(match takes {
        Takes::Flag => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => true.into(),
            "false" | "no" | "off" | "" => false.into(),
            _ => return Err(must("true or false")),
        },
        Takes::Number => i64::from(text.parse::<u32>().map_err(|_| must("an integer"))?).into(),
        Takes::OneOf(words) => match check_word(key, words, &text) {
            Some(wrong) => return Err(wrong),
            None => text.into(),
        },
        Takes::List | Takes::Text | Takes::ManifestOnly => text.into(),
    })
}

fn check_word(key: &str, words: &[&str], found: &str) -> Option<Wrong> {
    if words.contains(&found) {
        return None;
    }
    let known = || words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let help = match flow::text::nearest(found, words.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known values: {}", known()),
    };
    let message = format!("`{key}` cannot be \"{}\"", found.escape_debug());
    Some(Wrong::new(message).help(help))
}
