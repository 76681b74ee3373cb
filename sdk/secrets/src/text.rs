//! A text as matchers read it: bytes, and whether a matcher wanted to see more than there is.

use core::cell::Cell;

/// The most bytes of a run that belong to one secret; what follows is another text.
pub(crate) const LONGEST_RUN: usize = 8192;

#[cfg(test)]
std::thread_local! {
    /// How many bytes were looked at.
    pub(crate) static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
}

/// Counts bytes that are looked at, for the test of how many that are.
pub(crate) fn looked_at(bytes: usize) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + bytes);
    let _ = bytes;
}

/// A text that may go on.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    /// The byte before the text.
    before: Option<u8>,
    /// A matcher looked behind the end since this was cleared.
    touched: Cell<bool>,
    /// The first byte that may be a part of a secret which is not complete, as matchers have noted since this was cleared.
    begun: Cell<usize>,
    /// No web token begins before this place.
    pub(crate) no_web_token_before: Cell<usize>,
    /// No name has its value before this place.
    pub(crate) no_value_before: Cell<usize>,
}

impl<'a> Text<'a> {
    pub(crate) fn new(bytes: &'a [u8], before: Option<u8>) -> Self {
        Self {
            bytes,
            before,
            touched: Cell::new(false),
            begun: Cell::new(usize::MAX),
            no_web_token_before: Cell::new(0),
            no_value_before: Cell::new(0),
        }
    }

    /// The byte at a position; `None` at the end, which is noted.
    pub(crate) fn at(&self, at: usize) -> Option<u8> {
        let byte = self.bytes.get(at).copied();
        looked_at(1);
        if byte.is_none() {
            self.touched.set(true);
        }
        byte
    }

    /// Whether the text continues with these bytes.
    pub(crate) fn starts(&self, at: usize, with: &[u8]) -> bool {
        (at..).zip(with).all(|(at, byte)| self.at(at) == Some(*byte))
    }

    /// The same, whatever the case of ASCII letters is. `with` is lower-case.
    pub(crate) fn starts_any_case(&self, at: usize, with: &[u8]) -> bool {
        (at..).zip(with).all(|(at, byte)| self.at(at).is_some_and(|found| found.to_ascii_lowercase() == *byte))
    }

    /// Where the run of such bytes ends that begins here: with a character, also where it has more than the most bytes.
    pub(crate) fn run(&self, from: usize, most: usize, part: impl Fn(u8) -> bool) -> usize {
        let mut at = from;
        while at - from < most && self.at(at).is_some_and(&part) {
            at += 1;
        }
        let is_inside = |at: usize| self.bytes.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
        // A character has at most four bytes.
        (at.saturating_sub(3).max(from)..=at).rev().find(|at| !is_inside(*at)).unwrap_or(at)
    }

    /// The byte before a position.
    pub(crate) fn previous(&self, at: usize) -> Option<u8> {
        at.checked_sub(1).map_or(self.before, |at| self.bytes.get(at).copied())
    }

    /// Whether the end was looked at since the last time.
    pub(crate) fn take_touched(&self) -> bool {
        self.touched.replace(false)
    }

    /// Notes that a secret may begin here, if the text has ended before that is known.
    pub(crate) fn note_begun(&self, at: usize) {
        if self.touched.get() && at < self.bytes.len() {
            self.begun.set(self.begun.get().min(at));
        }
    }

    /// The first byte that was noted since the last time.
    pub(crate) fn take_begun(&self) -> usize {
        self.begun.replace(usize::MAX)
    }
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

pub(crate) fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

pub(crate) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Any byte of a character that is not white space.
pub(crate) fn is_visible(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}
