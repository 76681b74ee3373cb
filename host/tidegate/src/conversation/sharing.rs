//! Storing conversations: they are written at the end of exchanges, and read again after another host has written.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use flow::EventKind;
use flow::PluginId;
use flow::ports::{Replaced as Noted, SessionState, StateError};
use guard::Caller;
use rules::RuleSet;
use tokio::sync::watch;

use super::inherited::Copied;
use super::kept::{KEY, Kept, Stored};
use super::{Conversation, KEPT_POINTS, MOST_BYTES, PATIENCE, opening};
use crate::HostError;

/// The maximum number of attempts to merge with a note that another host keeps replacing.
const TRIES: u32 = 64;

impl Conversation {
    /// Updates the conversation with changes to the rule files and with the changes of other hosts. Call it at the start of an exchange.
    ///
    /// # Errors
    /// A required rule is not in force, or the store cannot be read.
    pub async fn refresh(&self) -> Result<(), HostError> {
        if self.0.options.rule_set.is_none() {
            self.renew_rules().await?;
        }
        let (store, is_local) = {
            let state = self.state();
            (Arc::clone(&state.store), state.is_local)
        };
        if is_local {
            return self.store_again().await;
        }
        match store.is_outdated().await {
            Ok(false) => Ok(()),
            Ok(true) | Err(StateError::Lost { .. }) => self.reopen().await,
            Err(error) => Err(error.into()),
        }
    }

    async fn renew_rules(&self) -> Result<(), HostError> {
        let live = &self.0.loaded.live;
        if let Some(message) = live.refresh().await {
            self.emit(EventKind::Notice { message });
        }
        let built = live.built();
        opening::refuse_unmet(&built)?;
        self.set_rules(&built.set);
        Ok(())
    }

    /// Sets the rules of the exchanges that begin from now on.
    pub(crate) fn set_rules(&self, set: &Arc<RuleSet>) {
        let mut state = self.state();
        if !Arc::ptr_eq(state.rules.rules(), set) {
            state.rules.replace_rules(Arc::clone(set));
        }
    }

    /// Checks from time to time whether the store is back that was away when the conversation was opened.
    async fn store_again(&self) -> Result<(), HostError> {
        let (now_ms, pause_ms) = (self.0.clock.now_ms(), 5_000);
        let asked_ms = self.0.asked_ms.load(Ordering::Relaxed);
        if now_ms.saturating_sub(asked_ms) < pause_ms {
            return Ok(());
        }
        self.0.asked_ms.store(now_ms, Ordering::Relaxed);
        match self.reopen().await {
            Err(HostError::State(StateError::Unavailable { .. } | StateError::Leased { .. })) => Ok(()),
            reopened => reopened,
        }
    }

    /// Opens the conversation in the store again: another host has written, or the store was away.
    async fn reopen(&self) -> Result<(), HostError> {
        let mut storing = self.0.storing.lock().await;
        let (own, before, is_local) = {
            let state = self.state();
            (Arc::clone(&state.store), Arc::clone(&state.caller), state.is_local)
        };
        match own.is_outdated().await {
            // A concurrent exchange can have opened it again.
            Ok(false) if !is_local => return Ok(()),
            // The plugins write their state again when they settle.
            Err(StateError::Lost { .. }) => storing.stored = Stored::default(),
            // Its data was not stored anywhere.
            Ok(_) if is_local => storing.stored = Stored::default(),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        before.extensions().settle(PATIENCE).await?;
        let (store, caller) = self.0.open_extensions(&self.0.shared_store()).await?;
        let mut copied = is_local.then(Copied::default);
        if let Some(copied) = &mut copied {
            copied.copy(&*own, &*store).await?;
        }
        let read = read(&*store).await?;
        self.take_over(&mut storing.stored, read);
        {
            let mut state = self.state();
            (state.store, state.caller, state.in_turn, state.is_local) = (store, caller, false, false);
        }
        storing.replaced.push(Replaced { store: own, caller: before, copied });
        Ok(())
    }

    /// Makes the state of its plugins, the records of its rules and the memory of the embedder durable, merged with what other hosts have
    /// stored meanwhile.
    ///
    /// # Errors
    /// The data could not be stored; the next call stores it.
    pub async fn settle(&self) -> Result<(), HostError> {
        let settled = self.store().await;
        self.state().is_unsettled = matches!(settled, Err(HostError::State(StateError::Unavailable { .. })));
        settled
    }

    /// Its data is about to be stored by a task that nobody waits for: until the result is dropped, it counts as not stored.
    ///
    /// # Errors
    /// Another task does so, which stores the present data, too. The receiver is closed at its end.
    pub(super) fn begin_to_store(&self) -> Result<Pending, watch::Receiver<()>> {
        let mut state = self.state();
        if let Some(task) = &mut state.task {
            task.has_more = true;
            return Err(task.ended.clone());
        }
        let (ends, ended) = watch::channel(());
        state.task = Some(StoreTask { has_more: false, ended });
        Ok(Pending { conversation: self.clone(), is_over: false, _ends: ends })
    }

    /// Returns whether its data could not be stored the last time, or is not stored yet.
    pub(super) fn is_unsettled(&self) -> bool {
        let state = self.state();
        state.is_unsettled || state.task.is_some()
    }

    async fn store(&self) -> Result<(), HostError> {
        let mut storing = self.0.storing.lock().await;
        let (store, caller) = {
            let state = self.state();
            (Arc::clone(&state.store), Arc::clone(&state.caller))
        };
        storing.settle_replaced(&*store).await?;
        caller.extensions().settle(PATIENCE).await?;
        let stored = &mut storing.stored;
        for _ in 0..TRIES {
            let own = self.state().kept();
            if own == stored.kept {
                return Ok(());
            }
            let note = own.note(self.0.clock.now_ms()).map_err(|error| unreadable(&error))?;
            let value = Arc::clone(&note.value);
            if value.len() > MOST_BYTES {
                return Err(too_large(value.len()).into());
            }
            let noted = match store.replace_note(stored.note.as_deref(), note, PATIENCE).await {
                Err(StateError::Lost { .. }) => {
                    caller.extensions().settle(PATIENCE).await?;
                    Noted::Other(None)
                }
                noted => noted?,
            };
            match noted {
                Noted::Done => {
                    self.0.bytes.store(value.len(), Ordering::Relaxed);
                    *stored = Stored { note: Some(value), kept: own };
                    return Ok(());
                }
                Noted::Other(note) => self.merge(stored, note)?,
            }
        }
        let cause = "other hosts have written it all the time, so that nothing could be merged".to_owned();
        Err(StateError::Unreadable { place: self.0.id.to_string(), cause }.into())
    }

    /// Returns whether some of its data is in this process only, because its store is away.
    pub(crate) fn is_unstored(&self) -> bool {
        let state = self.state();
        let has_more = state.is_unsettled || state.task.is_some() || !state.unnamed.is_empty();
        self.0.options.is_kept && (state.is_local || has_more)
    }

    /// Stores the data that is in this process only, if the store is back.
    ///
    /// # Errors
    /// It is still away, or cannot be read.
    pub(crate) async fn store_late(&self) -> Result<(), HostError> {
        if self.is_local() {
            // At the end there is no later time.
            match self.reopen().await {
                Ok(()) | Err(HostError::State(StateError::Leased { .. })) => {}
                away => return away,
            }
        }
        self.settle().await?;
        self.name().await
    }

    /// Records a name by which the conversation can be found, as soon as its store is back.
    pub(crate) fn name_later(&self, name: String, line: String) {
        let mut state = self.state();
        state.unnamed.push((name, line));
        // An answer has up to three names: its point, its id at the provider, and its point without the ids of calls.
        let over = state.unnamed.len().saturating_sub(3 * KEPT_POINTS);
        state.unnamed.drain(..over);
    }

    /// Records the names that are not recorded yet, unless its store is away.
    ///
    /// # Errors
    /// The store is away again.
    pub(crate) async fn name(&self) -> Result<(), HostError> {
        let next = || {
            let state = self.state();
            state.unnamed.first().filter(|_| !state.is_local).cloned()
        };
        while let Some(named) = next() {
            self.0.shared_store().name(&named.0, &named.1).await?;
            self.state().unnamed.retain(|one| *one != named);
        }
        Ok(())
    }

    /// Merges a note that another host has written.
    fn merge(&self, stored: &mut Stored, note: Option<Arc<[u8]>>) -> Result<(), StateError> {
        self.take_over(stored, parse(note)?);
        Ok(())
    }

    /// Merges the note that the store has now.
    fn take_over(&self, stored: &mut Stored, now: Stored) {
        stored.forget_unless_in(&now);
        let mut state = self.state();
        let merged = state.kept().merged(&stored.kept, &now.kept);
        state.take(merged);
        *stored = now;
    }
}

/// The task that stores the data of a conversation.
pub(super) struct StoreTask {
    /// More data has come since the task has begun to store.
    has_more: bool,
    /// Closed at its end.
    ended: watch::Receiver<()>,
}

/// What the task that stores the data of a conversation owns: there is one at a time.
pub(super) struct Pending {
    conversation: Conversation,
    is_over: bool,
    _ends: watch::Sender<()>,
}

impl Pending {
    /// Returns whether more data has come, which the task stores then. Otherwise the task is over.
    pub(super) fn has_more(&mut self) -> bool {
        let mut state = self.conversation.state();
        let has_more = state.task.as_mut().is_some_and(|task| std::mem::take(&mut task.has_more));
        if !has_more {
            state.task = None;
            self.is_over = true;
        }
        has_more
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Once it is over, the next task can have begun.
        if !self.is_over {
            self.conversation.state().task = None;
        }
    }
}

/// The data that was stored last, and the data that still has to be stored.
pub(super) struct Storing {
    pub(super) stored: Stored,
    /// The sessions that were open before it was opened again, as long as exchanges use them.
    replaced: Vec<Replaced>,
}

/// Plugins of exchanges that began before the conversation was opened again.
struct Replaced {
    store: Arc<dyn SessionState>,
    caller: Arc<Caller>,
    /// The state that was copied from a store of this process only.
    copied: Option<Copied>,
}

impl Storing {
    pub(super) fn new(stored: Stored) -> Self {
        Self { stored, replaced: Vec::new() }
    }

    /// Makes the state of replaced plugins durable, or has it stored with the next batch of `to`.
    async fn settle_replaced(&mut self, to: &dyn SessionState) -> Result<(), StateError> {
        let mut at = 0;
        while let Some(one) = self.replaced.get_mut(at) {
            let is_over = Arc::strong_count(&one.caller) == 1;
            one.settle(to).await?;
            if is_over {
                self.replaced.swap_remove(at);
            } else {
                at += 1;
            }
        }
        Ok(())
    }
}

impl Replaced {
    async fn settle(&mut self, to: &dyn SessionState) -> Result<(), StateError> {
        self.caller.extensions().settle(PATIENCE).await?;
        match &mut self.copied {
            Some(copied) => copied.copy(&*self.store, to).await,
            None => Ok(()),
        }
    }
}

/// Reads the stored note of a conversation.
pub(super) async fn read(store: &dyn SessionState) -> Result<Stored, StateError> {
    let notes = store.load(&PluginId::host()).await?.entries;
    parse(notes.into_iter().find(|note| note.key == KEY).map(|note| note.value))
}

fn parse(note: Option<Arc<[u8]>>) -> Result<Stored, StateError> {
    let kept = match &note {
        Some(note) => Kept::read(note).map_err(|error| unreadable(&error))?,
        None => Kept::default(),
    };
    Ok(Stored { note, kept })
}

fn too_large(bytes: usize) -> StateError {
    let cause = format!("it has {bytes} bytes, the limit is {MOST_BYTES}; what was stored last stays");
    StateError::Unreadable { place: "what the conversation remembers".to_owned(), cause }
}

fn unreadable(error: &serde_json::Error) -> StateError {
    StateError::Unreadable { place: format!("the note {KEY} of a conversation"), cause: error.to_string() }
}
