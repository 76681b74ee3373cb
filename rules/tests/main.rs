//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod around;
mod bounds;
mod builtin;
mod calls;
mod commands;
mod corpus;
mod dialect;
mod differential;
mod divided;
mod docs;
mod files;
mod fold;
mod hide;
mod json;
mod judge;
mod reminders;
mod session;
mod sizes;
mod written;
