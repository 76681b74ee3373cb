//! The state cache of a lazy DFA. Streams read transitions without a lock and take the lock only to add a state.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zerocopy::FromZeros as _;

use super::budget::CacheBudget;
use super::classes::ByteClasses;
use super::look::Context;

/// A transition that has not been computed yet. Zeroed memory as the system provides it contains only such transitions.
pub(crate) const UNKNOWN: u32 = 0;

/// Set in a transition whose target is quiet, so that the fast loop need not stop there: it is no match state, enters no
/// tail, and is not the end of a tail. Offsets of states are multiples of [`CACHE_LINE`], and none is 0.
pub(crate) const QUIET: u32 = 1;

/// Transitions in one line of the processor's cache.
const CACHE_LINE: usize = 16;

/// Capacity of a new transition table. The system provides the memory page by page, when it is first written to.
const INITIAL_TRANSITIONS: usize = (1 << 20) / 4;

/// The number of states that fit into a new table of a tail.
const INITIAL_TAIL_STATES: usize = 64;

/// Bytes that a state costs in addition to its transitions and its NFA states: entries in lists, headers, depth limits.
const STATE_OVERHEAD: usize = 128;

/// The number of depth-limit tables that a cache keeps for later streams.
const MAX_LIMIT_TABLES: usize = 8;

/// A DFA state: the context, the patterns that matched before and after the last byte, the tails that it enters, and the set
/// of live NFA states (subset construction). One slice: context, numbers of matches of each kind and of entries, the matches,
/// the entries, the NFA states (sorted).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State(Arc<[u32]>);

/// The parts of a DFA state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateParts<'a> {
    pub(crate) context: Context,
    /// Patterns whose match ends just before the last byte.
    pub(crate) before: &'a [u32],
    /// Patterns whose match ends with the last byte.
    pub(crate) after: &'a [u32],
    /// The first NFA states of the tails whose heads end with the last byte.
    pub(crate) entries: &'a [u32],
    /// The live NFA states, without the start states, which are always live.
    pub(crate) set: &'a [u32],
}

impl<'a> StateParts<'a> {
    /// Splits the encoded state.
    pub(crate) fn of(key: &'a [u32]) -> Self {
        let (head, rest) = key.split_at(4);
        let (before, rest) = rest.split_at(head[1] as usize);
        let (after, rest) = rest.split_at(head[2] as usize);
        let (entries, set) = rest.split_at(head[3] as usize);
        Self { context: Context::ALL[head[0] as usize], before, after, entries, set }
    }

    /// Encodes the state.
    pub(crate) fn write(self, key: &mut Vec<u32>) {
        key.clear();
        let lengths = [self.before, self.after, self.entries].map(|list| list.len() as u32);
        key.push(self.context as u32);
        key.extend(lengths);
        key.extend_from_slice(self.before);
        key.extend_from_slice(self.after);
        key.extend_from_slice(self.entries);
        key.extend_from_slice(self.set);
    }

    /// Whether it is a match state.
    pub(crate) fn is_match(&self) -> bool {
        !(self.before.is_empty() && self.after.is_empty())
    }

    /// Whether nothing has to be done about it: see [`QUIET`].
    pub(crate) fn is_quiet(&self, is_tail: bool) -> bool {
        !(self.is_match() || !self.entries.is_empty() || is_tail && self.set.is_empty())
    }
}

impl State {
    pub(crate) fn new(key: &[u32]) -> Self {
        Self(key.into())
    }

    pub(crate) fn parts(&self) -> StateParts<'_> {
        StateParts::of(&self.0)
    }
}

impl Borrow<[u32]> for State {
    fn borrow(&self) -> &[u32] {
        &self.0
    }
}

/// Hashes the words of a DFA state. States consist of NFA states, which no text can choose at will; a collision only
/// costs time.
#[derive(Default)]
pub(crate) struct StateHasher(u64);

impl Hasher for StateHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0.rotate_left(23) ^ word) * 0x9E37_79B9_7F4A_7C15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Numbers that streams read while others write them: transitions, or depth limits.
#[derive(Debug)]
pub(crate) struct AtomicArray(Vec<AtomicU32>);

impl AtomicArray {
    fn new(len: usize) -> Self {
        // Zeroed memory as the system provides it, not touched before it is used.
        Self(AtomicU32::new_vec_zeroed(len).unwrap_or_default())
    }

    #[inline(always)]
    pub(crate) fn all(&self) -> &[AtomicU32] {
        &self.0
    }

    pub(crate) fn set(&self, at: usize, value: u32) {
        if let Some(number) = self.0.get(at) {
            number.store(value, Ordering::Relaxed);
        }
    }
}

/// The number at `at`; 0 beyond the end.
#[inline(always)]
pub(crate) fn load_or_zero(numbers: &[AtomicU32], at: usize) -> u32 {
    load(numbers, at).unwrap_or(0)
}

/// The number at `at`, if there is one.
#[inline(always)]
pub(crate) fn load(numbers: &[AtomicU32], at: usize) -> Option<u32> {
    // Each number is independent of the others, so no memory order between them is needed.
    Some(numbers.get(at)?.load(Ordering::Relaxed))
}

/// The transition table: for each DFA state and byte class the offset of the next state.
///
/// A text uses few transitions of a state. For them to be in few lines of the processor's cache, each state starts with
/// a line; for the lines of different states not to compete for the same sets of the cache, a state has an odd number
/// of lines.
#[derive(Debug)]
pub(crate) struct TransitionTable {
    /// By byte: the distance of its transition from the identifier of the state.
    columns: [u16; 256],
    /// The factor that turns the identifier of a state into its index, in units of `1 << NUMBER_SHIFT`.
    inverse: u64,
    stride: usize,
    transitions: AtomicArray,
}

/// With this shift the product is exact and does not overflow for identifiers below [`MAX_TRANSITIONS`].
const NUMBER_SHIFT: u32 = 40;

/// The maximum number of transitions in a table: 256 MiB, more than any cache budget.
const MAX_TRANSITIONS: usize = 1 << 26;

impl TransitionTable {
    fn new(classes: &ByteClasses, transitions: usize) -> Self {
        let transitions = AtomicArray::new(transitions + CACHE_LINE);
        // Identifiers of states have `QUIET` set, which counts for the distance; the rest is the distance to the
        // next line.
        let to_line = transitions.0.as_ptr().addr().wrapping_neg() / size_of::<u32>() + CACHE_LINE - QUIET as usize;
        let stride = stride(classes);
        let columns = classes.of.map(|class| u16::from(class) + (to_line % CACHE_LINE) as u16);
        Self { columns, inverse: (1 << NUMBER_SHIFT) / stride as u64 + 1, stride, transitions }
    }

    /// Borrows what the fast loop needs.
    #[inline(always)]
    pub(crate) fn transitions(&self) -> Transitions<'_> {
        Transitions { columns: &self.columns, transitions: &self.transitions.0 }
    }

    /// The transition of a state for a byte. States are identified by their offset with [`QUIET`] set.
    pub(crate) fn next(&self, state: u32, byte: u8) -> u32 {
        self.transitions().next(state as usize, byte).unwrap_or(UNKNOWN)
    }

    fn set(&self, state: u32, byte: u8, transition: u32) {
        self.transitions.set(state as usize + usize::from(self.columns[usize::from(byte)]), transition);
    }

    /// The index of a state.
    pub(crate) fn index(&self, state: u32) -> usize {
        ((u64::from(state) * self.inverse) >> NUMBER_SHIFT) as usize
    }

    /// The number of cache lines of the table.
    fn lines(&self) -> usize {
        self.transitions.0.len() / CACHE_LINE
    }

    /// The number of states that fit.
    fn capacity(&self) -> usize {
        self.transitions.0.len().saturating_sub(CACHE_LINE) / self.stride
    }

    /// Copies the table into one of twice the capacity.
    fn grown(&self, classes: &ByteClasses) -> Self {
        let new = Self::new(classes, self.transitions.0.len() * 2);
        let shift = usize::from(new.columns[0]).wrapping_sub(usize::from(self.columns[0]));
        for (at, transition) in self.transitions.0.iter().enumerate() {
            new.transitions.set(at.wrapping_add(shift), transition.load(Ordering::Relaxed));
        }
        new
    }
}

/// A borrowed [`TransitionTable`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transitions<'a> {
    columns: &'a [u16; 256],
    transitions: &'a [AtomicU32],
}

impl Transitions<'_> {
    #[inline(always)]
    pub(crate) fn next(self, state: usize, byte: u8) -> Option<u32> {
        load(self.transitions, state + usize::from(self.columns[usize::from(byte)]))
    }
}

/// The first line of a state.
#[inline(always)]
pub(crate) fn line_of(state: u32) -> usize {
    state as usize / CACHE_LINE
}

/// Transitions from state to state: an odd number of lines.
fn stride(classes: &ByteClasses) -> usize {
    (classes.count.div_ceil(CACHE_LINE) | 1) * CACHE_LINE
}

/// The patterns whose live matches are held back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeldPatterns {
    All,
    Some(Vec<bool>),
}

impl HeldPatterns {
    /// Whether live matches of this pattern are held back.
    pub(crate) fn counts(&self, pattern: u32) -> bool {
        match self {
            Self::All => true,
            Self::Some(holds) => holds[pattern as usize],
        }
    }
}

/// For each DFA state, how far back a live match of some patterns can start.
#[derive(Debug)]
pub(crate) struct DepthLimits {
    pub(crate) held: Arc<HeldPatterns>,
    /// Indexed by the first line of the state, which takes no multiplication: one more than the depth of the deepest
    /// live NFA state; 0 if unknown, and for states that are not quiet.
    pub(crate) limits: AtomicArray,
}

/// The states computed since the last cache clear. When they exceed the budget, the automaton starts a new cache;
/// streams leave the old one when they next miss a transition.
#[derive(Debug)]
pub(crate) struct StateCache(Mutex<States>);

#[derive(Debug)]
pub(crate) struct States {
    classes: Arc<ByteClasses>,
    is_tail: bool,
    pub(crate) table: Arc<TransitionTable>,
    index: HashMap<State, u32, BuildHasherDefault<StateHasher>>,
    /// The states by index, from the second on: index 0 is unused.
    list: Vec<State>,
    limit_tables: Vec<Arc<DepthLimits>>,
    bytes: usize,
    budget: Arc<CacheBudget>,
}

impl StateCache {
    pub(crate) fn new(classes: &Arc<ByteClasses>, is_tail: bool, budget: &Arc<CacheBudget>) -> Self {
        let initial = if is_tail { INITIAL_TAIL_STATES * stride(classes) } else { INITIAL_TRANSITIONS };
        let transitions = initial.min(budget.max_bytes() / 4).max(2 * stride(classes));
        Self(Mutex::new(States {
            classes: Arc::clone(classes),
            is_tail,
            table: Arc::new(TransitionTable::new(classes, transitions)),
            index: HashMap::default(),
            list: Vec::new(),
            limit_tables: Vec::new(),
            bytes: 0,
            budget: Arc::clone(budget),
        }))
    }

    pub(crate) fn states(&self) -> MutexGuard<'_, States> {
        // A state is complete before it is reachable, so a panic elsewhere cannot have left half of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl States {
    /// The number of states.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Visits the live NFA states of all states.
    pub(crate) fn for_each_live(&self, mut visit: impl FnMut(u32)) {
        self.list.iter().for_each(|state| state.parts().set.iter().for_each(|live| visit(*live)));
    }

    /// Whether there is no capacity for another state.
    pub(crate) fn is_full(&self) -> bool {
        self.budget.is_exhausted_for(self.bytes) || (self.list.len() + 2) * self.table.stride > MAX_TRANSITIONS
    }

    /// The state with this identifier.
    pub(crate) fn key(&self, state: u32) -> State {
        self.list[self.table.index(state) - 1].clone()
    }

    /// The transition that leads to the state with this encoding, if it exists.
    pub(crate) fn find(&self, key: &[u32]) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// Adds a state, which must be new, and returns the transition that leads to it.
    pub(crate) fn insert(&mut self, key: &[u32]) -> u32 {
        let number = self.list.len() + 1;
        if number >= self.table.capacity() {
            self.table = Arc::new(self.table.grown(&self.classes));
        }
        let offset = (number * self.table.stride) as u32;
        let transition = if StateParts::of(key).is_quiet(self.is_tail) { offset | QUIET } else { offset };
        let cost = self.table.stride * 4 + key.len() * 4 + STATE_OVERHEAD;
        self.bytes += cost;
        self.budget.charge(cost);
        let key = State::new(key);
        self.list.push(key.clone());
        self.index.insert(key, transition);
        transition
    }

    /// Sets the transition of `state` for `byte`.
    pub(crate) fn link(&self, state: u32, byte: u8, transition: u32) {
        self.table.set(state, byte, transition);
    }

    /// The depth limits for these patterns, as long as the current transition table.
    pub(crate) fn depth_limits(&mut self, held: &Arc<HeldPatterns>) -> Arc<DepthLimits> {
        let lines = self.table.lines();
        self.limit_tables.retain(|depth_limits| depth_limits.limits.0.len() == lines);
        if let Some(depth_limits) = self.limit_tables.iter().find(|depth_limits| depth_limits.held == *held) {
            return Arc::clone(depth_limits);
        }
        if self.limit_tables.len() == MAX_LIMIT_TABLES {
            self.limit_tables.remove(0);
        }
        let depth_limits = Arc::new(DepthLimits { held: Arc::clone(held), limits: AtomicArray::new(lines) });
        self.limit_tables.push(Arc::clone(&depth_limits));
        depth_limits
    }
}

impl Drop for States {
    fn drop(&mut self) {
        self.budget.refund(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_its_number_and_its_cells_when_the_table_grows() {
        for count in [1, 15, 16, 17, 70, 256] {
            let classes = ByteClasses { of: std::array::from_fn(|byte| (byte % count) as u8), count };
            let mut table = TransitionTable::new(&classes, 4 * stride(&classes));
            for state in 1..4_u32 {
                table.set((state * table.stride as u32) | QUIET, 200, state);
            }
            for _ in 0..4 {
                table = table.grown(&classes);
                for state in 1..4_u32 {
                    assert_eq!(table.next((state * table.stride as u32) | QUIET, 200), state);
                }
            }
            for state in (1..MAX_TRANSITIONS / table.stride).step_by(997) {
                assert_eq!(table.index((state * table.stride) as u32 | QUIET), state);
            }
        }
    }
}
