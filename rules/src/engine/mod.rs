//! A multi-pattern regular expression engine for streams: each byte is processed once, whatever preceded it.
//!
//! A [`Pattern`] is one condition, compiled to a Thompson NFA over bytes. An [`Automaton`] runs many patterns together as a few
//! lazy DFAs, its parts: the subset construction turns a set of live NFA states into a DFA state the first time the set occurs,
//! and each transition is computed the first time it is taken. States and transitions are in caches with a budget
//! ([`CacheBudget`]) that the automata of one rule set share. When it is exhausted, a cache is cleared; when it is
//! cleared too often after too few bytes, matching continues without it for a while, as a plain NFA simulation. A
//! [`Cursor`] is the position of one stream.
//!
//! The search is unanchored: the start states are always live, and therefore not part of any DFA state. Bytes that no
//! pattern distinguishes share a byte class, and with it a column of the transition table. Where a match starts is only
//! needed for evidence: a Pike-style simulation over the last bytes of the stream finds it (`Pattern::start_of_match`).
//!
//! **Why several parts.** A DFA state is a set of NFA states, so the states of a DFA multiply: 50 values of a count, times 1,000
//! places in a trie of names, times 20 values of another count. In one DFA, 220 patterns of a secret scanner took 4,000 ns per
//! byte. The NFA states of all patterns are therefore partitioned (`split`), and each part is a lazy DFA whose states only add
//! up: the heads of patterns, which mostly are literals; counts that no selective head precedes, and leads; and for each head the
//! tail behind it, which runs from a match of the head until none of its NFA states is live. Transitions lead
//! from a head to its tail only, at a byte at which the DFA of the heads stops (`NfaState::Cut`): the
//! union of the sets of all parts is the set that one DFA would be in. [`Automaton::undivided`] is that one DFA, with which
//! tests compare.
//!
//! **Why a lead is not searched for.** A match of `C{0,n}X` contains a match of `X` with the same end, and every match of `X` is one of
//! `C{0,n}X`. So the ends, and the live NFA states of `X`, are the same without the lead. What is held back is not: the states of
//! the lead count for it. They are a pattern of their own that never matches, one for all patterns with the same lead, with the
//! depths that they have in those. After a match a pattern restarts; a lead that others still need does not, so then up to its
//! length can be held back for longer. How often its classes have repeated is not counted: behind each of their characters what follows the
//! lead can come, with the depth that it has there. Only within a character of several bytes would a count say less.
//!
//! **Why a match is reported at the right byte.** After each byte, the live NFA states are exactly those that some path over
//! the text so far reaches. An assertion that depends on the next byte remains in the set, as the state before its epsilon
//! transition, until that byte or the end of the stream decides it. The set after a byte depends on the set before it and
//! the byte, not on where a delta ended. A pattern matches when its match state is reached, which no path does earlier.
//!
//! **Why no byte of a match is released.** The depth of an NFA state is the maximum number of bytes on any path from the
//! start of the pattern to it (no bound behind a loop). A live match has a live state, so it started at most
//! `min(depth(state), previous_lookback + 1)` bytes ago. [`Cursor::held_from`] is the maximum of that bound over all live
//! states of the patterns that are held back: no byte before it belongs to a match that is still to come. A state before an
//! assertion on the next byte is as deep as the match is long. The maximum is over all parts. What is held back for a pattern without loops is therefore at
//! most its longest match; the settings limit the rest. Where a condition has a group `hide`, depths count from there, and the states
//! before it have none: `held_from` is then the first byte that can belong to the group.
//!
//! **Why not `regex_automata::hybrid`.** Its lazy DFA reports matches, but not which NFA states are live, so nothing bounds
//! where a live match started, and bytes could only be held back from the last position at which the DFA was in a start
//! state. Its cache belongs to one searcher at a time; here one transition table serves all streams of all sessions, which
//! read it without a lock. Its matches end a search; here a stream continues behind a match, and each pattern reports its
//! first match by number. Warm, this engine takes 2.8 to 3.3 ns per byte at deltas of four bytes (`tests/benches/README.md`).
//! The heuristic to suspend caching is the same as there (`minimum_cache_clear_count` and `minimum_bytes_per_state`).

mod automaton;
mod budget;
mod cache;
mod classes;
mod compile;
mod cursor;
mod determinize;
mod events;
mod look;
mod nfa;
mod part;
mod part_cursor;
mod pattern;
mod scan;
mod split;

pub use automaton::{Automaton, EngineStats};
pub use budget::CacheBudget;
pub use cursor::{Cursor, Match};
pub use pattern::Pattern;

use crate::RuleSet;
pub use crate::dialect::PatternError;
pub(crate) use compile::compile;
pub(crate) use look::{Context, holds, is_word, looks_behind_only};
pub(crate) use nfa::{Nfa, NfaState};
pub(crate) use pattern::Next;

/// Returns the cache statistics of a rule set's automata, one entry for each.
pub fn stats(set: &RuleSet) -> Vec<EngineStats> {
    set.groups().all().iter().map(|group| group.automaton.stats()).collect()
}
