//! The last bytes of a block, in which the beginning of a match is found.

use std::ops::Range;

use crate::engine::Context;

/// The number of bytes kept to find the start of a match. A match that started earlier is reported to start at the
/// first kept byte.
pub(crate) const TAIL_BYTES: usize = 4096;

/// The largest capacity: large against `TAIL_BYTES`, so that bytes are seldom moved.
const MAX_CAPACITY: usize = 4 * TAIL_BYTES;

/// Bytes of capacity behind the text: a number is written there as a whole, and one byte behind the text is read.
const SPARE: usize = 9;

/// The last bytes of a block, at least `TAIL_BYTES` once there are so many.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The kept bytes, and behind them at least one that does not count.
    bytes: Vec<u8>,
    used: usize,
    /// Where in the block `bytes` begins.
    start: u64,
    /// Line ends before `start`.
    lines: u32,
    last_dropped: Option<u8>,
}

impl Tail {
    /// Takes a few more bytes if the capacity suffices, since most deltas have a few bytes only. Returns whether it
    /// did. The first bytes of a stream are never taken here.
    #[inline(always)]
    pub(crate) fn try_push(&mut self, part: &[u8]) -> bool {
        let Some(room) = self.bytes.get_mut(self.used..) else { return false };
        if let (Some(first), Some(last), Some(room), true) =
            (part.first_chunk::<4>(), part.last_chunk::<4>(), room.first_chunk_mut::<SPARE>(), part.len() <= 8)
        {
            // As one number of two that may overlap, they are copied without a call and without a branch.
            let last = u64::from(u32::from_le_bytes(*last)) << (8 * (part.len() - 4));
            let both = u64::from(u32::from_le_bytes(*first)) | last;
            room[..8].copy_from_slice(&both.to_le_bytes());
            self.used += part.len();
            return true;
        }
        self.try_push_long(part)
    }

    #[inline(never)]
    fn try_push_long(&mut self, part: &[u8]) -> bool {
        let end = self.used + part.len();
        let fits = part.len() <= TAIL_BYTES && end < self.bytes.len();
        if fits {
            self.bytes[self.used..end].copy_from_slice(part);
            self.used = end;
        }
        fits
    }

    /// Takes at most [`TAIL_BYTES`] more.
    pub(crate) fn push(&mut self, part: &[u8]) {
        if self.used + part.len() + SPARE > MAX_CAPACITY {
            self.drop_old();
        }
        let end = self.used + part.len();
        if end + SPARE > self.bytes.len() {
            self.bytes.resize((end + SPARE).next_power_of_two().max(256), 0);
        }
        self.bytes[self.used..end].copy_from_slice(part);
        self.used = end;
    }

    /// The number of bytes taken since the start of the stream.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.used as u64
    }

    fn drop_old(&mut self) {
        let drop = self.used.saturating_sub(TAIL_BYTES);
        self.lines += count_lines(&self.bytes[..drop]);
        self.last_dropped = drop.checked_sub(1).map(|at| self.bytes[at]).or(self.last_dropped);
        self.bytes.copy_within(drop..self.used, 0);
        self.used -= drop;
        self.start += drop as u64;
    }

    #[inline]
    fn kept(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    #[inline]
    fn index(&self, at: u64) -> Option<usize> {
        at.checked_sub(self.start).map(|at| at as usize).filter(|at| *at <= self.used)
    }

    /// The byte at a place in the block, if it is still there.
    pub(crate) fn byte(&self, at: u64) -> Option<u8> {
        self.index(at).and_then(|at| self.kept().get(at)).copied()
    }

    /// The kept bytes before `end`, and the context before them.
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

    /// The start of the character that contains `at`; `None` if it is no longer kept.
    #[inline(always)]
    pub(crate) fn char_start(&self, at: u64) -> Option<u64> {
        // A position before the kept bytes wraps to a number beyond their length.
        let index = at.wrapping_sub(self.start) as usize;
        let byte = *self.bytes.get(index)?;
        // Whether anything is held changes with every few bytes; a branch on it would be guessed wrong as often. So the
        // byte behind the text is read too, and does not count.
        if is_continuation(byte) & (index < self.used) { self.char_start_before(index) } else { Some(at) }
    }

    #[cold]
    fn char_start_before(&self, index: usize) -> Option<u64> {
        let start = self.bytes[..index].iter().rposition(|byte| !is_continuation(*byte))?;
        Some(self.start + start as u64)
    }
}

fn count_lines(bytes: &[u8]) -> u32 {
    // Counts of a byte each, which cannot overflow in so many bytes, are added up many at a time.
    let count = |chunk: &[u8]| u32::from(chunk.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>());
    bytes.chunks(255).map(count).sum()
}

/// Whether a byte is a continuation byte of UTF-8.
#[inline]
pub(crate) fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}
