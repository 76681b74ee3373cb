//! What is different where the records are on a Redis server: another host takes over, and the server goes away.

use std::sync::Arc;
use std::time::Duration;

use flow::ports::{Journal as _, JournalError, JournalProgress};
use tidegate_kit::Still;
use tidegate_servers::{RedisCluster, RedisServer};
use tidegate_store::{OpenedTranscript, RecordAll, RedisOptions, SessionAccess, TranscriptError, TranscriptStore};

use crate::threads::{Place, error, id, options, raw, turn};

fn on_server(options: &[&str]) -> Place {
    Place::with(Some(RedisServer::start_with(options).unwrap()))
}

/// The store of a host whose leases last this long.
fn host(place: &Place, owner: &str, lease: Duration) -> TranscriptStore {
    let mut options = options(place.server.as_ref().unwrap(), owner);
    options.lease = lease;
    TranscriptStore::on_redis(place.folder.path().join(owner), &options, Arc::new(Still::default())).unwrap()
}

fn open(store: &TranscriptStore) -> Result<OpenedTranscript, TranscriptError> {
    store.open(&id("a"), Arc::new(RecordAll))
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_has_the_session_once_the_first_has_closed_it() {
    let place = on_server(&[]);
    let opened = place.open("a");
    let refused = error(open(&place.other()));
    assert_eq!(refused, JournalError::Locked { by: "first process".to_owned() }.into());
    opened.journal.append(&turn(1, 0)[0]);
    opened.journal.close().await.unwrap();
    let opened = open(&place.other()).unwrap();
    assert_eq!((opened.next_event, opened.is_new), (1, false));
    opened.journal.close().await.unwrap();
    assert!(!place.store.folder(&id("a")).exists(), "nothing is left on the disk");
}

/// A host that stops without its end, as a machine does that is suspended, and comes back when another host has the session.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_taken_over_writes_nothing_and_learns_it() {
    let place = on_server(&[]);
    let (stale, next) = (host(&place, "stale", Duration::from_secs(600)), host(&place, "next", Duration::from_secs(1)));
    let opened = open(&stale).unwrap();
    opened.journal.append(&turn(1, 0)[0]);
    opened.journal.durable().await.unwrap();
    // As if the term had passed without a renewal.
    raw::<()>(place.server.as_ref().unwrap(), &["DEL", "{tidegate:a}:writer"]);
    let taken = open(&next).unwrap();
    assert_eq!(taken.next_event, 1);
    taken.journal.append(&turn(1, 1)[1]);
    taken.journal.durable().await.unwrap();

    opened.journal.append(&turn(1, 1)[3]);
    let fenced = opened.journal.durable().await.unwrap_err().to_string();
    assert!(fenced.contains("next has taken over the session"), "{fenced}");
    opened.journal.close().await.unwrap_err();
    assert!(
        matches!(error(open(&stale)), TranscriptError::Journal(JournalError::Locked { .. })),
        "it is still the other's"
    );
    taken.journal.close().await.unwrap();
    assert_eq!(place.listing("a"), ["0/0/turn_start", "1/2/cognition_in"]);
}

/// Also a host that does nothing in the session learns it: at the next renewal.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_host_learns_that_it_was_taken_over() {
    let place = on_server(&[]);
    let (idle, next) = (host(&place, "idle", Duration::from_secs(2)), host(&place, "next", Duration::from_secs(2)));
    let opened = open(&idle).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    opened.journal.watch(Box::new(move |progress| drop(send.send(progress))));
    raw::<()>(place.server.as_ref().unwrap(), &["DEL", "{tidegate:a}:writer"]);
    let taken = open(&next).unwrap();
    let learnt = receive.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(
        matches!(&learnt, JournalProgress::Failed(error) if error.to_string().contains("next has taken")),
        "{learnt:?}"
    );
    taken.journal.close().await.unwrap();
}

/// A lease is renewed while its host lives, and ends by itself when the host does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_lasts_as_long_as_its_host() {
    let place = on_server(&[]);
    let (alive, next) =
        (host(&place, "alive", Duration::from_millis(600)), host(&place, "next", Duration::from_secs(1)));
    let opened = open(&alive).unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(matches!(error(open(&next)), TranscriptError::Journal(JournalError::Locked { .. })));
    opened.journal.close().await.unwrap();
    open(&next).unwrap().journal.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_with_its_data_gets_what_was_written_meanwhile_once() {
    let mut place = on_server(&["--appendonly", "yes", "--appendfsync", "always"]);
    let opened = place.open("a");
    opened.journal.append(&turn(1, 0)[0]);
    opened.journal.durable().await.unwrap();
    let mut server = place.server.take().unwrap();
    server.kill();
    opened.journal.append(&turn(1, 0)[1]);
    let journal = Arc::new(opened.journal);
    let durable = tokio::spawn({
        let journal = Arc::clone(&journal);
        async move { journal.durable().await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    place.server = Some(
        tokio::task::spawn_blocking(move || {
            server.start_again().unwrap();
            server
        })
        .await
        .unwrap(),
    );
    durable.await.unwrap().unwrap();
    journal.close().await.unwrap();
    assert_eq!(place.listing("a"), ["0/0/turn_start", "1/1/cognition_in"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lost_its_data_is_reported_and_nothing_is_written_behind_the_gap() {
    let mut place = on_server(&[]);
    let opened = place.open("a");
    opened.journal.append(&turn(1, 0)[0]);
    opened.journal.durable().await.unwrap();
    place.server.as_mut().unwrap().start_again().unwrap();
    opened.journal.append(&turn(1, 0)[1]);
    let lost = opened.journal.durable().await.unwrap_err().to_string();
    assert!(lost.contains("the server has lost records of it"), "{lost}");
    assert!(matches!(error(place.store.read(&id("a"))), TranscriptError::Missing { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_an_error_that_names_it() {
    let mut place = on_server(&[]);
    place.add_turns("a", 1..=1).await;
    place.server.as_mut().unwrap().kill();
    let address = place.server.as_ref().unwrap().url().replace("redis://", "");
    for away in [
        error(place.try_open("a")),
        error(place.store.read(&id("a"))),
        error(place.store.list()),
        error(place.store.remove(&id("a"))),
        error(place.store.access(&id("a"))),
        error(place.store.check_writable()),
    ] {
        assert!(away.to_string().contains(&address), "{away}");
    }
}

#[test]
fn what_a_server_promises_is_reported() {
    for (settings, is_durable, words) in [
        (&["--appendonly", "no"][..], false, "in memory alone (`appendonly no`)"),
        (&["--appendonly", "yes", "--appendfsync", "always"], true, "before it is acknowledged"),
        (&["--appendonly", "yes", "--appendfsync", "everysec"], false, "can lose the last second"),
        (&["--appendonly", "yes", "--appendfsync", "no"], false, "leaves it to its operating system"),
    ] {
        let place = on_server(settings);
        let promised = place.store.check_writable().unwrap();
        assert_eq!(promised.is_durable, Some(is_durable));
        assert!(promised.detail.contains(words), "{}", promised.detail);
        assert!(place.store.list().unwrap().sessions.is_empty(), "nothing is left of the check");
    }
}

#[tokio::test]
async fn damaged_lines_are_removed_and_the_rest_is_numbered_again() {
    let place = on_server(&[]);
    place.add_turns("a", 1..=2).await;
    let mut lines = place.lines("a");
    lines.insert(3, "damaged".to_owned());
    place.write_lines("a", &lines);
    assert!(matches!(error(place.try_open("a")), TranscriptError::Journal(JournalError::Invalid { line: 4, .. })));
    let repair = place.store.repair(&id("a"), |_| Ok::<_, String>(())).unwrap();
    assert_eq!((repair.kept, repair.dropped.len()), (10, 1));
    assert_eq!(std::fs::read_to_string(repair.copy.unwrap()).unwrap().lines().count(), 12);
    place.add_turns("a", 3..=3).await;
    assert_eq!(place.listing("a").len(), 15);
}

#[test]
fn who_is_allowed_to_use_a_session_is_kept_with_it() {
    let place = on_server(&[]);
    let access = |owner: &str| SessionAccess {
        thread_id: "a".to_owned(),
        owner: owner.to_owned(),
        users: ["bert".to_owned()].into(),
        agent: "main".to_owned(),
        model: None,
        created_ms: 7,
    };
    place.store.set_access(&id("a"), &access("anna")).unwrap();
    place.store.set_access(&id("a"), &access("carl")).unwrap();
    assert_eq!(place.other().access(&id("a")), Ok(Some(access("carl"))));
    assert_eq!(place.store.accesses().unwrap(), [access("carl")]);
    assert!(place.store.list().unwrap().sessions.is_empty(), "it has no transcript yet");
    place.store.remove(&id("a")).unwrap();
    assert_eq!(place.store.access(&id("a")), Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_found_where_it_has_said() {
    let place = on_server(&[]);
    let (one, two) = (host(&place, "one", Duration::from_secs(9)), host(&place, "two", Duration::from_secs(9)));
    one.announce("http://one:1");
    let opened = open(&one).unwrap();
    let holder = two.elsewhere(&id("a")).unwrap().unwrap();
    assert_eq!((holder.name.as_str(), holder.address.as_deref()), ("one", Some("http://one:1")));
    assert_eq!(one.elsewhere(&id("a")), Ok(None), "it is here");
    opened.journal.close().await.unwrap();
    assert_eq!(two.elsewhere(&id("a")), Ok(None));
    let opened = open(&two).unwrap();
    assert_eq!(one.elsewhere(&id("a")).unwrap().unwrap().address, None);
    opened.journal.close().await.unwrap();
}

/// The user of the page for operators, with the commands that transcripts need in addition: each of them is needed.
#[test]
fn the_documented_user_can_do_all_that_transcripts_need() {
    let server = RedisServer::start().unwrap();
    let page = include_str!("../../SERVE.md");
    let (_, more) = page.split_once("`+xadd ").unwrap();
    let more: Vec<String> =
        format!("+xadd {}", more.split_once('`').unwrap().0).split(' ').map(str::to_owned).collect();
    let checked = |more: &[String]| {
        let words = [crate::redis_access::documented(), more.to_vec()].concat();
        server.command(&["ACL", "DELUSER", "tidegate"]).unwrap();
        server.command(&words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let mut options = options(&server, "the user");
        (options.user, options.password) = (Some("tidegate".to_owned()), Some("hunter2".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        TranscriptStore::on_redis(folder.path(), &options, Arc::new(Still::default())).unwrap().check_writable()
    };
    let durability = checked(&more).unwrap();
    assert_eq!(durability.is_durable, None, "{}", durability.detail);
    for left_out in 0..more.len() {
        let mut fewer = more.clone();
        let command = fewer.remove(left_out);
        let refused = checked(&fewer).unwrap_err().to_string();
        assert!(refused.contains(&command[1..]), "{command}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_as_one_server() {
    let cluster = RedisCluster::start(0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut options = RedisOptions::new(cluster.url());
    options.timeout = Duration::from_secs(20);
    let store = TranscriptStore::on_redis(folder.path(), &options, Arc::new(Still::default())).unwrap();
    store.check_writable().unwrap();
    for session in ["a", "b", "c"] {
        let opened = store.open(&id(session), Arc::new(RecordAll)).unwrap();
        for event in turn(1, 0) {
            opened.journal.append(&event);
        }
        opened.journal.close().await.unwrap();
    }
    store.fork(&id("a"), 1, &id("fork")).unwrap();
    assert_eq!(store.list().unwrap().sessions.len(), 4);
    assert_eq!(store.read(&id("fork")).unwrap().records::<serde_json::Value>().count(), 5);
    store.remove(&id("fork")).unwrap();
    store.remove(&id("a")).unwrap();
    assert_eq!(store.list().unwrap().sessions.len(), 2);
}
