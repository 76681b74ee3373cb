//! Repairs of damaged transcripts.

use std::fs;
use turn::rebuild::Rebuild;

use flow::ports::Journal as _;
use tidegate_store::TranscriptError;

use super::{Place, error, id};

#[tokio::test]
async fn a_repair_keeps_every_valid_record_and_a_copy_of_the_damaged_file() {
    let place = Place::new();
    place.add_turns("a", 1..=2).await;
    let whole = place.records("a");
    let mut lines = place.lines("a");
    lines[3] = "\0\0".to_owned();
    lines[6] = r#"{"seq":5,"event":5}"#.to_owned();
    // Digits that a conversion would change, and a number that is already wrong.
    lines[8] = lines[8]
        .replace(r#""text":"#, r#""cost":0.10000000000000000555, "text":"#)
        .replace(r#""seq":7"#, r#""seq" : 70"#);
    place.write_lines("a", &lines);
    let damaged = fs::read(place.path("a")).unwrap();

    let repair = place.store.repair(&id("a"), Rebuild::check).unwrap();
    assert_eq!((repair.kept, repair.renumbered, repair.new_header), (8, 6, false));
    let dropped: Vec<_> = repair.dropped.iter().map(|line| (line.line, line.bytes)).collect();
    assert_eq!(dropped, [(4, 2), (7, 19)]);
    assert!(repair.dropped[1].reason.contains("missing field `type`"), "{:?}", repair.dropped);
    let copy = place.store.folder(&id("a")).join("transcript.damaged-1.jsonl");
    assert_eq!(repair.copy.as_deref(), Some(copy.as_path()));
    assert_eq!(fs::read(&copy).unwrap(), damaged);

    let kept: Vec<u64> = place.records("a").iter().map(|record| record["event"].as_u64().unwrap()).collect();
    assert_eq!(kept, [0, 1, 3, 4, 6, 7, 8, 9]);
    assert_eq!(place.listing("a").len(), 8);
    assert!(place.lines("a")[6].contains(r#""cost":0.10000000000000000555, "text":"#));
    assert!(place.lines("a")[6].contains(r#""seq" : 5"#));
    assert_eq!(place.records("a")[7]["payload"], whole[9]["payload"]);
    place.add_turns("a", 3..=3).await;

    // Nothing is wrong any more, and nothing is changed.
    let (before, again) = (fs::read(place.path("a")).unwrap(), place.store.repair(&id("a"), Rebuild::check).unwrap());
    assert_eq!((again.kept, again.copy, again.dropped.len()), (13, None, 0));
    assert_eq!(fs::read(place.path("a")).unwrap(), before);
}

#[tokio::test]
async fn a_damaged_header_is_written_again_and_a_cut_line_is_dropped() {
    let place = Place::new();
    place.add_turns("a", 1..=1).await;
    let whole = fs::read_to_string(place.path("a")).unwrap();
    for header in ["", "{\n", "{\"format\":\"tidegate-transcript\",\"version\":1}\n"] {
        let lines = &whole[whole.find('\n').unwrap() + 1..whole.len() - 5];
        fs::write(place.path("a"), format!("{header}{lines}")).unwrap();
        let repair = place.store.repair(&id("a"), Rebuild::check).unwrap();
        assert!(repair.new_header);
        // The first line is that of the header, whatever is there.
        assert_eq!((repair.kept, repair.dropped.len()), (4, 1 + usize::from(!header.is_empty())));
        assert_eq!(place.listing("a").len(), 4);
        let opened = place.open("a");
        assert_eq!(opened.header.thread_id, "a");
        opened.journal.close().await.unwrap();
    }
    assert_eq!(fs::read_dir(place.store.folder(&id("a"))).unwrap().count(), 4, "three copies and the transcript");
}

#[tokio::test]
async fn a_fork_keeps_what_is_left_of_its_repaired_parent() {
    let place = Place::new();
    place.add_turns("a", 1..=3).await;
    place.store.fork(&id("a"), 2, &id("b")).unwrap();
    place.add_turns("b", 3..=3).await;
    let mut lines = place.lines("a");
    lines[2] = "damaged".to_owned();
    place.write_lines("a", &lines);
    place.store.repair(&id("a"), Rebuild::check).unwrap();
    let events: Vec<u64> = place.records("b").iter().map(|record| record["event"].as_u64().unwrap()).collect();
    assert_eq!(events, [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    assert_eq!(place.open("b").records, 15, "its own records keep their numbers");
}

#[tokio::test]
async fn a_newer_format_is_not_damage() {
    let place = Place::new();
    place.add_turns("a", 1..=1).await;
    let mut lines = place.lines("a");
    lines[0] = lines[0].replace(r#""version":1"#, r#""version":2"#);
    place.write_lines("a", &lines);
    assert!(matches!(
        error(place.store.repair(&id("a"), Rebuild::check)),
        TranscriptError::Version { found: 2, known: 1, .. }
    ));
    assert_eq!(place.lines("a"), lines);
    assert!(matches!(error(place.store.repair(&id("b"), Rebuild::check)), TranscriptError::Missing { .. }));
}
