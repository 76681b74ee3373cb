//! Forks, forks of forks, and what may be removed.

use std::fs;
use std::sync::Arc;

use flow::ports::{Journal as _, JournalError};
use tidegate_store::{RecordAll, SpawnedBy, TranscriptError};

use super::{Place, error, id, turn};

/// A session with three turns, a fork after the second with a turn of its own, and a fork of that after its first and its third turn.
pub(crate) async fn family(place: &Place) {
    place.add_turns("root", 1..=3).await;
    place.store.fork(&id("root"), 2, &id("child")).unwrap();
    place.add_turns("child", 3..=3).await;
    place.store.fork(&id("child"), 1, &id("early")).unwrap();
    place.store.fork(&id("child"), 3, &id("late")).unwrap();
}

#[tokio::test]
async fn a_fork_shares_the_records_of_its_parents_and_copies_none() {
    let place = Place::start();
    family(&place).await;
    let root = place.listing("root");
    assert_eq!(root.len(), 15);
    // The third turn of the child has the numbers of its parent's, and other content.
    assert_eq!(place.listing("child"), root);
    assert_ne!(place.records("child")[12], place.records("root")[12]);
    assert_eq!(place.records("child")[..10], place.records("root")[..10]);
    assert_eq!(place.records("early"), place.records("root")[..5]);
    assert_eq!(place.records("late"), place.records("child"));
    let own: Vec<usize> = ["root", "child", "early", "late"].iter().map(|one| place.lines(one).len()).collect();
    assert_eq!(own, [16, 6, 1, 1], "with the header");

    let opened = place.open("early");
    assert_eq!((opened.records, opened.next_event), (5, 5));
    let parent = opened.header.parent.clone().unwrap();
    assert_eq!((parent.thread_id.as_str(), parent.turn, parent.through, parent.event), ("child", 1, 4, 4));
    opened.journal.close().await.unwrap();
    place.add_turns("early", 2..=2).await;
    assert_eq!(place.listing("early"), root[..10]);
    assert_eq!(place.records("early")[7]["thread_id"], "early");
}

/// The thread of a child agent names what started it, from its creation on, and shares no record with it.
#[tokio::test]
async fn the_thread_of_a_child_agent_names_its_parent() {
    let place = Place::start();
    family(&place).await;
    let by = SpawnedBy::new(&id("root"), &flow::CallId::new("call-1"), "helper");
    let opened = place.store.open_child(&id("spawned"), Arc::new(RecordAll), Some(by.clone())).unwrap();
    assert_eq!((opened.is_new, opened.next_event, opened.records), (true, 0, 0));
    opened.journal.close().await.unwrap();
    place.add_turns("spawned", 1..=1).await;
    let header = place.store.read(&id("spawned")).unwrap().header().clone();
    assert_eq!((header.spawned_by.as_ref(), &header.parent), (Some(&by), &None));
    let listed = place.store.list().unwrap().sessions;
    assert_eq!(listed.iter().filter(|one| one.header.spawned_by.is_some()).count(), 1);
    // Of one that exists, nothing changes; and a parent can be removed: nothing of the child is in it.
    let opened = place.store.open_child(&id("early"), Arc::new(RecordAll), Some(by)).unwrap();
    assert_eq!(opened.header.spawned_by, None);
    opened.journal.close().await.unwrap();
}

#[tokio::test]
async fn a_fork_needs_the_end_of_a_turn_a_parent_and_a_new_id() {
    let place = Place::start();
    family(&place).await;
    let unfinished = place.open("root");
    unfinished.journal.append(&turn(4, 15)[0]);
    let no_turn = |turn, finished| TranscriptError::NoTurn { id: id("root"), turn, finished };
    for number in [0, 4, 5] {
        assert_eq!(error(place.store.fork(&id("root"), number, &id("new"))), no_turn(number, 3));
    }
    assert_eq!(error(place.store.fork(&id("root"), 1, &id("late"))), TranscriptError::Exists { id: id("late") });
    let itself = error(place.store.fork(&id("root"), 1, &id("root")));
    assert!(matches!(itself, TranscriptError::Journal(JournalError::Locked { .. })), "{itself}");
    assert!(matches!(error(place.store.fork(&id("none"), 1, &id("new"))), TranscriptError::Missing { .. }));
    assert!(!place.store.exists(&id("new")).unwrap());
    // The parent is open for writing: it can be forked all the same.
    place.store.fork(&id("root"), 3, &id("new")).unwrap();
    assert_eq!(place.listing("new").len(), 15);
}

#[tokio::test]
async fn a_session_with_forks_is_not_removed() {
    let place = Place::start();
    family(&place).await;
    let forked = |one: &str, forks: &[&str]| TranscriptError::Forked {
        id: id(one),
        forks: forks.iter().map(|fork| id(fork)).collect(),
    };
    assert_eq!(error(place.store.remove(&id("root"))), forked("root", &["child"]));
    assert_eq!(error(place.store.remove(&id("child"))), forked("child", &["early", "late"]));
    for one in ["late", "early", "child", "root"] {
        place.store.remove(&id(one)).unwrap();
        assert!(matches!(error(place.store.remove(&id(one))), TranscriptError::Missing { .. }));
    }
    assert_eq!(fs::read_dir(place.store.root()).unwrap().count(), 0);
    assert!(place.open("root").is_new);
}

#[tokio::test]
async fn forks_in_a_circle_are_refused_and_can_be_removed() {
    let place = Place::start();
    family(&place).await;
    // By hand: `child` continues `late`, which continues `child`; `early` continues it as well.
    let mut lines = place.lines("child");
    lines[0] = lines[0].replace("root", "late");
    place.write_lines("child", &lines);
    for one in ["child", "late", "early"] {
        assert!(error(place.store.read(&id(one))).to_string().contains("it is a fork of itself, or one of"), "{one}");
    }
    assert_eq!(place.store.list().unwrap().problems.len(), 3);
    let forked = TranscriptError::Forked { id: id("child"), forks: vec![id("early")] };
    assert_eq!(error(place.store.remove(&id("child"))), forked, "that one is no parent");
    for one in ["early", "child", "late"] {
        place.store.remove(&id(one)).unwrap();
    }
    assert_eq!(place.listing("root").len(), 15);
}
