//! Reads the conditions of a rule: refuses those that cannot be what their author meant, compiles the others, and warns
//! where one may match something else than intended.

use std::ops::Range;
use std::sync::Arc;

use flow::{DiagnosticCode as Code, Severity};

use crate::dialect::{self, PatternError};
use crate::engine::Pattern;
use crate::fold::{Fold, Lost};
use crate::reach;
use crate::rule::Reader;
use crate::spec::Strings;
use crate::{Rule, command_lines};

/// The keys that a condition can be written under.
pub(crate) const CONDITION: &[&str] = &["condition", "ttsr_trigger", "ttsrTrigger"];

/// What to do about a control character that an escape of the file has made.
const QUOTES_HELP: &str = "in double quotes the file itself decodes `\\b`, `\\f` and `\\u…` before the rule is read: write \
                           the value in single quotes, '…', where nothing is decoded";

/// A condition together with the keys that it can be written under.
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) keys: &'static [&'static str],
    /// The condition as written, where `text` was derived from it.
    pub(crate) whole: Option<String>,
}

impl Written {
    pub(crate) fn new(text: String, keys: &'static [&'static str]) -> Self {
        Self { text, keys, whole: None }
    }

    pub(crate) fn part(&self, text: String) -> Self {
        Self { text, keys: self.keys, whole: Some(self.text.clone()) }
    }
}

impl Reader<'_> {
    /// The conditions under `keys` that can be compiled, and how many were refused before that. A condition is taken
    /// exactly as written; only line ends around it, as a multi-line string has them, are not part of it.
    pub(crate) fn written(&mut self, strings: &Strings, keys: &'static [&'static str]) -> (Vec<Written>, usize) {
        let (mut out, mut refused): (Vec<Written>, usize) = (Vec::new(), 0);
        for text in strings.0.iter().map(|text| without_outer_lines(text)) {
            if text.is_empty() {
                let place = self.places.find_empty(keys).or_else(|| self.places.key(keys));
                let message = "an empty condition is ignored".to_owned();
                let help = Some("write a regular expression, or remove it".into());
                self.report(Severity::Warning, Code::RuleEmptyCondition, message, help, place);
                continue;
            }
            if out.iter().any(|known| known.text == text) {
                continue;
            }
            if text.trim().is_empty() {
                let place = self.places.find(keys, text, 0..text.len());
                let message = "a condition of white space only is ignored".to_owned();
                let help = Some("write `[ ]` to match a blank".into());
                self.report(Severity::Warning, Code::RuleEmptyCondition, message, help, place);
                continue;
            }
            if self.refuses_controls("condition", text, keys, |c| matches!(c, '\t' | '\n' | '\r')) {
                refused += 1;
            } else {
                out.push(Written::new(text.to_owned(), keys));
            }
        }
        (out, refused)
    }

    /// Reports the first control character of `text` that is not allowed. Such a character is the result of an escape
    /// that the file format decodes (`"\b"` in TOML is a backspace) and never matches what the author meant.
    pub(crate) fn refuses_controls(
        &mut self,
        what: &str,
        text: &str,
        keys: &[&str],
        allowed: impl Fn(char) -> bool,
    ) -> bool {
        let Some((at, c)) = text.char_indices().find(|(_, c)| c.is_control() && !allowed(*c)) else { return false };
        let place = self.places.find(keys, text, at..at + c.len_utf8());
        let message = format!("{what} `{}` contains the control character {}", shown(text), name_of(c));
        self.report(Severity::Error, Code::RuleControlCharacter, message, Some(QUOTES_HELP.into()), place);
        true
    }

    pub(crate) fn patterns(&mut self, conditions: &[Written], fold: Fold) -> Vec<Arc<Pattern>> {
        let mut out = Vec::new();
        for written in conditions {
            let text = &written.text;
            if self.trusted {
                out.push(Arc::new(Pattern::trusted(text, fold)));
                continue;
            }
            match Pattern::new(text).and_then(|pattern| pattern.folded(fold)) {
                Ok(pattern) if !reach::can_match(pattern.nfa()) => {
                    let (span, why, help) = blame(text);
                    out.extend(self.never(written, span, why, help).then(|| Arc::new(pattern)));
                }
                Ok(pattern) => {
                    if self.folds_away(written, fold) {
                        continue;
                    }
                    self.notes(written, &pattern);
                    out.push(Arc::new(pattern));
                }
                Err(PatternError { message, help, span }) => {
                    let place = self.place(written, span);
                    let message = format!("condition `{}` is not valid: {message}", shown(text));
                    self.report(Severity::Error, Code::RuleInvalidCondition, message, help, place);
                }
            }
        }
        out
    }

    /// Reports a condition that no text matches. Returns whether the rule can do with it: what never matches silences nothing.
    fn never(&mut self, written: &Written, span: Range<usize>, why: &str, help: &str) -> bool {
        let text = written.text.as_str();
        let place = self.place(written, span);
        let is_unless = written.keys == ["unless"];
        let (severity, so) =
            if is_unless { (Severity::Warning, ", so it silences nothing") } else { (Severity::Error, "") };
        let message = format!("condition `{}` can never match: {why}{so}", shown(text));
        self.report(severity, Code::RuleInvalidCondition, message, Some(help.into()), place);
        is_unless
    }

    /// Reports characters of a condition that are in no folded text. Returns whether the rule can do nothing with the condition.
    fn folds_away(&mut self, written: &Written, fold: Fold) -> bool {
        let Some(Lost { character, folded, is_all }) = fold.lost_in(&written.text) else { return false };
        let span = written.text.find(&character).map_or(0..written.text.len(), |at| at..at + character.len());
        // A letter and its accent look like what they are folded to.
        let shown =
            if character.chars().count() > 1 { character.escape_default().to_string() } else { visible(&character) };
        let (why, help) = match folded.as_str() {
            "" => (format!("`fold` leaves `{shown}` out of every text"), "remove it".to_owned()),
            _ => (
                format!("with `fold`, every text has `{folded}` in the place of `{shown}`"),
                format!(
                    "write `{folded}`: what is in brackets or an escape is not folded, as the rest of a condition is"
                ),
            ),
        };
        if is_all {
            return !self.never(written, span, &why, &help);
        }
        self.warn(
            Code::RuleSuspiciousCondition,
            written,
            span,
            &format!(" has a part that can never match: {why}"),
            Some(help),
        );
        false
    }

    /// Leaves out conditions on commands that no list of commands contains.
    pub(crate) fn drop_unlisted(&mut self, rule: &mut Rule, written: &[&[Written]]) {
        if self.trusted || !rule.watches_only_commands() {
            return;
        }
        let mut is_listed = |pattern: &Arc<Pattern>| {
            let one = written.iter().copied().flatten().find(|one| one.text == pattern.as_str());
            let Some(one) = one.filter(|_| command_lines::is_in_no_list(pattern)) else { return true };
            let why = "a list of commands has a command a line and one blank between words, without operators and quotes around words";
            let help = "write it for one command, such as `(?m)^rm[ ]`; `tidegate rules test` prints the list for a command line";
            self.never(one, 0..one.text.len(), why, help)
        };
        rule.conditions.retain(&mut is_listed);
        rule.all.retain(&mut is_listed);
    }

    /// Warns of what a usable condition may match otherwise than intended.
    fn notes(&mut self, written: &Written, pattern: &Pattern) {
        let text = &written.text;
        for PatternError { message, help, span } in dialect::notes(text) {
            self.warn(Code::RuleSuspiciousCondition, written, span, &format!(": {message}"), help);
        }
        if written.whole.is_none() {
            self.note_blanks(written);
        }
        if let Some((at, c)) = text.char_indices().find(|(_, c)| is_invisible(*c)) {
            let message = format!(" contains the invisible character {}", name_of(c));
            let help = format!("remove it, or write `\\x{{{:X}}}` where it is meant", u32::from(c));
            self.warn(Code::RuleInvisibleCharacter, written, at..at + c.len_utf8(), &message, Some(help));
        }
        let unless = written.keys == ["unless"];
        let (message, help) = match (pattern.matches_empty(), unless) {
            (true, true) => (" matches the empty string, so the rule never fires", "ask for at least one character"),
            (true, false) => (
                " matches the empty string, so it fires before the first byte of every stream",
                "ask for at least one character, such as `+` in place of `*`; for \"any call that edits such a file\" \
                 write a glob such as `*.rs`",
            ),
            (false, true) if pattern.matches_no_bytes() => (
                " matches without a character, so it silences the rule from the first place where its assertion holds",
                "ask for at least one character next to the assertion",
            ),
            (false, false) if pattern.matches_no_bytes() => (
                " matches without a character, so it fires wherever its assertion holds: in nearly every stream",
                "ask for at least one character next to the assertion",
            ),
            (false, _) => return,
        };
        self.warn(Code::RuleEmptyMatch, written, 0..text.len(), message, Some(help.to_owned()));
    }

    /// A blank at an end of a condition is easily written by accident and hard to see, and it is matched.
    fn note_blanks(&mut self, written: &Written) {
        let text = &written.text;
        if text.starts_with("(?x") {
            return;
        }
        // A tab and a line end are written as escapes.
        let is_blank = |c: char| c.is_whitespace() && !matches!(c, '\t' | '\n' | '\r');
        let (before, after) =
            (text.len() - text.trim_start_matches(is_blank).len(), text.trim_end_matches(is_blank).len());
        let escaped = text[..after].chars().rev().take_while(|c| *c == '\\').count() % 2 == 1;
        let ends = [("begins", 0..before), ("ends", after..text.len())];
        for (verb, span) in ends.into_iter().filter(|(_, span)| !span.is_empty()) {
            if verb == "ends" && escaped {
                continue;
            }
            let help = "remove it, or write `[ ]` where it is meant";
            let message = format!(" {verb} with a blank, which has to match too");
            self.warn(Code::RuleOuterBlank, written, span, &message, Some(help.into()));
        }
    }

    pub(crate) fn warn(
        &mut self,
        code: Code,
        written: &Written,
        span: Range<usize>,
        message: &str,
        help: Option<String>,
    ) {
        let place = self.place(written, span);
        let message = format!("condition `{}`{message}", shown(&written.text));
        self.report(Severity::Warning, code, message, help, place);
    }

    /// The place of a part of a condition in the rule's file.
    fn place(&self, written: &Written, part: Range<usize>) -> Option<Range<usize>> {
        match &written.whole {
            // A derived part has no place of its own.
            Some(whole) => self.places.find(written.keys, whole, 0..whole.len()),
            None => self.places.find(written.keys, &written.text, part),
        }
    }
}

/// The part of a condition for which it never matches, why, and what to write.
fn blame(text: &str) -> (Range<usize>, &'static str, &'static str) {
    let assertions = [
        (
            "^",
            "`^` is the beginning of the text",
            "write `(?m)` in front, where `^` is to be the beginning of a line, or `\\^` for the character",
        ),
        (
            "$",
            "`$` is the end of the text",
            "write `(?m)` in front, where `$` is to be the end of a line, or `\\$` for the character",
        ),
        ("\\A", "`\\A` is the beginning of the text", "remove it, or put it first"),
        ("\\z", "`\\z` is the end of the text", "remove it, or put it last"),
        ("\\Z", "`\\Z` is the end of the text", "remove it, or put it last"),
        ("\\b", "`\\b` is between a letter, digit or `_` and something else", "remove it where there is no such place"),
        (
            "\\B",
            "`\\B` is between two letters, digits or `_`, or between two others",
            "remove it where there is no such place",
        ),
    ];
    for (written, why, help) in assertions {
        // `[^` begins a class.
        for (at, _) in text.match_indices(written).filter(|(at, _)| !text[..*at].ends_with('[')) {
            let without = format!("{}(?:){}", &text[..at], &text[at + written.len()..]);
            if Pattern::new(&without).is_ok_and(|pattern| reach::can_match(pattern.nfa())) {
                return (at..at + written.len(), why, help);
            }
        }
    }
    (0..text.len(), "there is no text that fulfils all of it", "check its classes and assertions")
}

/// The most characters of a condition in a message: the place in its file shows the rest.
const MAX_SHOWN: usize = 120;

/// `text` as a message contains it: visible, and not longer than a line or two.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", visible(&text[..end])),
        None => visible(text),
    }
}

/// `text` without empty lines before and after it. Indentation of its first line is kept.
fn without_outer_lines(text: &str) -> &str {
    let blank = text.len() - text.trim_start().len();
    let start = text[..blank].rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let end = text.trim_end().len().max(start);
    let end = text[end..].find(['\n', '\r']).map_or(text.len(), |at| end + at);
    &text[start..end]
}

/// `text` as it is shown in a message: characters that would be invisible there, or would steer a terminal, as escapes.
pub(crate) fn visible(text: &str) -> String {
    let hidden = |c: char| (c.is_control() && c != '\t') || is_invisible(c);
    text.chars().flat_map(|c| if hidden(c) { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Characters without a glyph of their own, those that reorder text, and the blank that looks like any other.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn name_of(c: char) -> String {
    let known = match c {
        '\0' => " (NUL)",
        '\u{8}' => " (backspace)",
        '\u{b}' => " (vertical tab)",
        '\u{c}' => " (form feed)",
        '\u{1b}' => " (escape)",
        '\u{a0}' => " (no-break space)",
        '\u{200b}' => " (zero-width space)",
        '\u{feff}' => " (byte order mark)",
        _ => "",
    };
    format!("U+{:04X}{known}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::without_outer_lines;

    #[test]
    fn only_line_ends_around_a_condition_are_left_out() {
        for (written, read) in [
            ("a", "a"),
            (" a ", " a "),
            ("\r\n\r\na\n", "a"),
            ("\n  a\n  b\n  ", "  a\n  b"),
            ("a \n", "a "),
            (" ", " "),
            ("\n", ""),
            (" \n ", " "),
        ] {
            assert_eq!(without_outer_lines(written), read, "{written:?}");
        }
    }
}
