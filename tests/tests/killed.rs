//! Sessions whose process is killed. A program of its own: it is also the process to kill, and a process that starts has, for a moment,
//! copies of all open files and locks of the one that starts it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod confirmations;
mod killed_inputs;
