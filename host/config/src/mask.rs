//! Secrets that somebody typed into a file, kept out of diagnostics: an error shows the line it is about, and errors reach
//! screens and logs.

use std::ops::Range;
use std::sync::Arc;

use flow::KeySource;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::SourceFile;

/// Whether a key's value is a secret, by the key's name. `…_env` names a variable, and `max_…` is a number.
pub(crate) fn is_secret(key: &str) -> bool {
    !key.ends_with("_env")
        && !key.starts_with("max_")
        && (secrets::mentions_secret(key) || secrets::strength(key).is_some())
}

/// The source as diagnostics show it: the same bytes, except that each character of a secret is `*`. `table` is what could be
/// read of it; what could not is masked line by line.
pub(crate) fn masked(source: &Arc<SourceFile>, table: &Spanned<DeTable<'_>>, is_whole: bool) -> Arc<SourceFile> {
    let mut spans = Vec::new();
    in_table("", table.get_ref(), &mut spans);
    if !is_whole {
        lines(&source.text, &mut spans);
    }
    if spans.is_empty() {
        return Arc::clone(source);
    }
    let mut text = source.text.clone().into_bytes();
    for span in spans {
        for byte in text.get_mut(span).unwrap_or_default() {
            // Line ends and quotes stay, so that places do not move.
            if !matches!(*byte, b'\n' | b'\r' | b'"' | b'\'') {
                *byte = b'*';
            }
        }
    }
    SourceFile::new(source.path.clone(), String::from_utf8_lossy(&text).into_owned())
}

fn in_table(name: &str, table: &DeTable<'_>, spans: &mut Vec<Range<usize>>) {
    for (key, value) in table {
        // The key of a value in the state of a plugin is a name.
        let is_name = name == "state_value" && key.get_ref() == "key";
        // A header can contain a key whatever its name is.
        let is_header = name == "headers";
        in_value(is_header || (is_secret(key.get_ref()) && !is_name), key.get_ref(), value, spans);
    }
}

fn in_value(secret: bool, key: &str, value: &Spanned<DeValue<'_>>, spans: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::String(text) if secret || (names_variables(key) && !is_variable(text)) => spans.push(value.span()),
        DeValue::Table(table) => in_table(key, table, spans),
        DeValue::Array(array) => array.iter().for_each(|item| in_value(secret, key, item, spans)),
        _ => {}
    }
}

/// Whether a key's value is the name of a variable, or a list of names: somebody may have typed a secret in its place.
fn names_variables(key: &str) -> bool {
    key == "env" || key.ends_with("_env")
}

/// A name, or a pattern of names as `[tools.shell] env` has them.
fn is_variable(text: &str) -> bool {
    KeySource::of_variable(text.strip_suffix('*').unwrap_or(text)).is_ok()
}

/// Values of secrets in lines that may not be TOML: from the first `=` to the line's end.
fn lines(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some((key, _)) = line.split_once('=')
            && is_secret(key)
        {
            spans.push(at + key.len() + 1..at + line.len());
        }
        at += line.len();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let source = SourceFile::new("a.toml", text);
        let (table, errors) = DeTable::parse_recoverable(&source.text);
        masked(&source, &table, errors.is_empty()).text.clone()
    }

    #[test]
    fn values_of_secrets_are_masked_and_places_stay() {
        for (text, expected) in [
            ("api_key = \"sk-1\"\nmodel = \"m\"\n", "api_key = \"****\"\nmodel = \"m\"\n"),
            ("[a]\nb = { auth_token = 'x', n = 1 }\n", "[a]\nb = { auth_token = '*', n = 1 }\n"),
            ("tokens = [\"a\", \"b\"]", "tokens = [\"*\", \"*\"]"),
            ("api_key = \"\"\"\nä\nb\"\"\"", "api_key = \"\"\"\n**\n*\"\"\""),
            ("api_key_env = \"sk-1\"", "api_key_env = \"****\""),
            ("env = [\"A_*\", \"B\", \"C=sk-1\"]", "env = [\"A_*\", \"B\", \"******\"]"),
            ("api_key_env = \"MY_KEY\"\nmax_tokens = 5", "api_key_env = \"MY_KEY\"\nmax_tokens = 5"),
            ("api_key = \"sk-1\nmodel = m\n", "api_key =*\"****\nmodel = m\n"),
            ("api_key = sk-1", "api_key =*****"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
