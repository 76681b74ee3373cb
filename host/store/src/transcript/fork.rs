//! Forks: a new thread that shares the records of another one up to the end of a turn.

use std::collections::HashSet;

use flow::SessionId;
use flow::ports::JournalError;
use serde::Deserialize;

use super::error::TranscriptError;
use super::format::{ForkedFrom, TranscriptHeader};
use super::{Entry, TranscriptStore, check};

/// What is read of a record to find the end of a turn.
#[derive(Deserialize)]
struct Turn {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    turn: u32,
    /// The thread that has the record: the parent itself, or one of its parents.
    thread_id: String,
}

impl TranscriptStore {
    /// Creates the session `child`, which shares the records of `parent` up to the end of `turn` and copies none of them. The parent may
    /// be open meanwhile.
    ///
    /// # Errors
    /// The parent does not exist or has not finished this turn, the child exists already, or the transcripts cannot be read or written.
    pub fn fork(&self, parent: &SessionId, turn: u32, child: &SessionId) -> Result<TranscriptHeader, TranscriptError> {
        let _tree = self.place.hold_tree()?;
        let from = self.find_end(parent, turn)?;
        let name = self.place.name_of(child);
        let mut held = self.place.hold(&name)?;
        if check::open(&*self.place, &name)?.is_some() {
            return Err(TranscriptError::Exists { id: child.clone() });
        }
        let header = TranscriptHeader::new(child, self.clock.now_ms(), Some(from));
        self.create(&mut *held, child, &header)?;
        Ok(header)
    }

    /// Finds the record that finishes a turn, and makes it durable: the parent's writer may not have come to that.
    fn find_end(&self, parent: &SessionId, turn: u32) -> Result<ForkedFrom, TranscriptError> {
        let mut finished = 0;
        for entry in self.read(parent)?.records::<Turn>() {
            let Entry { seq, event, record, .. } = entry?;
            if record.kind != "turn_finish" {
                continue;
            }
            finished += 1;
            if record.turn == turn {
                self.place.sync(&self.place.name_of(&SessionId::new(record.thread_id)))?;
                return Ok(ForkedFrom { thread_id: parent.as_str().to_owned(), through: seq, event, turn });
            }
        }
        Err(TranscriptError::NoTurn { id: parent.clone(), turn, finished })
    }

    /// Removes a session with everything that is kept of it. A fork that is also one of its parents, which only somebody who edits the files can
    /// make, does not prevent that: neither of them can be read.
    ///
    /// # Errors
    /// It does not exist, has forks, is open, or cannot be deleted.
    pub fn remove(&self, id: &SessionId) -> Result<(), TranscriptError> {
        let _tree = self.place.hold_tree()?;
        self.check_removable(id)?;
        Ok(self.place.hold(&self.place.name_of(id))?.remove()?)
    }

    /// Checks what [`TranscriptStore::remove`] does, before anything else of the session is removed.
    ///
    /// # Errors
    /// As for [`TranscriptStore::remove`].
    pub fn check_removable(&self, id: &SessionId) -> Result<(), TranscriptError> {
        let name = self.place.name_of(id);
        if !self.place.exists(&name)? {
            return Err(self.missing(id));
        }
        let mut forks = self.forks(id)?;
        let parents = self.parents(id);
        forks.retain(|fork| !parents.contains(fork));
        if !forks.is_empty() {
            return Err(TranscriptError::Forked { id: id.clone(), forks });
        }
        match self.place.owner(&name)? {
            Some(by) => Err(JournalError::Locked { by }.into()),
            None => Ok(()),
        }
    }

    /// The sessions whose parent this is. A fork whose header is damaged does not count.
    fn forks(&self, parent: &SessionId) -> Result<Vec<SessionId>, TranscriptError> {
        let mut forks = Vec::new();
        for name in self.place.names()? {
            match check::open(&*self.place, &name) {
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
            let header = check::open(&*self.place, &self.place.name_of(&id)).ok().flatten().map(|(header, _)| header);
            let parent = header.and_then(|header| header.parent).map(|parent| SessionId::new(parent.thread_id));
            next = parent.filter(|parent| parents.insert(parent.clone()));
        }
        parents
    }
}
