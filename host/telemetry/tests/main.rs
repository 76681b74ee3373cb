//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod endpoint;
mod numbers;
mod readme;
mod receiver;
mod support;
