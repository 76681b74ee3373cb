//! The position of one stream in one part of an automaton.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::automaton::Automaton;
use super::cache::{
    DepthLimits, HeldPatterns, QUIET, State, StateCache, StateParts, States, TransitionTable, Transitions, UNKNOWN,
    line_of, load_or_zero,
};
use super::determinize::Scratch;
use super::look::Context;
use super::part::Part;

/// The position of one stream in one part of its automaton.
#[derive(Debug)]
pub(crate) struct PartCursor {
    pub(crate) number: u32,
    cache: Arc<StateCache>,
    table: Arc<TransitionTable>,
    depth_limits: Option<Arc<DepthLimits>>,
    pub(crate) state: u32,
    /// One more than the maximum depth of the live NFA states of held patterns, as of the last step that was not fast.
    pub(crate) limit: u32,
    /// No NFA state is live. Only known of tails, as of the last step that was not fast.
    pub(crate) is_over: bool,
    /// The last match state whose matches were all ignored: entering it again skips the lookup of its matches.
    ignored: u32,
    /// The position up to which bytes are counted in the statistics.
    counted: u64,
    /// Set while the part has no cache budget: the current DFA state itself.
    uncached: Option<Box<Uncached>>,
}

#[derive(Debug)]
struct Uncached {
    key: Vec<u32>,
    scratch: Scratch,
}

impl PartCursor {
    /// Starts where no NFA state is live.
    pub(crate) fn new(automaton: &Automaton, number: u32, held: Option<&Arc<HeldPatterns>>) -> Self {
        let part = automaton.part(number);
        let cache = part.current();
        let (table, depth_limits) = {
            let mut states = cache.states();
            (Arc::clone(&states.table), held.map(|held| states.depth_limits(held)))
        };
        let mut cursor = Self {
            number,
            cache,
            table,
            depth_limits,
            state: UNKNOWN,
            limit: 1,
            is_over: part.is_tail,
            ignored: UNKNOWN,
            counted: 0,
            uncached: None,
        };
        if !part.is_tail {
            let mut scratch = automaton.scratch();
            let context = part.contexts.reduce(Context::Start);
            StateParts { context, before: &[], after: &[], entries: &[], set: &[] }.write(&mut scratch.key);
            cursor.move_to(automaton, scratch, None, 0);
        }
        cursor
    }

    /// Borrows what the fast loop needs.
    #[inline(always)]
    pub(crate) fn transitions(&self) -> Transitions<'_> {
        self.table.transitions()
    }

    /// The depth limits of the states; `None` if no pattern is held back.
    #[inline(always)]
    pub(crate) fn limits(&self) -> Option<&[AtomicU32]> {
        self.depth_limits.as_ref().map(|known| known.limits.all())
    }

    /// Takes the byte before `position`. Returns the new state if it is not quiet.
    pub(crate) fn step(&mut self, automaton: &Automaton, byte: u8, position: u64) -> Option<State> {
        match self.table.next(self.state, byte) {
            UNKNOWN => self.determinize(automaton, byte, position),
            transition => {
                self.move_along(automaton, transition | QUIET);
                let news = transition & QUIET == 0 && self.state != self.ignored;
                news.then(|| self.cache.states().key(self.state))
            }
        }
    }

    /// The matches of the current state were of no use, and will not be.
    pub(crate) fn ignore(&mut self) {
        self.ignored = self.state;
    }

    /// Computes a missing transition by subset construction and caches it if the budget permits.
    pub(crate) fn determinize(&mut self, automaton: &Automaton, byte: u8, position: u64) -> Option<State> {
        let part = automaton.part(self.number);
        if let Some(Uncached { key, mut scratch }) = self.uncached.take().map(|uncached| *uncached) {
            part.count_uncached();
            automaton.step(part, StateParts::of(&key), byte, &mut scratch);
            return self.move_to(automaton, scratch, None, position);
        }
        let cache = Arc::clone(&self.cache);
        let from = {
            let mut states = cache.states();
            let transition = states.table.next(self.state, byte);
            if transition != UNKNOWN {
                // Another stream computed it: since `step` looked, or in a table that has grown since this cursor loaded it.
                let key = (transition & QUIET == 0).then(|| states.key(transition | QUIET));
                self.refresh(&mut states);
                // Where nobody has computed the depth limit yet, `move_along` takes the lock itself.
                drop(states);
                self.move_along(automaton, transition | QUIET);
                return key;
            }
            states.key(self.state)
        };
        let mut scratch = automaton.scratch();
        automaton.step(part, from.parts(), byte, &mut scratch);
        self.move_to(automaton, scratch, Some(byte), position)
    }

    /// Enters the tails that begin with the states `entries`, behind the byte `last`. Returns the new state if it is not
    /// quiet.
    pub(crate) fn enter(&mut self, automaton: &Automaton, entries: &[u32], last: u8, position: u64) -> Option<State> {
        let context = automaton.part(self.number).contexts.reduce(Context::after(last));
        let from = self.live();
        let set = from.as_ref().map_or(&[][..], |from| from.parts().set);
        let mut scratch = automaton.scratch();
        let from = StateParts { context, before: &[], after: &[], entries: &[], set };
        automaton.enter(from, entries, context, &mut scratch);
        self.move_to(automaton, scratch, None, position)
    }

    /// Ends the matches in progress of some patterns.
    pub(crate) fn remove(&mut self, automaton: &Automaton, owners: &[u32], position: u64) {
        let Some(from) = self.live() else { return };
        let mut scratch = automaton.scratch();
        if automaton.remove(from.parts(), owners, &mut scratch) {
            self.move_to(automaton, scratch, None, position);
        } else {
            automaton.put_back(scratch);
        }
    }

    /// Moves to the state in `scratch`, which is looked up or added; without budget, the cursor continues without the
    /// cache. Sets the transition of the previous state for the byte `link`. Returns the state if it is not quiet.
    fn move_to(&mut self, automaton: &Automaton, scratch: Scratch, link: Option<u8>, position: u64) -> Option<State> {
        let part = automaton.part(self.number);
        part.count_fed(position - self.counted);
        self.counted = position;
        self.uncached = None;
        let full = Arc::clone(&self.cache);
        let mut transition = self.state_for(&scratch.key, link);
        if transition.is_none() {
            self.cache = part.renew(&full);
            if !Arc::ptr_eq(&full, &self.cache) {
                self.ignored = UNKNOWN;
                transition = self.state_for(&scratch.key, None);
            }
        }
        let Some(transition) = transition else { return self.leave_cache(automaton, part, scratch) };
        automaton.put_back(scratch);
        self.move_along(automaton, transition | QUIET);
        (transition & QUIET == 0).then(|| self.cache.states().key(self.state))
    }

    /// The transition that leads to a state, which is added if the budget permits.
    fn state_for(&mut self, key: &[u32], link: Option<u8>) -> Option<u32> {
        let cache = Arc::clone(&self.cache);
        let mut states = cache.states();
        let known = states.find(key);
        let transition = known.or_else(|| (!states.is_full()).then(|| states.insert(key)));
        if let (Some(byte), Some(transition)) = (link, transition) {
            states.link(self.state, byte, transition);
        }
        self.refresh(&mut states);
        transition
    }

    fn leave_cache(&mut self, automaton: &Automaton, part: &Part, mut scratch: Scratch) -> Option<State> {
        let key = std::mem::take(&mut scratch.key);
        let state = State::new(&key);
        self.note(automaton, &state);
        // No state has this identifier: its transitions remain unknown.
        self.state = UNKNOWN;
        self.uncached = Some(Box::new(Uncached { key, scratch }));
        Some(state).filter(|state| !state.parts().is_quiet(part.is_tail))
    }

    /// Loads the current transition table and depth limits.
    fn refresh(&mut self, states: &mut States) {
        if !Arc::ptr_eq(&self.table, &states.table) {
            self.table = Arc::clone(&states.table);
            self.depth_limits = self.depth_limits.as_ref().map(|depth_limits| states.depth_limits(&depth_limits.held));
        }
    }

    /// Moves to a state of the cache.
    fn move_along(&mut self, automaton: &Automaton, state: u32) {
        self.state = state;
        let limits = self.depth_limits.clone();
        let known = limits.as_ref().map_or(0, |known| load_or_zero(known.limits.all(), line_of(state)));
        if known != 0 {
            (self.limit, self.is_over) = (known, false);
            return;
        }
        let is_tail = automaton.part(self.number).is_tail;
        if limits.is_none() && !is_tail {
            return;
        }
        let key = self.cache.states().key(state);
        self.note(automaton, &key);
        if let Some(limits) = limits.filter(|_| key.parts().is_quiet(is_tail)) {
            // The fast loop has to stop at the others.
            limits.limits.set(line_of(state), self.limit);
        }
    }

    /// Notes the depth of a state, and whether it has live NFA states.
    fn note(&mut self, automaton: &Automaton, state: &State) {
        let set = state.parts().set;
        self.is_over = set.is_empty();
        if let Some(limits) = &self.depth_limits {
            self.limit = automaton.depth_of(set, |pattern| limits.held.counts(pattern)).min(u32::MAX - 2) + 1;
        }
    }

    /// The current state; `None` before a tail is entered for the first time.
    pub(crate) fn live(&self) -> Option<State> {
        match &self.uncached {
            Some(uncached) => Some(State::new(&uncached.key)),
            None => (self.state != UNKNOWN).then(|| self.cache.states().key(self.state)),
        }
    }

    #[cfg(test)]
    pub(crate) fn forget_limit(&self) {
        let limits = self.depth_limits.as_ref().expect("the pattern is held back");
        limits.limits.set(line_of(self.state), 0);
    }
}
