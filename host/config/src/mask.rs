//! Secrets that somebody typed into a file, kept out of diagnostics: an error shows the line it is about, and errors reach
//! screens and logs.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use flow::KeySource;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::SourceFile;

/// Whether a key's value is a secret, by the key's name. `…_env` names a variable, `max_…` is a number, and `certificate_key` names a file.
pub(crate) fn is_secret(key: &str) -> bool {
    key.trim().trim_matches(['"', '\'']) != "certificate_key"
        && !key.ends_with("_env")
        && !key.starts_with("max_")
        && (secrets::mentions_secret(key) || secrets::strength(key).is_some())
}

/// The source as diagnostics show it: the same bytes, except that each byte of a secret is `*`. `table` is what could be
/// read of it; what could not is masked line by line.
pub(crate) fn masked(source: &Arc<SourceFile>, table: &Spanned<DeTable<'_>>, is_whole: bool) -> Arc<SourceFile> {
    let mut spans = Vec::new();
    in_table("", table.get_ref(), &mut |span| spans.push(inside(&source.text, span)));
    let shown = covered(source, spans, b"\n\r");
    let mut unread = Vec::new();
    if !is_whole {
        lines(&source.text, &mut unread);
    }
    covered(&shown, unread, IN_LINES)
}

/// A text in whose lines at a place what is known to be a secret by how it looks is hidden: the same bytes, except that each byte of it is `*`.
pub(crate) fn without_known<'t>(text: &'t str, place: &Range<usize>) -> Cow<'t, str> {
    let begin = text[..text.floor_char_boundary(place.start)].rfind('\n').map_or(0, |end| end + 1);
    let (mut known, mut at, mut all) = (secrets::Lines::default(), begin, Cow::Borrowed(text));
    for line in text[begin..].split_inclusive('\n') {
        if at > place.end {
            break;
        }
        for found in known.take(line, "") {
            all.to_mut().replace_range(at + found.start..at + found.end, &"*".repeat(found.end - found.start));
        }
        at += line.len();
    }
    all
}

/// What stays of a line that cannot be read: quotes there can belong to anything.
const IN_LINES: &[u8] = b"\n\r\"'";

/// The source with its spans as stars. Line ends and the quotes of strings stay, so that places do not move.
fn covered(source: &Arc<SourceFile>, spans: Vec<Range<usize>>, kept: &[u8]) -> Arc<SourceFile> {
    if spans.is_empty() {
        return Arc::clone(source);
    }
    let mut text = source.text.clone().into_bytes();
    spans.into_iter().for_each(|span| cover(&mut text, span, kept));
    SourceFile::new(source.path.clone(), String::from_utf8_lossy(&text).into_owned())
}

fn cover(text: &mut [u8], span: Range<usize>, kept: &[u8]) {
    let bytes = text.get_mut(span).unwrap_or_default().iter_mut();
    bytes.filter(|byte| !kept.contains(byte)).for_each(|byte| *byte = b'*');
}

/// The span of a string without its quotes.
fn inside(text: &str, span: Range<usize>) -> Range<usize> {
    let written = text.get(span.clone()).unwrap_or_default();
    let quotes =
        ["\"\"\"", "\'\'\'", "\"", "\'"].into_iter().find(|quotes| written.starts_with(quotes)).map_or(0, str::len);
    let inside = written.get(quotes..).unwrap_or_default();
    // A string that never ends has no quotes there.
    let end = if inside.ends_with(&written[..quotes]) { quotes } else { 0 };
    span.start + quotes..span.end - end
}

/// A value whose secrets are stars; `path` leads to it.
pub(crate) fn hidden(path: &[String], value: &Spanned<DeValue<'_>>) -> serde_json::Value {
    let mut secrets = Vec::new();
    let above = match path {
        // An entry of a list comes between the list and its keys.
        [server, list, _, _] if ["gateway", "serve"].contains(&server.as_str()) => list,
        [.., above, _] => above,
        _ => "",
    };
    let key = path.last().map_or("", String::as_str);
    in_value(is_secret_in(above, key), key, value, &mut |span| secrets.push(span));
    as_json(value, &secrets)
}

fn as_json(value: &Spanned<DeValue<'_>>, secrets: &[Range<usize>]) -> serde_json::Value {
    use serde::Deserialize as _;
    match value.get_ref() {
        DeValue::String(text) if secrets.contains(&value.span()) => "*".repeat(text.chars().count()).into(),
        DeValue::Array(items) => items.iter().map(|item| as_json(item, secrets)).collect(),
        DeValue::String(text) => secrets::without_secrets(text).into(),
        // The schema has let pass what JSON has, too.
        _ => serde_json::Value::deserialize(toml::de::ValueDeserializer::from(value.clone())).unwrap_or_default(),
    }
}

/// Whether a key in the table `name` has a secret as its value.
fn is_secret_in(name: &str, key: &str) -> bool {
    match name {
        // The key of a value in the state of a plugin is a name, and permissions have patterns of calls.
        "state_value" if key == "key" => false,
        "permission" => false,
        // A header can contain a key whatever its name is.
        "headers" => true,
        // The value of a token of a client.
        "token" if key == "value" => true,
        _ => is_secret(key),
    }
}

fn in_table(name: &str, table: &DeTable<'_>, visit: &mut dyn FnMut(Range<usize>)) {
    for (key, value) in table {
        in_value(is_secret_in(name, key.get_ref()), key.get_ref(), value, visit);
    }
}

/// Returns whether a text in the place of a secret is a reference: `client`, or a variable as `env:NAME`.
fn is_reference(text: &str) -> bool {
    text == "client" || text.strip_prefix("env:").is_some_and(|name| KeySource::of_variable(name).is_ok())
}

/// Visits the strings of a value that are secrets.
fn in_value(secret: bool, key: &str, value: &Spanned<DeValue<'_>>, visit: &mut dyn FnMut(Range<usize>)) {
    match value.get_ref() {
        DeValue::String(text) if (secret && !is_reference(text)) || (names_variables(key) && !is_variable(text)) => {
            visit(value.span());
        }
        DeValue::Table(table) => in_table(key, table, visit),
        DeValue::Array(array) => array.iter().for_each(|item| in_value(secret, key, item, visit)),
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

/// Values of secrets in lines that may not be TOML: what follows the key, to the line's end. In a table of headers each value is one.
fn lines(text: &str, spans: &mut Vec<Range<usize>>) {
    let (mut at, mut in_headers) = (0, false);
    for line in text.split_inclusive('\n') {
        let begun = line.trim_start();
        let is_table = begun.starts_with('[');
        let is_secret_table = || ["headers", "gateway.token", "serve.token"].iter().any(|name| begun.contains(name));
        in_headers = if is_table { is_secret_table() } else { in_headers || begun.starts_with("headers") };
        let key = begun.split(['=', ':', ' ', '\t']).next().unwrap_or_default();
        let behind = line.len() - begun.len() + key.len();
        let (before, assigned) = line.split_once('=').unwrap_or((line, ""));
        let is_assigned = !assigned.is_empty() && before[behind.min(before.len())..].trim().is_empty();
        if !is_table && (in_headers || is_secret(key.trim_matches(['"', '\'']))) && !is_assigned {
            spans.push(at + behind..at + line.len());
        } else if !assigned.is_empty() && (in_headers || is_secret(before)) {
            spans.push(at + line.len() - assigned.len()..at + line.len());
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
        let masked = masked(&source, &table, errors.is_empty());
        without_known(&masked.text, &(0..text.len())).into_owned()
    }

    #[test]
    fn values_of_secrets_are_masked_and_places_stay() {
        for (text, expected) in [
            ("api_key = \"sk-1\"\nmodel = \"m\"\n", "api_key = \"****\"\nmodel = \"m\"\n"),
            ("[a]\nb = { auth_token = 'x', n = 1 }\n", "[a]\nb = { auth_token = '*', n = 1 }\n"),
            ("tokens = [\"a\", \"b\"]", "tokens = [\"*\", \"*\"]"),
            ("api_key = \"\"\"\nä\nb\"\"\"", "api_key = \"\"\"\n**\n*\"\"\""),
            ("headers = { x = \"{\\\"a\\\": 1}\" }", "headers = { x = \"**********\" }"),
            ("[tools.permission]\nmonkey = \"ask\"", "[tools.permission]\nmonkey = \"ask\""),
            ("api_key_env = \"sk-1\"", "api_key_env = \"****\""),
            ("env = [\"A_*\", \"B\", \"C=sk-1\"]", "env = [\"A_*\", \"B\", \"******\"]"),
            ("api_key_env = \"MY_KEY\"\nmax_tokens = 5", "api_key_env = \"MY_KEY\"\nmax_tokens = 5"),
            ("api_key = \"sk-1\nmodel = m\n", "api_key =*\"****\nmodel = m\n"),
            ("[serve]\ncertificate_key = \"own.key\"", "[serve]\ncertificate_key = \"own.key\""),
            ("[serve]\n\"certificate_key\" = \"own.key\n", "[serve]\n\"certificate_key\" = \"own.key\n"),
            (
                "certificate_key = \"\"\"\n-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n\"\"\"",
                "certificate_key = \"\"\"\n***************************\n*******************************\"\"\"",
            ),
            ("[[gateway.route]]\nkey = \"sk-1\"", "[[gateway.route]]\nkey = \"****\""),
            ("[[gateway.route]]\nkey = \"client\"", "[[gateway.route]]\nkey = \"client\""),
            ("[[gateway.token]]\nvalue = \"abc\"", "[[gateway.token]]\nvalue = \"***\""),
            ("[[gateway.token]]\nvalue = \"env:A_B\"", "[[gateway.token]]\nvalue = \"env:A_B\""),
            ("[[gateway.token]]\nvalue = \"abc\n[a", "[[gateway.token]]\nvalue =*\"***\n[a"),
            ("api_key = sk-1", "api_key =*****"),
            ("api_key: sk-1\n[a", "api_key******\n[a"),
            ("api_key: sk-1=x\n[a", "api_key********\n[a"),
            ("api_key = \"\"\"\nab\ncd", "api_key =*\"\"\"\n**\n**"),
            ("api_key \"sk-1\"\n[a", "api_key*\"****\"\n[a"),
            (
                "[provider]\nheaders = {\n x-foo = \"abc\"\n[b\nc = \"d\"",
                "[provider]\nheaders =**\n x-foo =*\"***\"\n[b\nc = \"d\"",
            ),
            (
                "note = \"ghp_0123456789abcdefghijABCDEFGHIJ012345\"\n",
                "note = \"****************************************\"\n",
            ),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
