//! The records of sessions on disk: reading, listing, repairing and continuing them. What a line says is in [`crate::record`].

pub use crate::host::fork::{ForkedState, last_finished_turn};
pub use flow::ports::JournalError;
pub use store::{
    DroppedLine, ForkedFrom, LastRecord, Repair, SessionAccess, SpawnedBy, TranscriptError, TranscriptHeader,
    TranscriptList, TranscriptReader, TranscriptStore, TranscriptSummary, UnreadableTranscript,
};
pub use turn::rebuild::{OpenCalls, Rebuild, RebuildError, Resumed};
