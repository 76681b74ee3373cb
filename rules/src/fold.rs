//! Texts that look alike: what a rule with `fold` sees of a stream, and how its conditions are written then.
//!
//! Folding is Unicode's: default-ignorable characters are left out, compatibility forms (NFKC) replace full-width letters and ligatures,
//! canonical composition (NFC) joins letters and accents, and case is folded as a whole (`ß` as `ss`). It is done character by character
//! with the marks that follow it, so that positions of the folded text are positions of the original.

mod advice;
mod lost;
mod map;
mod stream;
mod watch;

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

pub(crate) use self::lost::Lost;
pub(crate) use self::map::Map;
pub(crate) use self::stream::{Decided, Folder};
pub(crate) use self::watch::FoldedWatch;

/// The kinds of folding of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fold {
    /// Characters that are not seen are left out.
    invisible: bool,
    /// Compatibility forms: full-width letters, ligatures, letters of mathematics.
    width: bool,
    /// Letters and their accents are one character.
    compose: bool,
    /// Upper and lower case are the same.
    case: bool,
}

/// The words of the kinds, in the order of the documentation.
pub(crate) const WORDS: [&str; 4] = ["invisible", "width", "compose", "case"];

impl Fold {
    /// The kinds of these words.
    ///
    /// # Errors
    /// The first word that is none.
    pub(crate) fn of<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<Self, &'w str> {
        let mut fold = Self::default();
        for word in words {
            let kind = match word {
                "invisible" => &mut fold.invisible,
                "width" => &mut fold.width,
                "compose" => &mut fold.compose,
                "case" => &mut fold.case,
                other => return Err(other),
            };
            *kind = true;
        }
        Ok(fold)
    }

    /// The words of its kinds.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let has = [self.invisible, self.width, self.compose, self.case];
        WORDS.into_iter().zip(has).filter(|(_, has)| *has).map(|(word, _)| word)
    }

    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Folds a character together with the marks that follow it.
    fn segment(self, segment: &str, out: &mut String) {
        if segment.is_ascii() {
            let start = out.len();
            out.push_str(segment);
            if self.case {
                out[start..].make_ascii_lowercase();
            }
            return;
        }
        let mut text: String = segment.chars().filter(|c| !(self.invisible && is_ignorable(*c))).collect();
        if self.width {
            let blank = |c: char| if BLANKS.contains(&c) { ' ' } else { c };
            text = text.nfkc().filter(|c| !(self.invisible && is_ignorable(*c))).map(blank).collect();
        }
        if self.case {
            text = text.chars().flat_map(folded_case).collect();
        }
        match self.compose {
            true => out.extend(text.nfc()),
            false => out.push_str(&text),
        }
    }

    /// A whole text as a condition sees it.
    pub(crate) fn text(self, text: &str) -> Cow<'_, str> {
        if self.is_none() {
            return Cow::Borrowed(text);
        }
        let (mut folder, mut folded) = (Folder::new(self), String::new());
        let mut take = |_: &Map, more: &str, _: Decided| folded.push_str(more);
        let mut rest = Some(text);
        while let Some(text) = rest {
            rest = folder.push(text, &mut take);
        }
        folder.finish(&mut take);
        Cow::Owned(folded)
    }

    /// A condition that means the same of folded text: its characters are folded, those of an escape and of a class alone.
    pub(crate) fn condition(self, condition: &str) -> String {
        let composed: String = if self.compose { condition.nfc().collect() } else { condition.to_owned() };
        let mut out = String::new();
        if self.case {
            out.push_str("(?i)");
        }
        let (mut in_class, mut chars) = (0_u32, composed.chars());
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    out.push(c);
                    out.extend(chars.next());
                    continue;
                }
                '[' => {
                    in_class += 1;
                    // Directly after the beginning of a class, `]` is one of its characters.
                    let rest = chars.as_str();
                    let begin = if rest.starts_with("^]") { 2 } else { usize::from(rest.starts_with(']')) };
                    out.push(c);
                    out.extend(chars.by_ref().take(begin));
                    continue;
                }
                ']' => in_class = in_class.saturating_sub(1),
                _ => {}
            }
            if c.is_ascii() {
                out.push(c);
                continue;
            }
            let mut folded = String::new();
            self.segment(c.encode_utf8(&mut [0; 4]), &mut folded);
            match (folded.chars().count(), in_class) {
                // A class has single characters. What folds to several, and what is left out, is in no folded text.
                (1, _) => out.push_str(&folded),
                (_, 1..) => out.push(c),
                _ => out.push_str(&format!("(?:{folded})")),
            }
        }
        out
    }
}

/// Symbols that are drawn as a blank, which NFKC does not know as one: the Braille pattern without dots, and the note without a head.
const BLANKS: [char; 2] = ['\u{2800}', '\u{1d159}'];

/// Unicode's default-ignorable characters (the property Default_Ignorable_Code_Point): zero-width blanks and joiners, marks of
/// direction, the soft hyphen, the byte order mark, selectors of variations, tags, and the fillers of Hangul, of which many fonts draw
/// nothing.
pub(crate) fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A character in folded case: the lower case of its upper case, which has all of Unicode's full folding. It joins `ı` and `i` in
/// addition, which look alike.
fn folded_case(c: char) -> impl Iterator<Item = char> {
    let upper = |c: char| c.to_lowercase().flat_map(char::to_uppercase);
    upper(c).flat_map(char::to_lowercase)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn kinds(words: &[&'static str]) -> Fold {
        Fold::of(words.iter().copied()).unwrap()
    }

    fn fold(words: &[&'static str], text: &str) -> String {
        let mut out = String::new();
        kinds(words).segment(text, &mut out);
        out
    }

    #[test]
    fn each_kind_does_what_its_name_says() {
        for (kinds, text, expected) in [
            (&["invisible"][..], "a\u{200b}\u{ad}", "a"),
            (&["width"], "\u{ff21}\u{ff11}", "A1"),
            (&["width"], "ﬁ", "fi"),
            (&["width"], "𝐀", "A"),
            (&["width", "case"], "\u{ff21}", "a"),
            (&["compose"], "e\u{301}", "é"),
            (&["case"], "ß", "ss"),
            (&["case"], "ẞ", "ss"),
            (&["case"], "ſ", "s"),
            (&["case"], "ς", "σ"),
            (&["case"], "\u{212a}", "k"),
            (&["case"], "ı", "i"),
            (&["invisible"], "a\u{115f}b\u{1160}c\u{3164}d\u{ffa0}e\u{180e}f\u{34f}g", "abcdefg"),
            (&["width"], "a\u{2800}b\u{1d159}c\u{3000}d", "a b c d"),
            (&["invisible", "width"], "a\u{ffa0}b", "ab"),
            (&[], "ß\u{200b}\u{ff21}", "ß\u{200b}\u{ff21}"),
        ] {
            assert_eq!(fold(kinds, text), expected, "{kinds:?} {text:?}");
        }
    }

    #[test]
    fn conditions_are_folded_except_for_escapes_and_classes() {
        let condition = |words: &[&'static str], text: &str| kinds(words).condition(text);
        assert_eq!(condition(&["case"], "Straße+"), "(?i)Stra(?:ss)e+");
        assert_eq!(condition(&["case"], r"[äß]\ß"), r"(?i)[äß]\ß");
        assert_eq!(condition(&["case"], "[]ß][^]ß]ß"), "(?i)[]ß][^]ß](?:ss)");
        assert_eq!(condition(&["compose"], "cafe\u{301}"), "café");
        assert_eq!(condition(&["width"], "ﬁle"), "(?:fi)le");
        assert_eq!(condition(&[], "ß"), "ß");
    }
}
