//! Continuing, reading, and following a session that another process writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flow::ports::Journal as _;
use tidegate_store::{JsonRecord, TranscriptError};

use super::{Place, error, id, turn};

#[tokio::test]
async fn a_session_continues_where_it_was() {
    let place = Place::start();
    let opened = place.open("a");
    assert!(opened.is_new);
    assert_eq!((opened.next_event, opened.records, opened.torn_bytes), (0, 0, 0));
    // Two events are not recorded: the number of the event and that of its record are different from here on.
    for event in turn(1, 2) {
        opened.journal.append(&event);
    }
    opened.journal.close().await.unwrap();

    let opened = place.open("a");
    assert!(!opened.is_new);
    assert_eq!((opened.next_event, opened.records, opened.torn_bytes), (7, 5, 0));
    assert_eq!((opened.header.thread_id.as_str(), &opened.header.parent), ("a", &None));
    opened.journal.close().await.unwrap();
    place.add_turns("a", 2..=3).await;
    let listing = place.listing("a");
    assert_eq!(listing.len(), 15);
    assert_eq!(listing[4..7], ["4/6/turn_finish", "5/7/turn_start", "6/8/cognition_in"]);
}

#[test]
fn a_session_that_does_not_exist_is_an_error() {
    let place = Place::start();
    let missing = error(place.store.read(&id("a")));
    assert!(matches!(&missing, TranscriptError::Missing { id, .. } if id.as_str() == "a"), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_gets_every_record_while_another_process_writes_and_ends_when_told() {
    let place = Place::start();
    let opened = place.open("a");
    let (ends, other) = (Arc::new(AtomicBool::new(false)), place.other());
    let until = Arc::clone(&ends);
    let follower = std::thread::spawn(move || {
        let records = other.read(&id("a")).unwrap().records::<JsonRecord>();
        // It is stopped when all is written, and it reads once more after that.
        let mut last = false;
        let goes_on = || !std::mem::replace(&mut last, until.load(Ordering::SeqCst));
        records.follow(goes_on).map(|entry| entry.unwrap().seq).collect::<Vec<_>>()
    });
    let mut next = 0;
    for number in 1..=40 {
        for event in turn(number, next) {
            next = event.seq + 1;
            opened.journal.append(&event);
        }
        if number % 8 == 0 {
            opened.journal.durable().await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    opened.journal.close().await.unwrap();
    ends.store(true, Ordering::SeqCst);
    let followed = follower.join().unwrap();
    assert_eq!(followed, (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn records_are_typed_by_whoever_reads_them() {
    #[derive(serde::Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        name: String,
    }
    let place = Place::start();
    place.add_turns("a", 1..=1).await;
    let kinds = place.store.read(&id("a")).unwrap().records::<Kind>().map(|entry| entry.unwrap().record.name);
    let expected = ["turn_start", "cognition_in", "cognition_out_delta", "notice", "turn_finish"];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}
