//! Stops a turn from outside, at any point.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A handle that stops the turn it was given to. Clones stop the same turn.
///
/// Cancelling drops everything the turn has under way: the model's stream (the provider sees the connection close), a
/// callback in a guest, a running tool with all it started. What was accepted before stays.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    notify: Notify,
}

impl Cancel {
    /// A handle that has not been used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the turn. Further calls do nothing.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits until it is.
    pub async fn cancelled(&self) {
        loop {
            let notified = self.0.notify.notified();
            if self.is_cancelled() {
                return;
            }
            notified.await;
        }
    }

    /// Goes on at once, or never where it was called: the turn is then dropped from outside.
    pub(crate) async fn checkpoint(&self) {
        if self.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }
}
