//! Every way in which the program ends, with and without work that waits: it does end, with the documented exit code, and what it printed is
//! whole.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "how long each end took")]

mod guest;
mod output;
mod provider;
mod queue;
mod run;
mod started;
