//! The files that are open, of all sessions of the process: a few, however many sessions are open. The one that was used longest ago is
//! closed, and opened again when its session needs it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::session::Inner;

/// Files that are open at most, but for those that are worked on at this moment.
pub(super) const MOST: usize = 64;

type Sessions = VecDeque<Weak<Mutex<Inner>>>;

/// Those whose files may be open, the one that was used last at the end.
static OPEN: Mutex<Sessions> = Mutex::new(VecDeque::new());

/// The file of a session was used, and is open. Closes those that are too many.
pub(super) fn used(session: &Arc<Mutex<Inner>>) {
    let closed: Vec<Arc<Mutex<Inner>>> = {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let this = Arc::downgrade(session);
        open.retain(|other| !other.ptr_eq(&this) && other.strong_count() > 0);
        open.push_back(this);
        let too_many = open.len().saturating_sub(MOST);
        open.drain(..too_many).filter_map(|other| other.upgrade()).collect()
    };
    for session in closed {
        // Who works on it has it noted again.
        if let Ok(mut inner) = session.try_lock() {
            inner.rest();
        }
    }
}
