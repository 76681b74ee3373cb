//! Forks: a new thread that shares the records of another one up to the end of a turn.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;

use flow::SessionId;
use flow::ports::JournalError;
use serde::Deserialize;

use super::error::{TranscriptError, failed, unusable};
use super::format::{ForkedFrom, TranscriptHeader};
use super::{Entry, TranscriptStore, file};
use crate::lock::{LockFile, Locked};

/// The lock of the root folder: no session is forked while one is removed. The name is not that of a session.
const TREE_LOCK: &str = ".lock";
/// What a session is called while it is removed; such a folder is not listed.
const REMOVED: &str = ".removed";

/// What is read of a record to find the end of a turn.
#[derive(Deserialize)]
struct Turn {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    turn: u32,
}

impl TranscriptStore {
    /// Creates the session `child`, which shares the records of `parent` up to the end of `turn` and copies none of them. The parent may
    /// be open meanwhile.
    ///
    /// # Errors
    /// The parent does not exist or has not finished this turn, the child exists already, or the files cannot be read or written.
    pub fn fork(&self, parent: &SessionId, turn: u32, child: &SessionId) -> Result<TranscriptHeader, TranscriptError> {
        let _tree = self.lock_tree()?;
        let from = self.find_end(parent, turn)?;
        let folder = self.folder(child);
        let _lock = file::lock(&folder, &self.owner)?;
        if file::open(&folder)?.is_some() {
            return Err(TranscriptError::Exists { id: child.clone() });
        }
        let header = TranscriptHeader::new(child, self.clock.now_ms(), Some(from));
        file::create(&folder, &header)?;
        Ok(header)
    }

    /// Finds the record that finishes a turn, and makes it durable: the parent's writer may not have come to that.
    fn find_end(&self, parent: &SessionId, turn: u32) -> Result<ForkedFrom, TranscriptError> {
        let mut finished = 0;
        for entry in self.read(parent)?.records::<Turn>() {
            let Entry { path, seq, event, record, .. } = entry?;
            if record.kind != "turn_finish" {
                continue;
            }
            finished += 1;
            if record.turn == turn {
                File::open(&path).and_then(|file| file.sync_data()).map_err(|error| failed(&path, &error))?;
                return Ok(ForkedFrom { thread_id: parent.as_str().to_owned(), through: seq, event, turn });
            }
        }
        Err(TranscriptError::NoTurn { id: parent.clone(), turn, finished })
    }

    /// Removes a session with everything in its folder. A fork that is also one of its parents, which only somebody who edits the files can
    /// make, does not prevent that: neither of them can be read.
    ///
    /// # Errors
    /// It does not exist, has forks, is open, or cannot be deleted.
    pub fn remove(&self, id: &SessionId) -> Result<(), TranscriptError> {
        let _tree = self.lock_tree()?;
        let folder = self.folder(id);
        if !folder.is_dir() {
            return Err(self.missing(id));
        }
        let mut forks = self.forks(id)?;
        let parents = self.parents(id);
        forks.retain(|fork| !parents.contains(fork));
        if !forks.is_empty() {
            return Err(TranscriptError::Forked { id: id.clone(), forks });
        }
        let _lock = file::lock(&folder, &self.owner)?;
        // At once for everybody else, and what a crash leaves is not a session any more.
        let removed = self.root.join(REMOVED);
        delete(&removed)
            .and_then(|()| fs::rename(&folder, &removed))
            .and_then(|()| delete(&removed))
            .and_then(|()| file::sync_folder(&self.root))
            .map_err(|error| failed(&folder, &error).into())
    }

    /// The sessions whose parent this is. A fork whose header is damaged does not count.
    fn forks(&self, parent: &SessionId) -> Result<Vec<SessionId>, TranscriptError> {
        let mut forks = Vec::new();
        for folder in self.folders()? {
            match file::open(&folder) {
                Ok(Some((header, _)))
                    if header.parent.as_ref().is_some_and(|fork| fork.thread_id == parent.as_str()) =>
                {
                    forks.push(SessionId::new(header.thread_id));
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "whether a session is a fork cannot be read"),
            }
        }
        forks.sort_unstable();
        Ok(forks)
    }

    /// The sessions whose records this one continues, as far as their headers can be read.
    fn parents(&self, id: &SessionId) -> HashSet<SessionId> {
        let (mut parents, mut next) = (HashSet::new(), Some(id.clone()));
        while let Some(id) = next {
            let header = file::open(&self.folder(&id)).ok().flatten().map(|(header, _)| header);
            let parent = header.and_then(|header| header.parent).map(|parent| SessionId::new(parent.thread_id));
            next = parent.filter(|parent| parents.insert(parent.clone()));
        }
        parents
    }

    fn lock_tree(&self) -> Result<LockFile, JournalError> {
        let path = self.root.join(TREE_LOCK);
        match LockFile::acquire(&path, &self.root, &self.owner).map_err(|error| failed(&path, &error))? {
            Locked::Acquired(lock) => Ok(lock),
            Locked::Held(by) => Err(unusable(&self.root, format!("{by} forks or removes a session there; try again"))),
        }
    }
}

fn delete(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        deleted => deleted,
    }
}
