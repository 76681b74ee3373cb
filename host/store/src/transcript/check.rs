//! What the lines of a transcript say: whose it is, and where the next record belongs.

use std::path::Path;

use flow::SessionId;

use super::error::{TranscriptError, failed, invalid, unusable};
use super::format::{TranscriptHeader, head};
use super::lines::Lines;
use super::place::Place;

/// Opens the transcript of a thread for reading, and reads its header; `None` where there is none.
pub(super) fn open_thread(place: &dyn Place, id: &str) -> Result<Option<(TranscriptHeader, Lines)>, TranscriptError> {
    let found = open(place, &place.name_of(&SessionId::new(id)))?;
    found.map(|(header, lines)| check_thread(lines.path(), &header, id).map(|()| (header, lines))).transpose()
}

/// A folder that was copied or renamed has the records of another session.
pub(super) fn check_thread(path: &Path, header: &TranscriptHeader, id: &str) -> Result<(), TranscriptError> {
    if header.thread_id == id {
        return Ok(());
    }
    let reason =
        format!("it belongs to the session {:?}, and its folder to {id:?}; rename the folder", header.thread_id);
    Err(unusable(path, reason).into())
}

/// The same, whichever thread it belongs to.
pub(super) fn open(place: &dyn Place, name: &str) -> Result<Option<(TranscriptHeader, Lines)>, TranscriptError> {
    let Some(mut lines) = place.lines(name)? else { return Ok(None) };
    let path = place.path(name);
    let header = match lines.next().map_err(|error| failed(&path, &error))? {
        Some(line) if line.is_complete => TranscriptHeader::parse(&path, line.bytes)?,
        _ => return Err(invalid(&path, 1, "the header is missing")),
    };
    Ok(Some((header, lines)))
}

/// What a check of all lines of a transcript finds.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) header: TranscriptHeader,
    /// The number of the next record.
    pub(super) next_seq: u64,
    /// The number of the next event.
    pub(super) next_event: u64,
    /// The bytes of all complete lines.
    pub(super) length: u64,
    /// The bytes of a last line that a crash has left without its end.
    pub(super) torn: u64,
}

/// Checks every line of a transcript; `None` where there is none.
pub(super) fn check(place: &dyn Place, id: &str) -> Result<Option<Checked>, TranscriptError> {
    let Some((header, mut lines)) = open_thread(place, id)? else { return Ok(None) };
    let path = std::sync::Arc::clone(lines.path());
    let (mut next_seq, mut next_event) = (header.first_seq(), header.first_event());
    let (mut length, mut torn) = (lines.offset(), 0);
    while let Some(line) = lines.next().map_err(|error| failed(&path, &error))? {
        if !line.is_complete {
            torn = line.bytes.len() as u64;
            break;
        }
        let head = head(line.bytes).map_err(|reason| invalid(&path, line.number, reason))?;
        if head.seq != next_seq {
            let reason = format!("record {next_seq} is expected here, and this is record {}", head.seq);
            return Err(invalid(&path, line.number, reason));
        }
        next_seq += 1;
        next_event = next_event.max(head.event.saturating_add(1));
        length = line.offset + line.bytes.len() as u64 + 1;
    }
    Ok(Some(Checked { header, next_seq, next_event, length, torn }))
}
