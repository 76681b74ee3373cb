//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compaction;
mod confirmations;
mod context;
mod deadlines;
mod errors;
mod event_records;
mod events;
mod extension_source;
mod extensions;
mod hold;
mod inputs;
mod interrupted_waits;
mod journal;
mod limits;
mod metrics;
mod order;
mod overflow;
mod prompt;
mod questions;
mod reasoning;
mod records;
mod resume;
mod rewind;
mod rules;
mod secrets;
mod segments;
mod shown;
mod state;
mod steering;
mod tool_callbacks;
mod user_interrupts;
