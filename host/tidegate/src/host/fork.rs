//! Forks of recorded sessions, with the state of extensions as it was at the end of the forked turn.

use std::time::Duration;

use flow::ports::{ShownSession, StateBatch, StateChange, StateError};
use flow::{PluginId, SessionId};
use record::{Body, Record};
use store::{TranscriptError, TranscriptStore};

use crate::host::blocking;
use crate::host::stored::Stored;
use crate::{Host, HostBuilder, HostError};

/// How long a fork waits for a store that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the extensions of a fork begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkedState {
    /// Nothing is stored for the parent.
    Nothing,
    /// The state of these extensions, as it was at the end of the turn.
    Copied(Vec<PluginId>),
    /// Nothing, although the parent has state: the store has it as it is now, and a turn after the forked one has changed it or can have.
    Unknown {
        /// The last turn of the parent that has begun.
        latest: u32,
        /// The extensions that have state in the parent.
        plugins: Vec<PluginId>,
    },
}

/// Forks a session, and copies the state of its extensions.
///
/// # Errors
/// The session cannot be forked, or its state cannot be read or written; then there is no fork.
async fn fork(
    transcripts: TranscriptStore,
    stored: Stored,
    parent: SessionId,
    turn: u32,
    child: SessionId,
) -> Result<ForkedState, HostError> {
    let (store, from, to) = (transcripts.clone(), parent.clone(), child.clone());
    blocking(move || Ok(store.fork(&from, turn, &to)?)).await?;
    let copied = copy(&transcripts, &stored, &parent, turn, &child).await;
    if copied.is_err() {
        blocking(move || Ok(transcripts.remove(&child)?)).await?;
    }
    copied
}

async fn copy(
    transcripts: &TranscriptStore,
    stored: &Stored,
    parent: &SessionId,
    turn: u32,
    child: &SessionId,
) -> Result<ForkedState, HostError> {
    let Some(shown) = stored.admin.show(parent).await? else { return Ok(ForkedState::Nothing) };
    let plugins: Vec<PluginId> = shown.states.iter().map(|(plugin, _)| plugin.clone()).collect();
    // Asked after the state was read: what a turn changes, it changes after its start is recorded.
    let (store, of) = (transcripts.clone(), parent.clone());
    let latest = blocking(move || Ok(latest_turn(&store, &of)?)).await?;
    if latest != turn {
        return Ok(ForkedState::Unknown { latest, plugins });
    }
    write(stored, child, shown).await?;
    Ok(ForkedState::Copied(plugins))
}

/// The last turn that has begun.
fn latest_turn(store: &TranscriptStore, id: &SessionId) -> Result<u32, TranscriptError> {
    let mut latest = 0;
    for entry in store.read(id)?.records::<Record>() {
        latest = latest.max(entry?.record.turn);
    }
    Ok(latest)
}

/// The last turn of a recorded session that has finished, from the end of which it can be forked.
///
/// # Errors
/// There is no such session, or its transcript cannot be read.
pub fn last_finished_turn(store: &TranscriptStore, id: &SessionId) -> Result<Option<u32>, TranscriptError> {
    let mut last = None;
    for entry in store.read(id)?.records::<Record>() {
        let record = entry?.record;
        if matches!(record.body, Body::TurnFinish(_)) {
            last = Some(record.turn);
        }
    }
    Ok(last)
}

/// Writes state to a session that has none.
async fn write(stored: &Stored, to: &SessionId, shown: ShownSession) -> Result<(), StateError> {
    let state = stored.sessions.open(to).await?;
    for (plugin, stored) in shown.states {
        let changes = stored.entries.into_iter().map(StateChange::Set).collect();
        // State that an earlier session with this id has left is not the fork's.
        state.clear(&plugin).await?;
        state.apply(&plugin, StateBatch { changes, version: stored.version });
    }
    state.close(PATIENCE).await
}

impl Host {
    /// Creates the session `child`, which continues the recorded session `parent` after `turn` and copies none of its records. The state of
    /// extensions is copied where it is known as it was at the end of that turn, which is where no later turn has begun.
    ///
    /// # Errors
    /// Sessions are not recorded, the session cannot be forked, or its state cannot be read or written; then there is no fork.
    pub async fn fork(&self, parent: &SessionId, turn: u32, child: &SessionId) -> Result<ForkedState, HostError> {
        let transcripts = self.transcripts().cloned().ok_or(HostError::NotRecorded)?;
        let stored = self.live.shared().basis.stored.clone();
        fork(transcripts, stored, parent.clone(), turn, child.clone()).await
    }
}

impl HostBuilder {
    /// The same as [`Host::fork`], without opening the host.
    ///
    /// # Errors
    /// As [`Host::fork`], and the stores that the operator has chosen cannot be used.
    pub async fn fork(&self, parent: &SessionId, turn: u32, child: &SessionId) -> Result<ForkedState, HostError> {
        let transcripts = self.transcripts()?.ok_or(HostError::NotRecorded)?;
        fork(transcripts, self.stored()?, parent.clone(), turn, child.clone()).await
    }
}
