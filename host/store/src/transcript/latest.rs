//! The latest session of a workspace. Where one that may be it cannot be read, no other is taken for it.

use std::path::Path;
use std::time::SystemTime;

use flow::SessionId;

use super::error::TranscriptError;
use super::format::JsonRecord;
use super::place::Place;
use super::{TranscriptStore, TranscriptSummary};

/// How much of a transcript that cannot be read is looked at for what is known of it.
const START: u64 = 256 << 10;

/// A session that cannot be read, with what is known of it nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableTranscript {
    /// The name of its folder, which is its id unless that has characters that no name has.
    pub id: SessionId,
    /// Why it cannot be read.
    pub error: TranscriptError,
    /// The workspace's folder; `None` where no line says it.
    pub workspace: Option<String>,
    /// It is that of a child agent.
    pub is_child: bool,
    /// When its file was written last; `None` where that is not known.
    pub written: Option<SystemTime>,
}

impl UnreadableTranscript {
    /// Looks at the lines that are JSON, whatever their version is.
    pub(super) fn of(place: &dyn Place, name: &str, error: TranscriptError) -> Self {
        let written = place.written(name);
        let mut unreadable = Self { id: SessionId::new(name), error, workspace: None, is_child: false, written };
        if let Ok(Some(mut lines)) = place.lines(name) {
            while let Ok(Some(line)) = lines.next()
                && line.offset < START
            {
                let is_last = !line.is_complete;
                unreadable.learn(line.bytes);
                if is_last {
                    break;
                }
            }
        }
        unreadable
    }

    fn learn(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<JsonRecord>(line) else { return };
        self.is_child |= line["spawned_by"].is_object();
        if line["type"] == "thread_started" {
            self.workspace = line["payload"]["workspace"].as_str().map(str::to_owned);
        }
    }

    /// Whether it can be a session of the user in this workspace.
    pub fn may_be_of(&self, workspace: &Path) -> bool {
        !self.is_child && self.workspace.as_deref().is_none_or(|own| is_named(own, workspace))
    }
}

impl TranscriptSummary {
    /// Whether it was started in this folder, however the folder is written.
    pub fn is_of(&self, workspace: &Path) -> bool {
        self.workspace.as_deref().is_some_and(|own| is_named(own, workspace))
    }
}

/// Whether a recorded workspace is this folder.
fn is_named(recorded: &str, workspace: &Path) -> bool {
    // As it is recorded: JSON has no bytes that are not UTF-8.
    workspace.canonicalize().is_ok_and(|here| recorded == here.to_string_lossy())
}

impl TranscriptStore {
    /// Returns the session of a workspace with the latest record, those of child agents left out.
    ///
    /// # Errors
    /// No session of the workspace is recorded. Or one that was written later, and that is of the workspace or may be, cannot be read.
    pub fn latest(&self, workspace: &Path) -> Result<SessionId, TranscriptError> {
        let list = self.list()?;
        let is_own = |one: &&TranscriptSummary| one.header.spawned_by.is_none() && one.is_of(workspace);
        let latest = list.sessions.iter().find(is_own).map(|one| one.id.clone());
        let written = |id: &SessionId| self.place.written(&self.place.name_of(id));
        let after = latest.as_ref().and_then(written);
        let later = list.unreadable.into_iter().filter(|one| one.may_be_of(workspace) && one.written >= after);
        match (later.max_by_key(|one| one.written), latest) {
            (Some(UnreadableTranscript { id, error, .. }), other) => {
                Err(TranscriptError::LatestUnreadable { id, error: Box::new(error), other })
            }
            (None, Some(latest)) => Ok(latest),
            (None, None) => Err(TranscriptError::NoneHere),
        }
    }
}
