//! Conversations and a store that does not answer for a while, or cannot read some of them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gateway::{Trail, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::gateway::{ConversationLimits, Conversations, WithoutStore};
use tidegate::rule::RuleSpec;
use tidegate::state::{
    MemoryStore, SessionList, SessionState, ShownSession, StateAdmin, StateBatch, StateError, StateStore, StoreOptions,
    StoredState, SweptState,
};
use tidegate::{BoxFuture, Host, PluginId, SessionId, SystemClock};

use super::keeper::{answer, exchange, keeper, options, trail};
use super::support::builder;

/// A store with the faults that a test sets.
struct Troubled {
    store: MemoryStore,
    lines: Mutex<HashMap<String, String>>,
    is_away: Arc<AtomicBool>,
    unreadable: Mutex<HashSet<SessionId>>,
}

impl Troubled {
    fn new() -> Arc<Self> {
        let store = MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock));
        Arc::new(Self { store, lines: Mutex::default(), is_away: Arc::default(), unreadable: Mutex::default() })
    }

    fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }
}

fn answers(is_away: &AtomicBool) -> Result<(), StateError> {
    match is_away.load(Ordering::SeqCst) {
        true => Err(StateError::Unavailable {
            place: "the store".to_owned(),
            cause: Arc::new(std::io::Error::other("it is away")),
        }),
        false => Ok(()),
    }
}

impl StateStore for Troubled {
    fn open<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>> {
        Box::pin(async move {
            answers(&self.is_away)?;
            if self.unreadable.lock().unwrap().contains(session) {
                return Err(StateError::Unreadable { place: session.to_string(), cause: "it is damaged".to_owned() });
            }
            let state = self.store.open(session).await?;
            Ok(Arc::new(Open { state, is_away: Arc::clone(&self.is_away) }) as Arc<dyn SessionState>)
        })
    }

    fn named<'a>(&'a self, names: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<String>>, StateError>> {
        Box::pin(async {
            answers(&self.is_away)?;
            let lines = self.lines.lock().unwrap();
            Ok(names.iter().map(|name| lines.get(name).cloned()).collect())
        })
    }

    fn name<'a>(&'a self, name: &'a str, line: &'a str) -> BoxFuture<'a, Result<Option<String>, StateError>> {
        Box::pin(async move {
            answers(&self.is_away)?;
            let mut lines = self.lines.lock().unwrap();
            let known = lines.get(name).cloned();
            lines.entry(name.to_owned()).or_insert_with(|| line.to_owned());
            Ok(known)
        })
    }
}

impl StateAdmin for Troubled {
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
    is_away: Arc<AtomicBool>,
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
            answers(&self.is_away)?;
            self.state.settle(patience).await
        })
    }

    fn clear<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<(), StateError>> {
        self.state.clear(plugin)
    }

    fn close(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(async move {
            answers(&self.is_away)?;
            self.state.close(patience).await
        })
    }
}

async fn host(store: &Arc<Troubled>) -> Host {
    builder("").without_model().state_store(Arc::clone(store)).open().await.unwrap()
}

async fn open(store: &Arc<Troubled>, folder: &TempDir, limits: ConversationLimits) -> Arc<Conversations> {
    keeper(host(store).await, folder, limits)
}

#[tokio::test]
async fn all_names_of_an_answer_are_known_though_the_store_is_away() {
    let (store, folder) = (Troubled::new(), TempDir::new().unwrap());
    let keeper = open(&store, &folder, ConversationLimits::default()).await;
    let of = |request: Value| Trail::of(Wire::OpenAiResponses, &request, |_| None, None, b"key");
    let visit = keeper.enter(of(json!({"input": "Hello"}))).await.unwrap();
    let mut first = answer("Hi");
    first.id = Some("resp_1".to_owned());
    store.set_away(true);
    visit.end(&visit.rules(), Some(&first)).await.unwrap_err();
    store.set_away(false);
    let next = keeper.enter(of(json!({"input": "Go on", "previous_response_id": "resp_1"}))).await.unwrap();
    assert_eq!(next.conversation().id(), visit.conversation().id());
    // They are stored as soon as it is back: that of the answer, that of its response, and not that of the first message.
    assert_eq!(store.lines.lock().unwrap().len(), 2);
}

fn local() -> ConversationLimits {
    let mut limits = ConversationLimits::default();
    limits.without_store = WithoutStore::Local;
    limits
}

#[tokio::test]
async fn conversations_that_cannot_be_read_do_not_keep_others_from_the_store() {
    let (store, folder) = (Troubled::new(), TempDir::new().unwrap());
    let mut limits = local();
    limits.idle = Duration::from_millis(50);
    let keeper = open(&store, &folder, limits).await;
    store.set_away(true);
    for number in 0..16 {
        let (id, _) = exchange(&keeper, None, &[&number.to_string()], "Hi", true).await;
        if number > 0 {
            store.unreadable.lock().unwrap().insert(id);
        }
    }
    assert_eq!(keeper.counts().unstored, 16);
    store.set_away(false);
    let stored = async {
        while keeper.counts().unstored > 15 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), stored).await.unwrap();
    assert_eq!(keeper.counts().lost, 0);
}

#[tokio::test]
async fn a_conversation_that_is_evicted_when_the_store_is_back_is_stored() {
    let (store, folder) = (Troubled::new(), TempDir::new().unwrap());
    let mut limits = local();
    limits.open = 1;
    let keeper = open(&store, &folder, limits).await;
    store.set_away(true);
    let (id, _) = exchange(&keeper, None, &["Hello"], "Hi", true).await;
    store.set_away(false);
    exchange(&keeper, None, &["Another"], "Hi", false).await;
    let counts = keeper.counts();
    assert_eq!((counts.open, counts.evicted, counts.lost), (1, 1, 0));
    let (same, knew) = exchange(&keeper, None, &["Hello", "Hi", "Go on"], "Well", false).await;
    assert_eq!((same, knew), (id, 1));
}

/// One exchange with the session `7f`: returns the memory of the conversation at its start, and sets it to a number more than it has
/// elements.
async fn remembered(keeper: &Arc<Conversations>, texts: &[&str]) -> Vec<Value> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let visit = keeper.enter(trail(Some("7f"), &texts, true)).await.unwrap();
    let before = visit.conversation().memory().as_array().cloned().unwrap_or_default();
    let next = json!(before.len());
    visit.conversation().set_memory([&before[..], &[next]].concat().into());
    let _stored = visit.end(&visit.rules(), Some(&answer(&texts.len().to_string()))).await;
    before
}

#[tokio::test]
async fn a_change_of_settings_while_the_store_is_away_loses_nothing() {
    const FIRST: &[&str] = &["Hello"];
    const SECOND: &[&str] = &["Hello", "1", "More"];
    const THIRD: &[&str] = &["Hello", "1", "More", "3", "More"];
    const FOURTH: &[&str] = &["Hello", "1", "More", "3", "More", "5", "More"];
    // Whether the store is away from the first exchange on, when it is back, and how often the settings change meanwhile.
    for is_away_first in [true, false] {
        for (back, changes) in [("at the end", 1), ("before", 1), ("at the end", 3), ("before", 3)] {
            let case = format!("{is_away_first} {back} {changes}");
            let (store, folder) = (Troubled::new(), TempDir::new().unwrap());
            let mut now = open(&store, &folder, local()).await;
            store.set_away(is_away_first);
            assert_eq!(remembered(&now, FIRST).await, Vec::<Value>::new());
            store.set_away(true);
            assert_eq!(remembered(&now, SECOND).await, [json!(0)]);
            for _ in 0..changes {
                let before = now;
                now = Conversations::in_place_of(&before, host(&store).await, options(&folder), local());
                before.leave().await;
                assert_eq!((before.counts().lost, now.counts().unstored, now.counts().open), (0, 1, 1), "{case}");
            }
            store.set_away(back == "at the end");
            assert_eq!(remembered(&now, THIRD).await, [json!(0), json!(1)], "{case}");
            store.set_away(false);
            now.close().await;
            assert_eq!((now.counts().lost, now.counts().unstored, now.counts().open), (0, 0, 0), "{case}");
            let later = remembered(&open(&store, &folder, local()).await, FOURTH).await;
            assert_eq!(later, [json!(0), json!(1), json!(2)], "{case}");
        }
    }
}

#[tokio::test]
async fn a_conversation_that_is_not_stored_has_the_new_rules_and_is_closed_when_it_is() {
    let (store, folder) = (Troubled::new(), TempDir::new().unwrap());
    let mut limits = local();
    limits.idle = Duration::from_millis(50);
    let before = open(&store, &folder, limits).await;
    store.set_away(true);
    remembered(&before, &["Hello"]).await;
    let rule = RuleSpec::new("no-fixme", "Finish the work.").condition("FIXME").scope("text");
    let host = host(&store).await;
    let set = host.conversation(options(&folder).rule(rule).not_kept()).await.unwrap().rules();
    let now = Conversations::in_place_of(&before, host, options(&folder).rule_set(Arc::clone(&set)), limits);
    before.leave().await;
    drop(before);
    let texts = ["Hello", "1", "More"].map(str::to_owned);
    let visit = now.enter(trail(Some("7f"), &texts, true)).await.unwrap();
    assert_eq!(visit.conversation().memory(), json!([0]));
    assert!(Arc::ptr_eq(visit.rules().rules(), &set));
    drop(visit);
    assert_eq!(now.counts().unstored, 1);
    store.set_away(false);
    let closed = async {
        while now.counts().open > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), closed).await.unwrap();
    assert_eq!(now.counts().lost, 0);
    assert_eq!(remembered(&now, &["Hello", "1", "More"]).await, [json!(0)]);
}

#[tokio::test]
async fn a_replacement_that_is_dropped_changes_nothing() {
    let (store, folder) = (Troubled::new(), TempDir::new().unwrap());
    let now = open(&store, &folder, local()).await;
    store.set_away(true);
    remembered(&now, &["Hello"]).await;
    let failed = Conversations::in_place_of(&now, host(&store).await, options(&folder), local());
    failed.leave().await;
    drop(failed);
    assert_eq!((now.counts().unstored, now.counts().lost), (1, 0));
    assert_eq!(remembered(&now, &["Hello", "1", "More"]).await, [json!(0)]);
    store.set_away(false);
    now.close().await;
    assert_eq!((now.counts().unstored, now.counts().lost), (0, 0));
}
