//! A turn with reasoning, text and calls, recorded in three wire formats, that is disturbed at each of its events: the conversation that
//! follows is one that servers of others take.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cuts;
mod interrupts;
mod place;
