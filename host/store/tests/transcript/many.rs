//! Many sessions that are open at once: neither a thread nor an open file for each.

use std::fs;
use std::path::Path;

use flow::ports::Journal as _;

use super::{Place, id, turn};

const SESSIONS: u32 = 200;

/// The names of the threads of this process.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok()).collect()
}

/// The open files of this process in a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let files = open.filter_map(|descriptor| fs::read_link(descriptor.unwrap().path()).ok());
    files.filter(|file| file.starts_with(folder)).collect()
}

#[tokio::test]
async fn open_sessions_share_a_few_threads_and_one_descriptor() {
    let place = Place::new();
    let open: Vec<_> = (0..SESSIONS).map(|number| place.open(&format!("s{number}"))).collect();
    for opened in &open {
        for event in turn(1, 0) {
            opened.journal.append(&event);
        }
    }
    for opened in &open {
        opened.journal.durable().await.unwrap();
    }
    let writers = threads().iter().filter(|name| name.trim() == "transcripts").count();
    assert!((1..=8).contains(&writers), "{writers} threads");
    let locks: Vec<bool> =
        files(place.store.root()).iter().map(|file| file.to_string_lossy().contains(".processes")).collect();
    assert_eq!(locks, [true], "between two writes no transcript is open");
    for (number, opened) in open.iter().enumerate() {
        assert!(
            place.other().open(&id(&format!("s{number}")), std::sync::Arc::new(tidegate_store::RecordAll)).is_err()
        );
        opened.journal.close().await.unwrap();
        assert_eq!(place.records(&format!("s{number}")).len(), 5);
    }
    drop(open);
    assert_eq!(files(place.store.root()), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn a_transcript_that_was_replaced_between_two_writes_is_not_written() {
    let place = Place::new();
    let opened = place.open("a");
    opened.journal.append(&turn(1, 0)[0]);
    opened.journal.durable().await.unwrap();
    let other = fs::read(place.path("a")).unwrap();
    fs::rename(place.path("a"), place.folder.path().join("moved")).unwrap();
    fs::write(place.path("a"), &other).unwrap();
    opened.journal.append(&turn(1, 0)[4]);
    let failed = opened.journal.durable().await.unwrap_err();
    assert!(failed.to_string().contains("it was removed or replaced"), "{failed}");
    assert_eq!(fs::read(place.path("a")).unwrap(), other);
}
