//! Transcripts on a real disk: files that crashes and others leave, damage and repairs.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod forks;
mod lists;
#[cfg(target_os = "linux")]
mod many;
mod opening;
mod reading;
mod repairs;

use crate::threads::{Place, error, forks::family, id, turn};
