//! New sessions are refused before the process runs out of what those that are open need: file descriptors, threads, memory.

mod descriptors;
mod memory;
mod threads;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::HostError;

/// The time for which a check with the result that enough is left counts: a check takes about 150 µs, and what is kept for open sessions
/// is far more than what new ones take in this time.
const VALID: Duration = Duration::from_millis(20);

/// The time of the last check with the result that enough is left.
static CHECKED: Mutex<Option<Instant>> = Mutex::new(None);

/// Sessions are refused, and that was logged.
static REFUSES: AtomicBool = AtomicBool::new(false);

/// # Errors
/// Too little is left for another session. Each caller gets the error; it is logged once, until a session is opened again.
pub(crate) fn admit() -> Result<(), HostError> {
    let now = Instant::now();
    // A time is valid after every statement, so a panic elsewhere does not matter.
    let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
    if checked.is_some_and(|checked| now.saturating_duration_since(checked) < VALID) {
        return Ok(());
    }
    let admitted = descriptors::admit().and_then(|()| threads::admit()).and_then(|()| memory::admit());
    let refuses = admitted.is_err();
    *checked = (!refuses).then_some(now);
    if !REFUSES.swap(refuses, Ordering::Relaxed)
        && let Err(error) = &admitted
    {
        tracing::error!("{}", error.in_one_line());
    }
    admitted
}
