//! Redis servers that a Sentinel watches: it makes another server the primary, and no write is lost that was durable on it.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::ports::{StateAdmin as _, StateStore as _};
use system::SystemClock;
use tidegate_servers::RedisServer;
use tidegate_store::{RedisOptions, RedisStore};

use crate::support::{DEFAULT, PATIENCE, TestClock, listed, save, session, set};
use crate::threads::raw;

const NAME: &str = "group";

/// What a Sentinel has to permit without a password.
const ALLOWED: &str = "+sentinel|get-master-addr-by-name";

fn address(server: &RedisServer) -> String {
    server.url().replace("redis://", "")
}

fn primary(sentinel: &RedisServer) -> String {
    raw::<Vec<String>>(sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).join(":")
}

pub(crate) async fn until(what: &str, mut is_done: impl FnMut() -> bool) {
    let wait = async {
        while !is_done() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Waits until a server has the data of another one.
async fn copies(server: &RedisServer) {
    until("the replica copies", || raw::<String>(server, &["INFO", "replication"]).contains("master_link_status:up"))
        .await;
}

/// Returns the keys of the session's state on a server.
fn stored(server: &RedisServer) -> Vec<String> {
    raw(server, &["HKEYS", "{tidegate:a}:state"])
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_becomes_the_primary() {
    let first = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]).unwrap();
    let second = RedisServer::start_replica(&first).unwrap();
    let sentinel = RedisServer::start_sentinel(&first, NAME).unwrap();
    copies(&second).await;
    let knows = || raw::<Vec<redis::Value>>(&sentinel, &["SENTINEL", "REPLICAS", NAME]).len() == 1;
    until("the Sentinel knows the replica", knows).await;
    // The first Sentinel of the URL does not answer.
    let mut options = RedisOptions::new(format!("redis+sentinel://127.0.0.1:9,{}/{NAME}/0", address(&sentinel)));
    options.timeout = Duration::from_millis(500);
    let store = RedisStore::new(options, Arc::new(SystemClock)).unwrap();
    store.check().await.unwrap();
    let (clock, state) = (TestClock::new(), store.open(&session("a")).await.unwrap());
    save(&*state, "notes", vec![set(&clock, "one", "1", DEFAULT)]).await;
    // Redis copies writes after it has acknowledged them.
    let has = |server: &RedisServer, key: &str| stored(server).contains(&key.to_owned());
    until("the second has what was saved", || has(&second, "notes/one")).await;
    // The primary changes while both servers run: the former one refuses writes.
    let is_done = || sentinel.command(&["SENTINEL", "FAILOVER", NAME]).is_ok();
    until("the Sentinel promotes a replica", is_done).await;
    until("the second is the primary", || primary(&sentinel) == address(&second)).await;
    // As the Sentinel does it some seconds later.
    raw::<String>(&first, &["REPLICAOF", "127.0.0.1", address(&second).rsplit_once(':').unwrap().1]);
    copies(&first).await;
    save(&*state, "notes", vec![set(&clock, "two", "2", DEFAULT)]).await;
    assert!(["notes/one", "notes/two"].iter().all(|key| has(&second, key)), "{:?}", stored(&second));
    until("the first has what was saved", || has(&first, "notes/two")).await;
    // The primary is killed.
    until("the Sentinel knows the replica", knows).await;
    drop(second);
    save(&*state, "notes", vec![set(&clock, "three", "3", DEFAULT)]).await;
    assert_eq!(primary(&sentinel), address(&first));
    assert_eq!(listed(&*state, "notes").await, ["one=1", "three=3", "two=2"]);
}

/// A Sentinel that accepts connections and never answers costs little time, and only once.
#[tokio::test(flavor = "multi_thread")]
async fn the_sentinel_that_answers_is_asked_first() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = RedisServer::start().unwrap();
    let sentinel = RedisServer::start_sentinel(&server, NAME).unwrap();
    let url = format!("redis+sentinel://{},{}/{NAME}/0", silent.local_addr().unwrap(), address(&sentinel));
    let store = RedisStore::new(RedisOptions::new(url), Arc::new(SystemClock)).unwrap();
    let begun = Instant::now();
    store.check().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    raw::<i64>(&server, &["CLIENT", "KILL", "TYPE", "normal"]);
    let begun = Instant::now();
    while let Err(error) = store.check().await {
        assert!(begun.elapsed() < PATIENCE, "{error}");
    }
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_no_sentinel_knows_is_reported() {
    let server = RedisServer::start().unwrap();
    let sentinel = RedisServer::start_sentinel(&server, NAME).unwrap();
    let url = format!("redis+sentinel://127.0.0.1:9,{}/other", address(&sentinel));
    let store = RedisStore::new(RedisOptions::new(url), Arc::new(SystemClock)).unwrap();
    let error = store.check().await.unwrap_err().to_string();
    for words in ["no Sentinel gives the address of the primary `other`", "127.0.0.1:9: ", "does not know it"] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// The password of the URL is for the primary: the Sentinels, which need one of their own to watch it, do not get it.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_needs_a_password_is_reached_with_it_alone() {
    let server = RedisServer::start().unwrap();
    let sentinel = RedisServer::start_sentinel(&server, NAME).unwrap();
    sentinel.command(&["SENTINEL", "SET", NAME, "auth-pass", "hunter2"]).unwrap();
    server.command(&["CONFIG", "SET", "requirepass", "hunter2"]).unwrap();
    let store = |login: &str| {
        let url = format!("redis+sentinel://{login}{}/{NAME}/0", address(&sentinel));
        RedisStore::new(RedisOptions::new(url), Arc::new(SystemClock)).unwrap()
    };
    for (login, expected) in [
        ("", "it requires a password"),
        (":hunter3@", "it refuses the user or the password"),
        ("somebody:hunter2@", "it refuses the user or the password"),
    ] {
        let error = store(login).check().await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("hunter"), "{login}: {error}");
    }
    for login in [":hunter2@", "default:hunter2@"] {
        let (store, clock) = (store(login), TestClock::new());
        store.check().await.unwrap();
        let state = store.open(&session("a")).await.unwrap();
        save(&*state, "notes", vec![set(&clock, "one", "1", DEFAULT)]).await;
        assert_eq!(listed(&*state, "notes").await, ["one=1"]);
        state.close(PATIENCE).await.unwrap();
    }
    // Sentinels get no password, so that one which needs one is of no use.
    sentinel.command(&["ACL", "SETUSER", "default", "resetpass", ">hunter2"]).unwrap();
    let error = store(":hunter2@").check().await.unwrap_err().to_string();
    assert!(error.contains("no Sentinel gives the address") && error.contains(ALLOWED), "{error}");
    let client = redis::Client::open(format!("redis://:hunter2@{}", address(&sentinel))).unwrap();
    let mut connection = client.get_connection().unwrap();
    let allow = ["SETUSER", "default", "nopass", "-@all", ALLOWED];
    redis::cmd("ACL").arg(&allow).query::<()>(&mut connection).unwrap();
    store(":hunter2@").check().await.unwrap();
}
