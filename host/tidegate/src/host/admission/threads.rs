//! Threads: no session has one of its own, but commands, look-ups of addresses and files need some for a moment.

use std::io;
use std::thread;

use crate::HostError;

/// # Errors
/// No other thread can be started. Its limit can be that of the process, of the user, of a container or of the machine, so that only the
/// attempt shows it. It takes about 20 µs.
pub(super) fn admit() -> Result<(), HostError> {
    let started = thread::Builder::new().name("admission".to_owned()).stack_size(16 << 10).spawn(|| ());
    check(started.map(drop))
}

fn check(started: io::Result<()>) -> Result<(), HostError> {
    started.map_err(HostError::NoThreads)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{admit, check};

    #[test]
    fn no_session_is_opened_without_a_thread() {
        assert!(admit().is_ok());
        let refused = check(Err(io::ErrorKind::WouldBlock.into())).err();
        assert_eq!(refused.and_then(|error| error.code()).map(|code| code.as_str()), Some("host-threads"));
    }
}
