//! Byte classes: bytes that no pattern distinguishes share a class, and with it one transition per DFA state.

use std::cmp::Reverse;
use std::sync::Arc;

use super::look::{is_inside, is_word};
use super::pattern::Pattern;

/// The bytes that code and prose mostly consist of, the most frequent first.
const COMMON: &[u8] =
    b" etrnsiaolducpm_\nfhgbvy,.()\"=:;/-wxk<>{}01'#2S*qTEICARLNP`[]&+MDOz3!jFB4598U67$?|\\HWVGK@%J~XQY^Z\t";

/// The byte classes of an automaton.
#[derive(Debug)]
pub(crate) struct ByteClasses {
    /// By byte: its class.
    pub(crate) of: [u8; 256],
    /// The number of classes, at most 256.
    pub(crate) count: usize,
}

impl ByteClasses {
    /// The classes for some patterns; `words` is whether any of them has a word boundary. Classes of frequent bytes
    /// come first, so that the transitions a text uses are close together.
    pub(crate) fn of(patterns: &[Arc<Pattern>], words: bool) -> Self {
        let ends = ends(patterns, words);
        let (mut of, mut count) = ([0_u8; 256], 1_usize);
        for byte in 0..256 {
            of[byte] = (count - 1) as u8;
            count += usize::from(ends[byte] && byte < 255);
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

/// By byte: whether it is the last of its class.
fn ends(patterns: &[Arc<Pattern>], words: bool) -> [bool; 256] {
    let mut ends = [false; 256];
    for pattern in patterns {
        pattern.nfa().mark_class_ends(&mut ends);
    }
    let mut cut = |low: u8, high: u8| {
        ends[usize::from(high)] = true;
        ends[usize::from(low.wrapping_sub(1))] = true;
    };
    if patterns.iter().any(|pattern| pattern.nfa().looks().next().is_some()) {
        cut(b'\n', b'\n');
        cut(b'\r', b'\r');
    }
    if words {
        let told_apart: [fn(u8) -> bool; 2] = [is_word, is_inside];
        for is_one in told_apart {
            let bytes: Vec<u8> = (0..=u8::MAX).filter(|byte| is_one(*byte)).collect();
            bytes.chunk_by(|a, b| a + 1 == *b).for_each(|run| cut(run[0], run[run.len() - 1]));
        }
    }
    ends
}
