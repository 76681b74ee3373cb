//! The machine below a host: its clock, and the environment of its process.
//!
//! It implements the port [`Clock`](flow::ports::Clock) where an embedder brings no other.
#![forbid(unsafe_code)]

mod clock;
pub mod environment;

pub use clock::SystemClock;
