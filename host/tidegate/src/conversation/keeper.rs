//! The conversations of a gateway: found by the trails of requests, open while they are used, closed when they are idle.

mod closed;
mod entry;
mod find;
mod inheritance;
mod links;
mod open;
mod side_requests;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
mod unused;
mod visit;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::WithoutStore;
use flow::SessionId;
use flow::ports::StateError;
use gateway::Trail;

use self::entry::Visited;
pub use self::find::is_conversation;
use self::inheritance::Inheritance;
use self::links::Links;
use self::open::OpenConversations;
pub use self::visit::Visit;
use super::Conversation;
use super::inherited::Heritage;
use crate::conversation::ConversationOptions;
use crate::{Host, HostError};

/// The part of the maximum size of all conversations that side requests can take: one in so many.
const SIDE_REQUESTS: usize = 4;

/// The limits of [`Conversations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationLimits {
    /// The time without an exchange after which a conversation is closed. Default: one minute.
    pub idle: Duration,
    /// The maximum number of conversations in memory; beyond it, the least recently used one is closed. Default: 10,000.
    pub open: usize,
    /// The maximum total size of what they and side requests remember in memory, in bytes as stored. With a store in memory, that of closed
    /// ones and of the state of their plugins counts too. Default: 256 MiB.
    pub bytes: usize,
    /// The maximum number of closed conversations that a store in memory keeps; beyond it, or beyond `bytes`, the one that was closed first is
    /// dropped. Default: 10,000.
    pub kept: usize,
    /// How requests are handled while the store is away.
    pub without_store: WithoutStore,
}

impl Default for ConversationLimits {
    fn default() -> Self {
        let (idle, bytes) = (Duration::from_secs(60), 256 << 20);
        Self { idle, open: 10_000, bytes, kept: 10_000, without_store: WithoutStore::default() }
    }
}

/// The counters of [`Conversations`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationCounts {
    /// The conversations in memory.
    pub open: usize,
    /// The conversations that were closed before they were idle to free capacity.
    pub evicted: u64,
    /// The conversations that a store in memory has dropped.
    pub forgotten: u64,
    /// The conversations that branched off another one, because a client has edited earlier messages.
    pub branched: u64,
    /// The conversations that were opened without the store.
    pub local: u64,
    /// The conversations in memory with data that is nowhere else, because the store is away. They are stored when it is back.
    pub unstored: usize,
    /// The conversations that lost data: they were closed to free capacity, before the store was back.
    pub lost: u64,
}

/// The conversations of a gateway.
pub struct Conversations {
    host: Host,
    options: ConversationOptions,
    limits: ConversationLimits,
    inheritance: Inheritance,
    open: Arc<OpenConversations>,
    /// The conversations that these replace, the oldest first. Some can still be open.
    before: Mutex<Vec<Predecessor>>,
    branched: AtomicU64,
    local: AtomicU64,
    /// Whether the store did not answer when it was used last.
    is_store_away: AtomicBool,
}

/// Conversations that were replaced, with their host.
#[derive(Clone)]
struct Predecessor {
    open: Arc<OpenConversations>,
    host: Host,
}

impl std::fmt::Debug for Conversations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversations").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Conversations {
    /// Creates the conversations of a host, each opened with these options and an id of its own.
    pub fn new(host: Host, options: ConversationOptions, limits: ConversationLimits) -> Arc<Self> {
        Self::with(host, options, limits, (Inheritance::new(limits.bytes / SIDE_REQUESTS), Vec::new()))
    }

    /// Creates conversations that replace others, such as after a change of settings. Those that the others have stored are opened again with the
    /// new settings. One with data that is not stored remains open, with the rules of the new settings and the plugins that it has, until it is
    /// stored. Call [`Conversations::leave`] of the others before requests get here.
    pub fn in_place_of(
        before: &Self,
        host: Host,
        options: ConversationOptions,
        limits: ConversationLimits,
    ) -> Arc<Self> {
        let mut inheritance = before.inheritance.clone();
        if !have_one_store(&before.host, &host) {
            inheritance.closed = Arc::default();
        }
        let mut predecessors = before.predecessors();
        predecessors.push(Predecessor { open: Arc::clone(&before.open), host: before.host.clone() });
        Self::with(host, options, limits, (inheritance, predecessors))
    }

    fn with(
        host: Host,
        options: ConversationOptions,
        limits: ConversationLimits,
        (inheritance, before): (Inheritance, Vec<Predecessor>),
    ) -> Arc<Self> {
        let open = OpenConversations::new(limits, host.keeps_state_in_memory(), inheritance.clone());
        let (branched, local, is_store_away) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let (open, before) = (Arc::new(open), Mutex::new(before));
        let own = Self { host, options, limits, inheritance, open, before, branched, local, is_store_away };
        let own = Arc::new(own);
        if tokio::runtime::Handle::try_current().is_ok() {
            own.sweep_later();
        }
        own
    }

    /// Begins an exchange in the conversation that a request belongs to.
    ///
    /// # Errors
    /// A required rule is not in force, the store is away and the limits say that requests are refused then, or the conversation cannot be
    /// opened.
    pub async fn enter(self: &Arc<Self>, trail: Trail) -> Result<Visit, HostError> {
        self.sweep_later();
        if trail.is_side_request() {
            let conversation = self.host.conversation(self.options.clone().not_kept()).await?;
            return Ok(Visit::side_request(Arc::clone(self), conversation, trail));
        }
        let visited = match self.find(&trail).await? {
            Some((link, name)) => self.continued(&link, &name, &trail).await?,
            None => self.begun(&trail).await?,
        };
        Ok(Visit::new(Arc::clone(self), visited, trail))
    }

    /// Begins a request for the number of tokens of a request: it is next to the conversation that it would belong to, and has a copy of
    /// what that remembers.
    ///
    /// # Errors
    /// No conversation can be opened.
    pub async fn enter_to_count(self: &Arc<Self>, trail: Trail) -> Result<Visit, HostError> {
        self.sweep_later();
        let conversation = self.host.conversation(self.options.clone().not_kept()).await?;
        let owner = match self.find(&trail).await {
            Ok(Some((link, _))) => self.open(&link.id).await.ok(),
            // Without its store, it is counted like the first request of a conversation.
            Ok(None) | Err(_) => None,
        };
        if let Some(owner) = &owner {
            conversation.set_memory(owner.conversation.memory());
        }
        Ok(Visit::side_request(Arc::clone(self), conversation, trail).counting_for(owner))
    }

    /// Returns how many conversations are open, and what happened to the others.
    pub fn counts(&self) -> ConversationCounts {
        let (branched, local) = (self.branched.load(Ordering::Relaxed), self.local.load(Ordering::Relaxed));
        let own = self.open.counts();
        let before: Vec<_> = self.predecessors().iter().map(|before| before.open.counts()).collect();
        let open = own.open + before.iter().map(|counts| counts.open).sum::<usize>();
        let unstored = own.unstored + before.iter().map(|counts| counts.unstored).sum::<usize>();
        ConversationCounts { branched, local, open, unstored, ..own }
    }

    /// Closes all conversations, and stores the data that is not stored yet. Call it at the end of the process.
    pub async fn close(&self) {
        for Predecessor { open, host } in self.predecessors() {
            open.close_all(&host).await;
        }
        self.open.close_all(&self.host).await;
    }

    /// Closes the conversations whose data is stored. Those that [replace](Conversations::in_place_of) these continue the others.
    pub async fn leave(&self) {
        self.open.close_stored(&self.host).await;
    }

    /// Returns how many conversations are forgotten when `next` takes the place of these: their data is in memory, and `next` is not
    /// [in their place](Conversations::in_place_of), or has another store.
    pub fn forgotten_by(&self, next: Option<&Self>) -> usize {
        let goes_on = next.is_some_and(|next| have_one_store(&self.host, &next.host));
        if goes_on || !self.host.keeps_state_in_memory() {
            return 0;
        }
        self.open.counts().open + self.inheritance.closed.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns those before that are not all closed.
    fn predecessors(&self) -> Vec<Predecessor> {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.retain(|before| !before.open.is_empty());
        before.clone()
    }

    /// Begins an exchange in a conversation that was open before these, and has data that is not stored.
    fn visit_unstored(&self, id: &SessionId) -> Option<Visited> {
        if self.open.has(id) {
            return None;
        }
        self.predecessors().iter().rev().find_map(|before| before.open.visit_unstored(id))
    }

    /// Opens a conversation, unless it is open.
    async fn open(&self, id: &SessionId) -> Result<Visited, HostError> {
        let opening = || async {
            let options = self.options.clone().id(id.clone());
            let opened = self.host.conversation(options.clone()).await;
            if let Err(HostError::State(error)) = &opened {
                self.note(Some(error));
            }
            match opened {
                Err(HostError::State(error)) if self.is_local(&error) || matches!(error, StateError::Leased { .. }) => {
                    tracing::warn!(conversation = %id, %error, "the store is unavailable or leased; it is guarded with the data of this process only");
                    self.local.fetch_add(1, Ordering::Relaxed);
                    self.host.conversation(options.local()).await
                }
                opened => opened,
            }
        };
        let visited = match self.visit_unstored(id) {
            Some(visited) => visited,
            None => self.open.visit(id, &self.host, opening).await?,
        };
        let refreshed = self.refresh(&visited.conversation).await;
        // After the conversation has read the files of its own options.
        if let Some(rules) = &self.options.rule_set {
            visited.conversation.set_rules(rules);
        }
        match refreshed {
            Err(HostError::State(error)) if self.is_local(&error) => Ok(visited),
            refreshed => refreshed.map(|()| visited),
        }
    }

    /// Updates a conversation from the store, unless its data could not be stored.
    async fn refresh(&self, conversation: &Conversation) -> Result<(), HostError> {
        if self.is_without_store(conversation) {
            return Ok(());
        }
        let refreshed = match conversation.refresh().await {
            Ok(()) => conversation.name().await,
            away => away,
        };
        match &refreshed {
            Err(HostError::State(error)) => self.note(Some(error)),
            Ok(()) if !conversation.is_local() => self.note(None),
            _ => {}
        }
        refreshed
    }

    /// Notes whether the store answered.
    fn noted<T>(&self, result: Result<T, StateError>) -> Result<T, StateError> {
        self.note(result.as_ref().err());
        result
    }

    /// Asks the store whether it answers: without a request, nothing else does.
    async fn ask_store(&self) {
        let store = self.host.live.shared().basis.stored.sessions.clone();
        let _asked = self.noted(store.named(&["00".to_owned()]).await);
    }

    /// Returns whether the store did not answer when it was used last.
    pub fn is_store_away(&self) -> bool {
        self.is_store_away.load(Ordering::Relaxed)
    }

    fn note(&self, error: Option<&StateError>) {
        let is_away = matches!(error, Some(StateError::Unavailable { .. }));
        if self.is_store_away.swap(is_away, Ordering::Relaxed) != is_away {
            match error {
                Some(error) if is_away => {
                    tracing::warn!("{error}; until it is back, `without_store` under [gateway] applies");
                }
                _ => tracing::warn!("the state store answers again"),
            }
        }
    }

    /// Returns whether the requests of a conversation need not ask the store: its data could not be stored, and the task of its last answer, or
    /// the next one, finds out whether the store is back.
    fn is_without_store(&self, conversation: &Conversation) -> bool {
        self.limits.without_store == WithoutStore::Local && self.is_store_away() && conversation.is_unsettled()
    }

    fn is_local(&self, error: &StateError) -> bool {
        self.limits.without_store == WithoutStore::Local && matches!(error, StateError::Unavailable { .. })
    }

    fn sweep_later(self: &Arc<Self>) {
        if self.open.begins_to_sweep() {
            let own = Arc::downgrade(self);
            tokio::spawn(async move {
                if let Some(own) = own.upgrade() {
                    own.ask_store().await;
                }
                loop {
                    let Some(wait) = own.upgrade().map(|own| own.limits.idle / 2) else { return };
                    tokio::time::sleep(wait.max(Duration::from_millis(10))).await;
                    let Some(own) = own.upgrade() else { return };
                    for Predecessor { open, host } in own.predecessors() {
                        open.close_idle(&host).await;
                    }
                    own.open.close_idle(&own.host).await;
                    own.inheritance.side_requests.lock().unwrap_or_else(PoisonError::into_inner).drop_expired();
                    if own.is_store_away() {
                        own.ask_store().await;
                    }
                }
            });
        }
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.inheritance.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn have_one_store(before: &Host, now: &Host) -> bool {
    let [before, now] = [before, now].map(|host| Arc::as_ptr(&host.live.shared().basis.stored.sessions));
    std::ptr::addr_eq(before, now)
}
