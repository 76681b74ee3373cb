//! Threads on a Redis server: a stream for each, with an entry for each line.

use std::fmt::Debug;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flow::SessionId;
use flow::ports::{Clock, JournalError, StateError};

use super::appender::{Lost, Sink};
use super::check::Checked;
use super::error::{failed, unusable};
use super::file;
use super::folder::name_of;
use super::lines::{Lines, Source};
use super::place::{Held, Place, SessionHolder, TranscriptDurability, Written};
use crate::RedisOptions;
use crate::redis_store::threads::{Claim, Synced, Threads};

/// How many lines are read at once; fewer at first, where often only the header is wanted.
const FIRST_COUNT: usize = 16;
const COUNT: usize = 256;

/// What no session is called: the claim on it is that on the relations between threads.
const TREE: &str = "\u{0}tree";
/// Forks and removals are quick: another one is waited for.
const TREE_TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// The threads of a server.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    threads: Threads,
    /// Where other processes of this machine put requests to a session.
    root: PathBuf,
}

/// A thread that is reserved.
#[derive(Debug)]
struct HeldStream {
    claim: Claim,
    folder: PathBuf,
    path: PathBuf,
}

/// The end of a stream.
struct StreamSink {
    held: HeldStream,
    /// The number of the next line.
    next: u64,
}

/// Reads a stream.
#[derive(Debug)]
struct StreamSource {
    threads: Threads,
    id: SessionId,
    next: u64,
    /// Lines that were fetched, and how many of their bytes were read.
    bytes: Vec<u8>,
    at: usize,
}

impl Streams {
    pub(super) fn new(root: &Path, options: &RedisOptions, clock: Arc<dyn Clock>) -> Result<Self, JournalError> {
        file::create_folder(root).map_err(|error| failed(root, &error))?;
        let threads = Threads::new(options, clock).map_err(|error| unusable(root, error.to_string()))?;
        Ok(Self { threads, root: root.to_owned() })
    }

    fn failed(&self, error: &StateError) -> JournalError {
        of_thread(Path::new(self.threads.place()), error)
    }

    fn at(&self, name: &str) -> impl Fn(StateError) -> JournalError + use<> {
        let path = self.path(name);
        move |error| of_thread(&path, &error)
    }
}

/// Returns what an error of the server means for the transcript at `path`.
fn of_thread(path: &Path, error: &StateError) -> JournalError {
    match error {
        StateError::Leased { by, .. } => JournalError::Locked { by: by.clone() },
        StateError::Unavailable { .. } => JournalError::Away { reason: with_causes(error) },
        StateError::Fenced { by, .. } => {
            let reason = format!("{by} has taken over the session; what follows is not recorded here");
            unusable(path, reason)
        }
        StateError::Lost { .. } => {
            let reason =
                "the server has lost records of it; what follows is not recorded; close the session and resume it";
            unusable(path, reason)
        }
        error => unusable(path, with_causes(error)),
    }
}

fn with_causes(error: &StateError) -> String {
    use std::error::Error as _;
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

fn named(ids: &[SessionId]) -> Vec<String> {
    ids.iter().map(|id| id.as_str().to_owned()).collect()
}

impl Place for Streams {
    fn name_of(&self, id: &SessionId) -> String {
        id.as_str().to_owned()
    }

    fn id_of(&self, name: &str) -> Option<SessionId> {
        Some(SessionId::new(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("of {name:?} in {}", self.threads.place()))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn root(&self) -> String {
        self.threads.place().to_owned()
    }

    fn names(&self) -> Result<Vec<String>, JournalError> {
        self.threads.recorded().map(|ids| named(&ids)).map_err(|error| self.failed(&error))
    }

    fn exists(&self, name: &str) -> Result<bool, JournalError> {
        self.threads.exists(&SessionId::new(name)).map_err(self.at(name))
    }

    fn hold(&self, name: &str) -> Result<Box<dyn Held>, JournalError> {
        let (id, path) = (SessionId::new(name), self.path(name));
        let claim = self.threads.claim(&id).map_err(self.at(name))?;
        let folder = self.root.join(name_of(&id));
        file::create_folder(&folder).map_err(|error| failed(&folder, &error))?;
        Ok(Box::new(HeldStream { claim, folder, path }))
    }

    fn hold_tree(&self) -> Result<Box<dyn Debug>, JournalError> {
        let mut tries = 0;
        loop {
            match self.threads.claim(&SessionId::new(TREE)) {
                Ok(claim) => return Ok(Box::new(claim)),
                Err(StateError::Leased { .. }) if tries < TREE_TRIES => tries += 1,
                Err(StateError::Leased { by, .. }) => {
                    let reason = format!("{by} forks or removes a session there; try again");
                    return Err(unusable(Path::new(self.threads.place()), reason));
                }
                Err(error) => return Err(self.failed(&error)),
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
    }

    fn owner(&self, name: &str) -> Result<Option<String>, JournalError> {
        self.threads.owner(&SessionId::new(name)).map_err(self.at(name))
    }

    fn announce(&self, address: &str) {
        self.threads.announce(address);
    }

    fn elsewhere(&self, name: &str) -> Result<Option<SessionHolder>, JournalError> {
        let found = self.threads.elsewhere(&SessionId::new(name)).map_err(self.at(name))?;
        Ok(found.map(|(name, address)| SessionHolder { name, address }))
    }

    fn lines(&self, name: &str) -> Result<Option<Lines>, JournalError> {
        let id = SessionId::new(name);
        let mut source = StreamSource { threads: self.threads.clone(), id, next: 1, bytes: Vec::new(), at: 0 };
        source.fetch(FIRST_COUNT).map_err(self.at(name))?;
        let has_lines = !source.bytes.is_empty();
        Ok(has_lines.then(|| Lines::of(&self.path(name), Box::new(source))))
    }

    fn last_line(&self, name: &str, _: u64) -> Result<(Option<Vec<u8>>, u64), JournalError> {
        let last = self.threads.last(&SessionId::new(name)).map_err(self.at(name))?;
        // The first one is the header.
        let line = last.line.filter(|(number, _)| *number > 1).map(|(_, line)| line);
        Ok((line, last.bytes))
    }

    fn sync(&self, _: &str) -> Result<(), JournalError> {
        // What can be read was acknowledged.
        Ok(())
    }

    fn written(&self, name: &str) -> Option<SystemTime> {
        self.threads.written(&SessionId::new(name)).ok().flatten()
    }

    fn access(&self, name: &str) -> Result<Option<Vec<u8>>, JournalError> {
        self.threads.access(&SessionId::new(name)).map_err(self.at(name))
    }

    fn set_access(&self, name: &str, content: &[u8]) -> Result<(), JournalError> {
        self.threads.set_access(&SessionId::new(name), content).map_err(self.at(name))
    }

    fn with_access(&self) -> Result<Vec<String>, JournalError> {
        self.threads.all().map(|ids| named(&ids)).map_err(|error| self.failed(&error))
    }

    fn check(&self) -> Result<TranscriptDurability, JournalError> {
        self.threads.try_commands().map_err(|error| self.failed(&error))?;
        let synced = self.threads.synced().map_err(|error| self.failed(&error))?;
        Ok(promised(self.threads.place(), synced))
    }
}

/// Returns what a server promises, in words.
fn promised(place: &str, synced: Synced) -> TranscriptDurability {
    let (is_durable, what) = match synced {
        Synced::Never => (
            Some(false),
            "has them in memory alone (`appendonly no`): its end can lose what was acknowledged; set `appendonly yes` there",
        ),
        Synced::Always => {
            (Some(true), "syncs each record to its disk before it is acknowledged (`appendfsync always`)")
        }
        Synced::EverySecond => (
            Some(false),
            "syncs records to its disk within a second (`appendfsync everysec`): a crash of its machine can lose the last second",
        ),
        Synced::Sometime => (
            Some(false),
            "leaves it to its operating system when records are synced (`appendfsync no`): a crash of its machine can lose them",
        ),
        Synced::Unknown => (None, "does not say when it syncs them (`CONFIG GET appendonly` and `appendfsync`)"),
    };
    TranscriptDurability { detail: format!("a record was written and removed; {place} {what}"), is_durable }
}

impl Drop for HeldStream {
    fn drop(&mut self) {
        // Requests that nobody has taken, and copies, keep it.
        let _ = fs::remove_dir(&self.folder);
    }
}

impl HeldStream {
    fn at(&self) -> impl Fn(StateError) -> JournalError + use<> {
        let path = self.path.clone();
        move |error| of_thread(&path, &error)
    }
}

impl Held for HeldStream {
    fn create(&mut self, header: &[u8]) -> Result<(), JournalError> {
        self.claim.append(1, &[header.trim_ascii_end()]).map_err(self.at())
    }

    fn replace(&mut self, write: &mut Written<'_>) -> Result<(), JournalError> {
        let mut all = Vec::new();
        write(&mut all).map_err(|error| failed(&self.path, &error))?;
        self.claim.replace(&split(&all)).map_err(self.at())
    }

    fn sink(self: Box<Self>, end: &Checked) -> Result<Box<dyn Sink>, JournalError> {
        // The header is line 1.
        let next = end.next_seq - end.header.first_seq() + 2;
        Ok(Box::new(StreamSink { held: *self, next }))
    }

    fn remove(self: Box<Self>) -> Result<(), JournalError> {
        self.claim.remove().map_err(self.at())?;
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&self.folder, &error)),
            _ => Ok(()),
        }
    }
}

/// Splits complete lines.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line)).collect()
}

impl Sink for StreamSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = split(bytes);
        self.held.claim.append(self.next, &lines).map_err(|error| match self.held.at()(error) {
            JournalError::Unusable { reason, .. } => io::Error::other(reason),
            error => io::Error::other(error),
        })?;
        self.next += lines.len() as u64;
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        // The server has acknowledged what was written; what that means is its configuration.
        Ok(())
    }

    fn truncate(&mut self, _: u64) -> io::Result<()> {
        // A line is there as a whole or not at all.
        Ok(())
    }

    fn check_in_place(&self) -> Result<(), String> {
        // The server checks the claim with each write.
        Ok(())
    }

    fn on_lost(&mut self, lost: Lost) {
        let at = self.held.at();
        self.held.claim.on_lost(Box::new(move |error| lost(at(error))));
    }
}

impl StreamSource {
    fn fetch(&mut self, count: usize) -> Result<(), StateError> {
        let lines = self.threads.lines(&self.id, self.next, count)?;
        self.next += lines.len() as u64;
        (self.bytes, self.at) = (Vec::new(), 0);
        for line in lines {
            self.bytes.extend_from_slice(&line);
            self.bytes.push(b'\n');
        }
        Ok(())
    }
}

impl Source for StreamSource {
    fn read(&mut self, mut buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.bytes.len() {
            self.fetch(COUNT).map_err(|error| io::Error::other(with_causes(&error)))?;
        }
        let count = buffer.write(&self.bytes[self.at..])?;
        self.at += count;
        Ok(count)
    }

    fn seek(&mut self, _: u64) -> io::Result<()> {
        // Only complete lines are read.
        Ok(())
    }

    fn is_in_place(&self, _: &Path, _: u64) -> io::Result<bool> {
        self.threads.has_lines(&self.id).map_err(|error| io::Error::other(with_causes(&error)))
    }
}
