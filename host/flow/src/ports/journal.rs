//! The journal of a session: what is recorded of its events, and when the turn waits for that.

use crate::Event;

use super::BoxFuture;

/// Records the events of one thread.
///
/// A session hands it every event, in order, before any subscriber gets it. An event is *critical* or *droppable*: a critical one
/// reaches subscribers only when it is durable, and the turn waits for it at five barriers (before a request, before a tool runs, after
/// its result, when an answer is accepted, at the end of the turn). A droppable one may be left out, joined with its neighbours or
/// delayed; how many were left out is recorded.
pub trait Journal: Send + Sync {
    /// Takes the next event. Must not wait: this is called under the lock that orders events.
    fn append(&self, event: &Event) -> Durability;

    /// Waits until every critical event that was appended so far is on disk.
    ///
    /// # Errors
    /// They cannot be written, now or ever: the turn ends with this error. A journal that has failed stays so.
    fn durable(&self) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Calls `watcher` whenever more became durable, or the journal failed, from any thread. It replaces an earlier watcher.
    fn watch(&self, watcher: Box<dyn Fn(JournalProgress) + Send + Sync>);

    /// Writes what is left and releases the thread for other writers. Nothing is appended afterwards.
    ///
    /// # Errors
    /// As [`Journal::durable`]; the thread is released all the same.
    fn close(&self) -> BoxFuture<'_, Result<(), JournalError>>;
}

/// Whether subscribers have to wait for an event that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Subscribers get it when [`JournalProgress::Durable`] has reached its number.
    Critical,
    /// Subscribers get it as soon as the events before it.
    Droppable,
}

/// How far a journal is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalProgress {
    /// The critical events up to this number, [`Event::seq`], are durable.
    Durable(u64),
    /// It has failed. What was not durable then is not recorded, and neither is anything that follows.
    Failed(JournalError),
}

/// Why a thread cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another writer has it.
    #[error("the session is open in {by}; end it there, or use another session")]
    Locked {
        /// The owner: its process and machine.
        by: String,
    },
    /// The disk is full.
    #[error("the transcript {path} cannot be written: the disk is full; free some space and resume the session")]
    Full {
        /// The path of the transcript.
        path: String,
    },
    /// The store of the records does not answer.
    #[error("{reason}")]
    Away {
        /// Which store, and why.
        reason: String,
    },
    /// It cannot be written or read for another reason.
    #[error("the transcript {path}: {reason}")]
    Unusable {
        /// The path of the transcript.
        path: String,
        /// The cause, and the remedy if there is one.
        reason: String,
    },
    /// A line that is not the last one is not a valid record.
    #[error("the transcript {path}, line {line}: {reason}; `tidegate session repair` keeps what can be recovered")]
    Invalid {
        /// The path of the transcript.
        path: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
}
