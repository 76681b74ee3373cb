//! Reading: typed records, and following a session that another process writes.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flow::ports::Journal as _;
use serde_json::json;
use tidegate_store::{JsonRecord, TranscriptError};

use super::{Place, error, id, turn};

#[tokio::test]
async fn records_have_what_the_event_has_and_where_they_are() {
    let place = Place::new();
    place.add_turns("a", 1..=1).await;
    let entries: Vec<_> = place.store.read(&id("a")).unwrap().records::<JsonRecord>().map(Result::unwrap).collect();
    let record = json!({
        "seq": 2, "event": 2, "ts": 1002, "thread_id": "a", "turn": 1, "step": 1, "attempt": 1,
        "type": "cognition_out_delta", "payload": {"text": "answer 1, part ä😀", "chunk_index": 0},
    });
    assert_eq!(entries[2].record, record);
    assert_eq!((entries[2].line, entries[2].seq, entries[2].event), (4, 2, 2));
    assert_eq!(*entries[2].path, *place.path("a"));
}

#[test]
fn a_session_that_does_not_exist_is_an_error() {
    let place = Place::new();
    let missing = error(place.store.read(&id("a")));
    assert!(matches!(&missing, TranscriptError::Missing { id, .. } if id.as_str() == "a"), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_gets_every_record_while_another_process_writes_and_ends_when_told() {
    let place = Place::new();
    let opened = place.open("a");
    let (ends, other) = (Arc::new(AtomicBool::new(false)), place.other());
    let until = Arc::clone(&ends);
    let follower = std::thread::spawn(move || {
        let records = other.read(&id("a")).unwrap().records::<JsonRecord>();
        // It is told to end when all is written, and it looks once more after that.
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
async fn a_follower_waits_for_the_rest_of_a_line_and_notices_a_replaced_file() {
    let place = Place::new();
    place.add_turns("a", 1..=1).await;
    let whole = fs::read(place.path("a")).unwrap();
    let last = turn(2, 5);
    let opened = place.open("a");
    opened.journal.append(&last[0]);
    opened.journal.close().await.unwrap();
    let longer = fs::read(place.path("a")).unwrap();
    let line = &longer[whole.len()..];

    fs::write(place.path("a"), &whole).unwrap();
    let append =
        |bytes: &[u8]| fs::OpenOptions::new().append(true).open(place.path("a")).unwrap().write_all(bytes).unwrap();
    append(&line[..10]);
    let mut asked = 0;
    let follower = place.store.read(&id("a")).unwrap().records::<JsonRecord>().follow(|| {
        asked += 1;
        match asked {
            // A writer died there; the next owner cuts the line and writes its own.
            1 => fs::OpenOptions::new().write(true).open(place.path("a")).unwrap().set_len(whole.len() as u64).unwrap(),
            2 => append(&line[..20]),
            3 => append(&line[20..]),
            4 => drop(fs::remove_file(place.path("a")).and_then(|()| fs::write(place.path("a"), &longer))),
            _ => panic!("it ends with the error"),
        }
        true
    });
    let found: Vec<_> = follower.collect();
    assert_eq!(found.len(), 7);
    assert_eq!(found[5].as_ref().unwrap().record["type"], "turn_start");
    assert!(found[6].as_ref().unwrap_err().to_string().contains("read it again from the start"), "{:?}", found[6]);
}

#[tokio::test]
async fn records_are_typed_by_whoever_reads_them() {
    #[derive(serde::Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        name: String,
    }
    let place = Place::new();
    place.add_turns("a", 1..=1).await;
    let kinds = place.store.read(&id("a")).unwrap().records::<Kind>().map(|entry| entry.unwrap().record.name);
    let expected = ["turn_start", "cognition_in", "cognition_out_delta", "notice", "turn_finish"];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}
