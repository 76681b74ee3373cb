//! Conversations and their store: requests that are given up while it does not answer, and hosts that write at the same time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gateway::{Answer, Trail, Wire};
use serde_json::json;
use tempfile::TempDir;
use tidegate::gateway::{ConversationLimits, ConversationOptions, Conversations, WithoutStore};
use tidegate::state::{
    MemoryStore, SessionList, SessionState, ShownSession, StateAdmin, StateBatch, StateError, StateStore, StoreOptions,
    StoredState, SweptState,
};
use tidegate::{BoxFuture, PluginId, SessionId, SystemClock};
use tokio::sync::Semaphore;

use super::support::builder;

/// A store that hosts share, which answers as the test says.
struct Shared {
    store: MemoryStore,
    sessions: Mutex<HashMap<SessionId, Arc<dyn SessionState>>>,
    /// As often as it opens a session.
    opens: Semaphore,
    opened: AtomicUsize,
    /// Another host has written in what is open.
    outdated: AtomicBool,
    /// How long closing a session takes, in milliseconds.
    closing_ms: Arc<AtomicU64>,
    /// Nothing can be looked up.
    is_away: Arc<AtomicBool>,
    names: Mutex<HashMap<String, String>>,
    /// As often as something is made durable.
    settles: Arc<Semaphore>,
}

impl Shared {
    fn new(opens: usize) -> Arc<Self> {
        Arc::new(Self {
            store: MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock)),
            sessions: Mutex::default(),
            opens: Semaphore::new(opens),
            opened: AtomicUsize::new(0),
            outdated: AtomicBool::new(false),
            closing_ms: Arc::default(),
            is_away: Arc::default(),
            names: Mutex::default(),
            settles: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS / 2)),
        })
    }
}

fn unless(is_away: &AtomicBool) -> Result<(), StateError> {
    if is_away.load(Ordering::SeqCst) {
        let cause = Arc::new(std::io::Error::other("a test"));
        return Err(StateError::Unavailable { place: "shared".to_owned(), cause });
    }
    Ok(())
}

impl StateStore for Shared {
    fn open<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>> {
        Box::pin(async move {
            self.opens.acquire().await.unwrap().forget();
            self.opened.fetch_add(1, Ordering::SeqCst);
            let known = self.sessions.lock().unwrap().get(session).cloned();
            let state = match known {
                Some(state) => state,
                None => self.store.open(session).await?,
            };
            self.sessions.lock().unwrap().insert(session.clone(), Arc::clone(&state));
            let outdated = AtomicBool::new(self.outdated.swap(false, Ordering::SeqCst));
            let (closing_ms, settles) = (Arc::clone(&self.closing_ms), Arc::clone(&self.settles));
            let is_away = Arc::clone(&self.is_away);
            Ok(Arc::new(Open { state, outdated, closing_ms, is_away, settles }) as Arc<dyn SessionState>)
        })
    }

    fn named<'a>(&'a self, names: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<String>>, StateError>> {
        Box::pin(std::future::ready(unless(&self.is_away).map(|()| vec![None; names.len()])))
    }

    fn name<'a>(&'a self, name: &'a str, line: &'a str) -> BoxFuture<'a, Result<Option<String>, StateError>> {
        if let Err(error) = unless(&self.is_away) {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.names.lock().unwrap().entry(name.to_owned()).or_insert_with(|| line.to_owned());
        Box::pin(std::future::ready(Ok(None)))
    }
}

impl StateAdmin for Shared {
    fn sessions(&self) -> BoxFuture<'_, Result<SessionList, StateError>> {
        self.store.sessions()
    }

    fn show<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<ShownSession>, StateError>> {
        self.store.show(session)
    }

    fn clear<'a>(
        &'a self,
        session: &'a SessionId,
        plugin: Option<&'a PluginId>,
    ) -> BoxFuture<'a, Result<bool, StateError>> {
        self.store.clear(session, plugin)
    }

    fn remove_expired(&self) -> BoxFuture<'_, Result<SweptState, StateError>> {
        self.store.remove_expired()
    }
}

struct Open {
    state: Arc<dyn SessionState>,
    outdated: AtomicBool,
    closing_ms: Arc<AtomicU64>,
    is_away: Arc<AtomicBool>,
    settles: Arc<Semaphore>,
}

impl SessionState for Open {
    fn load<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<StoredState, StateError>> {
        self.state.load(plugin)
    }

    fn plugins(&self) -> BoxFuture<'_, Result<Vec<PluginId>, StateError>> {
        self.state.plugins()
    }

    fn apply(&self, plugin: &PluginId, batch: StateBatch) {
        self.state.apply(plugin, batch);
    }

    fn turn_started(&self) {
        self.state.turn_started();
    }

    fn turn_ended(&self) {
        self.state.turn_ended();
    }

    fn settle(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(async move {
            self.settles.acquire().await.unwrap().forget();
            self.state.settle(patience).await
        })
    }

    fn is_outdated(&self) -> BoxFuture<'_, Result<bool, StateError>> {
        Box::pin(async {
            // All who ask at one time get the same answer.
            tokio::task::yield_now().await;
            unless(&self.is_away)?;
            Ok(self.outdated.load(Ordering::SeqCst))
        })
    }

    fn clear<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<(), StateError>> {
        self.state.clear(plugin)
    }

    fn close(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(self.closing_ms.load(Ordering::SeqCst))).await;
            // Others have it open.
            self.state.settle(patience).await
        })
    }
}

fn trail() -> Trail {
    trail_of("7f")
}

fn trail_of(session: &str) -> Trail {
    let request = json!({"messages": [{"role": "user", "content": "Hello"}], "tools": [{"name": "Read"}]});
    Trail::of(Wire::Anthropic, &request, |name| (name == "session-id").then_some(session), None, b"key")
}

#[tokio::test]
async fn a_request_that_is_given_up_while_its_conversation_opens_leaves_nothing_behind() {
    let (folder, store) = (TempDir::new().unwrap(), Shared::new(0));
    let host = builder("").without_model().state_store(Arc::clone(&store)).open().await.unwrap();
    let mut limits = ConversationLimits::default();
    limits.idle = Duration::from_millis(50);
    let keeper = Conversations::new(host, ConversationOptions::new(folder.path()), limits);
    // The store does not answer, and the client goes away.
    tokio::time::timeout(Duration::from_millis(300), keeper.enter(trail())).await.unwrap_err();
    store.opens.add_permits(1);
    let visit = keeper.enter(trail()).await.unwrap();
    visit.end(&visit.rules(), None).await.unwrap();
    drop(visit);
    let closed = async {
        while keeper.counts().open > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.unwrap();
}

#[tokio::test]
async fn requests_at_one_time_open_what_another_host_has_written_once() {
    let (folder, store) = (TempDir::new().unwrap(), Shared::new(10));
    let host = builder("").without_model().state_store(Arc::clone(&store)).open().await.unwrap();
    store.outdated.store(true, Ordering::SeqCst);
    let options = ConversationOptions::new(folder.path()).id(SessionId::new("chat-1"));
    let conversation = host.conversation(options).await.unwrap();
    assert_eq!(store.opened.load(Ordering::SeqCst), 1);
    let (one, other) = tokio::join!(conversation.refresh(), conversation.refresh());
    one.and(other).unwrap();
    assert_eq!(store.opened.load(Ordering::SeqCst), 2);
    conversation.settle().await.unwrap();
}

#[tokio::test]
async fn idle_conversations_are_closed_concurrently_and_a_bounded_number_of_them() {
    let (folder, store) = (TempDir::new().unwrap(), Shared::new(100));
    let host = builder("").without_model().state_store(Arc::clone(&store)).open().await.unwrap();
    let mut limits = ConversationLimits::default();
    limits.idle = Duration::from_millis(500);
    let keeper = Conversations::new(host, ConversationOptions::new(folder.path()), limits);
    for number in 0..40 {
        let visit = keeper.enter(trail_of(&number.to_string())).await.unwrap();
        visit.end(&visit.rules(), None).await.unwrap();
    }
    assert_eq!(keeper.counts().open, 40);
    // One after the other, they take 40 s.
    store.closing_ms.store(1000, Ordering::SeqCst);
    let closed = async {
        let mut before = keeper.counts().open;
        while before > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let now = keeper.counts().open;
            assert!(before - now <= 16, "{before} {now}");
            before = now;
        }
    };
    tokio::time::timeout(Duration::from_secs(15), closed).await.unwrap();
}

#[tokio::test]
async fn concurrent_requests_evict_no_more_than_they_need() {
    let (folder, store) = (TempDir::new().unwrap(), Shared::new(2000));
    let host = builder("").without_model().state_store(Arc::clone(&store)).open().await.unwrap();
    let mut limits = ConversationLimits::default();
    limits.open = 1024;
    let keeper = Conversations::new(host, ConversationOptions::new(folder.path()), limits);
    for number in 0..limits.open {
        drop(keeper.enter(trail_of(&number.to_string())).await.unwrap());
    }
    assert_eq!((keeper.counts().open, keeper.counts().evicted), (1024, 0));
    store.closing_ms.store(100, Ordering::SeqCst);
    let mut visits = tokio::task::JoinSet::new();
    for number in 0..50 {
        let keeper = Arc::clone(&keeper);
        visits.spawn(async move { keeper.enter(trail_of(&format!("new {number}"))).await.unwrap() });
    }
    let visits = visits.join_all().await;
    let counts = keeper.counts();
    // At least four are closed at a time.
    assert!((50..54).contains(&counts.evicted) && counts.open <= 1024, "{counts:?}");
    drop(visits);
}

#[tokio::test]
async fn a_store_that_hangs_has_one_task_for_each_conversation() {
    let (folder, store) = (TempDir::new().unwrap(), Shared::new(100));
    let host = builder("").without_model().state_store(Arc::clone(&store)).open().await.unwrap();
    let mut limits = ConversationLimits::default();
    limits.without_store = WithoutStore::Local;
    let keeper = Conversations::new(host, ConversationOptions::new(folder.path()), limits);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    store.is_away.store(true, Ordering::SeqCst);
    let mut visits = Vec::new();
    for _ in 0..20 {
        visits.push(keeper.enter(trail()).await.unwrap());
    }
    assert!(keeper.is_store_away() && keeper.counts().open == 1);
    // From now on nothing returns.
    let free = store.settles.forget_permits(usize::MAX);
    let before = tasks();
    for (number, visit) in visits.iter().enumerate() {
        visit.conversation().set_memory(json!({ "answers": number }));
        let mut answer = Answer::default();
        answer.id = Some(number.to_string());
        visit.end(&visit.rules(), Some(&answer)).await.unwrap();
    }
    assert!(tasks() <= before + 1, "{before} {}", tasks());
    assert_eq!(keeper.counts().unstored, 1);
    store.is_away.store(false, Ordering::SeqCst);
    store.settles.add_permits(free);
    let stored = async {
        while tasks() > before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), stored).await.unwrap();
    // The point of all of them, and the id of each.
    assert_eq!((keeper.counts().unstored, store.names.lock().unwrap().len()), (0, 1 + 20));
}
