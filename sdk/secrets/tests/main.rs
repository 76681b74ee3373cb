//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and says what it counted")]

mod characters;
mod corpus;
mod lines;
