//! The position of one stream in an automaton: feeding bytes, and the first byte that a live match can include.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::automaton::Automaton;
use super::cache::{HeldPatterns, State};
use super::events::Events;
use super::part_cursor::PartCursor;
use super::scan::scan;

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
    held: Option<Arc<HeldPatterns>>,
    first: PartCursor,
    /// Its positions in the other parts that run: those that always do, then tails.
    others: Vec<PartCursor>,
    /// Tails that have ended, for when they are entered again.
    idle: Vec<PartCursor>,
    /// One more than the maximum number of bytes ago at which a live match of a held pattern started.
    lookback: u32,
    position: u64,
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
            _ => HeldPatterns::Some(automaton.held_with_leads(holds)),
        };
        Self::with(automaton, Some(Arc::new(held)))
    }

    fn with(automaton: &Arc<Automaton>, held: Option<Arc<HeldPatterns>>) -> Self {
        let run = |number| PartCursor::new(automaton, number, held.as_ref());
        Self {
            automaton: Arc::clone(automaton),
            first: run(0),
            others: (1..automaton.always()).map(run).collect(),
            held,
            idle: Vec::new(),
            lookback: 1,
            position: 0,
        }
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
        self.held.is_none()
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
        let Some(held) = &self.held else { return self.held_from() };
        let counts = |pattern: &u32| held.counts(*pattern) && counts(*pattern);
        let any = |number| self.automaton.led_by(number).iter().any(counts);
        let live: Vec<State> = self.running().filter_map(PartCursor::live).collect();
        let depths = live.iter().map(|live| self.automaton.depth_of(live.parts().set, any));
        let depth = depths.max().unwrap_or(0);
        let lookback = depth.min(u32::MAX - 2) + 1;
        (self.position + 1).saturating_sub(u64::from(lookback.min(self.lookback)))
    }

    fn running(&self) -> impl Iterator<Item = &PartCursor> {
        std::iter::once(&self.first).chain(&self.others)
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

    /// The fast loop: takes bytes as long as transitions are known and lead to quiet states, and returns how many it took.
    /// The others are to be given to [`feed`](Self::feed).
    #[inline(always)]
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> usize {
        let Self { first, others, lookback, .. } = self;
        let passed = match others.as_mut_slice() {
            [] => scan([first], bytes, lookback),
            [a] => scan([first, a], bytes, lookback),
            [a, b] => scan([first, a, b], bytes, lookback),
            [a, b, c] => scan([first, a, b, c], bytes, lookback),
            [a, b, c, d] => scan([first, a, b, c, d], bytes, lookback),
            // So many tails are seldom entered at once; `step` takes any number.
            _ => 0,
        };
        self.position += passed as u64;
        passed
    }

    #[cold]
    #[inline(never)]
    fn step(&mut self, byte: u8, on_match: &mut impl FnMut(Match) -> bool) {
        let held_from = self.held_from();
        self.position += 1;
        let automaton = Arc::clone(&self.automaton);
        let mut events = Events::default();
        for (at, run) in std::iter::once(&mut self.first).chain(&mut self.others).enumerate() {
            if let Some(state) = run.step(&automaton, byte, self.position) {
                events.add(&state, at);
            }
        }
        if events.count > 0 {
            self.enter_tails(&automaton, &mut events, byte);
            let is_local = self.end_matched(&automaton, &events);
            let is_of_use = self.report(events.in_order(), held_from, on_match);
            // A tail may have ended with its match, which has to be seen each time.
            let is_one = events.count == 1 && events.entries.is_empty() && events.last < automaton.always() as usize;
            if is_one && is_local && !is_of_use {
                std::iter::once(&mut self.first).chain(&mut self.others).nth(events.last).map(PartCursor::ignore);
            }
            self.drop_tails(&automaton);
        }
        if self.held.is_some() {
            let limit = self.running().map(|run| run.limit).max().unwrap_or(1);
            self.lookback = (self.lookback + 1).min(limit);
        }
    }

    /// Enters the tails whose heads end with the byte `last`, unless their pattern has just matched.
    fn enter_tails(&mut self, automaton: &Automaton, events: &mut Events, last: u8) {
        let matched = |state: &u32| events.matches.iter().any(|(_, pattern)| *pattern == automaton.owner(*state));
        let tail_of = |state: &u32| automaton.tail_of(automaton.owner(*state));
        let mut entries: Vec<u32> = events.entries.iter().copied().filter(|state| !matched(state)).collect();
        entries.sort_by_key(tail_of);
        for entries in entries.chunk_by(|one, other| tail_of(one) == tail_of(other)) {
            let Some(number) = tail_of(&entries[0]) else { continue };
            let at = self.others.iter().position(|run| run.number == number).unwrap_or_else(|| {
                let known = self.idle.iter().position(|run| run.number == number);
                let run = known.map(|at| self.idle.swap_remove(at));
                self.others.push(run.unwrap_or_else(|| PartCursor::new(automaton, number, self.held.as_ref())));
                self.others.len() - 1
            });
            if let Some(state) = self.others[at].enter(automaton, entries, last, self.position) {
                events.add(&state, at + 1);
            }
        }
    }

    /// Ends the matches in progress of the patterns that have matched in all parts, since a part can do so only for its own.
    /// Returns whether there was nothing to do.
    fn end_matched(&mut self, automaton: &Automaton, events: &Events) -> bool {
        let mut owners: Vec<u32> = Vec::new();
        for &(_, pattern) in &events.matches {
            let lead = automaton.lead_of(pattern);
            if lead.is_some() || automaton.tail_of(pattern).is_some() {
                owners.push(pattern);
            }
            // Patterns that are still in progress may need it; then it stays.
            let is_held = |number: &u32| self.held.as_ref().is_some_and(|held| held.counts(*number));
            owners
                .extend(lead.filter(|lead| automaton.led_by(*lead).iter().all(|one| *one == pattern || !is_held(one))));
        }
        if !owners.is_empty() {
            for run in std::iter::once(&mut self.first).chain(&mut self.others) {
                run.remove(automaton, &owners, self.position);
            }
        }
        owners.is_empty()
    }

    fn drop_tails(&mut self, automaton: &Automaton) {
        let mut at = automaton.always() as usize - 1;
        while at < self.others.len() {
            if self.others[at].is_over {
                self.idle.push(self.others.swap_remove(at));
            } else {
                at += 1;
            }
        }
    }

    /// Reports matches. Returns whether any of them was of use.
    fn report(&self, matches: Vec<(bool, u32)>, held_from: u64, on_match: &mut impl FnMut(Match) -> bool) -> bool {
        let (seen, mut wanted) = (self.position, false);
        for (is_after, pattern) in matches {
            wanted |= on_match(Match { pattern, end: seen - u64::from(!is_after), seen, held_from });
        }
        wanted
    }

    /// Ends the stream: reports the patterns whose match ends with it.
    pub fn finish(&mut self, mut on_match: impl FnMut(Match) -> bool) {
        let (mut scratch, mut ended) = (self.automaton.scratch(), Vec::new());
        for run in self.running() {
            if let Some(live) = run.live() {
                ended.extend(self.automaton.finish(self.automaton.part(run.number), live.parts(), &mut scratch));
            }
        }
        self.automaton.put_back(scratch);
        ended.sort_unstable();
        ended.dedup();
        let (end, held_from) = (self.position, self.held_from());
        for pattern in ended {
            on_match(Match { pattern, end, seen: end + 1, held_from });
        }
    }

    /// The patterns that have a live match of which something can be held back.
    pub fn in_progress(&self) -> Vec<u32> {
        let live: Vec<State> = self.running().filter_map(PartCursor::live).collect();
        let states = live.iter().flat_map(|live| live.parts().set).filter(|state| self.automaton.depth_at(**state) > 0);
        let owners: BTreeSet<u32> = states.map(|state| self.automaton.owner(*state)).collect();
        let patterns: BTreeSet<u32> = owners.into_iter().flat_map(|number| self.automaton.led_by(number)).collect();
        patterns.into_iter().collect()
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
            let key = late.first.determinize(&automaton, b'a', 2).expect("a match state");
            let matches = [key.parts().before, key.parts().after].concat();
            // A state that is no match state, whose limit nobody has computed.
            let [mut first, mut late] = [cursor(), cursor()];
            [&mut first, &mut late].into_iter().for_each(|cursor| cursor.feed(b"x", |_| true));
            first.feed(b"b", |_| true);
            first.first.forget_limit();
            assert!(late.first.determinize(&automaton, b'b', 2).is_none());
            let same = (late.first.state, late.first.limit) == (first.first.state, first.first.limit);
            done.send((of_first == matches, same)).expect("the test waits");
        });
        let found = waiting.recv_timeout(Duration::from_secs(60));
        assert_eq!(found, Ok((true, true)), "the streams wait for each other, or have other states");
    }
}
