//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod buffers;
mod commands;
mod common;
mod confinement;
mod environment;
mod files;
mod permission;
mod same_file;
mod search;
mod shell;
