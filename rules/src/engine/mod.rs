//! A multi-pattern regular expression engine for streams: each byte is processed once, whatever preceded it.
//!
//! A [`Pattern`] is one condition, compiled to a Thompson NFA over bytes. An [`Automaton`] runs many patterns together as a
//! lazy DFA: the subset construction turns a set of live NFA states into a DFA state the first time the set occurs, and each
//! transition is computed the first time it is taken. States and transitions are in a cache with a budget
//! ([`CacheBudget`]) that the automata of one rule set share. When it is exhausted, the cache is cleared; when it is
//! cleared too often after too few bytes, matching continues without it for a while, as a plain NFA simulation. A
//! [`Cursor`] is the position of one stream.
//!
//! The search is unanchored: the start states are always live, and therefore not part of any DFA state. Bytes that no
//! pattern distinguishes share a byte class, and with it a column of the transition table. Where a match starts is only
//! needed for evidence: a Pike-style simulation over the last bytes of the stream finds it ([`Pattern::start_of_match`]).
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
//! assertion on the next byte is as deep as the match is long. What is held back for a pattern without loops is therefore at
//! most its longest match; the settings limit the rest.
//!
//! **Why not `regex_automata::hybrid`.** Its lazy DFA reports matches, but not which NFA states are live, so nothing bounds
//! where a live match started, and bytes could only be held back from the last position at which the DFA was in a start
//! state. Its cache belongs to one searcher at a time; here one transition table serves all streams of all sessions, which
//! read it without a lock. Its matches end a search; here a stream continues behind a match, and each pattern reports its
//! first match by number. Warm, this engine takes 1.6 to 1.8 ns per byte at deltas of four bytes (`tests/benches/README.md`).
//! The heuristic to suspend caching is the same as there (`minimum_cache_clear_count` and `minimum_bytes_per_state`).

mod automaton;
mod budget;
mod cache;
mod classes;
mod cursor;
mod determinize;
mod look;
mod nfa;
mod pattern;

pub use automaton::{Automaton, EngineStats};
pub use budget::CacheBudget;
pub use cursor::{Cursor, Match};
pub use look::Context;
pub use pattern::{Next, Pattern};

pub use crate::dialect::PatternError;
pub(crate) use look::{holds, is_word, looks_behind_only};
pub(crate) use nfa::{Nfa, NfaState, compile};
