//! The position of one stream in a lazy DFA: feeding bytes, and the first byte that a live match can include.

use std::sync::Arc;

use super::automaton::Automaton;
use super::cache::{
    DepthLimits, HeldPatterns, NO_MATCH, State, StateCache, StateParts, States, TransitionTable, UNKNOWN, line_of,
    load, load_or_zero,
};
use super::determinize::Scratch;
use super::look::Context;

/// A pattern has matched, for the first time or again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The pattern's number.
    pub pattern: u32,
    /// The end of the match: the offset behind its last byte, from the start of the stream.
    pub end: u64,
    /// The bytes that had to be seen to decide it: `end`, or one more if an assertion depends on the next byte.
    pub seen: u64,
    /// The value of [`Cursor::held_from`] before the last of these bytes.
    pub held_from: u64,
}

/// The position of one stream.
#[derive(Debug)]
pub struct Cursor {
    automaton: Arc<Automaton>,
    cache: Arc<StateCache>,
    table: Arc<TransitionTable>,
    depth_limits: Option<Arc<DepthLimits>>,
    state: u32,
    /// One more than the maximum number of bytes ago at which a live match of a held pattern started.
    lookback: u32,
    position: u64,
    /// The last match state whose matches were all ignored: entering it again skips the lookup of its matches.
    ignored: u32,
    /// The position up to which bytes are counted in the statistics.
    counted: u64,
    /// Set while the automaton has no cache budget: the current DFA state itself.
    uncached: Option<Box<Uncached>>,
}

#[derive(Debug)]
struct Uncached {
    key: Vec<u32>,
    scratch: Scratch,
}

impl Cursor {
    /// Starts a stream in which no pattern is held back.
    pub fn new(automaton: &Arc<Automaton>) -> Self {
        Self::with(automaton, None)
    }

    /// Starts a stream. `holds`: by pattern number, whether bytes of its live matches are held back.
    pub fn holding(automaton: &Arc<Automaton>, holds: Vec<bool>) -> Self {
        let held = match holds.iter().filter(|holds| **holds).count() {
            0 => return Self::new(automaton),
            n if n == holds.len() => HeldPatterns::All,
            _ => HeldPatterns::Some(holds),
        };
        Self::with(automaton, Some(&Arc::new(held)))
    }

    fn with(automaton: &Arc<Automaton>, held: Option<&Arc<HeldPatterns>>) -> Self {
        let cache = automaton.current();
        let (table, depth_limits) = {
            let mut states = cache.states();
            (Arc::clone(&states.table), held.map(|held| states.depth_limits(held)))
        };
        let mut cursor = Self {
            automaton: Arc::clone(automaton),
            cache,
            table,
            depth_limits,
            state: UNKNOWN,
            lookback: 1,
            position: 0,
            ignored: UNKNOWN,
            counted: 0,
            uncached: None,
        };
        let mut scratch = automaton.scratch();
        let context = automaton.contexts.reduce(Context::Start);
        StateParts { context, before: &[], after: &[], set: &[] }.write(&mut scratch.key);
        cursor.move_to(scratch, None);
        cursor
    }

    /// The automaton that it runs on.
    pub fn automaton(&self) -> &Arc<Automaton> {
        &self.automaton
    }

    /// The number of bytes fed so far.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether no pattern is held back.
    #[inline]
    pub fn holds_nothing(&self) -> bool {
        self.depth_limits.is_none()
    }

    /// The first byte that can belong to a live match of a held pattern: no match that ends after the current position
    /// starts before it. Never decreases, and does not depend on the chunking.
    #[inline]
    pub fn held_from(&self) -> u64 {
        // Without held patterns the value stays 1. It starts at 1 and grows by at most 1 per byte.
        self.position + 1 - u64::from(self.lookback)
    }

    /// The same, for those held patterns that `counts` accepts. Computed on demand from the depth of the live NFA
    /// states only, so it can be lower than necessary.
    pub fn held_from_by(&self, counts: impl Fn(u32) -> bool) -> u64 {
        let Some(depth_limits) = &self.depth_limits else { return self.held_from() };
        let live = self.live();
        let depth =
            self.automaton.depth_of(live.parts().set, |pattern| depth_limits.held.counts(pattern) && counts(pattern));
        let lookback = depth.min(u32::MAX - 2) + 1;
        (self.position + 1).saturating_sub(u64::from(lookback.min(self.lookback)))
    }

    /// Feeds the next bytes of UTF-8 text. The matches do not depend on the chunking. `on_match` returns whether the
    /// match was of use.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], mut on_match: impl FnMut(Match) -> bool) {
        let mut at = self.scan(bytes);
        while at < bytes.len() {
            self.step(bytes[at], &mut on_match);
            at += 1;
            at += self.scan(&bytes[at..]);
        }
    }

    /// The fast loop: takes bytes as long as transitions are known and lead to no match state, and returns how many it
    /// took. The others are to be given to [`feed`](Self::feed).
    // Not inlined: this leaves all registers to the loop, which saves more than the call costs.
    #[inline(never)]
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> usize {
        let table = self.table.transitions();
        let (mut state, mut passed) = (self.state as usize, 0);
        if let Some(depth_limits) = &self.depth_limits {
            let (mut lookback, limits) = (self.lookback, depth_limits.limits.all());
            for byte in bytes {
                let Some(transition) = table.next(state, *byte) else { break };
                // Not on the dependency chain from transition to transition, which determines the time. The limit of
                // match states is 0.
                let Some(limit) = load(limits, line_of(transition)) else { break };
                if limit == 0 {
                    break;
                }
                (state, lookback, passed) = (transition as usize, (lookback + 1).min(limit), passed + 1);
            }
            self.lookback = lookback;
        } else {
            for byte in bytes {
                let Some(transition) = table.next(state, *byte) else { break };
                if transition & NO_MATCH == 0 {
                    break;
                }
                (state, passed) = (transition as usize, passed + 1);
            }
        }
        // It was loaded from a transition.
        self.state = state as u32;
        self.position += passed as u64;
        passed
    }

    #[cold]
    #[inline(never)]
    fn step(&mut self, byte: u8, on_match: &mut impl FnMut(Match) -> bool) {
        let held_from = self.held_from();
        let matches = match self.table.next(self.state, byte) {
            UNKNOWN => self.determinize(byte),
            transition => {
                self.enter(transition | NO_MATCH);
                let news = transition & NO_MATCH == 0 && self.state != self.ignored;
                news.then(|| self.cache.states().key(self.state))
            }
        };
        self.position += 1;
        if let Some(key) = matches
            && !self.report(key.parts(), held_from, on_match)
        {
            self.ignored = self.state;
        }
    }

    /// Reports the matches of a state. Returns whether any of them was of use.
    fn report(&self, matches: StateParts<'_>, held_from: u64, on_match: &mut impl FnMut(Match) -> bool) -> bool {
        let (seen, mut wanted) = (self.position, false);
        for &pattern in matches.before {
            wanted |= on_match(Match { pattern, end: seen - 1, seen, held_from });
        }
        for &pattern in matches.after {
            wanted |= on_match(Match { pattern, end: seen, seen, held_from });
        }
        wanted
    }

    /// Computes a missing transition by subset construction and caches it if the budget permits. Returns the new state
    /// if it is a match state.
    fn determinize(&mut self, byte: u8) -> Option<State> {
        let automaton = Arc::clone(&self.automaton);
        if let Some(Uncached { key, mut scratch }) = self.uncached.take().map(|uncached| *uncached) {
            automaton.count_uncached();
            automaton.step(StateParts::of(&key), byte, &mut scratch);
            return self.move_to(scratch, None);
        }
        let cache = Arc::clone(&self.cache);
        let from = {
            let mut states = cache.states();
            let transition = states.table.next(self.state, byte);
            if transition != UNKNOWN {
                // Another stream computed it: since `step` looked, or in a table that has grown since this cursor loaded it.
                let key = (transition & NO_MATCH == 0).then(|| states.key(transition | NO_MATCH));
                self.refresh(&mut states);
                // Where nobody has computed the depth limit yet, and at match states, `enter` takes the lock itself.
                drop(states);
                self.enter(transition | NO_MATCH);
                return key;
            }
            states.key(self.state)
        };
        let mut scratch = automaton.scratch();
        automaton.step(from.parts(), byte, &mut scratch);
        self.move_to(scratch, Some(byte))
    }

    /// Moves to the state in `scratch`, which is looked up or added; without budget, the cursor continues without the
    /// cache. Sets the transition of the previous state for the byte `link`. Returns the state if it is a match state.
    fn move_to(&mut self, scratch: Scratch, link: Option<u8>) -> Option<State> {
        self.automaton.count_fed(self.position - self.counted);
        self.counted = self.position;
        let full = Arc::clone(&self.cache);
        if let Some(transition) = self.state_for(&scratch.key, link) {
            return self.enter_cached(transition, scratch);
        }
        self.cache = self.automaton.renew(&full);
        if !Arc::ptr_eq(&full, &self.cache) {
            self.ignored = UNKNOWN;
            if let Some(transition) = self.state_for(&scratch.key, None) {
                return self.enter_cached(transition, scratch);
            }
        }
        Some(self.leave_cache(scratch)).filter(|key| key.parts().is_match())
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

    fn enter_cached(&mut self, transition: u32, scratch: Scratch) -> Option<State> {
        self.automaton.put_back(scratch);
        self.enter(transition | NO_MATCH);
        (transition & NO_MATCH == 0).then(|| self.cache.states().key(self.state))
    }

    fn leave_cache(&mut self, mut scratch: Scratch) -> State {
        let key = std::mem::take(&mut scratch.key);
        let set = StateParts::of(&key).set;
        if let Some(depth_limits) = &self.depth_limits {
            self.lookback = (self.lookback + 1).min(self.limit(set, depth_limits));
        }
        // No state has this identifier: its transitions remain unknown.
        self.state = UNKNOWN;
        let matches = State::new(&key);
        self.uncached = Some(Box::new(Uncached { key, scratch }));
        matches
    }

    /// Loads the current transition table and depth limits.
    fn refresh(&mut self, states: &mut States) {
        if !Arc::ptr_eq(&self.table, &states.table) {
            self.table = Arc::clone(&states.table);
            self.depth_limits = self.depth_limits.as_ref().map(|depth_limits| states.depth_limits(&depth_limits.held));
        }
    }

    /// Moves to a state and updates how far back a live match can start.
    fn enter(&mut self, state: u32) {
        self.state = state;
        let Some(depth_limits) = &self.depth_limits else { return };
        let at = line_of(state);
        let mut limit = load_or_zero(depth_limits.limits.all(), at);
        if limit == 0 {
            let key = self.cache.states().key(state);
            limit = self.limit(key.parts().set, depth_limits);
            // The fast loop has to stop at match states.
            if !key.parts().is_match() {
                depth_limits.limits.set(at, limit);
            }
        }
        self.lookback = (self.lookback + 1).min(limit);
    }

    /// One more than the maximum depth of the NFA states in `set` that belong to held patterns.
    fn limit(&self, set: &[u32], depth_limits: &DepthLimits) -> u32 {
        self.automaton.depth_of(set, |pattern| depth_limits.held.counts(pattern)).min(u32::MAX - 2) + 1
    }

    /// Ends the stream: reports the patterns whose match ends with it.
    pub fn finish(&mut self, mut on_match: impl FnMut(Match) -> bool) {
        let mut scratch = self.automaton.scratch();
        let ended = self.automaton.finish(self.live().parts(), &mut scratch);
        self.automaton.put_back(scratch);
        let (end, held_from) = (self.position, self.held_from());
        for pattern in ended {
            on_match(Match { pattern, end, seen: end + 1, held_from });
        }
    }

    /// The patterns that have a live match.
    pub fn in_progress(&self) -> Vec<u32> {
        self.automaton.owners(self.live().parts().set)
    }

    fn live(&self) -> State {
        match &self.uncached {
            Some(uncached) => State::new(&uncached.key),
            None => self.cache.states().key(self.state),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::engine::Pattern;

    /// Two streams meet the same missing transition, and the one that has lost the race takes that of the other. A lock that is taken
    /// twice would be waited for without end, so the streams are on a thread of their own.
    #[test]
    fn a_stream_takes_a_transition_that_another_one_computed_meanwhile() {
        let (done, waiting) = mpsc::channel();
        std::thread::spawn(move || {
            let pattern = Arc::new(Pattern::new("xa|xbc").expect("a pattern"));
            let automaton = Automaton::new(vec![pattern]);
            let cursor = || Cursor::holding(&automaton, vec![true]);
            let [mut first, mut late] = [cursor(), cursor()];
            [&mut first, &mut late].into_iter().for_each(|cursor| cursor.feed(b"x", |_| true));
            let mut of_first = Vec::new();
            first.feed(b"a", |found| {
                of_first.push(found.pattern);
                true
            });
            // As `step` calls it where the transition was unknown a moment ago.
            let key = late.determinize(b'a').expect("a match state");
            let matches = [key.parts().before, key.parts().after].concat();
            // A state that is no match state, whose limit nobody has computed.
            let [mut first, mut late] = [cursor(), cursor()];
            [&mut first, &mut late].into_iter().for_each(|cursor| cursor.feed(b"x", |_| true));
            first.feed(b"b", |_| true);
            let limits = late.depth_limits.as_ref().expect("the pattern is held back");
            limits.limits.set(line_of(first.state), 0);
            assert!(late.determinize(b'b').is_none());
            let same = (late.state, late.lookback) == (first.state, first.lookback);
            done.send((of_first == matches, same)).expect("the test waits");
        });
        let found = waiting.recv_timeout(Duration::from_secs(60));
        assert_eq!(found, Ok((true, true)), "the streams wait for each other, or have other states");
    }
}
