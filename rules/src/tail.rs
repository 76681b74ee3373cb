//! The last bytes of a block, in which the beginning of a match is found.

use std::ops::Range;

use crate::engine::Context;

/// How much text is kept to find the beginning of a match in. A match that began earlier is said to begin here.
pub(crate) const TAIL_BYTES: usize = 4096;

/// The most room: large against `TAIL_BYTES`, so that bytes are seldom moved.
const MOST_ROOM: usize = 4 * TAIL_BYTES;

/// The last bytes of a block, at least `TAIL_BYTES` once there are so many.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// What is kept, and room behind it.
    bytes: Vec<u8>,
    used: usize,
    /// Where in the block `bytes` begins.
    start: u64,
    /// Line ends before `start`.
    lines: u32,
    last_dropped: Option<u8>,
}

impl Tail {
    /// Takes at most [`TAIL_BYTES`] more.
    #[inline]
    pub(crate) fn push(&mut self, part: &[u8]) {
        let end = self.used + part.len();
        if end > self.bytes.len() {
            return self.push_into_new_room(part);
        }
        let room = &mut self.bytes[self.used..end];
        // A delta is mostly a few bytes: as numbers they are copied without a call.
        match part.len() {
            4..=8 => {
                let last = part.len() - 4;
                let (low, high): ([u8; 4], [u8; 4]) = (word(&part[..4]), word(&part[last..]));
                room[..4].copy_from_slice(&low);
                room[last..].copy_from_slice(&high);
            }
            _ => room.copy_from_slice(part),
        }
        self.used = end;
    }

    #[cold]
    #[inline(never)]
    fn push_into_new_room(&mut self, part: &[u8]) {
        if self.used + part.len() > MOST_ROOM {
            self.drop_old();
        }
        let end = self.used + part.len();
        if end > self.bytes.len() {
            self.bytes.resize(end.next_power_of_two().max(256), 0);
        }
        self.bytes[self.used..end].copy_from_slice(part);
        self.used = end;
    }

    fn drop_old(&mut self) {
        let drop = self.used.saturating_sub(TAIL_BYTES);
        self.lines += count_lines(&self.bytes[..drop]);
        self.last_dropped = drop.checked_sub(1).map(|at| self.bytes[at]).or(self.last_dropped);
        self.bytes.copy_within(drop..self.used, 0);
        self.used -= drop;
        self.start += drop as u64;
    }

    fn kept(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    fn index(&self, at: u64) -> Option<usize> {
        at.checked_sub(self.start).map(|at| at as usize).filter(|at| *at <= self.used)
    }

    /// The byte at a place in the block, if it is still there.
    pub(crate) fn byte(&self, at: u64) -> Option<u8> {
        self.index(at).and_then(|at| self.kept().get(at)).copied()
    }

    /// The bytes before `end`, as far back as a match is looked for, and what stood before them.
    pub(crate) fn window(&self, end: u64) -> (Context, &[u8]) {
        let end = self.index(end).unwrap_or(0);
        let range: Range<usize> = end.saturating_sub(TAIL_BYTES)..end;
        let before = range.start.checked_sub(1).map(|at| self.bytes[at]).or(self.last_dropped);
        (before.map_or(Context::Start, Context::after), &self.bytes[range])
    }

    /// The line that a place in the block is in, counted from 1.
    pub(crate) fn line(&self, at: u64) -> u32 {
        self.lines + count_lines(&self.bytes[..self.index(at).unwrap_or(0)]) + 1
    }

    /// The start of the character that `at` stands in; none if it is not kept any more.
    #[inline]
    pub(crate) fn char_start(&self, at: u64) -> Option<u64> {
        let index = self.index(at)?;
        match self.kept().get(index) {
            Some(byte) if is_continuation(*byte) => self.char_start_before(index),
            _ => Some(at),
        }
    }

    #[cold]
    fn char_start_before(&self, index: usize) -> Option<u64> {
        let start = self.bytes[..index].iter().rposition(|byte| !is_continuation(*byte))?;
        Some(self.start + start as u64)
    }
}

fn word(bytes: &[u8]) -> [u8; 4] {
    let mut out = [0; 4];
    out.copy_from_slice(bytes);
    out
}

fn count_lines(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|b| **b == b'\n').count() as u32
}

/// Whether a byte goes on with a character of UTF-8.
pub(crate) fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}
