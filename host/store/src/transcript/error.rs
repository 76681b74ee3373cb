//! Why work on transcripts fails.

use std::io;
use std::path::Path;

use flow::SessionId;
use flow::ports::JournalError;

/// Why a transcript cannot be opened, read, forked, repaired or removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// Another writer has it, it cannot be read or written, or a line of it is damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Nothing is recorded under this id.
    #[error("there is no session {id:?} in {root}", id = id.as_str())]
    Missing {
        /// The id that was asked for.
        id: SessionId,
        /// The folder of all transcripts.
        root: String,
    },
    /// The session whose records others continue is gone.
    #[error(
        "there is no session {id:?} in {root}, and {forks} continue its records; restore it from a copy, or remove its forks with \
         `tidegate session rm`",
        id = id.as_str(), forks = listed(forks)
    )]
    MissingParent {
        /// The id of the session that is gone.
        id: SessionId,
        /// Those that cannot be read without it, in order of their ids.
        forks: Vec<SessionId>,
        /// The folder of all transcripts.
        root: String,
    },
    /// The id of a new session is in use.
    #[error("the session {id:?} exists already; choose another id", id = id.as_str())]
    Exists {
        /// The id that was asked for.
        id: SessionId,
    },
    /// It was written in a format that this program does not know.
    #[error(
        "the transcript {path} has format version {found}, and this program knows version {known}; use the program that wrote it, or a \
         newer one"
    )]
    Version {
        /// The path of the file.
        path: String,
        /// The version in its header.
        found: u64,
        /// The only version that can be read.
        known: u64,
    },
    /// A fork is possible at the end of a turn only, and this turn has none.
    #[error("turn {turn} of the session {id:?} has not finished; {finished} turns have, fork at one of them", id = id.as_str())]
    NoTurn {
        /// The session that was to be forked.
        id: SessionId,
        /// The turn that was asked for.
        turn: u32,
        /// How many turns have finished.
        finished: u32,
    },
    /// Others need its records.
    #[error("the session {id:?} cannot be removed: {forks} continue its records; remove these first", id = id.as_str(), forks = listed(forks))]
    Forked {
        /// The session that was to be removed.
        id: SessionId,
        /// Its forks, in order of their ids.
        forks: Vec<SessionId>,
    },
    /// No session of a workspace is recorded.
    #[error(
        "no session of this workspace is recorded; `tidegate run` records each, and `tidegate session list --all` lists those of others"
    )]
    NoneHere,
    /// The latest session of a workspace cannot be read, or one that may be it: no other is taken for it.
    #[error(
        "the latest session of this workspace is, or can be, {id:?}, which cannot be read: {error}{}; `tidegate session rm {}` removes it",
        instead(other.as_ref()), id.as_str(), id = id.as_str()
    )]
    LatestUnreadable {
        /// The name of its folder, which is its id.
        id: SessionId,
        /// Why it cannot be read.
        error: Box<TranscriptError>,
        /// The latest that can be read.
        other: Option<SessionId>,
    },
    /// No id starts with this prefix.
    #[error("no session has an id that starts with {prefix:?}{}", hint(candidates))]
    NoMatch {
        /// The prefix that was asked for.
        prefix: String,
        /// Ids that exist, the newest session first, at most 10.
        candidates: Vec<SessionId>,
    },
    /// Several ids start with this prefix.
    #[error("{prefix:?} is the start of several ids: {}; give more characters", listed(candidates))]
    Ambiguous {
        /// The prefix that was asked for.
        prefix: String,
        /// The ids that start with it, in their order, at most 10.
        candidates: Vec<SessionId>,
    },
}

fn listed(ids: &[SessionId]) -> String {
    ids.iter().map(|id| format!("{:?}", id.as_str())).collect::<Vec<_>>().join(", ")
}

fn instead(other: Option<&SessionId>) -> String {
    other.map_or_else(String::new, |id| format!("; `--resume {}` continues the latest that can be read", id.as_str()))
}

fn hint(candidates: &[SessionId]) -> String {
    if candidates.is_empty() { "; none is recorded".to_owned() } else { format!("; there are {}", listed(candidates)) }
}

/// What an error of the operating system means for the transcript at `path`.
pub(super) fn failed(path: &Path, error: &io::Error) -> JournalError {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    let path = path.display().to_string();
    match error.kind() {
        StorageFull | QuotaExceeded => JournalError::Full { path },
        _ => JournalError::Unusable { path, reason: error.to_string() },
    }
}

pub(super) fn invalid(path: &Path, line: u64, reason: impl Into<String>) -> TranscriptError {
    JournalError::Invalid { path: path.display().to_string(), line, reason: reason.into() }.into()
}

pub(super) fn unusable(path: &Path, reason: impl Into<String>) -> JournalError {
    JournalError::Unusable { path: path.display().to_string(), reason: reason.into() }
}
