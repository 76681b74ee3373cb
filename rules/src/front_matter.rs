//! Front matter that is not read as what it was meant to be: it does not begin the file, or is in the other format.

use std::ops::Range;

use crate::keys::{self, Takes};

/// Front matter that would be a part of the body.
pub(crate) struct Late {
    /// The line that was to begin it.
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

/// Looks for front matter in a file that does not begin with it. An example of a rule file in a block of code is none.
pub(crate) fn late(text: &str) -> Option<Late> {
    let mut at = 0;
    let lines: Vec<(usize, &str)> = text
        .split_inclusive('\n')
        .map(|line| {
            at += line.len();
            (at - line.len(), line)
        })
        .collect();
    let begin =
        lines.iter().position(|(_, line)| !line.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty())?;
    let mut in_code = false;
    for (number, (start, line)) in lines.iter().enumerate().skip(begin) {
        let begun = line.trim_start_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
        let sign = begun.trim_end();
        // A file that is a block of code as a whole was pasted with it.
        if sign.starts_with("```") && number > begin {
            in_code = !in_code;
        }
        let has_key = || {
            let mut below = lines[number + 1..].iter().map(|(_, line)| line.trim());
            below.find(|line| !matches!(*line, "" | "{")).is_some_and(is_key)
        };
        let from = start + line.len() - begun.len();
        if number == begin && (sign == ";;;" || (sign.starts_with('{') && (is_key(sign) || has_key()))) {
            let message = "front matter in JSON is not read".to_owned();
            return Some(Late { span: from..from + sign.len(), message, help: JSON_HELP });
        }
        let opens = is_fence(sign) || (number == begin && is_other_fence(sign));
        if in_code || !opens || !has_key() {
            continue;
        }
        let (message, help) = if !matches!(sign, "---" | "+++") {
            let help = "write a line `---` (YAML) or `+++` (TOML), three signs and nothing else, before the keys and after them";
            (format!("the line `{sign}` begins no front matter"), help)
        } else if number == begin {
            (format!("the line `{sign}` is indented, so that it begins no front matter"), "remove the blanks before it")
        } else {
            let message = format!(
                "the front matter begins on line {}, behind other text, where it is a part of the prompt",
                number + 1
            );
            (message, "move it to the beginning of the file: only empty lines are allowed before it")
        };
        return Some(Late { span: from..from + sign.len(), message, help });
    }
    None
}

const JSON_HELP: &str =
    "write the keys as TOML between two lines `+++`, such as `condition = '…'`, or as YAML between two lines `---`";

/// What begins keys elsewhere: the name of a format behind the signs, a block of code, a comment.
fn is_other_fence(line: &str) -> bool {
    let after = ["---", "+++", ";;;", "```", "~~~"].iter().find_map(|signs| line.strip_prefix(signs));
    let is_name =
        |name: &str| matches!(name.trim().to_ascii_lowercase().as_str(), "" | "toml" | "yaml" | "yml" | "json");
    after.is_some_and(is_name) || matches!(line, "<!--" | "/*" | "/**" | "%%%" | "***" | "###" | "___")
}

/// Three or more signs of one kind, or what a word processor makes of them.
fn is_fence(line: &str) -> bool {
    let first = line.chars().next().filter(|c| matches!(c, '-' | '+' | '—' | '–' | '='));
    let count = line.chars().count();
    first.is_some_and(|first| line.chars().all(|c| c == first) && (count > 1 || matches!(first, '—' | '–')))
}

/// Whether a line sets a key by which a rule is more than text.
fn is_key(line: &str) -> bool {
    let word = line.split([':', '=']).next().unwrap_or_default();
    let word = word.trim_matches(['{', '"', '\'', '*', ' ', '\t']);
    line.contains([':', '='])
        && keys::find(word).is_some_and(|info| info.takes != Takes::Text && info.takes != Takes::ManifestOnly)
}

/// The line of a file that contains a place, without its end.
pub(crate) fn line_at(text: &str, at: usize) -> Range<usize> {
    let at = text.floor_char_boundary(at);
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    start..start + text[start..].find(['\r', '\n']).unwrap_or(text.len() - start)
}

/// What is wrong with a line that is no TOML, and what to write: the line of a YAML file, or a string without quotes.
pub(crate) fn no_toml(line: &str) -> Option<(String, String)> {
    let word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let quoted = |value: &str| match value.trim_matches(['"', '\'']) {
        value if value.contains('\'') => format!("\"{value}\""),
        value => format!("'{value}'"),
    };
    let colon = line.split_once(':').map(|(key, value)| (key.trim(), value.trim()));
    if let Some((key, value)) = colon.filter(|(key, _)| !key.is_empty() && word(key)) {
        let value = if value.is_empty() || value.starts_with('[') || matches!(value, "true" | "false") {
            value.to_owned()
        } else {
            quoted(value)
        };
        let help = format!("write `{key} = {value}`, or lines `---` in the place of `+++`");
        return Some((format!("`{key}: …` is YAML, and front matter between lines `+++` is TOML"), help));
    }
    let (key, value) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))?;
    let is_bare =
        value.starts_with(|c: char| c.is_alphabetic() || "*.!^$()/\\".contains(c)) && !value.contains(['"', '\'']);
    (word(key) && is_bare).then(|| {
        let message = format!("the value of `{key}` has no quotes around it");
        (message, format!("write `{key} = {}`", quoted(value)))
    })
}
