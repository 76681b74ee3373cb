//! Subset construction: the transition of a set of NFA states for a byte.

use super::automaton::Automaton;
use super::cache::StateParts;
use super::look::{Context, holds, looks_behind_only};
use super::nfa::NfaState;
use super::part::Part;

/// Working memory, reused between transitions.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A bit per NFA state, set when it is visited; `visited` lists them.
    seen: Vec<u64>,
    visited: Vec<u32>,
    stack: Vec<u32>,
    active: Vec<u32>,
    set: Vec<u32>,
    before: Vec<u32>,
    after: Vec<u32>,
    entries: Vec<u32>,
    /// The encoded DFA state that was computed.
    pub(crate) key: Vec<u32>,
}

/// The transition of the start states alone, for one context and one byte.
#[derive(Debug, Default)]
pub(crate) struct StartTransition {
    set: Vec<u32>,
    before: Vec<u32>,
    after: Vec<u32>,
    entries: Vec<u32>,
}

impl Scratch {
    fn begin(&mut self, states: usize) {
        for state in self.visited.drain(..) {
            self.seen[state as usize / 64] = 0;
        }
        self.seen.resize(states.div_ceil(64), 0);
    }

    fn first_visit(&mut self, state: u32) -> bool {
        let (word, bit) = (&mut self.seen[state as usize / 64], 1 << (state % 64));
        let first = *word & bit == 0;
        if first {
            *word |= bit;
            self.visited.push(state);
        }
        first
    }
}

impl Automaton {
    /// Computes the transition of `from` for `byte`; the encoded state is in `scratch.key`.
    pub(crate) fn step(&self, part: &Part, from: StateParts<'_>, byte: u8, scratch: &mut Scratch) {
        self.resolve_assertions(from.set.iter().copied(), from.context, Some(byte), scratch);
        let context = part.contexts.reduce(Context::after(byte));
        self.take_byte(byte, context, scratch);
        if let Some(start) = part.after_start(self, from.context, Some(byte)) {
            for &state in &start.set {
                if scratch.first_visit(state) {
                    scratch.set.push(state);
                }
            }
            scratch.before.extend_from_slice(&start.before);
            scratch.after.extend_from_slice(&start.after);
            scratch.entries.extend_from_slice(&start.entries);
        }
        let live = self.complete(context, scratch);
        part.count_step(from.set.len() + live);
    }

    /// Adds the tails that begin with the states `entries` to the state `from`, as of the position behind the last byte,
    /// whose context is `context`; the encoded state is in `scratch.key`. Its matches are new ones.
    pub(crate) fn enter(&self, from: StateParts<'_>, entries: &[u32], context: Context, scratch: &mut Scratch) {
        self.begin(scratch);
        scratch.before.clear();
        for &state in from.set {
            scratch.first_visit(state);
            scratch.set.push(state);
        }
        for &state in entries {
            self.epsilon_closure(state, context, scratch);
        }
        self.complete(context, scratch);
    }

    /// Takes the states of the patterns `owners` out of the state `from`, if there are any; the encoded state is in
    /// `scratch.key`.
    pub(crate) fn remove(&self, from: StateParts<'_>, owners: &[u32], scratch: &mut Scratch) -> bool {
        self.begin(scratch);
        scratch.before.clear();
        scratch.set.extend(from.set.iter().filter(|state| !owners.contains(&self.owner(**state))));
        let fewer = scratch.set.len() < from.set.len();
        self.complete(from.context, scratch);
        fewer
    }

    /// Encodes the state that was computed; returns the number of its live NFA states.
    fn complete(&self, context: Context, scratch: &mut Scratch) -> usize {
        let Scratch { set, before, after, entries, key, .. } = scratch;
        sort_unique(before);
        sort_unique(after);
        sort_unique(entries);
        // A pattern that has just matched restarts: a stream only needs its first match, and fewer states are live.
        after.retain(|pattern| !contains(before, *pattern));
        if !before.is_empty() || !after.is_empty() {
            let remains = |state: &u32| {
                let owner = self.owner(*state);
                !contains(before, owner) && !contains(after, owner)
            };
            set.retain(remains);
            entries.retain(remains);
        }
        // Mostly two sorted runs, which a stable sort merges.
        set.sort();
        StateParts { context, before, after, entries, set }.write(key);
        set.len()
    }

    /// The patterns whose match ends with the stream.
    pub(crate) fn finish(&self, part: &Part, from: StateParts<'_>, scratch: &mut Scratch) -> Vec<u32> {
        self.resolve_assertions(from.set.iter().copied(), from.context, None, scratch);
        let mut ended = std::mem::take(&mut scratch.before);
        if let Some(start) = part.after_start(self, from.context, None) {
            ended.extend_from_slice(&start.before);
        }
        ended
    }

    /// Evaluates the assertions that depend on `next`; fills `active` with the states that consume bytes, `before` with
    /// the patterns that have matched.
    fn resolve_assertions(
        &self,
        from: impl Iterator<Item = u32>,
        context: Context,
        next: Option<u8>,
        scratch: &mut Scratch,
    ) {
        scratch.begin(self.state_count());
        scratch.active.clear();
        scratch.before.clear();
        for state in from {
            let (pattern, base, own) = self.place(state);
            if let NfaState::ByteRange { .. } | NfaState::Sparse { .. } = pattern.nfa().states[own as usize] {
                scratch.active.push(state);
                continue;
            }
            scratch.stack.push(state);
            while let Some(state) = scratch.stack.pop() {
                if !scratch.first_visit(state) {
                    continue;
                }
                match pattern.nfa().states[(state - base) as usize] {
                    NfaState::ByteRange { .. } | NfaState::Sparse { .. } => scratch.active.push(state),
                    NfaState::Union(one, other) => scratch.stack.extend([base + other, base + one]),
                    NfaState::Look(look, to) if holds(look, context, next) => scratch.stack.push(base + to),
                    NfaState::Look(..) => {}
                    // Heads end with a byte. Were it otherwise, the tail would run here.
                    NfaState::Cut(to) => scratch.stack.push(base + to),
                    NfaState::Match => scratch.before.push(self.owner(state)),
                }
            }
        }
    }

    /// Consumes `byte` from the active states; fills `set` and `after`.
    fn take_byte(&self, byte: u8, context: Context, scratch: &mut Scratch) {
        self.begin(scratch);
        let active = std::mem::take(&mut scratch.active);
        for &state in &active {
            let (pattern, base, own) = self.place(state);
            for to in pattern.nfa().targets(own, byte) {
                self.epsilon_closure(base + to, context, scratch);
            }
        }
        scratch.active = active;
    }

    fn begin(&self, scratch: &mut Scratch) {
        scratch.begin(self.state_count());
        scratch.set.clear();
        scratch.after.clear();
        scratch.entries.clear();
    }

    /// Adds the epsilon closure of `state`; assertions that depend on the next byte are not followed yet.
    fn epsilon_closure(&self, state: u32, context: Context, scratch: &mut Scratch) {
        let (pattern, base, _) = self.place(state);
        scratch.stack.push(state);
        while let Some(state) = scratch.stack.pop() {
            if !scratch.first_visit(state) {
                continue;
            }
            match pattern.nfa().states[(state - base) as usize] {
                NfaState::ByteRange { .. } | NfaState::Sparse { .. } => scratch.set.push(state),
                NfaState::Union(one, other) => scratch.stack.extend([base + other, base + one]),
                NfaState::Look(look, to) if looks_behind_only(look) => {
                    if holds(look, context, None) {
                        scratch.stack.push(base + to);
                    }
                }
                NfaState::Look(..) => scratch.set.push(state),
                NfaState::Cut(to) if self.is_divided() => scratch.entries.push(base + to),
                NfaState::Cut(to) => scratch.stack.push(base + to),
                NfaState::Match => scratch.after.push(self.owner(state)),
            }
        }
    }
}

impl StartTransition {
    pub(crate) fn find(automaton: &Automaton, part: &Part, context: Context, next: Option<u8>) -> Self {
        let mut scratch = automaton.scratch();
        automaton.resolve_assertions(automaton.starts(part.starts(), next), context, next, &mut scratch);
        if let Some(byte) = next {
            automaton.take_byte(byte, part.contexts.reduce(Context::after(byte)), &mut scratch);
        } else {
            automaton.begin(&mut scratch);
        }
        scratch.set.sort_unstable();
        let Scratch { set, before, after, entries, .. } = &scratch;
        let out = Self { set: set.clone(), before: before.clone(), after: after.clone(), entries: entries.clone() };
        automaton.put_back(scratch);
        out
    }
}

fn contains(sorted: &[u32], value: u32) -> bool {
    !sorted.is_empty() && sorted.binary_search(&value).is_ok()
}

fn sort_unique(values: &mut Vec<u32>) {
    values.sort_unstable();
    values.dedup();
}
