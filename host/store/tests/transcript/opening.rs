//! Opening for writing: new and old sessions, locks, and what crashes and others leave.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use turn::rebuild::Rebuild;

use flow::ports::{Journal as _, JournalError};
use tidegate_store::{RecordAll, TranscriptError};

use super::{Place, error, id, turn};

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    let place = Place::new();
    let opened = place.open("a");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = place.store.folder(&id("a"));
    assert_eq!([mode(place.store.root()), mode(&folder)], [0o700; 2]);
    assert_eq!([mode(&place.path("a")), mode(&folder.join("lock"))], [0o600; 2]);
    opened.journal.close().await.unwrap();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "the lock is removed");
}

#[tokio::test]
async fn any_id_has_a_folder_of_its_own() {
    let place = Place::new();
    let long = "x".repeat(128);
    let ids = ["a", "A", "a/b", "a_b", "../a", ".a", "-a", "ä", " ", "a b", ".", "..", "a.b-c_1", "A@1", &long];
    let mut folders: Vec<_> = ids.iter().map(|one| place.store.folder(&id(one))).collect();
    for (one, folder) in ids.iter().zip(&folders) {
        place.add_turns(one, 1..=1).await;
        assert_eq!(place.open(one).header.thread_id, *one);
        assert_eq!(folder.parent(), Some(place.store.root()), "{one}");
        let name = folder.file_name().unwrap().to_str().unwrap().to_lowercase();
        assert!(name.is_ascii() && !name.starts_with('.'), "{name}");
    }
    for (one, name) in [("a", "a"), ("a.b-c_1", "a.b-c_1"), (&long, &long)] {
        assert_eq!(place.store.folder(&id(one)).file_name().unwrap(), name);
    }
    folders.sort_unstable_by_key(|folder| folder.to_str().unwrap().to_lowercase());
    folders.dedup_by_key(|folder| folder.to_str().unwrap().to_lowercase());
    assert_eq!(folders.len(), ids.len(), "also where names of files have no case");
}

#[tokio::test]
async fn case_12_a_second_writer_is_refused_with_the_name_of_the_first_and_can_read() {
    let place = Place::new();
    let opened = place.open("a");
    for event in turn(1, 0) {
        opened.journal.append(&event);
    }
    opened.journal.durable().await.unwrap();
    let other = place.other();
    let refused = error(other.open(&id("a"), Arc::new(RecordAll)));
    assert_eq!(refused, JournalError::Locked { by: "first process".to_owned() }.into());
    assert_eq!(other.read(&id("a")).unwrap().records::<tidegate_store::JsonRecord>().count(), 5);
    assert_eq!(other.list().unwrap().sessions[0].owner.as_deref(), Some("first process"));
    for refused in [error(other.repair(&id("a"), Rebuild::check)), error(other.remove(&id("a")))] {
        assert!(matches!(refused, TranscriptError::Journal(JournalError::Locked { .. })), "{refused}");
    }
    opened.journal.close().await.unwrap();
    other.open(&id("a"), Arc::new(RecordAll)).unwrap().journal.close().await.unwrap();
}

#[tokio::test]
async fn a_last_line_that_is_cut_anywhere_is_removed_and_reported() {
    let place = Place::new();
    place.add_turns("a", 1..=2).await;
    let whole = fs::read(place.path("a")).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..whole.len() {
        fs::write(place.path("a"), &whole[..cut]).unwrap();
        let before = place.store.read(&id("a")).unwrap();
        let mut records = before.records::<tidegate_store::JsonRecord>();
        assert_eq!(records.by_ref().filter(Result::is_ok).count(), 9, "a reader leaves it out");
        assert_eq!(records.unread_bytes(), (cut - last) as u64);

        let opened = place.open("a");
        assert_eq!(opened.torn_bytes, (cut - last) as u64);
        assert_eq!((opened.records, opened.next_event), (9, 9));
        assert_eq!(fs::read(place.path("a")).unwrap(), whole[..last]);
        opened.journal.append(&turn(2, 5)[4]);
        opened.journal.close().await.unwrap();
        assert_eq!(fs::read(place.path("a")).unwrap(), whole, "it continues after the last whole line");
    }
}

#[tokio::test]
async fn a_damaged_line_is_refused_with_its_number_and_left_as_it_is() {
    let place = Place::new();
    place.add_turns("a", 1..=2).await;
    let whole = place.lines("a");
    let cases: [(u64, &[u8], &str); 7] = [
        (3, b"", "it is not a record: EOF"),
        (2, b"\0\0\0\0", "it is not a record: expected value"),
        (4, br#"{"seq":2,"event":2,"type":"notice""#, "it is not a record: EOF"),
        (4, br#"{"event":2,"type":"notice"}"#, "it is not a record: missing field `seq`"),
        (5, br#"{"seq":2,"event":2,"type":"notice"}"#, "record 3 is expected here, and this is record 2"),
        (11, br#"{"seq":10,"event":9,"type":"notice"}"#, "record 9 is expected here, and this is record 10"),
        (6, b"{\"seq\":4,\"event\":4,\"type\":\"a\xff\"}", "it is not UTF-8"),
    ];
    for (number, line, reason) in cases {
        let mut lines: Vec<&[u8]> = whole.iter().map(String::as_bytes).collect();
        lines[usize::try_from(number).unwrap() - 1] = line;
        let damaged = [lines.join(&b'\n'), b"\n".to_vec()].concat();
        fs::write(place.path("a"), &damaged).unwrap();
        let opening = error(place.try_open("a"));
        let reading = place.store.read(&id("a")).unwrap().records::<tidegate_store::JsonRecord>();
        let reading = reading.filter_map(Result::err).collect::<Vec<_>>();
        assert_eq!(reading, std::slice::from_ref(&opening), "it ends after an error");
        let TranscriptError::Journal(JournalError::Invalid { path, line, reason: found }) = &opening else {
            panic!("{opening}")
        };
        assert_eq!((path.as_str(), *line), (place.path("a").to_str().unwrap(), number));
        assert!(found.starts_with(reason), "{found}");
        assert_eq!(fs::read(place.path("a")).unwrap(), damaged);
        assert!(!place.store.folder(&id("a")).join("lock").exists());
    }
}

#[tokio::test]
async fn a_file_of_another_format_is_refused() {
    let place = Place::new();
    place.add_turns("a", 1..=1).await;
    let header = place.lines("a")[0].clone();
    let cases = [
        (String::new(), "line 1: the header is missing"),
        ("{}\n".to_owned(), "line 1: it is not a header: missing field `format`"),
        (header.replace("tidegate-transcript", "other") + "\n", r#"the format is "other""#),
        (
            header.replace(r#""version":1"#, r#""version":2"#) + "\n",
            "has format version 2, and this program knows version 1",
        ),
        (header.replace("thread_id", "thread") + "\n", "missing field `thread_id`"),
    ];
    for (content, reason) in cases {
        fs::write(place.path("a"), &content).unwrap();
        for found in [error(place.try_open("a")), error(place.store.read(&id("a")))] {
            assert!(found.to_string().contains(reason), "{found}");
        }
        assert_eq!(fs::read_to_string(place.path("a")).unwrap(), content);
    }
    let later = header.replace('}', r#","later":[1]}"#) + "\n";
    fs::write(place.path("a"), later).unwrap();
    assert_eq!(place.open("a").records, 0, "unknown keys are ignored");
}

#[tokio::test]
async fn a_file_that_is_removed_or_a_lock_that_is_lost_ends_the_session() {
    for (removed, reason) in [("transcript.jsonl", "it was removed or replaced"), ("lock", "its lock was removed")] {
        let place = Place::new();
        let opened = place.open("a");
        opened.journal.append(&turn(1, 0)[0]);
        opened.journal.durable().await.unwrap();
        fs::remove_file(place.store.folder(&id("a")).join(removed)).unwrap();
        opened.journal.append(&turn(1, 0)[4]);
        let failed = opened.journal.durable().await.unwrap_err();
        assert!(failed.to_string().contains(reason), "{failed}");
        assert_eq!(opened.journal.close().await, Err(failed));
        place.open("a").journal.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_folder_under_the_name_of_another_session_is_refused() {
    let place = Place::new();
    place.add_turns("a", 1..=1).await;
    fs::rename(place.store.folder(&id("a")), place.store.folder(&id("b"))).unwrap();
    let refused = [
        error(place.try_open("b")),
        error(place.store.read(&id("b"))),
        error(place.store.repair(&id("b"), Rebuild::check)),
    ];
    for found in refused.into_iter().chain(place.store.list().unwrap().problems) {
        assert!(found.to_string().contains(r#"it belongs to the session "a", and its folder to "b""#), "{found}");
    }
    assert!(place.store.list().unwrap().sessions.is_empty());
}

#[test]
fn what_is_not_a_file_is_not_opened() {
    let place = Place::new();
    fs::create_dir_all(place.path("a")).unwrap();
    assert!(error(place.try_open("a")).to_string().contains("it is not a file"));
    let file = place.folder.path().join("file");
    fs::write(&file, "").unwrap();
    fs::create_dir_all(place.store.folder(&id("b"))).unwrap();
    std::os::unix::fs::symlink(&file, place.path("b")).unwrap();
    assert!(error(place.try_open("b")).to_string().contains("it is not a file"));
    assert_eq!(fs::read(&file).unwrap(), b"");
}
