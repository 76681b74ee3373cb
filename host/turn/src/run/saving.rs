//! Making the state of extensions durable at the end of a turn and of a session, in a time that the end is worth.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use flow::{ErrorClass, EventKind, TurnStatus};
use tokio_util::sync::CancellationToken;

use super::Turn;
use flow::ports::{EventSink, Extensions, StateError};

/// How long the end of a turn, or of a session, waits for a store that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it waits where somebody wants the end now, or the end of the turn has waited before.
const BRIEFLY: Duration = Duration::from_millis(250);

impl Turn<'_> {
    /// Makes the state of the extensions durable. What cannot be saved now is kept in memory and saved with a later turn.
    pub(super) async fn save(&mut self, status: TurnStatus) -> TurnStatus {
        let extensions = Arc::clone(self.session.caller.extensions());
        self.end_attempt();
        extensions.end_turn();
        let saved = match status {
            TurnStatus::Cancelled => in_time(extensions.settle(Duration::ZERO), BRIEFLY, None).await,
            _ => in_time(extensions.settle(PATIENCE), PATIENCE, Some(self.cancel)).await,
        };
        self.session.thread.is_unsaved = saved.is_err();
        match saved {
            Ok(()) => status,
            Err(error) if error.is_retryable() => {
                let message = format!(
                    "the state of the extensions is not saved: {error}; it is kept in memory, and saved with the next turn or when the \
                     session is closed"
                );
                tracing::warn!("{message}");
                self.session.handles.hub.emit(EventKind::Notice { message });
                status
            }
            Err(error) => match status {
                TurnStatus::Completed => {
                    TurnStatus::Failed { class: ErrorClass::Permanent, message: error.to_string() }
                }
                other => {
                    self.session.handles.hub.emit(EventKind::Notice { message: error.to_string() });
                    other
                }
            },
        }
    }
}

/// Saves the state of extensions for the last time, and releases the session. `is_brief`: there is no time, or waiting was in vain before.
///
/// # Errors
/// What was not saved before is lost.
pub(crate) async fn close(extensions: &dyn Extensions, is_brief: bool) -> Result<(), StateError> {
    let patience = if is_brief { BRIEFLY } else { PATIENCE };
    in_time(extensions.settle(patience), patience, None).await?;
    // Nothing is left to be saved: a store that does not answer any more has a session that nobody uses, until its lease ends.
    match tokio::time::timeout(BRIEFLY, extensions.close(Duration::ZERO)).await {
        Ok(closed) => closed,
        Err(_) => {
            tracing::warn!("the store of the state does not answer: the session is not released there");
            Ok(())
        }
    }
}

/// Waits for a store, but not longer than `patience`, and only briefly from the moment on at which somebody cancels.
async fn in_time(
    settled: impl Future<Output = Result<(), StateError>>,
    patience: Duration,
    cancel: Option<&CancellationToken>,
) -> Result<(), StateError> {
    let late = async {
        if let Some(cancel) = cancel {
            // A try that was begun in time is worth waiting for.
            let _in_time = tokio::time::timeout(patience, cancel.cancelled()).await;
            tokio::time::sleep(BRIEFLY).await;
        } else {
            tokio::time::sleep(patience).await;
        }
    };
    tokio::select! {
        biased;
        settled = settled => settled,
        () = late => Err(StateError::Unavailable {
            place: "in time".to_owned(),
            cause: Arc::new(io::Error::new(io::ErrorKind::TimedOut, "it has not answered")),
        }),
    }
}
