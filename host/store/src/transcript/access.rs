//! Who is allowed to use a session over a server: a file in the folder of its transcript.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use flow::SessionId;
use serde::{Deserialize, Serialize};

use super::error::{TranscriptError, failed, unusable};
use super::{TranscriptStore, file};

const ACCESS: &str = "access.json";
const UNFINISHED: &str = "access.unfinished";
/// The maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Who is allowed to use a session over a server, and what it was created with. It is removed with the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAccess {
    /// The id of the session: the file of a folder that was copied does not count.
    pub thread_id: String,
    /// The user who has created the session.
    pub owner: String,
    /// The users with whom the owner shares it.
    #[serde(default)]
    pub users: BTreeSet<String>,
    /// The name of its agent.
    pub agent: String,
    /// The model that it was created with; `None`: that of the host.
    #[serde(default)]
    pub model: Option<String>,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
}

impl TranscriptStore {
    /// Reads who is allowed to use a session; `None` where no server has created it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn access(&self, id: &SessionId) -> Result<Option<SessionAccess>, TranscriptError> {
        let folder = self.folder(id);
        Ok(read(&folder)?.filter(|access| access.thread_id == id.as_str()))
    }

    /// Writes who is allowed to use a session. A crash meanwhile leaves the file as it was, or the complete new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_access(&self, id: &SessionId, access: &SessionAccess) -> Result<(), TranscriptError> {
        let folder = self.folder(id);
        let (path, unfinished) = (folder.join(ACCESS), folder.join(UNFINISHED));
        let write = || {
            file::create_folder(&folder)?;
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
            file.write_all(&serde_json::to_vec(access)?)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            file::sync_folder(&folder)?;
            file::sync_folder(&self.root)
        };
        Ok(write().map_err(|error| failed(&path, &error))?)
    }

    /// Lists all sessions that a server has created. A file that cannot be read is logged, and its session is not in the list.
    ///
    /// # Errors
    /// The folder of all transcripts cannot be read.
    pub fn accesses(&self) -> Result<Vec<SessionAccess>, TranscriptError> {
        let mut all = Vec::new();
        for folder in self.folders_with(ACCESS)? {
            match read(&folder) {
                Ok(found) => {
                    let is_own = |access: &SessionAccess| self.folder(&SessionId::new(&*access.thread_id)) == folder;
                    all.extend(found.filter(is_own));
                }
                Err(error) => tracing::warn!(%error, "whose session it is cannot be read"),
            }
        }
        Ok(all)
    }
}

fn read(folder: &Path) -> Result<Option<SessionAccess>, TranscriptError> {
    let path = folder.join(ACCESS);
    let file = match fs::File::open(&path) {
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(None);
        }
        opened => opened.map_err(|error| failed(&path, &error))?,
    };
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).map_err(|error| failed(&path, &error))?;
    let access = serde_json::from_slice(&text).map_err(|error| unusable(&path, error.to_string()))?;
    Ok(Some(access))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use system::SystemClock;

    use super::*;

    #[test]
    fn access_is_kept_per_session_and_is_removed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = TranscriptStore::new(folder.path(), "test", Arc::new(SystemClock)).unwrap();
        let (id, other) = (SessionId::new("one"), SessionId::new("two"));
        assert_eq!(store.access(&id).unwrap(), None);
        let mut access = SessionAccess {
            thread_id: "one".to_owned(),
            owner: "anna".to_owned(),
            users: BTreeSet::new(),
            agent: "main".to_owned(),
            model: None,
            created_ms: 7,
        };
        store.set_access(&id, &access).unwrap();
        access.users.insert("bert".to_owned());
        store.set_access(&id, &access).unwrap();
        assert_eq!(store.access(&id).unwrap(), Some(access.clone()));
        assert_eq!(store.accesses().unwrap(), [access]);
        assert!(store.list().unwrap().sessions.is_empty(), "it has no transcript yet");
        // A copy of the folder is nobody's.
        fs::create_dir(store.folder(&other)).unwrap();
        fs::copy(store.folder(&id).join(ACCESS), store.folder(&other).join(ACCESS)).unwrap();
        assert_eq!(store.access(&other).unwrap(), None);
        assert_eq!(store.accesses().unwrap().len(), 1);
        store.remove(&id).unwrap();
        assert_eq!(store.access(&id).unwrap(), None);
        fs::write(store.folder(&other).join(ACCESS), "no json").unwrap();
        assert!(store.access(&other).is_err() && store.accesses().unwrap().is_empty());
    }
}
