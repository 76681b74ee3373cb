//! How long an answer may go without content while the server keeps its connection alive.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use flow::{Delta, FailureKind, ModelError};
use tokio::time::{Instant, Sleep, sleep_until};

/// The time that one answer has been waited for since its last content. Pings and comments do not end the wait, and neither does a message
/// that says again that the answer begins.
pub(crate) struct Patience {
    most: Duration,
    /// Waits that are over.
    waited: Duration,
    /// Since when something is waited for.
    since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        Self { most, waited: Duration::ZERO, since: None, timer: Box::pin(sleep_until(Instant::now())) }
    }

    /// The server has sent something. A reader that takes its time does not count: a wait begins when nothing is there.
    pub(crate) fn received(&mut self) {
        self.waited += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// What was received is this.
    pub(crate) fn decoded(&mut self, delta: &Delta) {
        if !matches!(delta, Delta::Start { .. } | Delta::Usage(_)) {
            self.waited = Duration::ZERO;
        }
    }

    /// Nothing is there yet. Ready: it was waited for long enough.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ModelError> {
        if self.since.is_none() {
            self.since = Some(Instant::now());
            let left = self.most.saturating_sub(self.waited);
            self.timer.as_mut().reset(Instant::now() + left);
        }
        self.timer.as_mut().poll(cx).map(|()| {
            let seconds = self.most.as_secs_f64();
            let message = format!(
                "the provider has sent no content for {seconds} s, only what keeps the connection alive \
                 (`content_timeout_ms` of the provider)"
            );
            ModelError::of_kind(FailureKind::Transport, message)
        })
    }
}
