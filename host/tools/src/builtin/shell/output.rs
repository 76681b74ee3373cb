//! What is kept of a command's output: its start and its end, within a limit, and the number of bytes in between.

use std::collections::VecDeque;

/// Output so far.
#[derive(Debug)]
pub(super) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Room for each of the two.
    half: usize,
    cut_bytes: u64,
}

impl Kept {
    /// Keeps at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: most.div_ceil(2), cut_bytes: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.half.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.cut_bytes += over as u64;
    }

    /// The output as text. Bytes that are not UTF-8 become U+FFFD; a note replaces omitted bytes.
    pub(super) fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.cut_bytes == 0 {
            return String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        format!("{head}\n[… {} bytes omitted …]\n{tail}", self.cut_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    use proptest::prelude::*;

    proptest! {
        /// For any chunking: the start, the end and the count of what lies between are those of the whole.
        #[test]
        fn pieces_do_not_matter(whole in "[a-z]{0,80}", most in 2_usize..40, cuts in prop::collection::vec(0_usize..80, 0..8)) {
            let mut kept = Kept::new(most);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                kept.push(&whole.as_bytes()[pair[0]..pair[1]]);
            }
            let half = most.div_ceil(2);
            let expected = if whole.len() <= 2 * half {
                whole.clone()
            } else {
                let cut = whole.len() - 2 * half;
                format!("{}\n[… {cut} bytes omitted …]\n{}", &whole[..half], &whole[whole.len() - half..])
            };
            prop_assert_eq!(kept.text(), expected);
        }
    }
}
