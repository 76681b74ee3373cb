//! The keys of a rule file in one table: their names, and what they take. The fields of [`RuleSpec`](crate::RuleSpec) have
//! the same names; a test compares them.

/// What a key takes, in YAML, where every value is a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A string or a list of strings.
    List,
    /// True or false.
    Flag,
    /// A whole number.
    Number,
    /// A string of any content.
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A string, in a manifest only: in a rule file the file itself says it.
    ManifestOnly,
}

/// A key of a rule, under all of its names.
#[derive(Debug)]
pub(crate) struct KeyInfo {
    /// The name of the field.
    pub(crate) name: &'static str,
    /// Other names of the key, as older files and other hosts write it.
    others: &'static [&'static str],
    pub(crate) takes: Takes,
}

const fn key(name: &'static str, others: &'static [&'static str], takes: Takes) -> KeyInfo {
    KeyInfo { name, others, takes }
}

/// The keys, those of conditions first.
static KEYS: [KeyInfo; 24] = [
    key("condition", &[], Takes::List),
    key("ttsr_trigger", &[], Takes::List),
    key("ttsrTrigger", &[], Takes::List),
    key("scope", &[], Takes::List),
    key("globs", &[], Takes::List),
    key(
        "interrupt",
        &["interruptMode", "interrupt_mode"],
        Takes::OneOf(&["always", "prose-only", "tool-only", "never"]),
    ),
    key("repeat", &["repeatMode", "repeat_mode"], Takes::OneOf(&["once", "after-gap", "always"])),
    key("gap", &["repeatGap", "repeat_gap"], Takes::Number),
    key("context", &["contextMode", "context_mode"], Takes::OneOf(&["discard", "keep", "rewind"])),
    key("action", &[], Takes::OneOf(&["remind", "interrupt", "block", "stop"])),
    key("all", &[], Takes::List),
    key("unless", &[], Takes::List),
    key("field", &[], Takes::List),
    key("agents", &[], Takes::List),
    key("max_interrupts", &["maxInterrupts"], Takes::Number),
    key("description", &[], Takes::Text),
    key("reminder", &[], Takes::Text),
    key("always_apply", &["alwaysApply"], Takes::Flag),
    key("enabled", &[], Takes::Flag),
    key("required", &[], Takes::Flag),
    key("secret", &[], Takes::Flag),
    key("fold", &[], Takes::List),
    key("name", &[], Takes::ManifestOnly),
    key("body", &[], Takes::ManifestOnly),
];

/// The key of this name, or of which this is another name.
pub(crate) fn find(name: &str) -> Option<&'static KeyInfo> {
    KEYS.iter().find(|key| key.name == name || key.others.contains(&name))
}

/// All names of all keys.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().flat_map(|key| std::iter::once(key.name).chain(key.others.iter().copied()))
}

/// All names of the key of this name.
pub(crate) fn names_of(name: &str) -> Vec<&'static str> {
    find(name).map(|key| std::iter::once(key.name).chain(key.others.iter().copied()).collect()).unwrap_or_default()
}

/// What to do about a key that other hosts know and rules do not have.
pub(crate) fn of_other_hosts(key: &str) -> Option<&'static str> {
    Some(match key {
        "question" | "judge" => "no second model judges a rule here: it is judged by its `condition` alone",
        "astCondition" | "ast_condition" => "syntax trees are not matched: it is judged by its `condition` alone",
        "tags" | "title" | "version" | "author" => "it changes nothing about the rule",
        "name" | "body" => "the name is the file's name, the body is what follows the front matter",
        "paths" | "applyTo" | "files" | "glob" => "files are named by `globs`",
        "allowed-tools" | "allowed_tools" | "allowedTools" | "tools" | "event" => {
            "what a rule watches is in `scope`, such as `scope: \"tool:shell\"`"
        }
        "pattern" | "patterns" | "regex" | "match" | "matcher" | "when" | "if" => {
            "what a rule looks for is in `condition`"
        }
        "message" => "what the model gets is the text that follows the front matter",
        "trigger" | "inclusion" => "write `condition`, `globs` or `always_apply = true`",
        "hide" => "what must not be shown is a group of the condition: `(?P<hide>…)`",
        "fires" | "passes" | "examples" | "example" | "tests" | "test" => {
            "examples are blocks of code in the body, under the headings `## Fires` and `## Does not fire`"
        }
        "exclude" | "except" | "ignore" | "exclude_globs" => {
            "exceptions are in `unless`, and files that are left out in `globs` with `!` before them"
        }
        "commands" | "command" => {
            "write `scope = \"tool:shell\"`, `field = \"commands\"` and a `condition` on a command"
        }
        "rule" => "a rule file is one rule: write its keys without `[[rule]]`",
        "level" | "severity" | "then" | "on_match" => "what a match does is said by `interruptMode` and `action`",
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::BTreeSet;

    use serde::Deserialize;

    use super::{KEYS, Takes, find, names};
    use crate::RuleSpec;

    #[test]
    fn the_table_has_the_names_that_rules_are_read_with() {
        let unknown = toml::Table::from_iter([("no such key".to_owned(), true.into())]);
        let error = RuleSpec::deserialize(unknown).unwrap_err().to_string();
        // serde lists all names of all fields: unknown field `no such key`, expected one of `…`, `…`.
        let read: BTreeSet<&str> = error.split('`').skip(3).step_by(2).collect();
        assert_eq!(names().collect::<BTreeSet<_>>(), read);
        assert_eq!(find("repeatGap").map(|key| key.name), Some("gap"));
        assert!(find("no such key").is_none());
    }

    #[test]
    fn the_table_has_the_words_that_rules_are_read_with() {
        let choices = KEYS.iter().filter_map(|key| match key.takes {
            Takes::OneOf(words) => Some((key.name, words)),
            _ => None,
        });
        let mut checked = 0;
        for (name, words) in choices {
            let error = RuleSpec::deserialize(toml::Table::from_iter([(name.to_owned(), "no such word".into())]));
            let error = error.unwrap_err().to_string();
            // unknown variant `no such word`, expected one of `…`, `…`.
            let line = error.lines().find(|line| line.contains("no such word")).unwrap();
            assert_eq!(line.split('`').skip(3).step_by(2).collect::<Vec<_>>(), words, "{name}");
            checked += 1;
        }
        assert_eq!(checked, 4);
    }
}
