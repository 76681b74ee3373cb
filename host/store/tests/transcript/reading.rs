//! Reading: typed records, and following a session that another process writes.

use std::fs;
use std::io::Write as _;

use flow::ports::Journal as _;
use serde_json::json;
use tidegate_store::JsonRecord;

use super::{Place, id, turn};

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
