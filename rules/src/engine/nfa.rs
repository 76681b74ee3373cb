//! The NFA of a condition: each state consumes a byte, has an assertion, or is an epsilon.

use regex_syntax::hir::{Look, LookSet};

use super::classes::ClassEnds;

/// The depth of a state behind a loop, which has no bound.
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// A state of the NFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NfaState {
    /// Consumes a byte from `low` to `high`.
    ByteRange { low: u8, high: u8, to: u32 },
    /// Consumes a byte within one of the ranges `from..from + len`.
    Sparse { from: u32, len: u32 },
    /// Epsilon transitions to both states.
    Union(u32, u32),
    /// An epsilon transition that is only taken where the assertion holds.
    Look(Look, u32),
    /// An epsilon transition from the head of the pattern to its tail, which an automaton of its own runs.
    Cut(u32),
    /// The match state.
    Match,
}

/// Bytes from the first to the second lead to the third, a state.
pub(crate) type Range = (u8, u8, u32);

/// The Thompson NFA of one condition.
#[derive(Debug, Default)]
pub(crate) struct Nfa {
    pub(crate) states: Vec<NfaState>,
    pub(crate) ranges: Vec<Range>,
    /// By state: its depth, the maximum number of bytes between the start of what a match hides and the state.
    pub(crate) depth: Vec<u32>,
    /// By state: whether it is before the group `hide`. Shorter than `states` where the others are not.
    pub(crate) shown: Vec<bool>,
    pub(crate) start: u32,
    /// Where a search starts, which needs no lead: see `split`.
    pub(crate) search_start: u32,
    /// Whether there is a count that no tail contains.
    pub(crate) counts: bool,
    /// The ends of the byte classes that its states distinguish, and its assertions.
    pub(crate) ends: ClassEnds,
    pub(crate) looks: LookSet,
    /// The assertions in its tails.
    pub(crate) tail_looks: LookSet,
    /// The head, as an expression; patterns with the same one have one tail. Empty if there is none.
    pub(crate) head: String,
    /// The maximum length of a match in bytes.
    pub(crate) max_len: u32,
    /// The same from the group `hide` on; without one that of the whole match.
    pub(crate) max_hidden: u32,
}

impl Nfa {
    /// The target states of `state` for `byte`.
    #[inline]
    pub(crate) fn targets(&self, state: u32, byte: u8) -> impl Iterator<Item = u32> {
        self.ranges_of(state).filter(move |(low, high, _)| *low <= byte && byte <= *high).map(|(_, _, to)| to)
    }

    /// The byte ranges that `state` consumes, with their targets.
    #[inline]
    pub(crate) fn ranges_of(&self, state: u32) -> impl Iterator<Item = Range> {
        let (one, many) = match self.states[state as usize] {
            NfaState::ByteRange { low, high, to } => (Some((low, high, to)), &[] as &[Range]),
            NfaState::Sparse { from, len } => (None, &self.ranges[from as usize..(from + len) as usize]),
            NfaState::Union(..) | NfaState::Look(..) | NfaState::Cut(_) | NfaState::Match => (None, &[] as &[Range]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// The epsilon closure of the start of a search, as states of their own: those that consume a byte have no transitions.
    /// Without assertions only the greatest depth counts.
    pub(crate) fn start_image(&self) -> Vec<(NfaState, u32)> {
        const DEAD: NfaState = NfaState::Sparse { from: 0, len: 0 };
        let (mut closure, mut at) = (vec![self.search_start], 0);
        let place = |closure: &mut Vec<u32>, state: u32| {
            closure.iter().position(|known| *known == state).unwrap_or_else(|| {
                closure.push(state);
                closure.len() - 1
            }) as u32
        };
        let mut image = Vec::new();
        while let Some(&state) = closure.get(at) {
            let depth = self.depth[state as usize];
            let state = match self.states[state as usize] {
                NfaState::Union(one, other) => NfaState::Union(place(&mut closure, one), place(&mut closure, other)),
                NfaState::Look(look, to) => NfaState::Look(look, place(&mut closure, to)),
                NfaState::Cut(to) => NfaState::Cut(place(&mut closure, to)),
                NfaState::ByteRange { .. } | NfaState::Sparse { .. } | NfaState::Match => DEAD,
            };
            image.push((state, depth));
            at += 1;
        }
        if image.iter().any(|(state, _)| matches!(state, NfaState::Look(..))) {
            return image;
        }
        let depths = image.iter().filter(|(state, _)| *state == DEAD).map(|(_, depth)| *depth);
        vec![(DEAD, depths.max().unwrap_or(0))]
    }

    /// Visits the states that a search can reach without those behind a cut.
    pub(crate) fn for_each_of_head(&self, mut visit: impl FnMut(u32)) {
        let (mut seen, mut stack) = (vec![false; self.states.len()], vec![self.search_start]);
        while let Some(state) = stack.pop() {
            if std::mem::replace(&mut seen[state as usize], true) {
                continue;
            }
            visit(state);
            match self.states[state as usize] {
                NfaState::Union(one, other) => stack.extend([one, other]),
                NfaState::Look(_, to) => stack.push(to),
                NfaState::ByteRange { .. } | NfaState::Sparse { .. } => {
                    stack.extend(self.ranges_of(state).map(|(_, _, to)| to));
                }
                NfaState::Cut(_) | NfaState::Match => {}
            }
        }
    }

    /// Whether the state is before the group `hide`.
    pub(crate) fn is_shown(&self, state: u32) -> bool {
        self.shown.get(state as usize).copied().unwrap_or(false)
    }

    /// The bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<NfaState>()
            + self.ranges.capacity() * size_of::<Range>()
            + self.depth.capacity() * 4
            + self.shown.capacity()
    }
}
