//! What one byte of a stream has led to: matches, and tails to enter.

use std::collections::BTreeSet;

use super::cache::State;

/// What one byte has led to, in all parts.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The number of parts whose state is not quiet, and the position of the last one.
    pub(crate) count: usize,
    pub(crate) last: usize,
    /// The patterns that have matched, and whether with the last byte, in place of just before it.
    pub(crate) matches: Vec<(bool, u32)>,
    /// The first states of the tails to enter.
    pub(crate) entries: Vec<u32>,
}

impl Events {
    pub(crate) fn add(&mut self, state: &State, at: usize) {
        let parts = state.parts();
        self.count += 1;
        self.last = at;
        self.matches.extend(parts.before.iter().map(|pattern| (false, *pattern)));
        self.matches.extend(parts.after.iter().map(|pattern| (true, *pattern)));
        self.entries.extend_from_slice(parts.entries);
    }

    /// The matches in their order, of each pattern the first.
    pub(crate) fn in_order(&self) -> Vec<(bool, u32)> {
        let mut matches = self.matches.clone();
        matches.sort_unstable();
        let mut seen = BTreeSet::new();
        matches.retain(|(_, pattern)| seen.insert(*pattern));
        matches
    }
}
