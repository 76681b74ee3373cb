//! Tests that start processes and kill them. A program of its own: a process that starts has, for a moment, copies of all open files of the
//! one that starts it, and with them the locks whose release the tests of [`disk`](disk.rs) and of transcripts expect.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conformance;
mod crash;
mod redis;
mod redis_access;
mod redis_cluster;
mod redis_sentinel;
mod session_crash;
mod support;
mod threads;
mod threads_redis;

/// Where the cases of [`threads`] have their records.
const ON_SERVER: bool = true;
