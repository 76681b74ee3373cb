//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disk;
mod support;
mod threads;
mod transcript;
mod transcript_schema;

/// Where the cases of [`threads`] have their records.
const ON_SERVER: bool = false;
