//! One descriptor that is kept for the transcripts of open sessions, for when the process has no other left.
//!
//! A process that runs out of open files must not fail what it has begun: a session that cannot write its transcript has to end its turn.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Pauses between tries, when somebody else has taken the kept one as well.
const PAUSE: Duration = Duration::from_millis(20);
const TRIES: u32 = 500;

/// Held open to be closed when it is needed.
static KEPT: Mutex<Option<File>> = Mutex::new(None);
/// That there is no descriptor left was reported, and there has been none since.
static REPORTED: AtomicBool = AtomicBool::new(false);

/// Opens a file, with the kept descriptor where there is no other, and waits for one where that is gone as well.
pub(crate) fn open(open: impl Fn() -> io::Result<File>) -> io::Result<File> {
    keep();
    for _ in 0..TRIES {
        match open() {
            Err(error) if is_exhausted(&error) => {
                if !REPORTED.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "the process has no file descriptor left, so nothing new can be opened; raise the limit (`ulimit -n`) before it is started"
                    );
                }
                let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
                if kept.is_none() {
                    std::thread::sleep(PAUSE);
                }
            }
            opened => return opened,
        }
    }
    open()
}

/// Keeps a descriptor again, where there is one.
fn keep() {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_none() {
        *kept = File::open("/dev/null").ok();
        if kept.is_some() {
            REPORTED.store(false, Ordering::Relaxed);
        }
    }
}

/// Whether the process, or the machine, has no descriptor left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}
