//! How much work a command line costs. It is counted before it is done, so that a short line cannot ask for much.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::word::{Part, Word};

/// The most work that is done for one line, whatever is nested in what, in the units of [`Work::take`].
const MOST: usize = 32 << 20;
/// What it costs to keep one word, or to look at one command.
pub(crate) const ITEM: usize = 32;
/// What it costs to parse a byte, and to begin to.
const PARSED: (usize, usize) = (16, 1024);
/// Brackets within each other multiply that by their number's square, divided by this.
const NESTED: usize = 60;

/// The most words `time` and `coproc` of a text that is parsed.
const MAX_TIMES: usize = 200;

/// Why a line is not read, for the end of a sentence.
pub(crate) const SPENT: &str = "it takes too much work to be looked at";

/// What was done of the work for a line, one count for all that belongs to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work(Arc<AtomicUsize>);

impl Work {
    /// Counts work: a unit is about a byte that is copied. Returns whether it is to be done.
    pub(crate) fn take(&self, units: usize) -> bool {
        let before = self.0.load(Ordering::Relaxed);
        let after = if units > MOST { MOST + 1 } else { (before + units).min(MOST + 1) };
        self.0.store(after, Ordering::Relaxed);
        after <= MOST
    }

    /// Counts a text that is parsed.
    pub(crate) fn parse(&self, text: &str) -> bool {
        // The parser calls itself for each, whatever the stack.
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        if words.by_ref().filter(|word| matches!(*word, "time" | "coproc")).nth(MAX_TIMES).is_some() {
            return self.take(MOST + 1);
        }
        // The parser reads what is within brackets more than once.
        let step = |(open, most, before): (usize, usize, u8), byte| match byte {
            b'(' | b'{' => (open + 1, most.max(open + 1), byte),
            b')' | b'}' if !matches!(before, b'\\' | b'\'') => (open.saturating_sub(1), most, byte),
            _ => (open, most, byte),
        };
        let (_, most, _) = text.bytes().fold((0, 0, 0), step);
        // A product that does not fit costs more than there is.
        let nested = 1 + most.saturating_mul(most) / NESTED;
        self.take(PARSED.0.saturating_mul(text.len()).saturating_mul(nested).saturating_add(PARSED.1))
    }

    /// Whether there was more to do than is done.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MOST
    }
}

/// What it costs to copy texts.
pub(crate) fn of_texts(texts: &[String]) -> usize {
    texts.iter().map(|text| ITEM + text.len()).sum()
}

/// What it costs to copy lists of texts.
pub(crate) fn of_lists(lists: &[Vec<String>]) -> usize {
    lists.iter().map(|list| ITEM + of_texts(list)).sum()
}

/// What it costs to copy words.
pub(crate) fn of_words(words: &[Word]) -> usize {
    words.iter().map(|word| ITEM + of_parts(&word.parts)).sum()
}

/// What it costs to copy parts of words.
pub(crate) fn of_parts(parts: &[Part]) -> usize {
    parts.iter().map(|(Part::Text(text) | Part::Files(text) | Part::Unknown(text))| ITEM + text.len()).sum()
}
