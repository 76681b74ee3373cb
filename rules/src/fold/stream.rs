//! A stream as it is folded, in any chunks.

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

use super::{Fold, Map, is_ignorable};

/// The byte of the original at which a part of the folded text is final.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Decided {
    /// So many bytes behind where the text ends in the original.
    After(u64),
    /// At this place.
    At(u64),
}

/// So many marks after a letter belong to it, as in the stream-safe text format of Unicode (UAX 15); those that follow are folded
/// without it. Scripts in use have at most a few.
const MAX_MARKS: usize = 30;

/// After so many bytes that are left out, [`Folder::push`] returns.
const LEFT_OUT: u64 = 1024;

/// Folds a stream. The text after which something can follow that changes it waits: a letter, for its accents.
#[derive(Debug)]
pub(crate) struct Folder {
    fold: Fold,
    /// The text that waits without what is left out of it, and where it begins in the original.
    waits: String,
    from: u64,
    /// Bytes that were left out since it was last looked at.
    left_out: u64,
    /// Bytes of the original that were taken, and of the folded text that were given out.
    taken: u64,
    given: u64,
    pub(crate) map: Map,
}

impl Folder {
    pub(crate) fn new(fold: Fold) -> Self {
        Self { fold, waits: String::new(), from: 0, left_out: 0, taken: 0, given: 0, map: Map::default() }
    }

    /// Bytes of the original that were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Bytes of the original of which the folded text is given out, or that have none.
    pub(crate) fn settled(&self) -> u64 {
        if self.waits.is_empty() { self.taken } else { self.from }
    }

    /// Takes more of the stream, whole characters. `give` gets folded text and when it was decided. Returns what is left to be taken
    /// after each KiB that was left out, so that its caller finds out at the same byte for every chunking; empty where nothing is.
    pub(crate) fn push<'t>(&mut self, text: &'t str, give: &mut dyn FnMut(&Map, &str, Decided)) -> Option<&'t str> {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let run = run_of(rest);
            // The last one waits for what follows.
            let keep = usize::from(self.fold.compose);
            if run > keep {
                self.settle(self.taken + 1, give);
                self.give_run(&rest[..run - keep], give);
                rest = &rest[run - keep..];
                continue;
            }
            self.character(c, give);
            rest = &rest[c.len_utf8()..];
            if self.left_out >= LEFT_OUT {
                self.left_out = 0;
                return Some(rest);
            }
        }
        None
    }

    /// Gives out what waits, if it has waited for so many bytes: nothing that follows is taken for a part of it.
    pub(crate) fn settle_after(&mut self, bytes: u64, give: &mut dyn FnMut(&Map, &str, Decided)) {
        if self.taken - self.from > bytes {
            self.settle(self.taken, give);
        }
    }

    /// The stream is complete: what waits is given out.
    pub(crate) fn finish(&mut self, give: &mut dyn FnMut(&Map, &str, Decided)) {
        self.settle(self.taken, give);
    }

    fn character(&mut self, c: char, give: &mut dyn FnMut(&Map, &str, Decided)) {
        let end = self.taken + c.len_utf8() as u64;
        if self.fold.invisible && is_ignorable(c) {
            self.left_out += end - self.taken;
            self.taken = end;
            return;
        }
        if self.fold.begins(c) || self.waits.chars().nth(MAX_MARKS).is_some() {
            self.settle(end, give);
        }
        if self.waits.is_empty() {
            self.from = self.taken;
        }
        self.waits.push(c);
        self.taken = end;
        if !self.fold.compose {
            self.settle(end, give);
        }
    }

    /// Gives out what waits; `at`: the place at which it is known that nothing more belongs to it.
    fn settle(&mut self, at: u64, give: &mut dyn FnMut(&Map, &str, Decided)) {
        if self.waits.is_empty() {
            return;
        }
        let mut folded = String::new();
        self.fold.segment(&self.waits, &mut folded);
        // What was left out behind it belongs to it.
        let (end, length) = (self.taken, self.waits.len() as u64);
        let same = self.waits.is_ascii() && end - self.from == length;
        self.waits.clear();
        self.give((self.from, end), &folded, same, Decided::At(at), give);
    }

    /// Gives out ASCII, behind which more of it follows.
    fn give_run(&mut self, run: &str, give: &mut dyn FnMut(&Map, &str, Decided)) {
        let mut folded = String::new();
        self.fold.segment(run, &mut folded);
        let from = self.taken;
        self.taken += run.len() as u64;
        self.give((from, self.taken), &folded, true, Decided::After(u64::from(self.fold.compose)), give);
    }

    fn give(
        &mut self,
        original: (u64, u64),
        folded: &str,
        same: bool,
        decided: Decided,
        give: &mut dyn FnMut(&Map, &str, Decided),
    ) {
        if folded.is_empty() {
            return;
        }
        self.map.add(self.given, original, same);
        self.given += folded.len() as u64;
        give(&self.map, folded, decided);
    }
}

/// The bytes of ASCII at the beginning of a text.
fn run_of(text: &str) -> usize {
    text.bytes().position(|byte| !byte.is_ascii()).unwrap_or(text.len())
}

impl Fold {
    /// Whether a character begins something new, whatever is before it: it is no mark, and no composition ends with it.
    fn begins(self, c: char) -> bool {
        let begins =
            |c: char| is_nfc_quick(std::iter::once(c)) != IsNormalized::Maybe && canonical_combining_class(c) == 0;
        // Half-width marks and jamo are marks and jamo in their compatibility forms.
        c.is_ascii() || begins(c) && (!self.width || std::iter::once(c).nfkd().next().is_none_or(begins))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::fold::WORDS as ALL;

    /// The folded text, with the places in the original of each of its characters.
    fn folded(kinds: &[&'static str], chunks: &[&str]) -> (String, Vec<(u64, u64)>) {
        let (mut folder, mut text) = (Folder::new(Fold::of(kinds.iter().copied()).unwrap()), String::new());
        for chunk in chunks {
            let mut rest = Some(*chunk);
            while let Some(chunk) = rest {
                rest = folder.push(chunk, &mut |_, more, _| text.push_str(more));
            }
        }
        folder.finish(&mut |_, more, _| text.push_str(more));
        let places = text
            .char_indices()
            .map(|(at, c)| (folder.map.start(at as u64).unwrap(), folder.map.end((at + c.len_utf8()) as u64)));
        let places = places.collect();
        (text, places)
    }

    #[test]
    fn text_and_places_are_the_same_in_any_chunks() {
        let text = "a\u{200b}Bc\u{301}\u{ad}e\u{301}! ﬁ Ａ ß 각 \u{feff}x";
        for kinds in [&ALL[..], &ALL[..1], &ALL[1..2], &ALL[2..3], &ALL[3..], &[]] {
            let whole = folded(kinds, &[text]);
            for (at, _) in text.char_indices() {
                assert_eq!(folded(kinds, &[&text[..at], &text[at..]]), whole, "{kinds:?} {at}");
            }
            let one_by_one: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
            assert_eq!(folded(kinds, &one_by_one), whole, "{kinds:?}");
        }
        let (all, places) = folded(&ALL, &[text]);
        assert_eq!(all, "abćé! fi a ss 각 x");
        let places: Vec<&str> = places.iter().map(|(start, end)| &text[*start as usize..*end as usize]).collect();
        assert_eq!(places[..4], ["a\u{200b}", "B", "c\u{301}\u{ad}", "e\u{301}"]);
        assert_eq!(places[6..8], ["ﬁ", "ﬁ"]);
        assert_eq!(folded(&[], &[text]).0, text);
    }
}
