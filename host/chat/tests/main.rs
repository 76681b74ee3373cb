//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod children;
mod corpus;
mod defects;
mod examples;
mod hooks;
mod properties;
mod records;
mod schema;
mod session_queue;
mod shown;
mod support;
