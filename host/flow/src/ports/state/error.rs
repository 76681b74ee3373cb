//! Why the store of extension state fails, and what remains possible.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::SessionId;

/// Why state cannot be opened, read or made durable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StateError {
    /// The session is open elsewhere.
    Leased {
        /// The session that is open.
        session: SessionId,
        /// The owner of the lease, for a person: host and process.
        by: String,
        /// When the lease ends unless the owner renews it; `None` where it ends with the owner's process.
        until_ms: Option<u64>,
    },
    /// Another owner has taken the session over, because this one did not renew its lease in time. Nothing is written any more.
    Fenced {
        /// The session that was taken over.
        session: SessionId,
        /// The owner of the lease, for a person.
        by: String,
    },
    /// The backend does not answer or refuses. Trying again can succeed.
    Unavailable {
        /// The backend: an address or a file.
        place: String,
        /// The error of the backend.
        cause: Arc<dyn Error + Send + Sync>,
    },
    /// The backend no longer has what was durable: it was restarted without its data, or has evicted it. Reported once; the session
    /// then continues with a store that has nothing. A caller with a cache writes it again: `Clear`, then every entry.
    Lost {
        /// The session that lost its state.
        session: SessionId,
        /// The backend: an address or a file.
        place: String,
    },
    /// What is stored cannot be read: it is damaged, or of a version that this host does not know. It is left as it is.
    Unreadable {
        /// The file or key.
        place: String,
        /// What is wrong with it, and the remedy.
        cause: String,
    },
    /// The session was closed before.
    Closed {
        /// The session that was closed.
        session: SessionId,
    },
}

impl StateError {
    /// Whether trying the same again can succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leased { session, by, until_ms: None } => {
                write!(
                    f,
                    "the session {session:?} is open in {by}; close it there, or end that process",
                    session = session.as_str()
                )
            }
            Self::Leased { session, by, until_ms: Some(until) } => write!(
                f,
                "the session {:?} is open in {by}; its lease ends at {} unless it is renewed: wait until then if that process has ended",
                session.as_str(),
                time_of_day(*until)
            ),
            Self::Fenced { session, by } => write!(
                f,
                "the session {:?} was taken over by {by}, because its lease was not renewed in time; nothing more is written",
                session.as_str()
            ),
            Self::Unavailable { place, cause } => write!(f, "cannot reach the state store {place}: {cause}"),
            Self::Lost { session, place } => write!(
                f,
                "the state store {place} has lost the state of the session {:?}: it was restarted without its data, or has evicted it",
                session.as_str()
            ),
            Self::Unreadable { place, cause } => write!(f, "cannot read the stored state {place}: {cause}"),
            Self::Closed { session } => write!(f, "the state of the session {:?} was closed before", session.as_str()),
        }
    }
}

impl Error for StateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // The message contains the cause itself; what is below it follows.
            Self::Unavailable { cause, .. } => cause.source(),
            Self::Leased { .. }
            | Self::Fenced { .. }
            | Self::Lost { .. }
            | Self::Unreadable { .. }
            | Self::Closed { .. } => None,
        }
    }
}

/// The time of day of `ms` milliseconds after 1970-01-01, as `HH:MM:SS UTC`.
fn time_of_day(ms: u64) -> String {
    let seconds = ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
