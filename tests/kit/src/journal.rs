//! A journal for sessions whose events are read by a subscriber.

use flow::Event;
use flow::ports::{BoxFuture, Durability, Journal, JournalError, JournalProgress};

/// A journal that keeps nobody waiting: what a subscriber gets is the transcript.
pub struct AtOnce;

impl Journal for AtOnce {
    fn append(&self, _: &Event) -> Durability {
        Durability::Droppable
    }

    fn durable(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn watch(&self, _: Box<dyn Fn(JournalProgress) + Send + Sync>) {}

    fn close(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.durable()
    }
}
