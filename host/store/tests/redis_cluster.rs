//! A real Redis Cluster: a primary is killed, a slot moves, and each node has users of its own.

use std::sync::Arc;
use std::time::Duration;

use flow::ports::{StateAdmin as _, StateStore as _};
use redis::cluster_routing::Slot;
use system::SystemClock;
use tidegate_servers::{Certificates, RedisCluster, RedisServer};
use tidegate_store::{RedisOptions, RedisStore, RedisTls};

use crate::redis_access::documented;
use crate::support::{DEFAULT, PATIENCE, TestClock, listed, save, session, set};
use crate::threads::raw;

fn store_of(cluster: &RedisCluster) -> RedisStore {
    let mut options = RedisOptions::new(cluster.url());
    options.timeout = Duration::from_secs(2);
    RedisStore::new(options, Arc::new(SystemClock)).unwrap()
}

/// Returns the keys of a session's state on a server, which is not asked for those of others.
fn keys(server: &RedisServer) -> Vec<String> {
    raw(server, &["KEYS", "*"])
}

/// Returns the first of some ids whose key is in a range of slots, and its slot.
fn id_in(key: impl Fn(&str) -> String, slots: std::ops::Range<u16>) -> (String, u16) {
    let slot = |id: &str| slots.clone().find(|number| Slot::new(*number) == Some(Slot::for_key(key(id))));
    (0..).map(|number| format!("s{number}")).find_map(|id| slot(&id).map(|slot| (id, slot))).unwrap()
}

fn state_key(id: &str) -> String {
    format!("{{tidegate:{id}}}:state")
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_all_primaries_are_listed_and_names_are_found() {
    let mut cluster = RedisCluster::start(0).unwrap();
    let (store, clock) = (store_of(&cluster), TestClock::new());
    store.check().await.unwrap();
    assert!(cluster.nodes().iter().all(|node| keys(node).is_empty()), "the check leaves nothing");
    let names: Vec<String> = (0..12).map(|number| format!("name-{number}")).collect();
    for name in &names {
        let state = store.share(&session(name)).await.unwrap();
        save(&*state, "notes", vec![set(&clock, "key", name, DEFAULT)]).await;
        assert_eq!(store.name(name, &format!("line of {name}")).await.unwrap(), None);
    }
    assert!(cluster.nodes().iter().all(|node| keys(node).len() > 1), "each primary has some");
    let found: Vec<String> =
        store.sessions().await.unwrap().sessions.iter().map(|one| one.session.to_string()).collect();
    let mut all = names.clone();
    all.sort_unstable();
    assert_eq!(found, all);
    let lines: Vec<Option<String>> = names.iter().map(|name| Some(format!("line of {name}"))).collect();
    assert_eq!(store.named(&names).await.unwrap(), lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_takes_over_from_a_killed_primary() {
    let mut cluster = RedisCluster::start(1).unwrap();
    let (store, clock) = (store_of(&cluster), TestClock::new());
    let (id, _) = id_in(state_key, 0..5_000);
    let state = store.open(&session(&id)).await.unwrap();
    for number in 0..20 {
        save(&*state, "notes", vec![set(&clock, &format!("before-{number:02}"), "x", DEFAULT)]).await;
    }
    // Redis copies writes after it has acknowledged them.
    let offset = |node: &RedisServer| {
        let shown = raw::<String>(node, &["INFO", "replication"]);
        let line = shown.lines().find(|line| line.starts_with("master_repl_offset:")).map(str::to_owned);
        (line, raw::<u64>(node, &["DBSIZE"]))
    };
    let nodes = cluster.nodes();
    crate::redis_sentinel::until("the replica has all writes", || offset(&nodes[0]) == offset(&nodes[3])).await;
    cluster.nodes()[0].kill();
    for number in 0..20 {
        save(&*state, "notes", vec![set(&clock, &format!("later-{number:02}"), "x", DEFAULT)]).await;
    }
    let entries = listed(&*state, "notes").await;
    assert_eq!(entries.len(), 40, "{entries:?}");
    assert_eq!(raw::<String>(&cluster.nodes()[3], &["HGET", &state_key(&id), "!format"]), "1");
    state.close(PATIENCE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_moves_while_it_is_used() {
    let mut cluster = RedisCluster::start(0).unwrap();
    let (store, clock) = (store_of(&cluster), TestClock::new());
    let name_key = |name: &str| format!("{{tidegate-name:{name}}}");
    let ((moving, slot), (fresh, other)) = (id_in(state_key, 0..5_000), id_in(name_key, 5_000..5_400));
    let state = store.open(&session(&moving)).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "before", "x", DEFAULT)]).await;
    let nodes = cluster.nodes();
    let ids: Vec<String> = nodes.iter().map(|node| raw(node, &["CLUSTER", "MYID"])).collect();
    let set_slot = |node: &RedisServer, slot: u16, words: &[&str]| {
        raw::<String>(node, &[&["CLUSTER", "SETSLOT", &slot.to_string()], words].concat());
    };
    for slot in [slot, other] {
        set_slot(&nodes[1], slot, &["IMPORTING", &ids[0]]);
        set_slot(&nodes[0], slot, &["MIGRATING", &ids[1]]);
    }
    // The keys are still on the old primary; a new one is made on the other (`ASK`).
    save(&*state, "notes", vec![set(&clock, "moving", "x", DEFAULT)]).await;
    assert_eq!(store.name(&fresh, "line").await.unwrap(), None);
    assert_eq!(keys(&nodes[1]), [name_key(&fresh)]);
    // One key is moved, the other one follows while a write waits (`TRYAGAIN`).
    let migrate = |node: &RedisServer, to: u16, key: &str| {
        raw::<String>(node, &["MIGRATE", "127.0.0.1", &to.to_string(), key, "0", "5000"]);
    };
    let (lease, hash) = (format!("{{tidegate:{moving}}}:lease"), state_key(&moving));
    migrate(&nodes[0], nodes[1].port(), &lease);
    state.apply(&crate::support::plugin("notes"), vec![set(&clock, "between", "x", DEFAULT)].into());
    let (settled, ()) = tokio::join!(state.settle(PATIENCE), async { migrate(&nodes[0], nodes[1].port(), &hash) });
    settled.unwrap();
    for slot in [slot, other] {
        for node in nodes.iter() {
            set_slot(node, slot, &["NODE", &ids[1]]);
        }
    }
    // The old primary has forgotten the slot (`MOVED`).
    save(&*state, "notes", vec![set(&clock, "after", "x", DEFAULT)]).await;
    assert_eq!(listed(&*state, "notes").await, ["after=x", "before=x", "between=x", "moving=x"]);
    assert_eq!(store.named(&[fresh]).await.unwrap(), [Some("line".to_owned())]);
    assert_eq!(store.sessions().await.unwrap().sessions.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_user_needs_three_more_commands_on_each_node() {
    let mut cluster = RedisCluster::start(0).unwrap();
    let mut words = documented();
    words.extend(["+cluster|slots", "+ping", "+asking"].map(str::to_owned));
    let url = cluster.url().replace("://", "://tidegate:hunter2@");
    let login = || RedisStore::new(RedisOptions::new(url.clone()), Arc::new(SystemClock)).unwrap();
    let set_user = |node: &RedisServer, words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        node.command(&["ACL", "DELUSER", "tidegate"]).unwrap();
        node.command(&words).unwrap();
    };
    cluster.nodes().iter().for_each(|node| set_user(node, &words));
    login().check().await.unwrap();
    let last = &cluster.nodes()[2];
    for missing in ["+get", "+asking", "+scan", "+script|load"] {
        let fewer: Vec<String> = words.iter().filter(|word| *word != missing).cloned().collect();
        set_user(last, &fewer);
        let error = login().check().await.unwrap_err().to_string();
        let expected = format!("on 127.0.0.1:{} does not permit `{}`", last.port(), &missing[1..]);
        assert!(error.ends_with(&expected) && error.contains("redis cluster at 127."), "{missing}: {error}");
    }
    let wrong = RedisOptions::new(url.replace("hunter2", "hunter3"));
    let error = RedisStore::new(wrong, Arc::new(SystemClock)).unwrap().check().await.unwrap_err().to_string();
    assert!(error.contains("it refuses the user or the password") && !error.contains("hunter"), "{error}");
}

/// Nodes that are learned from the one of the URL are reached with TLS, with the same certificates, user and password.
#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_of_a_cluster_are_reached_with_tls() {
    let all = Certificates::make().unwrap();
    let mut cluster = RedisCluster::start_tls(&all).unwrap();
    let mut words = documented();
    words.extend(["+cluster|slots", "+ping", "+asking"].map(str::to_owned));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    cluster.nodes().iter().for_each(|node| drop(node.command(&words).unwrap()));
    let store = |authority: &str, has_certificate: bool| {
        let mut options = RedisOptions::new(cluster_url(&cluster));
        let mut tls = RedisTls::default();
        tls.ca = Some(all.path(authority));
        if has_certificate {
            (tls.certificate, tls.certificate_key) = (Some(all.path("client.pem")), Some(all.path("client.key")));
        }
        options.tls = tls;
        options.timeout = Duration::from_secs(2);
        RedisStore::new(options, Arc::new(SystemClock)).unwrap()
    };
    for (authority, has_certificate, expected) in [
        ("stranger.pem", true, "set `ca` under [state] to the certificates of its authority"),
        ("authority.pem", false, "check `certificate` and `certificate_key` under [state]"),
    ] {
        let error = store(authority, has_certificate).check().await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("hunter"), "{authority}: {error}");
    }
    let (store, clock) = (store("authority.pem", true), TestClock::new());
    store.check().await.unwrap();
    for number in 0..12 {
        let state = store.open(&session(&number.to_string())).await.unwrap();
        save(&*state, "notes", vec![set(&clock, "key", "x", DEFAULT)]).await;
        assert_eq!(listed(&*state, "notes").await, ["key=x"]);
    }
    assert_eq!(store.sessions().await.unwrap().sessions.len(), 12);
    assert!(cluster.nodes().iter().all(|node| !keys(node).is_empty()), "each primary has some");
}

fn cluster_url(cluster: &RedisCluster) -> String {
    cluster.tls_url().replace("://", "://tidegate:hunter2@")
}
