//! Random values of a seed, the same on every machine, so that a failing case can be run again.

/// The generator SplitMix64.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).unwrap()
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Some of these, each with a chance of a half, in a random order.
    pub fn some<T: Clone>(&mut self, all: &[T]) -> Vec<T> {
        let mut chosen: Vec<T> = all.iter().filter(|_| self.once_in(2)).cloned().collect();
        for at in (1..chosen.len()).rev() {
            chosen.swap(at, self.below(at + 1));
        }
        chosen
    }
}
