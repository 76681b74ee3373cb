//! An open session on any backend: the queue in front of it, and when it is written.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use flow::ports::{
    BoxFuture, Clock, Replaced, SessionState, StateBatch, StateChange, StateEntry, StateError, StoredState,
};
use flow::{PluginId, SessionId};

use crate::activity::Activity;
use crate::backend::{Backend, Opened, WriteError};
use crate::queue::Queue;

/// Pauses between tries of a backend that does not answer: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// An open session. Each of its backend's operations has the backend to itself.
pub(crate) struct OpenSession<B> {
    session: SessionId,
    backend: B,
    clock: Arc<dyn Clock>,
    queue: Mutex<Queue>,
    /// Held while the backend works, so that a later flight does not overtake an earlier one.
    turn: tokio::sync::Mutex<()>,
    /// Set when nothing can be written any more.
    ended: OnceLock<StateError>,
    /// The error to report at the owner's next write: the backend has lost everything.
    lost: Mutex<Option<StateError>>,
}

impl<B: Backend> OpenSession<B> {
    pub(crate) fn new(session: SessionId, opened: Opened<B>, clock: Arc<dyn Clock>, session_ttl_ms: u64) -> Self {
        let queue = Mutex::new(Queue::new(Activity::new(opened.recorded, session_ttl_ms)));
        let turn = tokio::sync::Mutex::new(());
        Self { session, backend: opened.backend, clock, queue, turn, ended: OnceLock::new(), lost: Mutex::default() }
    }

    /// The queue is changed in whole steps: a panic elsewhere leaves it valid.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_open(&self) -> Result<(), StateError> {
        self.ended.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Notes what an error of the backend means for everything that follows.
    fn note(&self, error: &StateError) {
        match error {
            StateError::Fenced { .. } => drop(self.ended.set(error.clone())),
            StateError::Lost { .. } => self.queue().lost(),
            _ => {}
        }
    }

    async fn read(&self, plugin: &PluginId) -> Result<StoredState, StateError> {
        let _turn = self.turn.lock().await;
        self.check_open()?;
        let stored = self.backend.load(plugin).await.inspect_err(|error| self.note(error))?;
        Ok(self.queue().complete(plugin, stored, self.clock.now_ms()))
    }

    async fn stored_plugins(&self) -> Result<Vec<PluginId>, StateError> {
        let _turn = self.turn.lock().await;
        self.check_open()?;
        let mut plugins = self.backend.plugins().await.inspect_err(|error| self.note(error))?;
        plugins.extend(self.queue().adding());
        plugins.sort_unstable();
        plugins.dedup();
        Ok(plugins)
    }

    /// Notes an error that the owner gets elsewhere than at a write.
    fn note_for_write(&self, error: &StateError) {
        self.note(error);
        if matches!(error, StateError::Lost { .. }) {
            *self.lost() = Some(error.clone());
        }
    }

    fn lost(&self) -> MutexGuard<'_, Option<StateError>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, patience: Duration) -> Result<(), StateError> {
        let _turn = self.turn.lock().await;
        let lost = self.lost().take();
        if let Some(lost) = lost {
            return Err(lost);
        }
        let mut pauses = Pauses::new(&*self.clock, patience);
        // What is queued behind a flight that is under way takes another one.
        let mut flights = 1 + u32::from(self.queue().has_flight());
        while flights > 0 {
            if !self.queue().has_changes() && self.ended.get().is_some() {
                return self.fenced();
            }
            self.check_open()?;
            let Some(flight) = self.queue().take(self.clock.now_ms()) else { return Ok(()) };
            match self.backend.write(Arc::clone(&flight)).await {
                Ok(swept) => {
                    self.queue().landed(&flight, swept);
                    flights -= 1;
                }
                Err(failure) => {
                    drop(flight);
                    self.failed(failure, &mut pauses).await?;
                    flights = flights.min(1 + u32::from(self.queue().has_flight()));
                }
            }
        }
        Ok(())
    }

    /// Replaces a note of the host after all queued writes.
    async fn replace(&self, seen: Option<&[u8]>, note: StateEntry, patience: Duration) -> Result<Replaced, StateError> {
        self.write(patience).await?;
        let turn = self.turn.lock().await;
        let mut pauses = Pauses::new(&*self.clock, patience);
        let mut is_retry = false;
        loop {
            self.check_open()?;
            let Some(replacing) = self.backend.replace_note(seen, &note) else { break };
            match replacing.await {
                // The previous attempt was applied, but its reply was lost.
                Ok(Replaced::Other(Some(other))) if is_retry && other == note.value => return Ok(Replaced::Done),
                Ok(replaced) => return Ok(replaced),
                Err(error) => {
                    let failed = self.failed(error.into(), &mut pauses).await;
                    failed.inspect_err(|error| self.note_for_write(error))?;
                }
            }
            is_retry = true;
        }
        drop(turn);
        self.queue().push(&PluginId::host(), vec![StateChange::Set(note)].into());
        self.write(patience).await.map(|()| Replaced::Done)
    }

    /// Pauses before the next try; returns the error if there is none.
    async fn failed(&self, failure: WriteError, pauses: &mut Pauses<'_>) -> Result<(), StateError> {
        let WriteError { error, is_definite } = failure;
        if is_definite {
            self.queue().refused();
        }
        let pause = if error.is_retryable() { pauses.next() } else { None };
        let Some(pause) = pause else {
            self.note(&error);
            return Err(error);
        };
        tracing::debug!(session = %self.session, %error, ?pause, "state is not durable yet");
        self.clock.sleep(pause).await;
        Ok(())
    }

    /// A closed session with nothing to write has no error; one that was taken over has.
    fn fenced(&self) -> Result<(), StateError> {
        match self.ended.get() {
            Some(error @ StateError::Fenced { .. }) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    async fn end(&self, patience: Duration) -> Result<(), StateError> {
        self.queue().activity.end(self.clock.now_ms());
        let settled = self.write(patience).await;
        let _turn = self.turn.lock().await;
        drop(self.ended.set(StateError::Closed { session: self.session.clone() }));
        self.backend.release().await;
        settled
    }
}

impl<B: Backend> SessionState for OpenSession<B> {
    fn load<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<StoredState, StateError>> {
        Box::pin(self.read(plugin))
    }

    fn plugins(&self) -> BoxFuture<'_, Result<Vec<PluginId>, StateError>> {
        Box::pin(self.stored_plugins())
    }

    fn apply(&self, plugin: &PluginId, batch: StateBatch) {
        self.queue().push(plugin, batch);
    }

    fn turn_started(&self) {
        self.queue().turn_started(self.clock.now_ms());
    }

    fn turn_ended(&self) {
        self.queue().activity.end(self.clock.now_ms());
    }

    fn settle(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(self.write(patience))
    }

    fn replace_note<'a>(
        &'a self,
        seen: Option<&'a [u8]>,
        note: StateEntry,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Replaced, StateError>> {
        Box::pin(self.replace(seen, note, patience))
    }

    fn is_outdated(&self) -> BoxFuture<'_, Result<bool, StateError>> {
        Box::pin(async {
            let _turn = self.turn.lock().await;
            self.check_open()?;
            self.backend.is_outdated().await.inspect_err(|error| self.note_for_write(error))
        })
    }

    fn clear<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<(), StateError>> {
        Box::pin(async {
            self.queue().forget(plugin);
            self.write(Duration::ZERO).await
        })
    }

    fn close(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(self.end(patience))
    }
}

impl<B> Drop for OpenSession<B> {
    fn drop(&mut self) {
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        if queue.has_changes() {
            tracing::error!(session = %self.session, "state was not saved: the session was dropped before it was settled");
        }
    }
}

/// Pauses that double, until the patience is used up.
struct Pauses<'a> {
    clock: &'a dyn Clock,
    began_ms: u64,
    patience: Duration,
    paused: Duration,
    next: Duration,
}

impl<'a> Pauses<'a> {
    fn new(clock: &'a dyn Clock, patience: Duration) -> Self {
        Self { clock, began_ms: clock.now_ms(), patience, paused: Duration::ZERO, next: FIRST_PAUSE }
    }

    /// The next pause; `None` if there is no time for another try.
    fn next(&mut self) -> Option<Duration> {
        // The pauses count by themselves too: on a clock that stands still the patience must end.
        let passed = Duration::from_millis(self.clock.now_ms().saturating_sub(self.began_ms)).max(self.paused);
        let left = self.patience.checked_sub(passed).filter(|left| !left.is_zero())?;
        let pause = self.next.min(left);
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        self.paused += pause;
        Some(pause)
    }
}

#[cfg(test)]
mod tests;
