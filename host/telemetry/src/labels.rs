//! Label values that come from files, guests and models: bounded in number and length, and escaped.

use std::collections::BTreeSet;

use crate::names::{EVENT, EXTENSION, MODEL, ROUTE, RULE, TOOL};

/// The value of a label in place of those beyond its bound.
pub(crate) const OTHER: &str = "other";
/// A value has at most this many bytes; the end of a longer one is cut.
const MAX_BYTES: usize = 128;
/// The number of names of tools that get series of their own before one of their calls succeeded. A name that a model invented
/// never succeeds.
const MAX_UNPROVEN: usize = 32;

/// The number of values of a label that get series of their own.
pub(crate) fn bound(label: &str) -> usize {
    match label {
        EXTENSION => 256,
        RULE => 1024,
        TOOL => 256,
        MODEL => 64,
        EVENT => 256,
        ROUTE => 256,
        // The words of closed lists.
        _ => 32,
    }
}

/// The values of one label that have series of their own.
#[derive(Debug, Default)]
pub(crate) struct Values {
    admitted: BTreeSet<String>,
    unproven: usize,
}

impl Values {
    /// Returns `value` as it is counted: cut, or [`OTHER`] where it gets no series of its own. `proven`: it is known to name
    /// something that exists.
    pub(crate) fn admit<'v>(&mut self, label: &str, value: &'v str, proven: bool) -> &'v str {
        let value = cut(value);
        if value == OTHER || self.admitted.contains(value) {
            return value;
        }
        if self.admitted.len() >= bound(label) || (!proven && self.unproven >= MAX_UNPROVEN) {
            return OTHER;
        }
        self.unproven += usize::from(!proven);
        self.admitted.insert(value.to_owned());
        value
    }
}

fn cut(value: &str) -> &str {
    &value[..value.floor_char_boundary(MAX_BYTES)]
}

/// Appends `name="value"`, escaped as both formats want it. Other control characters are replaced: parsers differ in what they
/// make of them.
pub(crate) fn write(name: &str, value: &str, to: &mut String) {
    to.push_str(name);
    to.push_str("=\"");
    for c in value.chars() {
        match c {
            '\\' => to.push_str("\\\\"),
            '"' => to.push_str("\\\""),
            '\n' => to.push_str("\\n"),
            c if c.is_control() => to.push(char::REPLACEMENT_CHARACTER),
            c => to.push(c),
        }
    }
    to.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_cut_between_characters() {
        let mut text = String::new();
        write("tool", "a\"b\\c\nd\re\u{0}ü", &mut text);
        assert_eq!(text, "tool=\"a\\\"b\\\\c\\nd\u{fffd}e\u{fffd}ü\"");
        let long = format!("{}ü", "x".repeat(MAX_BYTES - 1));
        assert_eq!(Values::default().admit(TOOL, &long, true), "x".repeat(MAX_BYTES - 1));
    }

    #[test]
    fn invented_names_do_not_keep_real_ones_out() {
        let mut values = Values::default();
        let invented: Vec<String> = (0..1000).map(|number| format!("invented-{number}")).collect();
        let admitted =
            |values: &mut Values| invented.iter().filter(|name| values.admit(TOOL, name, false) != OTHER).count();
        assert_eq!(admitted(&mut values), MAX_UNPROVEN);
        assert_eq!(values.admit(TOOL, "real", false), OTHER, "nothing is known about it yet");
        assert_eq!(values.admit(TOOL, "real", true), "real");
        assert_eq!(values.admit(TOOL, "real", false), "real", "it keeps its series when it fails");
        let real: Vec<String> = (0..1000).map(|number| format!("real-{number}")).collect();
        let own = real.iter().filter(|name| values.admit(TOOL, name, true) != OTHER).count();
        assert_eq!(own, bound(TOOL) - MAX_UNPROVEN - 1);
        assert_eq!(admitted(&mut values), MAX_UNPROVEN, "who has a series keeps it");
    }
}
