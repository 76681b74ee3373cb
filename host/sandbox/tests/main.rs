//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cache;
mod compiled;
mod conformance;
mod discreet;
mod faults;
mod hostile;
mod instances;
mod isolation;
mod loading;
mod migration;
mod powers;
mod state;
mod support;
mod tools;
