//! What a store needs of the place where its threads are: a folder of files, or a server that several hosts use.

use std::fmt::Debug;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::SystemTime;

use flow::SessionId;
use flow::ports::JournalError;

use super::appender::Sink;
use super::check::Checked;
use super::lines::Lines;

/// The place of all threads. Each has a name there, which need not be its id. All functions block.
pub(super) trait Place: Debug + Send + Sync {
    /// Returns the name of the thread with this id, whether it exists or not.
    fn name_of(&self, id: &SessionId) -> String;

    /// Returns the id of the thread with this name; `None`: only its header says it.
    fn id_of(&self, name: &str) -> Option<SessionId>;

    /// Returns what errors call the transcript of a thread.
    fn path(&self, name: &str) -> PathBuf;

    /// Whether several hosts use it, each of which can continue its sessions.
    fn is_shared(&self) -> bool;

    /// Returns what errors call the place.
    fn root(&self) -> String;

    /// Returns the names of all threads that have a transcript.
    fn names(&self) -> Result<Vec<String>, JournalError>;

    /// Whether something is kept of a thread, be it only who is allowed to use it.
    fn exists(&self, name: &str) -> Result<bool, JournalError>;

    /// Reserves a thread for one writer.
    fn hold(&self, name: &str) -> Result<Box<dyn Held>, JournalError>;

    /// Reserves the relations between threads: no thread is forked while one is removed.
    fn hold_tree(&self) -> Result<Box<dyn Debug>, JournalError>;

    /// Returns the process that has reserved a thread.
    fn owner(&self, name: &str) -> Result<Option<String>, JournalError>;

    /// Notes where other hosts reach this one, where the place is shared.
    fn announce(&self, _address: &str) {}

    /// Returns the other host that has reserved a thread, where the place is shared.
    fn elsewhere(&self, _name: &str) -> Result<Option<SessionHolder>, JournalError> {
        Ok(None)
    }

    /// Opens a transcript at its first line; `None` where there is none.
    fn lines(&self, name: &str) -> Result<Option<Lines>, JournalError>;

    /// Returns the last complete line after the header, which has `header` bytes, and the size of the transcript in bytes.
    fn last_line(&self, name: &str, header: u64) -> Result<(Option<Vec<u8>>, u64), JournalError>;

    /// Makes durable what readers see of a transcript.
    fn sync(&self, name: &str) -> Result<(), JournalError>;

    /// Returns when a transcript was written last, if that is known.
    fn written(&self, name: &str) -> Option<SystemTime>;

    /// Returns who is allowed to use a session, as it was written.
    fn access(&self, name: &str) -> Result<Option<Vec<u8>>, JournalError>;

    /// Writes who is allowed to use a session, as a whole or not at all.
    fn set_access(&self, name: &str, content: &[u8]) -> Result<(), JournalError>;

    /// Returns the names of all threads for which it was written who is allowed to use them.
    fn with_access(&self) -> Result<Vec<String>, JournalError>;

    /// Writes something and removes it. Returns what the place promises of records that it has acknowledged.
    fn check(&self) -> Result<TranscriptDurability, JournalError>;
}

/// A thread that nobody else can write until this is dropped.
pub(super) trait Held: Debug + Send {
    /// Creates the transcript with its header.
    fn create(&mut self, header: &[u8]) -> Result<(), JournalError>;

    /// Replaces the transcript. A crash meanwhile leaves it as it was, or the complete new one.
    fn replace(&mut self, write: &mut Written<'_>) -> Result<(), JournalError>;

    /// Opens the transcript for writing after its complete lines, and makes durable what is there.
    fn sink(self: Box<Self>, end: &Checked) -> Result<Box<dyn Sink>, JournalError>;

    /// Removes the thread with everything that is kept of it.
    fn remove(self: Box<Self>) -> Result<(), JournalError>;
}

/// Writes the lines of a transcript.
pub(super) type Written<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// A host that has a session open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionHolder {
    /// Its process and machine.
    pub name: String,
    /// The URL at which other hosts reach it, if it has one.
    pub address: Option<String>,
}

/// What is promised of records that were acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptDurability {
    /// Where they are, and what they survive, as a clause.
    pub detail: String,
    /// Whether they survive a crash of the machine that has them; `None`: it is not known.
    pub is_durable: Option<bool>,
}
