//! Changes inputs at random, the same way every time.

/// A small generator of numbers (xorshift): the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Numbers that begin with `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next one, below `bound`; 0 where `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}

/// The most bytes of a changed input.
const MOST: usize = 4096;

/// A changed copy of one of `seeds`, with `words` put in here and there.
pub fn changed(seeds: &[Vec<u8>], words: &[&str], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seeds.get(numbers.below(seeds.len())).cloned().unwrap_or_default();
    for _ in 0..=numbers.below(6) {
        let at = numbers.below(bytes.len() + 1);
        let end = (at + 1 + numbers.below(16)).min(bytes.len());
        match numbers.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            1 if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
            2 => bytes.insert(at, numbers.below(256) as u8),
            3 => drop(bytes.drain(at..end.max(at))),
            4 => {
                let part = bytes[at..end.max(at)].to_vec();
                let to = numbers.below(bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            5 => {
                let other = seeds.get(numbers.below(seeds.len())).cloned().unwrap_or_default();
                let from = numbers.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend(&other[from..]);
            }
            _ => {
                let word = words.get(numbers.below(words.len())).copied().unwrap_or("\n");
                bytes.splice(at..at, word.bytes());
            }
        }
    }
    bytes.truncate(MOST);
    bytes
}
