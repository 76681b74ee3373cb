//! Stream rules through a whole host.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod code;
mod reload;
mod required;
mod support;
