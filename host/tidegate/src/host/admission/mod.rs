//! New sessions are refused before the process runs out of what those that are open need: file descriptors, threads, memory.

mod descriptors;
mod memory;
mod threads;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::HostError;

/// Sessions are refused, and that was logged.
static REFUSES: AtomicBool = AtomicBool::new(false);

/// # Errors
/// Too little is left for another session. Whoever asks for one learns of it each time, and the log once, until one is opened again.
pub(crate) fn admit() -> Result<(), HostError> {
    let admitted = descriptors::admit().and_then(|()| threads::admit()).and_then(|()| memory::admit());
    let refuses = admitted.is_err();
    if !REFUSES.swap(refuses, Ordering::Relaxed)
        && let Err(error) = &admitted
    {
        tracing::error!("{}", error.in_one_line());
    }
    admitted
}
