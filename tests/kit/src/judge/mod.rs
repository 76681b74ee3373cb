//! A judge of request bodies: what the vendors of the three wire formats publish about a request, or name when they refuse one
//! (`tests/corpus/providers/published/limits.json`), and how its parts must fit together. It shares nothing with the code that writes
//! requests.

mod anthropic;
mod chat;
mod images;
mod responses;
mod schema;

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::Value;

static PUBLISHED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../corpus/providers/published/limits.json")).unwrap());

/// What the vendor refuses about a body of this format: each problem with its path, as the vendor spells it, first.
pub fn problems(wire: &str, body: &Value) -> Vec<String> {
    let mut found = Found { wire, problems: Vec::new() };
    match wire {
        "anthropic" => anthropic::judge(body, &mut found),
        "openai-chat" => chat::judge(body, &mut found),
        "openai-responses" => responses::judge(body, &mut found),
        other => panic!("no format {other}"),
    }
    let text = body.to_string();
    if let Some(most) = found.most("request_bytes").filter(|most| text.len() > *most) {
        found.add("request", format!("{} bytes exceed {most}", text.len()));
    }
    if has_nul(body) {
        found.add("request", "unsupported Unicode escape sequence: \\u0000 cannot be converted to text");
    }
    found.problems
}

/// Where each limit is published: `wire.limit` and its source.
pub fn sources() -> Vec<(String, String)> {
    let table = |(wire, limits): (&String, &Value)| {
        let limits = limits.as_object().unwrap().iter();
        let source =
            |(name, limit): (&String, &Value)| (format!("{wire}.{name}"), limit["source"].as_str().unwrap().into());
        limits.map(source).collect::<Vec<_>>()
    };
    PUBLISHED.as_object().unwrap().iter().flat_map(table).collect()
}

struct Found<'a> {
    wire: &'a str,
    problems: Vec<String>,
}

impl Found<'_> {
    fn add(&mut self, path: impl std::fmt::Display, problem: impl std::fmt::Display) {
        self.problems.push(format!("{path}: {problem}"));
    }

    fn limit(&self, name: &str) -> &'static Value {
        &PUBLISHED[self.wire][name]
    }

    /// The most of something; `None`: the vendor has no limit.
    fn most(&self, name: &str) -> Option<usize> {
        self.limit(name)["max"].as_u64().map(|most| usize::try_from(most).unwrap())
    }

    fn count(&mut self, path: &str, limit: &str, count: usize) {
        if let Some(most) = self.most(limit).filter(|most| count > *most) {
            self.add(path, format!("array too long. Expected an array with maximum length {most}, but got {count}"));
        }
    }

    /// A name or an id: its length and its characters.
    fn identifier(&mut self, path: &str, limit: &str, value: &Value) {
        let Some(text) = value.as_str() else { return self.add(path, "Field required") };
        let most = self.most(limit).unwrap_or(usize::MAX);
        let allowed = |c: char| match self.limit(limit)["characters"].as_str() {
            Some("word") => c.is_ascii_alphanumeric() || "_-".contains(c),
            Some("dotted") => c.is_ascii_alphanumeric() || "_.-".contains(c),
            Some("graphic") => c.is_ascii_graphic(),
            other => panic!("no characters {other:?}"),
        };
        if text.is_empty() {
            self.add(path, "empty string");
        } else if text.chars().count() > most {
            self.add(path, format!("string too long. Expected a string with maximum length {most}"));
        } else if !text.chars().all(allowed) {
            self.add(path, format!("String should match pattern: {text:?}"));
        }
    }

    /// A text of a message.
    fn text(&mut self, path: &str, text: &str) {
        let most = self.most("text_characters").unwrap_or(usize::MAX);
        if text.trim().is_empty() {
            self.add(path, "text content blocks must contain non-whitespace text");
        } else if text.len() > most && text.chars().count() > most {
            self.add(path, format!("string too long. Expected a string with maximum length {most}"));
        }
    }

    /// The arguments of a call as JSON in a string.
    fn arguments(&mut self, path: &str, arguments: &Value) {
        let parsed = serde_json::from_str::<Value>(arguments.as_str().unwrap_or_default());
        match parsed {
            Ok(value @ Value::Object(_)) if !has_nul(&value) => {}
            Ok(_) | Err(_) => self.add(path, format!("is not a JSON object: {arguments}")),
        }
    }

    fn distinct<'v>(&mut self, what: &str, ids: impl IntoIterator<Item = &'v str>) {
        let mut seen = HashSet::new();
        for id in ids {
            if !seen.insert(id) {
                self.add(what, format!("must be unique: {id:?}"));
            }
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(list) => list.iter().any(has_nul),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains('\0') || has_nul(value)),
        _ => false,
    }
}
