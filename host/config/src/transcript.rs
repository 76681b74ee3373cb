//! `[transcript]` of the operator's file: whether sessions are recorded, where, and for how long.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flow::TranscriptBackend;

use crate::typed::TranscriptFile;

/// Whether sessions are recorded, where, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptSettings {
    /// Whether they are; `None`: the operator has not decided, and the front end does.
    pub enabled: Option<bool>,
    /// Where the records are: in the folder, or on the Redis server of the state.
    pub backend: TranscriptBackend,
    /// The folder of all transcripts; `None`: the default folder.
    pub folder: Option<PathBuf>,
    /// How long a session is kept after its last record; `None`: until somebody removes it.
    pub keep: Option<Duration>,
}

impl TranscriptSettings {
    pub(crate) fn of(typed: &TranscriptFile, folder: &Path) -> Self {
        let keep = Some(typed.keep_days).filter(|days| *days > 0);
        Self {
            enabled: typed.enabled,
            backend: typed.backend,
            folder: typed.folder.as_ref().map(|path| folder.join(path)),
            keep: keep.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        }
    }
}
