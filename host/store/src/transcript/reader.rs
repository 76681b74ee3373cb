//! Reads the records of a thread, those that it shares with its parents first, one line at a time.

use std::collections::HashSet;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flow::SessionId;
use serde::de::DeserializeOwned;

use super::check;
use super::error::{TranscriptError, failed, invalid, unusable};
use super::format::{JsonRecord, TranscriptHeader, head};
use super::lines::Lines;
use super::place::Place;

/// How often a reader that follows a transcript looks for more.
const POLL: Duration = Duration::from_millis(100);

/// An open transcript. Reading needs no lock: another process may be writing.
#[derive(Debug)]
pub struct TranscriptReader {
    header: TranscriptHeader,
    /// The files of the oldest parent first, each after its header.
    parts: Vec<Part>,
}

/// A file of which records are read.
#[derive(Debug)]
struct Part {
    lines: Lines,
    next_seq: u64,
    /// The last event that counts, where it is the file of a parent.
    last_event: Option<u64>,
    /// The first event that the file can have.
    first_event: u64,
    /// The event of the last record that was read.
    read_event: Option<u64>,
}

impl TranscriptReader {
    /// Opens a transcript and those of its parents. `missing_parent` returns the error where one is gone; `None`: the thread itself does
    /// not exist.
    pub(super) fn open(
        id: &str,
        place: &dyn Place,
        missing_parent: impl Fn(&str) -> TranscriptError,
    ) -> Result<Option<Self>, TranscriptError> {
        let Some((header, lines)) = check::open_thread(place, id)? else { return Ok(None) };
        let mut seen = HashSet::from([id.to_owned()]);
        let mut parent = header.parent.clone();
        let mut parts = vec![Part {
            lines,
            next_seq: header.first_seq(),
            last_event: None,
            first_event: header.first_event(),
            read_event: None,
        }];
        while let Some(fork) = parent {
            if !seen.insert(fork.thread_id.clone()) {
                let reason = "it is a fork of itself, or one of its parents is; remove it";
                let name = place.name_of(&SessionId::new(id));
                return Err(invalid(&place.path(&name), 1, reason));
            }
            let id = &fork.thread_id;
            let (header, lines) = check::open_thread(place, id)?.ok_or_else(|| missing_parent(id))?;
            // A fork of a fork may share less than its parent does.
            let shared = parts.last().and_then(|part| part.last_event).unwrap_or(u64::MAX);
            parts.push(Part {
                lines,
                next_seq: header.first_seq(),
                last_event: Some(fork.event.min(shared)),
                first_event: header.first_event(),
                read_event: None,
            });
            parent = header.parent;
        }
        parts.reverse();
        Ok(Some(Self { header, parts }))
    }

    /// The header of the thread itself.
    pub fn header(&self) -> &TranscriptHeader {
        &self.header
    }

    /// Returns the records, as [`JsonRecord`] or as any type that can be read from JSON. A last line that is not complete yet is left out.
    pub fn records<T: DeserializeOwned>(self) -> Records<T> {
        Records { parts: self.parts, at: 0, unread: 0, failed: false, as_type: PhantomData }
    }
}

/// A record and where it is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry<T = JsonRecord> {
    /// The transcript that contains it: that of the thread, or of a parent.
    pub path: Arc<Path>,
    /// Its line there, from 1; the header is line 1.
    pub line: u64,
    /// The number of the record in the thread, from 0, without gaps.
    pub seq: u64,
    /// The number of its event.
    pub event: u64,
    /// The record itself.
    pub record: T,
}

/// The records of a thread in order. It ends after an error.
#[derive(Debug)]
pub struct Records<T = JsonRecord> {
    parts: Vec<Part>,
    /// The part that is read.
    at: usize,
    /// Bytes of the last line, if it is not complete.
    unread: u64,
    failed: bool,
    as_type: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Records<T> {
    /// The bytes of a last line that is not complete, once all records were read: its writer is at work, or has died there.
    pub fn unread_bytes(&self) -> u64 {
        self.unread
    }

    /// Continues after the last record with those that are written later, as long as `goes_on` says so. It is asked whenever there is
    /// none, about every 100 ms; the calling thread sleeps meanwhile.
    pub fn follow(self, goes_on: impl FnMut() -> bool) -> impl Iterator<Item = Result<Entry<T>, TranscriptError>> {
        let (mut records, mut goes_on) = (self, goes_on);
        std::iter::from_fn(move || {
            loop {
                if let Some(entry) = records.next() {
                    return Some(entry);
                }
                if records.failed || !goes_on() {
                    return None;
                }
                std::thread::sleep(POLL);
                if let Err(error) = records.look_again() {
                    return Some(Err(error));
                }
            }
        })
    }

    /// Prepares an iterator that has come to its end for the records that were written since.
    ///
    /// # Errors
    /// The file cannot be read, or was removed, replaced or cut. The iterator ends with that.
    pub fn look_again(&mut self) -> Result<(), TranscriptError> {
        let Some(part) = self.parts.last_mut() else { return Ok(()) };
        let path = Arc::clone(part.lines.path());
        let outcome = part.lines.retry().map_err(|error| failed(&path, &error).into());
        let outcome = outcome.and_then(|()| check_in_place(&part.lines));
        self.failed = outcome.is_err();
        outcome
    }

    fn read(&mut self) -> Result<Option<Entry<T>>, TranscriptError> {
        while let Some(part) = self.parts.get_mut(self.at) {
            let is_last = part.last_event.is_none();
            match part.read()? {
                Found::Record(entry) => return Ok(Some(entry)),
                Found::End { .. } if !is_last => {
                    part.check_end()?;
                    self.at += 1;
                }
                Found::End { unread } => {
                    self.unread = unread;
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }
}

impl<T: DeserializeOwned> Iterator for Records<T> {
    type Item = Result<Entry<T>, TranscriptError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = self.read();
        self.failed = read.is_err();
        read.transpose()
    }
}

enum Found<T> {
    Record(Entry<T>),
    End { unread: u64 },
}

impl Part {
    /// Where a fork begins, its parent must have the record that it continues.
    fn check_end(&self) -> Result<(), TranscriptError> {
        // A fork of a fork can begin before the first record of its parent's own file.
        let shares = self.last_event.is_some_and(|last| last >= self.first_event);
        if !shares || self.read_event == self.last_event {
            return Ok(());
        }
        let reason = "it ends before the record that its fork continues; restore the file from a copy";
        Err(unusable(self.lines.path(), reason).into())
    }

    fn read<T: DeserializeOwned>(&mut self) -> Result<Found<T>, TranscriptError> {
        let path = Arc::clone(self.lines.path());
        let line = match self.lines.next().map_err(|error| failed(&path, &error))? {
            Some(line) if line.is_complete => line,
            line => return Ok(Found::End { unread: line.map_or(0, |line| line.bytes.len() as u64) }),
        };
        let not_valid = |reason: String| invalid(&path, line.number, reason);
        let head = head(line.bytes).map_err(not_valid)?;
        if self.last_event.is_some_and(|last| head.event > last) {
            return Ok(Found::End { unread: 0 });
        }
        if head.seq != self.next_seq {
            return Err(not_valid(format!(
                "record {} is expected here, and this is record {}",
                self.next_seq, head.seq
            )));
        }
        self.next_seq += 1;
        self.read_event = Some(head.event);
        let record =
            serde_json::from_slice(line.bytes).map_err(|error| not_valid(format!("it is not a record: {error}")))?;
        Ok(Found::Record(Entry { line: line.number, seq: head.seq, event: head.event, record, path }))
    }
}

/// A transcript that was replaced, or cut, is not the one that was read until now.
fn check_in_place(lines: &Lines) -> Result<(), TranscriptError> {
    let path: &Path = lines.path();
    if !lines.is_in_place().map_err(|error| failed(path, &error))? {
        let reason = "it was repaired, replaced or cut while it was read; read it again from the start";
        return Err(unusable(path, reason).into());
    }
    Ok(())
}
