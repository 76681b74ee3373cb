//! What is particular to files: permissions, damage, and files that others remove or replace.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flow::ports::{SessionState, StateAdmin as _, StateChange, StateError, StateLifetime, StateStore as _};
use system::SystemClock;
use tidegate_store::{DiskStore, StoreOptions};

use crate::support::{
    DEFAULT, PATIENCE, TestClock, Writer, check_what_a_killed_writer_left, listed, plugin, save, session, set,
};

fn store(folder: &Path, clock: &Arc<TestClock>) -> DiskStore {
    DiskStore::new(folder, StoreOptions::default(), clock.clone()).unwrap()
}

async fn open(folder: &Path, clock: &Arc<TestClock>) -> Result<Arc<dyn SessionState>, StateError> {
    store(folder, clock).open(&session("a")).await
}

/// The one file of state in a folder.
fn file_in(folder: &Path) -> PathBuf {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "state")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// A folder with the state of one closed session.
async fn saved() -> (tempfile::TempDir, Arc<TestClock>, PathBuf) {
    let (folder, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
    let state = open(folder.path(), &clock).await.unwrap();
    // Several flights, so that the file has older pages as well.
    for round in 0..5 {
        let changes = (0..20).map(|key| set(&clock, &format!("key-{key}"), &format!("{round}").repeat(200), DEFAULT));
        save(&*state, "notes", changes.collect()).await;
    }
    state.close(PATIENCE).await.unwrap();
    let path = file_in(folder.path());
    (folder, clock, path)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    let (parent, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
    let folder = parent.path().join("state/of sessions");
    let state = open(&folder, &clock).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "key", "x", DEFAULT)]).await;
    assert_eq!(mode(&folder), 0o700);
    let mut modes: Vec<u32> = fs::read_dir(&folder).unwrap().map(|entry| mode(&entry.unwrap().path())).collect();
    modes.sort_unstable();
    assert_eq!(modes, [0o600, 0o600, 0o700], "a file, its lock, and the folder of the process that has it");
    state.close(PATIENCE).await.unwrap();
    assert_eq!(mode(&file_in(&folder)), 0o600);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "the lock is removed");
}

#[tokio::test]
async fn a_session_that_keeps_nothing_leaves_no_file() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
    let state = open(folder.path(), &clock).await.unwrap();
    state.turn_started();
    assert!(listed(&*state, "notes").await.is_empty());
    save(&*state, "notes", vec![StateChange::Delete("key".to_owned()), StateChange::Clear]).await;
    state.turn_ended();
    state.close(PATIENCE).await.unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let state = open(folder.path(), &clock).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "key", "x", DEFAULT)]).await;
    save(&*state, "notes", vec![StateChange::Delete("key".to_owned())]).await;
    state.close(PATIENCE).await.unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left of what was deleted");
}

#[tokio::test]
async fn a_writer_that_is_killed_at_any_time_leaves_whole_batches() {
    let folder = tempfile::tempdir().unwrap();
    let store = DiskStore::new(folder.path(), StoreOptions::default(), Arc::new(SystemClock)).unwrap();
    for batches in 1..8 {
        let mut writer = Writer::start(&["disk", folder.path().to_str().unwrap()]);
        (0..batches).for_each(|_| writer.wait_for_a_batch());
        let last = writer.kill();
        // The list does not need the lease, and reads what a crash has left.
        let list = store.sessions().await.unwrap();
        assert!(list.problems.is_empty(), "{:?}", list.problems);
        assert_eq!((list.sessions.len(), list.sessions[0].owner.as_deref()), (1, None));
        let state = store.open(&session("killed")).await.unwrap();
        check_what_a_killed_writer_left(&*state, last).await;
        state.close(PATIENCE).await.unwrap();
    }
}

/// Opens and reads the damaged file: the error names the file, or nothing is missing.
async fn check_damaged(folder: &Path, clock: &Arc<TestClock>, path: &Path, expected: &[String], damage: &str) -> bool {
    let opened = open(folder, clock).await;
    let read = match opened {
        Ok(state) => {
            let read = state.load(&plugin("notes")).await;
            drop(state);
            read
        }
        Err(error) => Err(error),
    };
    match read {
        Ok(state) => {
            let found: Vec<String> = state
                .entries
                .iter()
                .map(|entry| format!("{}={}", entry.key, String::from_utf8_lossy(&entry.value)))
                .collect();
            assert!(found == expected, "{damage}: {found:?} is not what was stored");
            false
        }
        Err(StateError::Unreadable { place, cause }) => {
            assert_eq!(place, path.display().to_string(), "{damage}: {cause}");
            true
        }
        Err(other) => panic!("{damage}: {other}"),
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused_by_name_and_never_read_wrongly() {
    let (folder, clock, path) = saved().await;
    let state = open(folder.path(), &clock).await.unwrap();
    let expected = listed(&*state, "notes").await;
    state.close(PATIENCE).await.unwrap();
    let whole = fs::read(&path).unwrap();

    let mut refused = 0;
    for length in [0, 1, 100, 512, 4_096, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let damage = format!("cut after {length} of {} bytes", whole.len());
        assert!(check_damaged(folder.path(), &clock, &path, &expected, &damage).await, "{damage}: nothing was noticed");
    }
    // A byte changes, in every part of the file that has been written.
    let used: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] != 0).collect();
    for at in used.iter().step_by(used.len().div_ceil(150)) {
        let mut bytes = whole.clone();
        bytes[*at] ^= 0x41;
        fs::write(&path, &bytes).unwrap();
        refused += u32::from(check_damaged(folder.path(), &clock, &path, &expected, &format!("byte {at}")).await);
    }
    assert!(refused > 20, "only {refused} changed bytes were noticed");
    fs::write(&path, b"not a database ".repeat(1_000)).unwrap();
    assert!(check_damaged(folder.path(), &clock, &path, &expected, "another format").await);
    assert_eq!(fs::read(&path).unwrap(), b"not a database ".repeat(1_000), "it is left as it was");
    fs::write(&path, &whole).unwrap();
    assert!(!check_damaged(folder.path(), &clock, &path, &expected, "none").await);
}

#[tokio::test]
async fn a_damaged_file_does_not_hide_other_sessions() {
    let (folder, clock, path) = saved().await;
    let store = store(folder.path(), &clock);
    let other = store.open(&session("b")).await.unwrap();
    save(&*other, "notes", vec![set(&clock, "key", "x", DEFAULT)]).await;
    fs::write(&path, b"not a database").unwrap();
    let list = store.sessions().await.unwrap();
    assert_eq!(list.sessions.len(), 1);
    assert!(
        matches!(&list.problems[..], [StateError::Unreadable { place, .. }] if *place == path.display().to_string())
    );
    assert_eq!(store.remove_expired().await.unwrap().removed, 0);
    // The operator can delete it.
    assert!(store.clear(&session("a"), None).await.unwrap());
    assert!(store.sessions().await.unwrap().problems.is_empty());
}

#[tokio::test]
async fn a_file_of_a_later_format_or_of_another_session_is_refused() {
    let (folder, clock, path) = saved().await;
    let database = redb::Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let facts = redb::TableDefinition::<&str, u64>::new("facts");
    transaction.open_table(facts).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = open(folder.path(), &clock).await.map(drop).unwrap_err();
    assert!(matches!(error, StateError::Unreadable { .. }) && error.to_string().contains("format 2"), "{error}");

    let (other, clock, renamed) = saved().await;
    let state = store(other.path(), &clock).open(&session("b")).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "key", "x", DEFAULT)]).await;
    state.close(PATIENCE).await.unwrap();
    let of_b = fs::read_dir(other.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| *path != renamed);
    fs::rename(of_b.unwrap(), &renamed).unwrap();
    let error = open(other.path(), &clock).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("belongs to the session \"b\""), "{error}");
}

#[tokio::test]
async fn a_file_that_is_removed_or_replaced_while_it_is_open_is_reported() {
    let (folder, clock, path) = saved().await;
    let copy = fs::read(&path).unwrap();
    let state = open(folder.path(), &clock).await.unwrap();
    for replace in [false, true] {
        save(&*state, "notes", vec![StateChange::Clear, set(&clock, "old", "x", DEFAULT)]).await;
        fs::remove_file(&path).unwrap();
        if replace {
            fs::write(&path, &copy).unwrap();
        }
        state.apply(&plugin("notes"), vec![set(&clock, "fresh", "x", DEFAULT)].into());
        let lost = state.settle(PATIENCE).await.unwrap_err();
        assert!(matches!(&lost, StateError::Lost { place, .. } if *place == path.display().to_string()), "{lost}");
        let all = vec![StateChange::Clear, set(&clock, "old", "x", DEFAULT), set(&clock, "fresh", "x", DEFAULT)];
        save(&*state, "notes", all).await;
        let shown = store(folder.path(), &clock).show(&session("a")).await.unwrap().unwrap();
        assert_eq!(shown.summary.plugins[0].keys, 2);
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(state.load(&plugin("notes")).await, Err(StateError::Lost { .. })));
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = DiskStore::new(&path, StoreOptions::default(), TestClock::new()).map(drop).unwrap_err();
        assert!(error.is_retryable() && error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[tokio::test]
async fn a_folder_that_goes_away_fails_until_it_is_back() {
    let (folder, clock, path) = saved().await;
    let aside = folder.path().with_extension("aside");
    let state = open(folder.path(), &clock).await.unwrap();
    let fresh = store(folder.path(), &clock).open(&session("b")).await.unwrap();
    fs::rename(folder.path(), &aside).unwrap();
    fresh.apply(&plugin("notes"), vec![set(&clock, "key", "x", StateLifetime::Session)].into());
    let error = fresh.settle(Duration::ZERO).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    fs::rename(&aside, folder.path()).unwrap();
    fresh.settle(PATIENCE).await.unwrap();
    assert_eq!(listed(&*fresh, "notes").await, ["key=x"]);
    assert!(path.exists());
    drop(state);
}

#[tokio::test]
async fn only_files_that_were_not_written_for_long_are_looked_at_for_expired_sessions() {
    // By the clock of its writer its session was active long ago.
    let (folder, _, path) = saved().await;
    let store = DiskStore::new(folder.path(), StoreOptions::default(), Arc::new(SystemClock)).unwrap();
    assert_eq!(store.remove_expired().await.unwrap().removed, 0, "the file was just written");
    let written = |path: &Path, days: u64| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60)).unwrap();
    };
    written(&path, 31);
    let swept = store.remove_expired().await.unwrap();
    assert_eq!((swept.removed, swept.left, swept.pause_days), (0, 1, Some(31)), "the clock may be wrong");
    assert!(path.exists());
    let other = folder.path().join("other.state");
    fs::write(&other, "").unwrap();
    written(&other, 2);
    assert_eq!(store.remove_expired().await.unwrap().removed, 1);
    assert!(!path.exists());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn of_many_open_sessions_a_few_have_an_open_file() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
    let store = store(folder.path(), &clock);
    let mut open = Vec::new();
    for number in 0..100 {
        let state = store.open(&session(&format!("s{number}"))).await.unwrap();
        save(&*state, "notes", vec![set(&clock, "key", &number.to_string(), DEFAULT)]).await;
        open.push(state);
    }
    let files = || {
        let all = fs::read_dir("/proc/self/fd").unwrap().filter_map(|one| fs::read_link(one.unwrap().path()).ok());
        all.filter(|file| file.starts_with(folder.path())).count()
    };
    // One of them locks all sessions.
    assert!(files() <= 64 + 1, "{}", files());
    for (number, state) in open.iter().enumerate() {
        let stored = state.load(&plugin("notes")).await.unwrap();
        assert_eq!(stored.entries[0].value.as_ref(), number.to_string().as_bytes());
        save(&**state, "notes", vec![set(&clock, "key", "again", DEFAULT)]).await;
    }
    assert!(files() <= 64 + 1, "{}", files());
    for state in open {
        state.close(PATIENCE).await.unwrap();
    }
    assert_eq!(files(), 0);
    assert_eq!(store.sessions().await.unwrap().sessions.len(), 100);
}
