//! A session as users know it: who is allowed to use it, and its handle while it is open.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate::SessionId;
use tidegate::transcript::SessionAccess;
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::access::LOCAL;
use super::open::Open;

/// A session that a user has asked for.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: SessionId,
    access: Mutex<SessionAccess>,
    /// Changes when a user loses the access.
    lost: watch::Sender<u64>,
    deleted: AtomicBool,
    /// The session while it is open. Who opens, closes or deletes it has the lock.
    pub(super) open: AsyncMutex<Option<Arc<Open>>>,
}

impl Known {
    pub(super) fn new(id: SessionId, access: SessionAccess) -> Self {
        let (access, lost) = (Mutex::new(access), watch::Sender::new(0));
        Self { id, access, lost, deleted: AtomicBool::new(false), open: AsyncMutex::default() }
    }

    /// Returns who is allowed to use it.
    pub(super) fn access(&self) -> SessionAccess {
        self.lock().clone()
    }

    /// Returns whether a user is allowed to use it.
    pub(super) fn admits(&self, user: &str) -> bool {
        !self.is_deleted() && admits(&self.lock(), user)
    }

    /// Returns whether a user is its owner.
    pub(super) fn is_of(&self, user: &str) -> bool {
        self.lock().owner == user
    }

    /// Replaces who is allowed to use it.
    pub(super) fn set_access(&self, access: SessionAccess) {
        *self.lock() = access;
        self.lost.send_modify(|count| *count += 1);
    }

    /// Changes when who is allowed to use it has changed.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.lost.subscribe()
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::SeqCst)
    }

    pub(super) fn delete(&self) {
        self.deleted.store(true, Ordering::SeqCst);
    }

    /// The data are valid after every statement, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, SessionAccess> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a user is allowed to use a session.
pub(super) fn admits(access: &SessionAccess, user: &str) -> bool {
    access.owner == user || access.users.contains(user)
}

/// The access of a session that no server has created, such as one of the terminal: it is of the user of the machine.
pub(super) fn of_terminal(id: &SessionId, agent: &str, created_ms: u64) -> SessionAccess {
    SessionAccess {
        thread_id: id.as_str().to_owned(),
        owner: LOCAL.to_owned(),
        users: std::collections::BTreeSet::new(),
        agent: agent.to_owned(),
        model: None,
        created_ms,
    }
}
