//! Who is allowed to use a session over a server: kept with its transcript.

use flow::SessionId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use super::TranscriptStore;
use super::error::{TranscriptError, unusable};

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
    /// It cannot be read.
    pub fn access(&self, id: &SessionId) -> Result<Option<SessionAccess>, TranscriptError> {
        let access = self.access_of(&self.place.name_of(id))?;
        Ok(access.filter(|access| access.thread_id == id.as_str()))
    }

    /// Writes who is allowed to use a session. A crash meanwhile leaves what was written before, or all of this.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_access(&self, id: &SessionId, access: &SessionAccess) -> Result<(), TranscriptError> {
        let name = self.place.name_of(id);
        let content =
            serde_json::to_vec(access).map_err(|error| unusable(&self.place.path(&name), error.to_string()))?;
        Ok(self.place.set_access(&name, &content)?)
    }

    /// Lists all sessions that a server has created. Where it cannot be read, that is logged, and the session is not in the list.
    ///
    /// # Errors
    /// The sessions cannot be listed.
    pub fn accesses(&self) -> Result<Vec<SessionAccess>, TranscriptError> {
        let mut all = Vec::new();
        for name in self.place.with_access()? {
            match self.access_of(&name) {
                Ok(found) => {
                    let is_own =
                        |access: &SessionAccess| self.place.name_of(&SessionId::new(&*access.thread_id)) == name;
                    all.extend(found.filter(is_own));
                }
                Err(error) => tracing::warn!(%error, "whose session it is cannot be read"),
            }
        }
        Ok(all)
    }

    fn access_of(&self, name: &str) -> Result<Option<SessionAccess>, TranscriptError> {
        let Some(content) = self.place.access(name)? else { return Ok(None) };
        let access = serde_json::from_slice(&content).map_err(|error| {
            let reason = format!("who is allowed to use the session cannot be read: {error}");
            unusable(&self.place.path(name), reason)
        })?;
        Ok(Some(access))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use system::SystemClock;

    use super::*;

    const ACCESS: &str = "access.json";

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
