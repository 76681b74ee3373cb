//! The records of sessions: reading, listing, repairing and continuing them. What a line says is in [`crate::record`].

pub use crate::host::fork::{ForkedState, last_finished_turn};
pub use flow::ports::JournalError;
pub use store::{
    DroppedLine, ForkedFrom, LastRecord, Repair, SessionAccess, SessionHolder, SpawnedBy, TranscriptDurability,
    TranscriptError, TranscriptHeader, TranscriptList, TranscriptReader, TranscriptStore, TranscriptSummary,
    UnreadableTranscript,
};
pub use turn::rebuild::{OpenCalls, Rebuild, RebuildError, Resumed};
