//! Recorded sessions: raw wire bytes with their chunk boundaries and pauses, and what answers from them. `RECORDINGS.md` has the format.

mod events;
mod format;
mod held;
mod read;
mod recorder;
mod replay;
mod secrets;
mod watch;
mod writer;

pub use self::format::{Expect, RecordedEnd, RecordedFire, RecordedRules, RecordingError};
pub use self::read::{RecordedAnswer, RecordingReader};
pub use self::writer::{RecordingWriter, RequestNumber};

pub(crate) use self::recorder::{Recorder, Taken};
pub(crate) use self::replay::{Replay, requests};
pub(crate) use self::secrets::LEAST_BYTES;
