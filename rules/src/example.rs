//! Examples in rule files: fenced blocks under the headings `Fires` and `Does not fire`. They are not sent to the
//! model; a rule can be held against them.

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

/// Takes the example sections out of a body. A fence ends with at least as many backticks as it begins with, so a longer
/// one may contain shorter ones; one that never ends reaches to the body's end.
pub(crate) fn split(body: &str) -> (String, Vec<Example>) {
    let (mut kept, mut examples) = (String::new(), Vec::new());
    // `Some(fires)` within an example section; the open fence with its backticks and what is in it so far.
    let (mut section, mut fence): (Option<bool>, Option<(usize, Example)>) = (None, None);
    for line in body.trim().split_inclusive('\n') {
        let plain = line.trim();
        let info = plain.trim_start_matches('`');
        let ticks = plain.len() - info.len();
        match (&mut fence, section) {
            (Some((open, _)), _) if ticks >= *open && info.is_empty() => {
                examples.extend(fence.take().map(|(_, example)| example));
            }
            (Some((_, example)), _) => example.text.push_str(line),
            (None, Some(fires)) if ticks >= 3 => {
                fence = Some((ticks, Example { fires, stream: info.trim().to_owned(), text: String::new() }));
            }
            _ if plain.starts_with('#') => {
                section = match plain.trim_start_matches('#').trim().to_ascii_lowercase().as_str() {
                    "fires" => Some(true),
                    "does not fire" => Some(false),
                    _ => None,
                };
                kept.push_str(if section.is_none() { line } else { "" });
            }
            (None, Some(_)) => {}
            (None, None) => kept.push_str(line),
        }
    }
    examples.extend(fence.map(|(_, example)| example));
    (kept.trim().to_owned(), examples)
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
    use super::{Example, split};

    fn streams_and_texts(body: &str) -> Vec<(String, String)> {
        split(body).1.into_iter().map(|example| (example.stream, example.text)).collect()
    }

    #[test]
    fn a_longer_fence_holds_shorter_ones() {
        let body = "Why.\n## Fires\n````text\n```sh\n# Fires\n```\n````\n## Instead\nDo.\n";
        assert_eq!(streams_and_texts(body), [("text".to_owned(), "```sh\n# Fires\n```\n".to_owned())]);
        assert_eq!(split(body).0, "Why.\n## Instead\nDo.");
    }

    #[test]
    fn a_fence_that_never_ends_is_an_example_too() {
        let body = "Why.\n## Does not fire\n```text\na\n";
        assert_eq!(streams_and_texts(body), [("text".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn a_fence_that_says_nothing_of_the_stream_is_told() {
        let trouble = |stream: &str| Example { fires: false, stream: stream.into(), text: "a".into() }.trouble();
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
