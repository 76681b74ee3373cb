//! Finding many patterns in a stream of bytes at once: each byte is looked at once, whatever came before it.
//!
//! A [`Pattern`] is one condition as a small machine of states. An [`Automaton`] runs many patterns together, turning
//! sets of their states into table rows the first time they are needed; all streams of all sessions share it. A
//! [`Cursor`] is one stream's place in an automaton. Automata of one rule set share the [`Room`] for their rows.
//!
//! **Why a pattern fires at the right byte.** After each byte the live states are exactly those that some reading of the
//! text so far leads to: a match may begin anywhere, so start states are always alive, and an assertion that needs the next
//! byte stays in the set until that byte, or the block's end, has judged it. The set after a byte depends on the set before
//! it and the byte, not on where a delta ended. A pattern matches when its last state is reached, which no reading does
//! sooner.
//!
//! **Why no byte of a match is let go.** A state's depth is the most bytes that any way from the pattern's start to it takes
//! (no bound behind a loop). A match in progress has a state alive, so it began at most that state's depth ago, and at most
//! as many bytes ago as it did one byte earlier, and one more. [`Cursor::held_from`] is what both say, for the deepest of
//! the states alive: nothing that is before it belongs to a match that is still to come. A state in which an assertion
//! waits for the next byte is as deep as the match is long. What is held of a pattern without loops is therefore at most
//! its longest match; the settings bound the rest.

mod automaton;
mod classes;
mod compile;
mod cursor;
mod look;
mod pattern;
mod room;
mod step;
mod table;

pub use automaton::{Automaton, EngineStats};
pub use cursor::{Cursor, Hit};
pub use look::Context;
pub use pattern::{Next, Pattern};
pub use room::Room;

pub use crate::dialect::PatternError;
