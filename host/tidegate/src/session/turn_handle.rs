//! A running turn, as its caller sees it.

use std::pin::Pin;
use std::task::{Context, Poll};

use flow::{Event, InputId};
use futures_core::Stream;
use tokio::sync::oneshot;
use turn::{CancellationToken, Subscription, TurnReport};

/// A turn that was started with [`Session::prompt`](crate::Session::prompt): a stream of its events, which ends with the turn,
/// and then its report.
///
/// The turn runs in a task of its own and does not wait for its reader: events that are not read are queued. Dropping
/// the value cancels the turn, because a turn whose result is not needed must not continue to spend tokens or change
/// files; [`Turn::detach`] lets it continue.
#[must_use = "dropping it cancels the turn"]
#[derive(Debug)]
pub struct Turn {
    events: Subscription,
    report: Option<oneshot::Receiver<TurnReport>>,
    cancel: CancellationToken,
    detached: bool,
    inputs: Vec<InputId>,
}

impl Turn {
    pub(crate) fn new(
        events: Subscription,
        report: oneshot::Receiver<TurnReport>,
        cancel: CancellationToken,
        inputs: Vec<InputId>,
    ) -> Self {
        Self { events, report: Some(report), cancel, detached: false, inputs }
    }

    /// The ids of the messages that it was asked for with, for [`Inbox::receipt`](crate::input::Inbox::receipt). Empty where the conversation
    /// continues without an input.
    pub fn inputs(&self) -> &[InputId] {
        &self.inputs
    }

    /// The next event of the turn; `None` when it has ended and all its events were taken.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.next().await
    }

    /// The next event if one is queued.
    pub fn try_next(&mut self) -> Option<Event> {
        self.events.try_next()
    }

    /// Waits for the end of the turn; events that were not read are dropped. The turn fails where the session was closed before
    /// it began.
    pub async fn report(mut self) -> TurnReport {
        self.ended().await
    }

    /// Waits for the end of the turn, once.
    pub(crate) async fn ended(&mut self) -> TurnReport {
        let report = match self.report.take() {
            Some(report) => report.await.ok(),
            None => None,
        };
        report.unwrap_or_else(|| TurnReport::failed("the session is closed: open another one"))
    }

    /// Cancels the turn, which its report states.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Lets the turn run on without this value. Its events reach [`Session::subscribe`](crate::Session::subscribe)rs.
    pub fn detach(mut self) {
        self.detached = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.detached {
            // Nothing happens where the turn has ended.
            self.cancel.cancel();
        }
    }
}

impl Stream for Turn {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}
