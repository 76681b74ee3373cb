//! Byte classes: bytes that no pattern distinguishes share a class, and with it one transition per DFA state.

use std::cmp::Reverse;

use super::look::{Contexts, is_inside, is_word};

/// The bytes that code and prose mostly consist of, the most frequent first.
const COMMON: &[u8] =
    b" etrnsiaolducpm_\nfhgbvy,.()\"=:;/-wxk<>{}01'#2S*qTEICARLNP`[]&+MDOz3!jFB4598U67$?|\\HWVGK@%J~XQY^Z\t";

/// By byte: how much of code and prose it is, as an estimate: Zipf's law for the order of [`COMMON`].
pub(crate) const FREQUENCY: [f32; 256] = {
    let (mut out, mut all, mut at) = ([0.0; 256], 0.0, 0);
    while at < COMMON.len() {
        out[COMMON[at] as usize] = 1.0 / (at + 1) as f32;
        all += 1.0 / (at + 1) as f32;
        at += 1;
    }
    at = 0;
    while at < 256 {
        out[at] /= all;
        at += 1;
    }
    out
};

/// The byte classes of an automaton.
#[derive(Debug)]
pub(crate) struct ByteClasses {
    /// By byte: its class.
    pub(crate) of: [u8; 256],
    /// The number of classes, at most 256.
    pub(crate) count: usize,
}

impl ByteClasses {
    /// The classes for the byte ranges and assertions of some NFA states. Classes of frequent bytes come first, so that
    /// the transitions a text uses are close together.
    pub(crate) fn of(mut ends: ClassEnds, contexts: Contexts, looks: bool) -> Self {
        ends.cut_assertions(contexts, looks);
        let (mut of, mut count) = ([0_u8; 256], 1_usize);
        for byte in 0..=u8::MAX {
            of[usize::from(byte)] = (count - 1) as u8;
            count += usize::from(ends.is_end(byte) && byte < u8::MAX);
        }
        let mut weights = vec![0.0; count];
        for (rank, byte) in COMMON.iter().enumerate() {
            weights[usize::from(of[usize::from(*byte)])] += 1.0 / (rank as f32 + 1.0);
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|class| Reverse((weights[*class] * 1e6) as u32));
        let mut place = [0_u8; 256];
        for (to, class) in order.into_iter().enumerate() {
            place[class] = to as u8;
        }
        Self { of: of.map(|class| place[usize::from(class)]), count }
    }
}

/// By byte, one bit: whether it is the last of its class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassEnds([u64; 4]);

impl ClassEnds {
    /// Distinguishes the bytes from `low` to `high` from others.
    pub(crate) fn cut(&mut self, low: u8, high: u8) {
        // Below 0 there is 255, after which nothing follows.
        for byte in [high, low.wrapping_sub(1)] {
            self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }

    /// Distinguishes the bytes that `other` does, too.
    pub(crate) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own |= other);
    }

    /// Distinguishes the bytes that assertions do.
    fn cut_assertions(&mut self, contexts: Contexts, looks: bool) {
        if looks {
            self.cut(b'\n', b'\n');
            self.cut(b'\r', b'\r');
        }
        if contexts.word {
            let told_apart: [fn(u8) -> bool; 2] = [is_word, is_inside];
            for is_one in told_apart {
                let bytes: Vec<u8> = (0..=u8::MAX).filter(|byte| is_one(*byte)).collect();
                bytes.chunk_by(|a, b| a + 1 == *b).for_each(|run| self.cut(run[0], run[run.len() - 1]));
            }
        }
    }

    /// Whether the byte is the last of its class.
    pub(crate) fn is_end(self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }
}
