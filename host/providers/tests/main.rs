//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accepted;
mod bodies;
mod classes;
mod conversations;
mod limits;
mod live;
mod masking;
mod patience;
mod plaintext;
mod recordings;
mod refused;
mod requests;
mod streams;
mod support;
mod validity;
