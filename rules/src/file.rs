//! Rule files: Markdown with front matter. The front matter holds the keys of [`RuleSpec`], in TOML between lines of
//! `+++`, or in YAML between lines of `---` as other hosts write it; the rest is the body.

use std::ops::Range;

use serde::Deserialize;

use crate::yaml::{self, Entry, Value};
use crate::{Diagnostic, Rule, RuleSpec, Severity, Source};

/// Reads a rule file. `name` is the file's name without its extension. The diagnostics tell what was refused; their
/// spans are bytes of `text`.
pub fn parse_rule_file(name: &str, source: &Source, text: &str) -> (Option<Rule>, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let mut reader = |diagnostic: Diagnostic| found.push(diagnostic);
    let report = |message: String| Diagnostic::new(Severity::Error, name, source, message);
    let Some(parts) = split(text) else {
        let help = "begin it with a line `+++`, the keys in TOML, and a line `+++`";
        reader(report("the file has no front matter".into()).help(help).at(Some(0..0)));
        return (None, found);
    };
    let front = &text[parts.front.clone()];
    let read = match parts.fence {
        Fence::Toml => toml::from_str(front).map_err(|error| (error.message().to_owned(), error.span())),
        Fence::Yaml => from_yaml(front, |message, span| {
            let place = parts.front.start + span.start..parts.front.start + span.end;
            reader(Diagnostic::new(Severity::Warning, name, source, message).at(Some(place)));
        }),
    };
    let mut spec: RuleSpec = match read {
        Ok(spec) => spec,
        Err((message, span)) => {
            let place = span.map(|span| parts.front.start + span.start..parts.front.start + span.end);
            reader(report(message).at(place));
            return (None, found);
        }
    };
    if spec.name.is_some() || spec.body.is_some() {
        let help = "the name is the file's name, the body is what follows the front matter";
        reader(report("`name` and `body` are not read in a rule file".into()).help(help));
        return (None, found);
    }
    spec.body = Some(text[parts.body].to_owned());
    let (rule, more) = Rule::from_spec(name, source, &spec, Some(text));
    found.extend(more);
    (rule, found)
}

type ReadError = (String, Option<Range<usize>>);

/// Turns YAML entries into the keys they stand for. Keys that rules do not have are reported and passed over, so that
/// files written for other hosts load.
fn from_yaml(front: &str, mut warn: impl FnMut(String, Range<usize>)) -> Result<RuleSpec, ReadError> {
    let (entries, strange) = yaml::parse(front);
    for span in strange {
        warn("this line is no `key: value` and is not read".into(), span);
    }
    let mut table = toml::Table::new();
    for Entry { key, span, value } in entries {
        let key = if key == "applyTo" { "globs".to_owned() } else { key };
        match typed(&key, value) {
            Some(Ok(value)) => {
                table.insert(key, value);
            }
            Some(Err(message)) => return Err((message, Some(span))),
            None => warn(unknown(&key), span),
        }
    }
    RuleSpec::deserialize(table).map_err(|error| (error.message().to_owned(), None))
}

fn unknown(key: &str) -> String {
    match key {
        "question" | "astCondition" | "judge" => {
            format!("`{key}` is not supported: the rule is judged by its `condition` alone")
        }
        _ => format!("`{key}` is no key of a rule and is not read"),
    }
}

/// The value as the key wants it; nothing for a key that rules do not have.
fn typed(key: &str, value: Value) -> Option<Result<toml::Value, String>> {
    let one = |value: Value| match value {
        Value::One(text) => text,
        Value::Many(items) => items.join(", "),
    };
    Some(match key {
        "condition" | "ttsr_trigger" | "ttsrTrigger" | "all" | "unless" | "scope" | "globs" | "field" | "agents" => {
            Ok(match value {
                Value::One(text) => text.into(),
                Value::Many(items) => items.into(),
            })
        }
        "alwaysApply" | "always_apply" | "enabled" => match one(value).to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(true.into()),
            "false" | "no" | "off" | "" => Ok(false.into()),
            other => Err(format!("`{key}` is true or false, not `{other}`")),
        },
        "gap" | "repeatGap" | "repeat_gap" | "max_interrupts" | "maxInterrupts" => {
            let text = one(value);
            text.parse::<u32>().map(|n| i64::from(n).into()).map_err(|_| format!("`{key}` is a number, not `{text}`"))
        }
        "interrupt" | "interruptMode" | "interrupt_mode" | "repeat" | "repeatMode" | "repeat_mode" | "context"
        | "contextMode" | "context_mode" | "action" | "description" => Ok(one(value).into()),
        _ => return None,
    })
}

#[derive(Clone, Copy)]
enum Fence {
    Toml,
    Yaml,
}

struct Parts {
    fence: Fence,
    front: Range<usize>,
    body: Range<usize>,
}

/// Finds the front matter between two fences; a byte order mark before it is passed over.
fn split(text: &str) -> Option<Parts> {
    let begin = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lines = text[begin..].split_inclusive('\n').scan(begin, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    });
    let (start, first) = lines.next()?;
    let fence = match first.trim_end() {
        "+++" => Fence::Toml,
        "---" => Fence::Yaml,
        _ => return None,
    };
    let (end, last) = lines.find(|(_, line)| line.trim_end() == first.trim_end())?;
    Some(Parts { fence, front: start + first.len()..end, body: end + last.len()..text.len() })
}
