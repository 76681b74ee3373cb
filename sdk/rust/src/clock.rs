//! Power `clock`: the time. Always granted. `SystemTime::now` and `Instant::now` trap in a guest.

use std::time::{Duration, SystemTime};

use crate::host;

/// Returns the milliseconds since 1970-01-01 UTC; 0 while registering.
pub fn now_ms() -> u64 {
    // A whole number below 2^53: the cast is exact.
    host::clock_now_ms() as u64
}

/// Returns the time as the standard library has it; 1970-01-01 while registering.
pub fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms())
}
