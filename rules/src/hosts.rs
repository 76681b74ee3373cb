//! Keys of other hosts that say when a rule without a condition reaches the model: `trigger` of Windsurf and `inclusion` of
//! Kiro. Their globs are other names of `globs`.

use crate::values::Wrong;

/// When the model gets a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attached {
    /// It is part of the system prompt.
    Always,
    /// It is for work on files that its globs match.
    Files,
    /// It is for tasks that its description fits.
    Description,
    /// It is for when the user names it.
    Request,
}

const TRIGGER: [(&str, Attached); 4] = [
    ("always_on", Attached::Always),
    ("glob", Attached::Files),
    ("model_decision", Attached::Description),
    ("manual", Attached::Request),
];

const INCLUSION: [(&str, Attached); 4] = [
    ("always", Attached::Always),
    ("fileMatch", Attached::Files),
    ("auto", Attached::Description),
    ("manual", Attached::Request),
];

/// The values of a key that says when a rule is attached. `None`: it is no such key.
fn words(key: &str) -> Option<&'static [(&'static str, Attached)]> {
    match key {
        "trigger" => Some(&TRIGGER),
        "inclusion" => Some(&INCLUSION),
        _ => None,
    }
}

/// Reads a key that says when a rule is attached. `None`: it is no such key.
pub(crate) fn attached(key: &str, value: &str) -> Option<Result<Attached, Wrong>> {
    let words = words(key)?;
    let known = words.iter().find(|(word, _)| *word == value).map(|(_, attached)| *attached);
    Some(known.ok_or_else(|| {
        let all = words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let near = flow::text::nearest(value, words.iter().map(|(word, _)| *word));
        let help = near.map_or_else(|| format!("known values: {all}"), |near| format!("did you mean `{near}`?"));
        Wrong::new(format!("`{key}` cannot be \"{}\"", value.escape_debug())).help(help)
    }))
}

/// Whether files of other hosts have this key, which makes a file with nothing else of a condition one of theirs.
pub(crate) fn is_theirs(key: &str) -> bool {
    matches!(key, "alwaysApply" | "always_apply" | "globs" | "paths" | "applyTo" | "fileMatchPattern")
        || words(key).is_some()
}
