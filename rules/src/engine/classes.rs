//! Byte classes: bytes that no pattern tells apart share one, and with it a cell of each row.

use std::cmp::Reverse;
use std::sync::Arc;

use super::look::{is_inside, is_word};
use super::pattern::Pattern;

/// The bytes that code and prose are mostly made of, the most frequent first.
const COMMON: &[u8] =
    b" etrnsiaolducpm_\nfhgbvy,.()\"=:;/-wxk<>{}01'#2S*qTEICARLNP`[]&+MDOz3!jFB4598U67$?|\\HWVGK@%J~XQY^Z\t";

/// Byte classes.
#[derive(Debug)]
pub(crate) struct Classes {
    /// By byte.
    pub(crate) of: [u8; 256],
    /// How many there are, at most 256.
    pub(crate) count: usize,
}

impl Classes {
    /// The classes for some patterns; `words` tells whether any of them asks where words begin and end. Classes of frequent
    /// bytes come first: what a text uses of a row then lies close together.
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

/// By byte: does a class end with it?
fn ends(patterns: &[Arc<Pattern>], words: bool) -> [bool; 256] {
    let mut ends = [false; 256];
    for pattern in patterns {
        pattern.program.cut(&mut ends);
    }
    let mut cut = |low: u8, high: u8| {
        ends[usize::from(high)] = true;
        ends[usize::from(low.wrapping_sub(1))] = true;
    };
    if patterns.iter().any(|pattern| pattern.program.looks().next().is_some()) {
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
