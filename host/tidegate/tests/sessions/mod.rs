//! Sessions as an embedder uses them: handles that no turn blocks, and parts that the embedder brings.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "redis")]
mod away;
mod conversations;
mod custom_events;
mod expiry;
mod handles;
mod inputs;
#[cfg(feature = "redis")]
mod instances;
mod keeper;
mod model;
mod native;
mod parts;
mod recorded_conversations;
mod stores;
pub(crate) mod support;
mod transcripts;
mod troubled;
