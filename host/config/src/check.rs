//! Holds a TOML tree against a JSON Schema, so that one reading finds everything that is wrong, each with its place.
//!
//! Only what our schemas use is understood: `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`,
//! `const`, `oneOf`, `anyOf`, `$ref`, `minimum`, `maximum`, `minLength`. A test compares the verdicts with those of `boon`, which checks
//! everything else in this program, and refuses keywords that are not in this list.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value as Schema;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{Code, Diagnostic, Location, SourceFile, mask};

/// All that contradicts the schema, in order of its place.
pub(crate) fn check(source: &Arc<SourceFile>, root: &Spanned<DeTable<'_>>, schema: &Schema) -> Vec<Diagnostic> {
    let mut check = Check { source, root: schema, found: Vec::new() };
    // The whole file as a place says nothing; what is missing at the top is shown at its first byte.
    check.table(root.get_ref(), 0..0, schema, &Name::default());
    let mut found = check.found;
    found.sort_by_key(|diagnostic| diagnostic.location().map(|at| at.span.start));
    found
}

/// All that contradicts the schema in one element of the list `key` at the top, in order of its place.
pub(crate) fn check_element(
    source: &Arc<SourceFile>,
    element: &Spanned<DeValue<'_>>,
    schema: &Schema,
    key: &str,
) -> Vec<Diagnostic> {
    let mut check = Check { source, root: schema, found: Vec::new() };
    let list = schema.get("properties").and_then(|known| known.get(key)).map(|list| check.resolve(list));
    if let Some(items) = list.and_then(|list| list.get("items")) {
        check.value(element, items, &Name::default().enter(key).element());
    }
    let mut found = check.found;
    found.sort_by_key(|diagnostic| diagnostic.location().map(|at| at.span.start));
    found
}

struct Check<'c> {
    source: &'c Arc<SourceFile>,
    root: &'c Schema,
    found: Vec<Diagnostic>,
}

/// The table in the file, as written: `[tools.shell]`, `[[plugin]]`.
#[derive(Clone, Default)]
struct Name {
    keys: Vec<String>,
    element: bool,
}

impl Name {
    fn enter(&self, key: &str) -> Self {
        let mut keys = self.keys.clone();
        keys.push(key.to_owned());
        Self { keys, element: false }
    }

    fn element(&self) -> Self {
        Self { keys: self.keys.clone(), element: true }
    }

    /// ` in [section]`, or nothing at the top of the file.
    fn inside(&self) -> String {
        match (self.keys.is_empty(), self.element) {
            (true, _) => String::new(),
            (false, false) => format!(" in `[{}]`", self.keys.join(".")),
            (false, true) => format!(" in `[[{}]]`", self.keys.join(".")),
        }
    }

    fn last(&self) -> &str {
        self.keys.last().map_or("the file", String::as_str)
    }

    fn subject(&self) -> String {
        if self.element { format!("an element of `{}`", self.last()) } else { format!("`{}`", self.last()) }
    }
}

impl<'c> Check<'c> {
    fn report(&mut self, code: Code, span: Range<usize>, message: String, label: String, help: Option<String>) {
        let mut diagnostic = Diagnostic::error(code, message).at(Location::new(self.source, span), label);
        diagnostic.help = help;
        self.found.push(diagnostic);
    }

    fn resolve(&self, schema: &'c Schema) -> &'c Schema {
        let mut at = schema;
        // A chain of references in a generated schema is short; the bound keeps a circle from hanging us.
        for _ in 0..16 {
            match at.get("$ref").and_then(Schema::as_str).and_then(|path| self.root.pointer(path.strip_prefix('#')?)) {
                Some(target) => at = target,
                None => match at.get("allOf").and_then(Schema::as_array).map(Vec::as_slice) {
                    Some([one]) => at = one,
                    _ => break,
                },
            }
        }
        at
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, schema: &'c Schema, name: &Name) {
        let schema = self.resolve(schema);
        if let Some(choices) = choices(schema) {
            return self.choice(value, &choices, name);
        }
        if let Some(branches) = branches(schema) {
            let fits = |branch: &&'c Schema| types(branch).iter().any(|word| is(value.get_ref(), word));
            let resolved: Vec<&'c Schema> = branches.iter().map(|branch| self.resolve(branch)).collect();
            return match resolved.iter().find(|branch| fits(branch)) {
                Some(branch) => self.value(value, branch, name),
                None => {
                    let wanted: Vec<&str> = resolved.iter().flat_map(|branch| types(branch)).collect();
                    self.wrong_type(value, &wanted, name);
                }
            };
        }
        let wanted = types(schema);
        // A schema without a type takes anything.
        if !wanted.is_empty() && !wanted.iter().any(|word| is(value.get_ref(), word)) {
            return self.wrong_type(value, &wanted, name);
        }
        match value.get_ref() {
            DeValue::Table(table) => self.table(table, value.span(), schema, name),
            DeValue::Array(array) => {
                if let Some(items) = schema.get("items") {
                    array.iter().for_each(|item| self.value(item, items, &name.element()));
                }
            }
            DeValue::String(text) => self.length(text, value.span(), schema, name),
            DeValue::Integer(_) | DeValue::Float(_) => self.range(value, schema, name),
            DeValue::Boolean(_) | DeValue::Datetime(_) => {}
        }
    }

    fn table(&mut self, table: &DeTable<'_>, span: Range<usize>, schema: &'c Schema, name: &Name) {
        let known = schema.get("properties").and_then(Schema::as_object);
        let others = schema.get("additionalProperties");
        for (key, value) in table {
            let word: &str = key.get_ref();
            match known.and_then(|known| known.get(word)) {
                Some(inner) => self.value(value, inner, &name.enter(word)),
                None => match others {
                    Some(Schema::Object(_)) => self.value(value, others.unwrap_or(&Schema::Null), &name.enter(word)),
                    Some(Schema::Bool(false)) => {
                        let known: Vec<&str> =
                            known.into_iter().flat_map(|known| known.keys()).map(String::as_str).collect();
                        let message = format!("unknown key `{word}`{}", name.inside());
                        let help = if mask::is_secret(word) && is(value.get_ref(), "string") {
                            "keep secrets out of this file: put it into an environment variable and name that, such as \
                             `api_key_env = \"MY_KEY\"`"
                                .to_owned()
                        } else {
                            suggest(word, &known, "keys")
                        };
                        self.report(
                            Code::ConfigUnknownKey,
                            key.span(),
                            message,
                            "not a known key".to_owned(),
                            Some(help),
                        );
                    }
                    _ => {}
                },
            }
        }
        let required =
            schema.get("required").and_then(Schema::as_array).into_iter().flatten().filter_map(Schema::as_str);
        for key in required.filter(|key| !table.contains_key(*key)) {
            let about = known.and_then(|known| known.get(key)?.get("description")?.as_str());
            let help = format!("add `{key} = …`{}", about.map(|about| format!(". {about}")).unwrap_or_default());
            self.report(
                Code::ConfigMissingKey,
                span.clone(),
                format!("missing key `{key}`{}", name.inside()),
                String::new(),
                Some(help),
            );
        }
    }

    fn choice(&mut self, value: &Spanned<DeValue<'_>>, choices: &[&str], name: &Name) {
        let DeValue::String(text) = value.get_ref() else {
            return self.wrong_type(value, &["string"], name);
        };
        if !choices.contains(&text.as_ref()) {
            let text_shown = if mask::is_secret(name.last()) { "***".into() } else { text.escape_debug().to_string() };
            let message = format!("{} cannot be \"{text_shown}\"", name.subject());
            self.report(
                Code::ConfigUnknownValue,
                value.span(),
                message,
                "not a known value".to_owned(),
                Some(suggest(text, choices, "values")),
            );
        }
    }

    fn wrong_type(&mut self, value: &Spanned<DeValue<'_>>, wanted: &[&str], name: &Name) {
        let mut words: Vec<&str> = wanted.iter().map(|word| noun(word)).collect();
        words.dedup();
        let words = match words.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, first)) => format!("{} or {last}", first.join(", ")),
            None => return,
        };
        let message = format!("{} must be {words}, found {}", name.subject(), rules::toml_type(value.get_ref()));
        let help = match (wanted, value.get_ref()) {
            (["object"], DeValue::Array(_)) => {
                Some(format!("write `[{}]`, with one pair of brackets", name.keys.join(".")))
            }
            (["array"], DeValue::Table(_)) => {
                Some(format!("write `[[{}]]`, with two pairs of brackets", name.keys.join(".")))
            }
            _ => None,
        };
        self.report(Code::ConfigWrongType, value.span(), message, format!("expected {words}"), help);
    }

    fn length(&mut self, text: &str, span: Range<usize>, schema: &Schema, name: &Name) {
        let least = schema.get("minLength").and_then(Schema::as_u64).unwrap_or(0);
        if (text.chars().count() as u64) < least {
            self.report(
                Code::ConfigEmptyValue,
                span,
                format!("`{}` must not be empty", name.last()),
                "empty".to_owned(),
                None,
            );
        }
    }

    fn range(&mut self, value: &Spanned<DeValue<'_>>, schema: &Schema, name: &Name) {
        let Some(number) = number(value.get_ref()) else {
            let message = format!("`{}` must fit into 64 bits", name.last());
            return self.report(Code::ConfigOutOfRange, value.span(), message, "too large".to_owned(), None);
        };
        let bound = |word: &str| schema.get(word).and_then(Schema::as_f64);
        let wrong = match (bound("minimum"), bound("maximum")) {
            (Some(least), _) if number < least => format!("at least {least}"),
            (_, Some(most)) if number > most => format!("at most {most}"),
            _ => return,
        };
        let message = format!("`{}` must be {wrong}", name.last());
        self.report(Code::ConfigOutOfRange, value.span(), message, format!("must be {wrong}"), None);
    }
}

/// The values of an enumeration of strings; `None` if the schema is not an enumeration.
fn choices(schema: &Schema) -> Option<Vec<&str>> {
    if let Some(branches) = branches(schema) {
        return Some(branches.iter().map(choices).collect::<Option<Vec<_>>>()?.concat());
    }
    match schema.get("const") {
        Some(word) => Some(vec![word.as_str()?]),
        None => schema.get("enum")?.as_array()?.iter().map(Schema::as_str).collect(),
    }
}

fn branches(schema: &Schema) -> Option<&Vec<Schema>> {
    ["oneOf", "anyOf"].iter().find_map(|word| schema.get(word)?.as_array())
}

fn types(schema: &Schema) -> Vec<&str> {
    match schema.get("type").and_then(Schema::as_str) {
        Some(word) => vec![word],
        None if choices(schema).is_some() => vec!["string"],
        None if schema.get("properties").is_some() => vec!["object"],
        None => Vec::new(),
    }
}

fn is(value: &DeValue<'_>, word: &str) -> bool {
    match value {
        DeValue::String(_) => word == "string",
        // No schema has a date.
        DeValue::Datetime(_) => false,
        DeValue::Integer(_) => word == "integer" || word == "number",
        DeValue::Float(_) => word == "number",
        DeValue::Boolean(_) => word == "boolean",
        DeValue::Array(_) => word == "array",
        DeValue::Table(_) => word == "object",
    }
}

fn noun(word: &str) -> &str {
    match word {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a table",
        other => other,
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|n| n as f64),
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => None,
    }
}

/// `did you mean …?` where something known is near, and else what is known.
pub(crate) fn suggest(word: &str, known: &[&str], kind: &str) -> String {
    let all = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match flow::text::nearest(word, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => format!("no {kind} are allowed here"),
        None => format!("known {kind}: {all}"),
    }
}
