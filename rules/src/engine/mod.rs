//! Finding many patterns in a stream of bytes at once: each byte is looked at once, whatever came before it.
//!
//! A [`Pattern`] is one condition as a small machine of states. An [`Automaton`] runs many patterns together, turning
//! sets of their states into table rows the first time they are needed; all streams of all sessions share it. A
//! [`Cursor`] is one stream's place in an automaton.

mod automaton;
mod cursor;
mod look;
mod pattern;
mod table;

pub use automaton::{Automaton, EngineStats};
pub use cursor::{Cursor, Hit, Holders, Mark};
pub use look::Context;
pub use pattern::{Next, Pattern};

pub use crate::dialect::PatternError;
