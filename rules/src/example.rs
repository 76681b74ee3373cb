//! Examples in rule files: fenced blocks under the headings `Fires` and `Does not fire`, which [`crate::sections`] finds. They are not
//! sent to the model; a rule can be held against them.

use std::ops::Range;

use flow::{CallId, Diagnostic, DiagnosticCode as Code, Severity, StreamKind};

use crate::{Bucket, RepeatMode, Rule, RuleSession, RuleSet, RuleSettings};

/// Something a rule fires on, or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Whether it fires.
    pub fires: bool,
    /// The stream that the fence names: `text`, `thinking`, or `tool:NAME KEY=VALUE … FIELD`, where `FIELD` is the
    /// argument that contains the text and each `KEY=VALUE` another argument.
    pub stream: String,
    /// The text of the example, without its fence.
    pub text: String,
    /// The bytes of its fence in the file of the rule, where they are known.
    pub(crate) fence: Option<Range<usize>>,
}

impl Example {
    /// Why it shows nothing, where its fence does not say what the text is.
    pub fn trouble(&self) -> Option<String> {
        let mut words = self.stream.split_whitespace();
        match words.next() {
            Some("text" | "thinking") => None,
            Some(word) if word.strip_prefix("tool:").is_some_and(|name| !name.is_empty()) => {
                let told = words.any(|word| !word.contains('='));
                (!told).then(|| format!("the example `{}` names no argument that contains its text", self.stream))
            }
            _ => Some(format!("the example `{}` names no stream, so it tests nothing", self.stream)),
        }
    }

    fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// The block of the example, and the text that is fed into it.
    fn block(&self) -> (StreamKind, String) {
        let mut words = self.stream.split_whitespace();
        match words.next() {
            Some("thinking") => (StreamKind::Thinking, self.text.clone()),
            Some(word) if word.starts_with("tool:") => {
                let name = word["tool:".len()..].to_owned();
                (StreamKind::Tool { call: CallId::new("example"), name }, self.arguments(words))
            }
            _ => (StreamKind::Text, self.text.clone()),
        }
    }

    fn arguments<'a>(&self, words: impl Iterator<Item = &'a str>) -> String {
        let one = |word: &str| match word.split_once('=') {
            Some((key, value)) => format!("{}:{}", quote(key), quote(value)),
            None => format!("{}:{}", quote(word), quote(&self.text)),
        };
        format!("{{{}}}", words.map(one).collect::<Vec<_>>().join(","))
    }
}

/// How the fence of an example is written.
pub(crate) const FENCE_HELP: &str =
    "write `text`, `thinking`, or for example `tool:edit_file path=src/a.rs new_text` after the backticks";

/// Tests a rule with its own examples, each fed whole and character by character. The diagnostics name those which
/// examples the rule does not keep.
pub fn check_examples(rule: &Rule) -> Vec<Diagnostic> {
    if rule.bucket != Bucket::Stream || rule.examples.is_empty() {
        return Vec::new();
    }
    let alone = Rule { enabled: true, repeat: Some(RepeatMode::Always), ..rule.clone() };
    let (set, mut found) = RuleSet::build(vec![alone], RuleSettings::default(), "");
    for example in &rule.examples {
        if let Some(message) = example.trouble() {
            found.push(rule.diagnostic(Severity::Error, Code::RuleInvalidExample, message).help(FENCE_HELP));
            continue;
        }
        let (kind, text) = example.block();
        let whole = vec![text.as_str()];
        let single = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
        for pieces in [whole, single] {
            let mut gate = RuleSession::new(set.clone()).gate();
            gate.block_start(0, &kind);
            let in_pieces = pieces.iter().any(|piece| !gate.piece(0, piece).matches.is_empty());
            let fired = in_pieces || !gate.end(0).matches.is_empty();
            if fired != example.fires {
                let says = if example.fires { "does not fire on" } else { "fires on" };
                let message = format!("{says} its own example ({}): {}", example.stream, example.first_line());
                let one = rule.diagnostic(Severity::Error, Code::RuleExampleFailed, message);
                found.push(match rule.places.example(example) {
                    Some(location) => one.at(location, ""),
                    None => one,
                });
                break;
            }
        }
    }
    found
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::Example;

    #[test]
    fn a_fence_that_says_nothing_of_the_stream_is_told() {
        let trouble =
            |stream: &str| Example { fires: false, stream: stream.into(), text: "a".into(), fence: None }.trouble();
        for fine in ["text", "thinking", "tool:shell command", "tool:write_file path=a.rs content"] {
            assert_eq!(trouble(fine), None);
        }
        for wrong in
            ["", "python", "python content", "tool:", "tool: content", "tool:shell", "tool:write_file path=a.rs"]
        {
            assert!(trouble(wrong).is_some(), "{wrong}");
        }
    }
}
