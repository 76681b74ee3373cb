//! Repairs a transcript with damaged lines: every valid record is kept.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use flow::SessionId;
use flow::ports::JournalError;
use record::Record;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{TranscriptError, failed, unusable};
use super::format::{TranscriptHeader, head};
use super::lines::Lines;
use super::{TranscriptStore, check, file};

/// What a repair has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The number of records that were kept.
    pub kept: u64,
    /// The lines that were removed.
    pub dropped: Vec<DroppedLine>,
    /// How many records have another number now.
    pub renumbered: u64,
    /// The header was damaged, and was replaced. If the session was a fork, what it shared with its parent is lost.
    pub new_header: bool,
    /// The damaged file as it was; `None` where nothing was wrong and nothing was changed.
    pub copy: Option<PathBuf>,
}

/// A line that a repair has removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedLine {
    /// Its number in the damaged file, from 1.
    pub line: u64,
    /// Its length, without the end of the line.
    pub bytes: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// Whether a record can be used, and why not.
type Usable<'a> = &'a dyn Fn(&Record) -> Result<(), String>;

/// Where the number of a record is in its line.
#[derive(Deserialize)]
struct SeqSpan<'a> {
    #[serde(borrow)]
    seq: &'a RawValue,
}

impl TranscriptStore {
    /// Removes every line that is not a record, and numbers the remaining records again. The damaged file stays next to the repaired one
    /// as `transcript.damaged-1.jsonl`, or with the next free number. Forks of the session keep what they share with it, as far as it is
    /// left.
    ///
    /// `usable` says whether a record can be used; one that cannot is removed as well, so that the session can be rebuilt.
    ///
    /// # Errors
    /// The session does not exist, is open, was written by a newer program, or its files cannot be read or written.
    pub fn repair<E: Display>(
        &self,
        id: &SessionId,
        usable: impl Fn(&Record) -> Result<(), E>,
    ) -> Result<Repair, TranscriptError> {
        let name = self.place.name_of(id);
        let path = self.place.path(&name);
        if self.place.lines(&name)?.is_none() {
            return Err(self.missing(id));
        }
        let mut held = self.place.hold(&name)?;
        let lines = || self.place.lines(&name)?.ok_or_else(|| unusable(&path, "it was removed"));
        let header = read_header(&path, lines()?)?;
        let mut repair = Repair { new_header: header.is_none(), ..Repair::default() };
        header.as_ref().map_or(Ok(()), |header| check::check_thread(&path, header, id.as_str()))?;
        let header = header.unwrap_or_else(|| TranscriptHeader::new(id, self.clock.now_ms(), None));
        let usable = |record: &Record| usable(record).map_err(|error| error.to_string());
        // Nothing is written where nothing is wrong.
        copy_valid(lines()?, &header, &usable, &mut repair, &mut io::sink())?;
        if repair.dropped.is_empty() && repair.renumbered == 0 && !repair.new_header {
            return Ok(repair);
        }
        let copy = copy_damaged(&self.folder(id), lines()?).map_err(|error| failed(&path, &error))?;
        let line = header.line().map_err(|error| unusable(&path, error.to_string()))?;
        let mut again = Repair { new_header: repair.new_header, ..Repair::default() };
        held.replace(&mut |out| {
            out.write_all(&line)?;
            copy_valid(lines().map_err(io::Error::other)?, &header, &usable, &mut again, out).map_err(io::Error::other)
        })?;
        repair.copy = Some(copy);
        Ok(repair)
    }
}

/// Reads the header; `None` if it is damaged. A newer format is not damage.
fn read_header(path: &Path, mut lines: Lines) -> Result<Option<TranscriptHeader>, TranscriptError> {
    let Some(line) = lines.next().map_err(|error| failed(path, &error))? else { return Ok(None) };
    match TranscriptHeader::parse(path, line.bytes) {
        Ok(header) => Ok(Some(header)),
        Err(TranscriptError::Journal(JournalError::Invalid { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Copies the valid records, with their new numbers, and notes what is left out.
fn copy_valid(
    mut lines: Lines,
    header: &TranscriptHeader,
    usable: Usable<'_>,
    repair: &mut Repair,
    out: &mut dyn Write,
) -> Result<(), JournalError> {
    let path = std::sync::Arc::clone(lines.path());
    let failed = |error| failed(&path, &error);
    let mut next_seq = header.first_seq();
    while let Some(line) = lines.next().map_err(failed)? {
        let is_header = line.number == 1 && !repair.new_header && line.is_complete;
        if is_header {
            continue;
        }
        let numbered =
            if line.is_complete { renumber(line.bytes, next_seq, usable) } else { Err("it has no end".to_owned()) };
        match numbered {
            Ok((start, end, changed)) => {
                let digits = next_seq.to_string();
                for bytes in [&line.bytes[..start], digits.as_bytes(), &line.bytes[end..], b"\n"] {
                    out.write_all(bytes).map_err(failed)?;
                }
                repair.kept += 1;
                repair.renumbered += u64::from(changed);
                next_seq += 1;
            }
            Err(reason) => {
                repair.dropped.push(DroppedLine { line: line.number, bytes: line.bytes.len() as u64, reason });
            }
        }
        if !line.is_complete {
            break;
        }
    }
    Ok(())
}

/// Finds the number of a valid record in its line, as a range of bytes, and whether `seq` is another one. Nothing else of the line is
/// changed: numbers of tools may have more digits than a `f64`.
fn renumber(line: &[u8], seq: u64, usable: Usable<'_>) -> Result<(usize, usize, bool), String> {
    let found = head(line)?.seq;
    // What `head` does not look at can keep a session from being rebuilt as well.
    let record = Record::read(line).map_err(|error| error.to_string())?;
    usable(&record)?;
    let span: SeqSpan<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let digits = span.seq.get();
    let start = digits.as_ptr() as usize - line.as_ptr() as usize;
    Ok((start, start + digits.len(), found != seq))
}

/// Copies the damaged lines to a file under a free name.
fn copy_damaged(folder: &Path, mut lines: Lines) -> io::Result<PathBuf> {
    file::create_folder(folder)?;
    for number in 1_u32.. {
        let copy = folder.join(format!("transcript.damaged-{number}.jsonl"));
        let mut out = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => BufWriter::new(opened?),
        };
        while let Some(line) = lines.next()? {
            out.write_all(line.bytes)?;
            if !line.is_complete {
                break;
            }
            out.write_all(b"\n")?;
        }
        out.into_inner()?.sync_all()?;
        return Ok(copy);
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
