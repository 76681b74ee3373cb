//! The conversation of a session: one copy, which the prompt, extensions and embedders borrow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::Message;

/// The conversation of a session, oldest message first, hidden messages included. A clone is the same conversation.
///
/// Reading it never waits for a running turn. A message joins it when it is final: input when extensions have passed it, an
/// answer together with the results of its tool calls.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Vec<Arc<Message>>>>);

impl History {
    /// The messages so far.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.lock().clone()
    }

    /// Up to `count` messages from position `from` on, hidden ones neither counted nor returned.
    pub fn visible(&self, from: usize, count: usize) -> Vec<Arc<Message>> {
        let messages = self.lock();
        messages.iter().filter(|message| !message.hidden).skip(from).take(count).cloned().collect()
    }

    pub(crate) fn push(&self, message: Arc<Message>) {
        self.lock().push(message);
    }

    pub(crate) fn replace(&self, messages: Vec<Arc<Message>>) {
        *self.lock() = messages;
    }

    /// Each change is one statement, so a panic elsewhere leaves the messages whole.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Message>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
