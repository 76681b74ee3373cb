//! What can go wrong with a Redis server, on a real one: it dies, hangs, is full, loses data, and hosts take over from each other.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use flow::ports::{Clock, SessionState, StateAdmin as _, StateChange, StateError, StateLifetime, StateStore as _};
use system::SystemClock;
use tidegate_servers::RedisServer;
use tidegate_store::{RedisOptions, RedisStore};

use crate::support::{DEFAULT, HOUR, PATIENCE, TestClock, entry, listed, own, plugin, save, session, set};
use crate::threads::raw;

/// Long enough for an answer of a healthy server, short enough to wait for a hanging one.
const TIMEOUT: Duration = Duration::from_millis(500);

fn store_of(server: &RedisServer, owner: &str, clock: Arc<dyn Clock>) -> RedisStore {
    let mut options = RedisOptions::new(server.url());
    options.timeout = TIMEOUT;
    options.store.owner = owner.to_owned();
    RedisStore::new(options, clock).unwrap()
}

/// What the server has, as `key=value`.
async fn stored(server: &RedisServer, clock: &Arc<TestClock>) -> Vec<String> {
    let shown = store_of(server, "a reader", clock.clone()).show(&session("a")).await.unwrap();
    let entries = shown.into_iter().flat_map(|shown| shown.states).flat_map(|(_, state)| state.entries);
    entries.map(|entry| format!("{}={}", entry.key, String::from_utf8_lossy(&entry.value))).collect()
}

async fn start() -> (RedisServer, Arc<TestClock>, Arc<dyn SessionState>) {
    let (server, clock) = (RedisServer::start().unwrap(), TestClock::new());
    let state = open(&server, &clock).await;
    save(&*state, "notes", vec![set(&clock, "old", "1", DEFAULT)]).await;
    (server, clock, state)
}

async fn open(server: &RedisServer, clock: &Arc<TestClock>) -> Arc<dyn SessionState> {
    store_of(server, "the first", clock.clone()).open(&session("a")).await.unwrap()
}

fn is_unavailable(error: &StateError, words: &str) {
    assert!(matches!(error, StateError::Unavailable { .. }) && error.to_string().contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_with_its_data_gets_everything() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let clock = TestClock::new();
    let state = open(&server, &clock).await;
    save(&*state, "notes", vec![set(&clock, "old", "1", DEFAULT)]).await;
    server.kill();
    let address = server.url().replace("redis://", "");
    for number in 0..3 {
        state.apply(&plugin("notes"), vec![set(&clock, "fresh", &number.to_string(), DEFAULT)].into());
        is_unavailable(&state.settle(Duration::ZERO).await.unwrap_err(), &address);
    }
    is_unavailable(&state.load(&plugin("notes")).await.unwrap_err(), &address);
    // Back while somebody waits.
    let settling = tokio::spawn({
        let state = Arc::clone(&state);
        async move { state.settle(PATIENCE).await }
    });
    tokio::task::spawn_blocking(move || {
        server.start_again().unwrap();
        server
    })
    .await
    .map(|server| async move {
        settling.await.unwrap().unwrap();
        assert_eq!(stored(&server, &clock).await, ["fresh=2", "old=1"]);
        assert_eq!(listed(&*state, "notes").await, ["fresh=2", "old=1"]);
    })
    .unwrap()
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_without_its_data_is_reported_and_filled_again() {
    let (mut server, clock, state) = start().await;
    state.apply(&plugin("notes"), vec![set(&clock, "queued", "2", DEFAULT)].into());
    server.start_again().unwrap();
    let lost = state.settle(PATIENCE).await.unwrap_err();
    assert!(matches!(&lost, StateError::Lost { session, .. } if session.as_str() == "a"), "{lost}");
    assert!(stored(&server, &clock).await.is_empty(), "nothing is written before the loss is known");
    // The cache has everything, and writes it again.
    let all = vec![StateChange::Clear, set(&clock, "old", "1", DEFAULT), set(&clock, "queued", "2", DEFAULT)];
    save(&*state, "notes", all).await;
    assert_eq!(stored(&server, &clock).await, ["old=1", "queued=2"]);
    // It is reported once for each loss, also to who reads.
    server.start_again().unwrap();
    let lost = loop {
        match state.load(&plugin("notes")).await.unwrap_err() {
            // The first command on a connection that broke.
            StateError::Unavailable { .. } => {}
            error => break error,
        }
    };
    assert!(matches!(lost, StateError::Lost { .. }), "{lost}");
    assert!(listed(&*state, "notes").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn state_that_the_server_evicted_is_reported() {
    let (server, clock, state) = start().await;
    let deleted: u64 = raw(&server, &["DEL", "{tidegate:a}:state"]);
    assert_eq!(deleted, 1);
    state.apply(&plugin("notes"), vec![set(&clock, "queued", "2", DEFAULT)].into());
    assert!(matches!(state.settle(PATIENCE).await, Err(StateError::Lost { .. })));
    state.settle(PATIENCE).await.unwrap();
    assert_eq!(stored(&server, &clock).await, ["queued=2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_a_server_that_hangs_arrive_in_order() {
    let (server, clock, state) = start().await;
    // The keys of a plugin that was loaded are known: only a write that can still arrive needs a deletion after it.
    assert_eq!(listed(&*state, "notes").await, ["old=1"]);
    raw::<String>(&server, &["CLIENT", "PAUSE", "600000", "WRITE"]);
    // Each of these remains in the server's queue, and runs when it goes on.
    for number in 0..3 {
        state.apply(&plugin("notes"), vec![set(&clock, &format!("key-{number}"), "x", DEFAULT)].into());
        state.apply(&plugin("notes"), vec![StateChange::Delete(format!("key-{}", number - 1))].into());
        is_unavailable(&state.settle(Duration::ZERO).await.unwrap_err(), "timed out");
    }
    raw::<String>(&server, &["CLIENT", "UNPAUSE"]);
    state.settle(PATIENCE).await.unwrap();
    assert_eq!(stored(&server, &clock).await, ["key-2=x", "old=1"]);
    assert_eq!(listed(&*state, "notes").await, ["key-2=x", "old=1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sleeps_is_waited_for() {
    let (server, clock, state) = start().await;
    state.apply(&plugin("notes"), vec![set(&clock, "fresh", "2", DEFAULT)].into());
    let server = tokio::task::spawn_blocking(move || {
        raw::<String>(&server, &["DEBUG", "SLEEP", "1"]);
        server
    });
    state.settle(PATIENCE).await.unwrap();
    let server = server.await.unwrap();
    assert_eq!(stored(&server, &clock).await, ["fresh=2", "old=1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_is_named_and_keeps_what_it_has() {
    let (server, clock, state) = start().await;
    save(&*state, "notes", vec![set(&clock, "large", &"x".repeat(1 << 20), DEFAULT)]).await;
    raw::<String>(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1mb"]);
    state.apply(&plugin("notes"), vec![set(&clock, "old", "2", DEFAULT)].into());
    is_unavailable(&state.settle(Duration::from_millis(50)).await.unwrap_err(), "OOM");
    assert!(stored(&server, &clock).await.contains(&"old=1".to_owned()));
    // A session is refused, too, and deleting is possible, because it helps.
    let refused = store_of(&server, "x", clock.clone()).open(&session("b")).await.map(drop).unwrap_err();
    is_unavailable(&refused, "OOM");
    state.apply(&plugin("notes"), vec![StateChange::Delete("old".to_owned())].into());
    state.settle(Duration::ZERO).await.unwrap();
    state.apply(&plugin("notes"), vec![set(&clock, "old", "3", DEFAULT)].into());
    is_unavailable(&state.settle(Duration::ZERO).await.unwrap_err(), "OOM");
    raw::<String>(&server, &["CONFIG", "SET", "maxmemory", "0"]);
    state.settle(PATIENCE).await.unwrap();
    assert!(stored(&server, &clock).await.contains(&"old=3".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_taken_over_writes_nothing() {
    let (server, clock, first) = start().await;
    // What the end of a lease looks like.
    raw::<u64>(&server, &["DEL", "{tidegate:a}:lease"]);
    let second = store_of(&server, "the second", clock.clone()).open(&session("a")).await.unwrap();
    save(&*second, "notes", vec![set(&clock, "old", "second", DEFAULT)]).await;
    let changes = vec![set(&clock, "old", "first", DEFAULT), set(&clock, "more", "first", DEFAULT)];
    first.apply(&plugin("notes"), changes.into());
    for _ in 0..2 {
        match first.settle(PATIENCE).await.unwrap_err() {
            StateError::Fenced { session, by } => assert_eq!((session.as_str(), by.as_str()), ("a", "the second")),
            other => panic!("{other}"),
        }
    }
    assert!(matches!(first.load(&plugin("notes")).await, Err(StateError::Fenced { .. })));
    assert!(matches!(first.clear(&plugin("notes")).await, Err(StateError::Fenced { .. })));
    assert!(matches!(first.close(PATIENCE).await, Err(StateError::Fenced { .. })));
    drop(first);
    assert_eq!(listed(&*second, "notes").await, ["old=second"]);
    // Neither has the first ended the second's lease.
    let third = store_of(&server, "the third", clock.clone());
    assert!(
        matches!(third.open(&session("a")).await.map(drop), Err(StateError::Leased { by, .. }) if by == "the second")
    );
    second.close(PATIENCE).await.unwrap();
    third.open(&session("a")).await.unwrap();
    assert_eq!(stored(&server, &clock).await, ["old=second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_lease_that_nobody_took_is_acquired_again() {
    let (server, clock, state) = start().await;
    raw::<u64>(&server, &["DEL", "{tidegate:a}:lease"]);
    save(&*state, "notes", vec![set(&clock, "fresh", "2", DEFAULT)]).await;
    let refused = store_of(&server, "the second", clock.clone()).open(&session("a")).await.map(drop).unwrap_err();
    assert!(matches!(refused, StateError::Leased { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_renewed_while_its_session_is_idle() {
    let (server, clock) = (RedisServer::start().unwrap(), TestClock::new());
    let mut options = RedisOptions::new(server.url());
    options.lease = Duration::from_secs(3);
    let state = RedisStore::new(options, clock).unwrap().open(&session("a")).await.unwrap();
    let left = || raw::<i64>(&server, &["PTTL", "{tidegate:a}:lease"]);
    let renewed = async {
        let mut before = left();
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = left();
            if now > before {
                return;
            }
            before = now;
        }
    };
    tokio::time::timeout(PATIENCE, renewed).await.expect("the time that is left grows again");
    drop(state);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_removes_an_idle_session_by_itself() {
    let server = RedisServer::start().unwrap();
    let mut options = RedisOptions::new(server.url());
    options.store.session_ttl = Duration::from_millis(300);
    let store = RedisStore::new(options, Arc::new(SystemClock)).unwrap();
    let state = store.open(&session("a")).await.unwrap();
    state.turn_started();
    let entry = entry(&TestClock::new(), "key", "x", StateLifetime::Session);
    save(&*state, "notes", vec![StateChange::Set(entry)]).await;
    state.turn_ended();
    state.close(PATIENCE).await.unwrap();
    let gone = async {
        while !raw::<Vec<String>>(&server, &["KEYS", "*"]).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the keys expire");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_keeps_nothing_leaves_no_keys() {
    let (server, clock) = (RedisServer::start().unwrap(), TestClock::new());
    let state = open(&server, &clock).await;
    assert!(listed(&*state, "notes").await.is_empty());
    state.close(PATIENCE).await.unwrap();
    assert!(raw::<Vec<String>>(&server, &["KEYS", "*"]).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_scripts_are_loaded_again() {
    let (server, clock, state) = start().await;
    raw::<String>(&server, &["SCRIPT", "FLUSH"]);
    save(&*state, "notes", vec![set(&clock, "fresh", "2", own(HOUR))]).await;
    assert_eq!(stored(&server, &clock).await, ["fresh=2", "old=1"]);
}

/// A node of a cluster refuses scripts whose keys are in several slots.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_cluster_accepts_every_script() {
    let (server, clock) = (RedisServer::start_with(&["--cluster-enabled", "yes"]).unwrap(), TestClock::new());
    raw::<String>(&server, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let ready = async {
        while !raw::<String>(&server, &["CLUSTER", "INFO"]).contains("cluster_state:ok") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.expect("the cluster starts");
    let store = store_of(&server, "the first", clock.clone());
    for id in ["a", "chat-1", "}{", "{x}"] {
        let state = store.open(&session(id)).await.unwrap();
        save(&*state, "notes", vec![set(&clock, "key", "x", DEFAULT)]).await;
        assert_eq!(listed(&*state, "notes").await, ["key=x"]);
        state.close(PATIENCE).await.unwrap();
        assert!(store.clear(&session(id), None).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_stored_under_the_name_is_refused_and_kept() {
    let (server, clock) = (RedisServer::start().unwrap(), TestClock::new());
    let store = store_of(&server, "the first", clock);
    for (id, words) in [
        ("string", &["SET", "{tidegate:string}:state", "x"][..]),
        ("hash", &["HSET", "{tidegate:hash}:state", "field", "x"]),
        ("later", &["HSET", "{tidegate:later}:state", "!format", "2"]),
    ] {
        raw::<redis::Value>(&server, words);
        let error = store.open(&session(id)).await.map(drop).unwrap_err();
        assert!(matches!(error, StateError::Unreadable { .. }), "{id}: {error}");
    }
    assert_eq!(raw::<Vec<String>>(&server, &["KEYS", "*"]).len(), 3);
    assert_eq!(raw::<String>(&server, &["GET", "{tidegate:string}:state"]), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_entry_is_named() {
    let (server, _, state) = start().await;
    raw::<u64>(&server, &["HSET", "{tidegate:a}:state", "notes/bad", "no header"]);
    let error = state.load(&plugin("notes")).await.unwrap_err();
    assert!(matches!(error, StateError::Unreadable { .. }) && error.to_string().contains("notes/bad"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_named_without_its_password() {
    let port = tidegate_servers::free_port().unwrap();
    let options = RedisOptions::new(format!("redis://user:secret@127.0.0.1:{port}"));
    let store = RedisStore::new(options, TestClock::new()).unwrap();
    let error = store.open(&session("a")).await.map(drop).unwrap_err();
    is_unavailable(&error, &format!("127.0.0.1:{port}"));
    let shown = format!("{error} {error:?} {store:?}");
    assert!(!shown.contains("secret"), "{shown}");
    let error = RedisStore::new(RedisOptions::new("http://:secret@x"), TestClock::new()).map(drop).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

/// Replaces a note of the host's; returns what is there instead.
async fn replace(state: &dyn SessionState, seen: Option<&str>, value: &str) -> Option<String> {
    let note = flow::ports::StateEntry::written("conversation.1", value.as_bytes(), StateLifetime::Session, 0);
    match state.replace_note(seen.map(str::as_bytes), note, PATIENCE).await.unwrap() {
        flow::ports::Replaced::Done => None,
        flow::ports::Replaced::Other(other) => {
            Some(other.map_or_else(|| "nothing".to_owned(), |note| String::from_utf8_lossy(&note).into_owned()))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_share_a_session_see_what_each_other_write_and_lose_no_note() {
    let (server, clock) = (RedisServer::start().unwrap(), TestClock::new());
    let (one, other) = (store_of(&server, "one", clock.clone()), store_of(&server, "other", clock.clone()));
    let first = one.share(&session("a")).await.unwrap();
    let second = other.share(&session("a")).await.unwrap();
    assert!(!first.is_outdated().await.unwrap() && !second.is_outdated().await.unwrap());
    assert_eq!(replace(&*first, None, "1").await, None);
    assert!(!first.is_outdated().await.unwrap(), "its own write is known");
    assert!(second.is_outdated().await.unwrap());
    // Whoever has not seen the last note does not replace it.
    assert_eq!(replace(&*second, None, "2").await, Some("1".to_owned()));
    assert_eq!(replace(&*second, Some("0"), "2").await, Some("1".to_owned()));
    assert_eq!(replace(&*second, Some("1"), "1 and 2").await, None);
    // Both write the state of plugins, each its own keys.
    save(&*first, "notes", vec![set(&clock, "one", "1", DEFAULT)]).await;
    save(&*second, "notes", vec![set(&clock, "other", "2", DEFAULT)]).await;
    assert_eq!(stored(&server, &clock).await, ["one=1", "other=2"]);
    // One that closes it, or dies, leaves it to the others.
    first.close(PATIENCE).await.unwrap();
    assert_eq!(replace(&*second, Some("1 and 2"), "3").await, None);
    let third = one.share(&session("a")).await.unwrap();
    assert_eq!(listed(&*third, "notes").await, ["one=1", "other=2"]);
    let leased = one.open(&session("a")).await.err().unwrap();
    assert!(leased.to_string().contains("instances of the gateway"), "{leased}");
    let notes = third.load(&flow::PluginId::host()).await.unwrap().entries;
    assert_eq!(notes.iter().map(|note| &*note.value).collect::<Vec<_>>(), [b"3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_state_that_the_server_lost_is_reported_and_written_again() {
    let (mut server, clock) = (RedisServer::start().unwrap(), TestClock::new());
    let state = store_of(&server, "one", clock.clone()).share(&session("a")).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "old", "1", DEFAULT)]).await;
    server.start_again().unwrap();
    state.apply(&plugin("notes"), vec![set(&clock, "new", "2", DEFAULT)].into());
    assert!(matches!(state.settle(PATIENCE).await, Err(StateError::Lost { .. })));
    save(&*state, "notes", vec![set(&clock, "old", "1", DEFAULT), set(&clock, "new", "2", DEFAULT)]).await;
    assert_eq!(stored(&server, &clock).await, ["new=2", "old=1"]);
}
