//! Where a place of the folded text is in the original.

use std::collections::VecDeque;

/// A part of the folded text that comes from one part of the original.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it begins in the folded text.
    folded: u64,
    /// Where it begins and ends in the original.
    original: (u64, u64),
    /// Each byte is one byte of the original.
    same: bool,
}

/// The pieces of what is still of interest, in order.
#[derive(Debug, Default)]
pub(crate) struct Map(VecDeque<Piece>);

impl Map {
    /// Adds a segment: at `folded`, the folded text continues with the folded form of these bytes of the original. `same`: byte by byte.
    pub(super) fn add(&mut self, folded: u64, original: (u64, u64), same: bool) {
        if let Some(last) = self.0.back_mut().filter(|last| last.same && same && last.original.1 == original.0) {
            last.original.1 = original.1;
            return;
        }
        self.0.push_back(Piece { folded, original, same });
    }

    /// Where a match that begins at this place begins in the original. `None`: the place is no longer known.
    pub(crate) fn start(&self, folded: u64) -> Option<u64> {
        let after = self.0.partition_point(|piece| piece.folded <= folded);
        match after.checked_sub(1).and_then(|at| self.0.get(at)) {
            Some(piece) if piece.same => Some((piece.original.0 + (folded - piece.folded)).min(piece.original.1)),
            Some(piece) => Some(piece.original.0),
            None if self.0.is_empty() => Some(0),
            None => None,
        }
    }

    /// Where a match that ends before this place ends in the original.
    pub(crate) fn end(&self, folded: u64) -> u64 {
        let after = self.0.partition_point(|piece| piece.folded < folded);
        match after.checked_sub(1).and_then(|at| self.0.get(at)) {
            Some(piece) if piece.same => (piece.original.0 + (folded - piece.folded)).min(piece.original.1),
            Some(piece) => piece.original.1,
            None => self.0.front().map_or(0, |piece| piece.original.0),
        }
    }

    /// Nobody asks for places before this one any more, or gets no answer.
    pub(crate) fn forget(&mut self, before: u64) {
        while self.0.get(1).is_some_and(|next| next.folded <= before) {
            self.0.pop_front();
        }
    }

    /// How many pieces are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Map;

    #[test]
    fn a_place_that_was_forgotten_is_not_known_and_takes_no_memory() {
        let mut map = Map::default();
        assert_eq!(map.start(0), Some(0));
        for at in 0..10_000 {
            // Each two bytes are folded to one.
            map.add(at, (2 * at, 2 * at + 2), false);
            map.forget((at + 1).saturating_sub(100));
        }
        assert!(map.len() <= 101, "{}", map.len());
        assert_eq!(
            [map.start(9_950), map.start(9_900), map.start(9_000), map.start(0)],
            [Some(19_900), Some(19_800), None, None]
        );
    }
}
