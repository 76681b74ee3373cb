//! State in memory: as long as the program runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::ports::{
    BoxFuture, Clock, PluginSummary, SessionList, SessionState, SessionSummary, ShownSession, StateAdmin, StateEntry,
    StateError, StateStore, StoredState, SweptState,
};
use flow::{PluginId, SessionId};

use crate::activity::Recorded;
use crate::backend::{Backend, Opened, Swept, WriteError};
use crate::lifetime::ExpiryCheck;
use crate::options::StoreOptions;
use crate::queue::Flight;
use crate::session::OpenSession;

/// Keeps state as long as a clone of this value exists. A session is open once among all clones, and its lease is released when it is
/// closed or dropped.
#[derive(Clone)]
pub struct MemoryStore {
    sessions: Sessions,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
}

type Sessions = Arc<Mutex<HashMap<SessionId, Kept>>>;

impl MemoryStore {
    /// A store without sessions.
    pub fn new(options: StoreOptions, clock: Arc<dyn Clock>) -> Self {
        Self { sessions: Arc::default(), options, clock }
    }

    /// Returns a store with the same sessions and other settings.
    pub fn with(&self, options: StoreOptions, clock: Arc<dyn Clock>) -> Self {
        Self { sessions: Arc::clone(&self.sessions), options, clock }
    }

    fn open_now(&self, session: &SessionId) -> Result<Arc<dyn SessionState>, StateError> {
        let now_ms = self.clock.now_ms();
        let mut sessions = lock(&self.sessions);
        let kept = sessions.entry(session.clone()).or_insert_with(|| Kept::fresh(now_ms));
        if let Some(owner) = &kept.owner {
            return Err(StateError::Leased { session: session.clone(), by: owner.clone(), until_ms: None });
        }
        if kept.check(now_ms, &self.options).session_end() <= now_ms {
            *kept = Kept::fresh(now_ms);
        }
        kept.owner = Some(self.options.owner.clone());
        let recorded = Recorded { has_state: !kept.plugins.is_empty(), ..kept.recorded };
        let lease = Lease { sessions: Arc::clone(&self.sessions), session: session.clone() };
        let backend = MemorySession { session: session.clone(), lease: Mutex::new(Some(lease)) };
        let opened = Opened { backend, recorded };
        let clock = Arc::clone(&self.clock);
        Ok(Arc::new(OpenSession::new(session.clone(), opened, clock, self.options.session_ttl_ms())))
    }

    fn show_now(&self, session: &SessionId) -> Option<ShownSession> {
        let now_ms = self.clock.now_ms();
        let sessions = lock(&self.sessions);
        let kept = sessions.get(session).filter(|kept| !kept.plugins.is_empty())?;
        let check = kept.check(now_ms, &self.options);
        let states = kept.plugins.iter().map(|(plugin, kept)| (plugin.clone(), kept.state(Some(check)))).collect();
        let mut shown = shown(session, check, states)?;
        shown.summary.owner = kept.owner.clone();
        Some(shown)
    }

    fn clear_now(&self, session: &SessionId, plugin: Option<&PluginId>) -> Result<bool, StateError> {
        let mut sessions = lock(&self.sessions);
        let Some(kept) = sessions.get_mut(session) else { return Ok(false) };
        if let Some(owner) = &kept.owner {
            return Err(StateError::Leased { session: session.clone(), by: owner.clone(), until_ms: None });
        }
        match plugin {
            Some(plugin) => drop(kept.plugins.remove(plugin)),
            None => drop(sessions.remove(session)),
        }
        Ok(true)
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("options", &self.options).finish_non_exhaustive()
    }
}

impl StateStore for MemoryStore {
    fn open<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>> {
        Box::pin(async { self.open_now(session) })
    }
}

impl StateAdmin for MemoryStore {
    fn sessions(&self) -> BoxFuture<'_, Result<SessionList, StateError>> {
        Box::pin(async {
            let mut ids: Vec<SessionId> = lock(&self.sessions).keys().cloned().collect();
            ids.sort_unstable();
            let sessions = ids.iter().filter_map(|session| self.show_now(session)).map(|shown| shown.summary).collect();
            Ok(SessionList { sessions, problems: Vec::new() })
        })
    }

    fn show<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<ShownSession>, StateError>> {
        Box::pin(async { Ok(self.show_now(session)) })
    }

    fn clear<'a>(
        &'a self,
        session: &'a SessionId,
        plugin: Option<&'a PluginId>,
    ) -> BoxFuture<'a, Result<bool, StateError>> {
        Box::pin(async move { self.clear_now(session, plugin) })
    }

    fn remove_expired(&self) -> BoxFuture<'_, Result<SweptState, StateError>> {
        Box::pin(async {
            let now_ms = self.clock.now_ms();
            let mut sessions = lock(&self.sessions);
            let before = sessions.len();
            let keep = |kept: &Kept| kept.owner.is_some() || now_ms < kept.check(now_ms, &self.options).session_end();
            sessions.retain(|_, kept| keep(kept));
            Ok(SweptState { removed: (before - sessions.len()) as u64, ..SweptState::default() })
        })
    }
}

/// Sums up a session; `None` if it has expired. The host's notes say since when plugins are absent.
pub(crate) fn shown(
    session: &SessionId,
    check: ExpiryCheck,
    mut states: Vec<(PluginId, StoredState)>,
) -> Option<ShownSession> {
    if check.session_end() <= check.at_ms {
        return None;
    }
    let host = PluginId::host();
    let notes = states.iter().position(|(plugin, _)| *plugin == host).map(|at| states.remove(at).1).unwrap_or_default();
    let mut summary = SessionSummary::of(session.clone(), check.active_ms, check.session_end());
    let plugin = |(plugin, state): &(PluginId, StoredState)| {
        let mut summary = PluginSummary::of(plugin.clone(), state);
        summary.absent_since_ms = notes.absent_since_ms(plugin);
        summary
    };
    summary.plugins = states.iter().map(plugin).collect();
    Some(ShownSession { summary, states })
}

/// What is kept of one session.
#[derive(Debug)]
struct Kept {
    plugins: BTreeMap<PluginId, KeptPlugin>,
    recorded: Recorded,
    owner: Option<String>,
}

#[derive(Debug, Default)]
struct KeptPlugin {
    entries: BTreeMap<String, StateEntry>,
    version: Option<u32>,
}

impl KeptPlugin {
    /// All entries, or those that a check keeps.
    fn state(&self, check: Option<ExpiryCheck>) -> StoredState {
        let mut entries = self.entries.values().cloned().collect();
        if let Some(check) = check {
            check.retain(&mut entries);
        }
        StoredState { entries, version: self.version }
    }
}

impl Kept {
    fn fresh(now_ms: u64) -> Self {
        let recorded = Recorded { active_ms: now_ms, shortest_ttl_ms: None, has_state: false };
        Self { plugins: BTreeMap::new(), recorded, owner: None }
    }

    fn check(&self, now_ms: u64, options: &StoreOptions) -> ExpiryCheck {
        let session_ttl_ms = options.session_ttl_ms();
        ExpiryCheck { at_ms: now_ms, active_ms: self.recorded.active_ms, session_ttl_ms }
    }

    fn write(&mut self, flight: &Flight) -> Swept {
        for (plugin, changes) in &flight.plugins {
            let kept = self.plugins.entry(plugin.clone()).or_default();
            changes.apply_to(&mut kept.entries);
            kept.version = changes.version.apply(kept.version);
        }
        let mut swept = Swept::new();
        for (plugin, kept) in &mut self.plugins {
            let dead = |entry: &StateEntry| {
                flight.sweeps.iter().any(|check| check.had_expired(entry.lifetime, entry.expires_ms, entry.used_ms))
            };
            let gone: Vec<String> =
                kept.entries.values().filter(|entry| dead(entry)).map(|entry| entry.key.clone()).collect();
            for key in gone {
                kept.entries.remove(&key);
                swept.push((plugin.clone(), key));
            }
        }
        self.plugins.retain(|_, kept| !kept.entries.is_empty() || kept.version.is_some());
        self.recorded = flight.activity;
        swept
    }
}

/// Releases the session when it is dropped.
struct Lease {
    sessions: Sessions,
    session: SessionId,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut sessions = lock(&self.sessions);
        let Some(kept) = sessions.get_mut(&self.session) else { return };
        kept.owner = None;
        if kept.plugins.is_empty() {
            sessions.remove(&self.session);
        }
    }
}

struct MemorySession {
    session: SessionId,
    /// `None` once it is released: the session can be open elsewhere then.
    lease: Mutex<Option<Lease>>,
}

impl MemorySession {
    /// Works on what is kept of the session.
    fn with<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> Result<T, StateError> {
        let guard = lock(&self.lease);
        let Some(lease) = guard.as_ref() else { return Err(StateError::Closed { session: self.session.clone() }) };
        let mut sessions = lock(&lease.sessions);
        // An open session is in the map: only its own lease removes it.
        let fresh = || Kept::fresh(0);
        Ok(work(sessions.entry(lease.session.clone()).or_insert_with(fresh)))
    }
}

impl Backend for MemorySession {
    fn load<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<StoredState, StateError>> {
        Box::pin(async { self.with(|kept| kept.plugins.get(plugin).map(|kept| kept.state(None)).unwrap_or_default()) })
    }

    fn plugins(&self) -> BoxFuture<'_, Result<Vec<PluginId>, StateError>> {
        Box::pin(async { self.with(|kept| kept.plugins.keys().cloned().collect()) })
    }

    // A write is done when its future is first polled, so that none can arrive late: numbers need not be compared.
    fn write(&self, flight: Arc<Flight>) -> BoxFuture<'_, Result<Swept, WriteError>> {
        Box::pin(async move { Ok(self.with(|kept| kept.write(&flight))?) })
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { drop(lock(&self.lease).take()) })
    }
}

/// Values behind these locks are changed in whole steps: a panic elsewhere leaves them valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
