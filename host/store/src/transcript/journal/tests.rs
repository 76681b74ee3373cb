//! What a journal does when the disk fails: at every byte of a session, at every sync, and by the code that it calls.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod session;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{Durability, Journal as _, JournalError, JournalProgress};
use flow::{Event, EventKind, RunPosition};

use super::FileJournal;
use crate::transcript::appender::{Appender, Sink};
use crate::transcript::{EventFilter, EventPolicy, RecordAll};

/// A disk that fails when it is told to.
#[derive(Clone, Debug)]
struct Disk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    content: Vec<u8>,
    /// What would be left after a loss of power.
    durable: Vec<u8>,
    /// How many bytes it has space for.
    space: usize,
    /// How many syncs succeed.
    syncs: usize,
    cannot_truncate: bool,
    in_place: bool,
}

impl Disk {
    fn new() -> Self {
        let (content, durable) = (Vec::new(), Vec::new());
        let state =
            State { content, durable, space: usize::MAX, syncs: usize::MAX, cannot_truncate: false, in_place: true };
        Self(Arc::new(Mutex::new(state)))
    }

    fn with(change: impl FnOnce(&mut State)) -> Self {
        let disk = Self::new();
        change(&mut disk.0.lock().unwrap());
        disk
    }

    /// The numbers of the events on it. Every line must be complete.
    fn recorded(&self) -> Vec<u64> {
        let state = self.0.lock().unwrap();
        assert!(state.content.is_empty() || state.content.ends_with(b"\n"), "a line has no end");
        let lines = std::str::from_utf8(&state.content).unwrap().lines();
        let records = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let records: Vec<_> = records.collect();
        for (seq, record) in records.iter().enumerate() {
            assert_eq!(record["seq"], seq, "{record}");
        }
        records.iter().map(|record| record["event"].as_u64().unwrap()).collect()
    }
}

impl Sink for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock().unwrap();
        // In small parts, as a disk is allowed to.
        let count = bytes.len().min(64).min(state.space - state.content.len());
        if count == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        state.content.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.syncs == 0 {
            return Err(io::Error::other("the disk is gone"));
        }
        state.syncs -= 1;
        state.durable = state.content.clone();
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.cannot_truncate {
            return Err(io::Error::other("the disk is gone"));
        }
        state.content.truncate(usize::try_from(length).unwrap());
        Ok(())
    }

    fn check_in_place(&self) -> Result<(), String> {
        if self.0.lock().unwrap().in_place { Ok(()) } else { Err("it was removed".to_owned()) }
    }
}

fn journal(sink: impl Sink + 'static, policy: impl EventPolicy + 'static) -> FileJournal {
    let appender = Appender::new(Box::new(sink), PathBuf::from("a/transcript.jsonl"), 0);
    FileJournal::start(Arc::new(policy), "a", 0, appender).unwrap()
}

/// Every fourth event is critical.
fn event(number: u64) -> Event {
    let kind = match number % 4 {
        3 => EventKind::Notice { message: format!("{number}") },
        index => EventKind::CognitionOutDelta {
            text: format!("{number}\n"),
            index: u32::try_from(index).unwrap(),
            is_final: false,
        },
    };
    Event::new(number, 0, RunPosition::default(), kind)
}

/// Appends events and waits after each critical one. Returns the highest number that was acknowledged, counted from 1, and how it
/// ended.
async fn run(journal: &FileJournal, events: u64) -> (u64, Result<(), JournalError>) {
    let notified = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&notified);
    journal.watch(Box::new(move |progress| {
        if let JournalProgress::Durable(event) = progress {
            assert!(seen.fetch_max(event + 1, Ordering::SeqCst) <= event + 1);
        }
    }));
    let (mut acknowledged, mut outcome) = (0, Ok(()));
    for number in 0..events {
        if journal.append(&event(number)) == Durability::Critical && outcome.is_ok() {
            outcome = journal.durable().await;
            if outcome.is_ok() {
                acknowledged = number + 1;
                assert_eq!(notified.load(Ordering::SeqCst), acknowledged, "the watcher learns it first");
            }
        }
    }
    let closed = journal.close().await;
    assert!(notified.load(Ordering::SeqCst) >= acknowledged);
    assert!(outcome.is_ok() || closed == outcome, "a failed journal stays so");
    (notified.load(Ordering::SeqCst), outcome.and(closed))
}

#[tokio::test]
async fn a_full_disk_at_any_byte_loses_nothing_that_was_acknowledged() {
    let disk = Disk::new();
    let (all, outcome) = run(&journal(disk.clone(), RecordAll), 16).await;
    assert_eq!((all, outcome), (16, Ok(())));
    let size = disk.0.lock().unwrap().content.len();
    assert_eq!(disk.recorded(), (0..16).collect::<Vec<_>>());
    let full = || JournalError::Full { path: "a/transcript.jsonl".to_owned() };
    for space in 0..size {
        let disk = Disk::with(|state| state.space = space);
        let (acknowledged, outcome) = run(&journal(disk.clone(), RecordAll), 16).await;
        assert_eq!(outcome, Err(full()), "with {space} bytes");
        let recorded = disk.recorded();
        assert_eq!(recorded, (0..recorded.len() as u64).collect::<Vec<_>>());
        assert!(recorded.len() as u64 >= acknowledged, "with {space} bytes: {acknowledged}, {recorded:?}");
        assert!(acknowledged <= 12, "the last is critical and had no space");
    }
}

#[tokio::test]
async fn what_is_acknowledged_is_durable_at_that_moment() {
    let disk = Disk::new();
    let journal = journal(disk.clone(), RecordAll);
    let (seen, watched) = (disk.clone(), Arc::new(AtomicU64::new(0)));
    let survives = move |number: u64| {
        let state = seen.0.lock().unwrap();
        let durable = std::str::from_utf8(&state.durable).unwrap();
        assert!(durable.lines().any(|line| line.contains(&format!("\"event\":{number},"))), "{number}: {durable}");
    };
    let (check, count) = (survives.clone(), Arc::clone(&watched));
    journal.watch(Box::new(move |progress| {
        let JournalProgress::Durable(number) = progress else { panic!("{progress:?}") };
        check(number);
        count.fetch_add(1, Ordering::SeqCst);
    }));
    for number in 0..400 {
        if journal.append(&event(number)) == Durability::Critical && number % 16 == 15 {
            journal.durable().await.unwrap();
            (0..=number).filter(|number| number % 4 == 3).for_each(&survives);
        }
    }
    journal.close().await.unwrap();
    let state = disk.0.lock().unwrap();
    assert_eq!(state.durable, state.content);
    assert!(watched.load(Ordering::SeqCst) >= 25);
}

#[tokio::test]
async fn a_failed_sync_leaves_what_was_durable_before_it() {
    for syncs in 0..4 {
        let disk = Disk::with(|state| state.syncs = syncs);
        let (acknowledged, outcome) = run(&journal(disk.clone(), RecordAll), 16).await;
        assert_eq!(acknowledged, 4 * syncs as u64);
        let Err(JournalError::Unusable { reason, .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(reason, "the disk is gone");
        assert_eq!(disk.recorded(), (0..acknowledged).collect::<Vec<_>>(), "a later sync could leave a hole there");
        let state = disk.0.lock().unwrap();
        assert_eq!(state.content, state.durable);
    }
}

#[tokio::test]
async fn a_disk_that_cannot_even_be_truncated_fails_like_any_other() {
    let disk = Disk::with(|state| (state.space, state.cannot_truncate) = (10, true));
    let (acknowledged, outcome) = run(&journal(disk, RecordAll), 16).await;
    assert!(matches!(outcome, Err(JournalError::Full { .. })), "{outcome:?}");
    assert_eq!(acknowledged, 0);
}

#[tokio::test]
async fn a_file_that_is_gone_acknowledges_nothing() {
    let disk = Disk::with(|state| state.in_place = false);
    let (acknowledged, outcome) = run(&journal(disk, RecordAll), 4).await;
    assert!(
        matches!(&outcome, Err(JournalError::Unusable { reason, .. }) if reason == "it was removed"),
        "{outcome:?}"
    );
    assert_eq!(acknowledged, 0);
}

/// The device that is always full.
struct FullDevice(File);

impl Sink for FullDevice {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn check_in_place(&self) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_error_of_the_system_for_a_full_disk_is_known() {
    let device = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (_, outcome) = run(&journal(FullDevice(device), RecordAll), 4).await;
    assert!(matches!(outcome, Err(JournalError::Full { .. })), "{outcome:?}");
}

/// A policy with a filter that panics.
struct Panics;

impl EventPolicy for Panics {
    fn durability(&self, kind: &EventKind) -> Durability {
        RecordAll.durability(kind)
    }

    fn filter(&self) -> Box<dyn EventFilter> {
        Box::new(Self)
    }
}

impl EventFilter for Panics {
    fn take(&mut self, event: Event, out: &mut Vec<Event>) {
        assert!(event.seq < 4, "as this test wants");
        out.push(event);
    }

    fn flush(&mut self, _: &mut Vec<Event>) {}
}

#[tokio::test]
async fn a_panic_on_the_writers_thread_fails_the_journal() {
    let disk = Disk::new();
    let (acknowledged, outcome) = run(&journal(disk.clone(), Panics), 16).await;
    assert!(
        matches!(&outcome, Err(JournalError::Unusable { reason, .. }) if reason.contains("panicked")),
        "{outcome:?}"
    );
    assert_eq!((acknowledged, disk.recorded().len()), (4, 4));
}

/// A value, such as one of a filter or of a watcher, that panics when it is dropped.
struct PanicsAtItsEnd;

impl Drop for PanicsAtItsEnd {
    fn drop(&mut self) {
        panic!("as this test wants");
    }
}

/// A policy with such a filter.
struct EndsInPanic;

impl EventPolicy for EndsInPanic {
    fn durability(&self, kind: &EventKind) -> Durability {
        RecordAll.durability(kind)
    }

    fn filter(&self) -> Box<dyn EventFilter> {
        Box::new(PanicsAtItsEnd)
    }
}

impl EventFilter for PanicsAtItsEnd {
    fn take(&mut self, event: Event, out: &mut Vec<Event>) {
        out.push(event);
    }

    fn flush(&mut self, _: &mut Vec<Event>) {}
}

#[tokio::test]
async fn what_panics_when_it_is_dropped_ends_no_thread_that_writes() {
    // More than there are threads.
    for _ in 0..20 {
        let disk = Disk::new();
        let journal = journal(disk.clone(), EndsInPanic);
        let watched = PanicsAtItsEnd;
        journal.watch(Box::new(move |_| {
            let _dropped_with_the_journal = &watched;
        }));
        journal.append(&event(3));
        assert_eq!((journal.close().await, disk.recorded()), (Ok(()), vec![3]));
        // The watcher is dropped with the last reference, here or on the thread that writes.
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(journal))));
    }
    let disk = Disk::new();
    let (acknowledged, outcome) = run(&journal(disk.clone(), RecordAll), 8).await;
    assert_eq!((acknowledged, outcome, disk.recorded().len()), (8, Ok(()), 8));
}

/// A watcher that panics whatever it is notified of: nothing may count as durable for that.
#[tokio::test]
async fn a_watcher_that_panics_fails_the_journal() {
    let disk = Disk::with(|state| state.syncs = 1);
    let journal = journal(disk, RecordAll);
    journal.watch(Box::new(|_| panic!("as this test wants")));
    journal.append(&event(3));
    let outcome = journal.durable().await;
    assert!(
        matches!(&outcome, Err(JournalError::Unusable { reason, .. }) if reason.contains("panicked")),
        "{outcome:?}"
    );
    assert_eq!(journal.close().await, outcome);
}

/// Who waits learns of a failure after the watcher, which is after the subscribers of a session.
#[tokio::test]
async fn a_failure_reaches_the_watcher_before_those_who_wait() {
    for _ in 0..50 {
        let journal = journal(Disk::with(|state| state.syncs = 0), RecordAll);
        let told = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&told);
        journal.watch(Box::new(move |progress| {
            std::thread::sleep(Duration::from_millis(1));
            seen.fetch_add(u64::from(matches!(progress, JournalProgress::Failed(_))), Ordering::SeqCst);
        }));
        journal.append(&event(3));
        journal.durable().await.unwrap_err();
        assert_eq!(told.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_new_watcher_learns_how_far_the_journal_is_and_the_old_one_nothing_more() {
    let next = |watcher: &Receiver<_>| watcher.recv_timeout(Duration::from_secs(20)).unwrap();
    let failing = Disk::with(|state| state.syncs = 1);
    let journal = journal(failing, RecordAll);
    let watch = || {
        let (sender, receiver) = std::sync::mpsc::channel();
        journal.watch(Box::new(move |progress| drop(sender.send(progress))));
        receiver
    };
    let first = watch();
    journal.append(&event(3));
    journal.durable().await.unwrap();
    assert_eq!(next(&first), JournalProgress::Durable(3));

    let second = watch();
    assert_eq!(next(&second), JournalProgress::Durable(3));
    assert!(first.recv().is_err(), "it is dropped");
    journal.append(&event(7));
    let error = journal.durable().await.unwrap_err();
    assert_eq!(next(&second), JournalProgress::Failed(error.clone()));

    let third = watch();
    assert_eq!(next(&third), JournalProgress::Durable(3));
    assert_eq!(next(&third), JournalProgress::Failed(error.clone()));
    assert_eq!(journal.close().await, Err(error));
}

#[tokio::test]
async fn droppable_events_that_a_full_queue_lost_are_counted_in_the_records() {
    /// A disk that waits, so that the queue fills.
    struct Slow(Disk, Receiver<()>);
    impl Sink for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }
        fn sync(&mut self) -> io::Result<()> {
            self.1.recv().ok();
            self.0.sync()
        }
        fn truncate(&mut self, length: u64) -> io::Result<()> {
            self.0.truncate(length)
        }
        fn check_in_place(&self) -> Result<(), String> {
            Ok(())
        }
    }
    let (disk, (go_on, waits)) = (Disk::new(), std::sync::mpsc::channel());
    let journal = journal(Slow(disk.clone(), waits), RecordAll);
    let (mut next, mut critical) = (0, Vec::new());
    let mut append = |count: u64, is_critical: bool| {
        for _ in 0..count {
            let kind = if is_critical { event(3).kind } else { event(0).kind };
            journal.append(&Event::new(next, 0, RunPosition::default(), kind));
            critical.extend(is_critical.then_some(next));
            next += 1;
        }
    };
    append(1, true);
    // The writer is in its first sync from here on, or about to be: of 3,000 events it cannot have taken any.
    while disk.0.lock().unwrap().content.is_empty() {
        tokio::task::yield_now().await;
    }
    append(3_000, false);
    append(2, true);
    append(10, false);
    append(1, true);
    drop(go_on);
    journal.close().await.unwrap();

    assert_eq!(usize::MAX - disk.0.lock().unwrap().syncs, 2, "all that waited for the first sync shares the second");
    let content = disk.0.lock().unwrap().content.clone();
    let records = std::str::from_utf8(&content).unwrap().lines();
    let records: Vec<serde_json::Value> = records.map(|line| serde_json::from_str(line).unwrap()).collect();
    let dropped: u64 = records.iter().filter_map(|record| record["dropped"].as_u64()).sum();
    assert_eq!(records.len() as u64 + dropped, next, "each event is recorded or counted");
    assert_eq!(dropped, 3_000 - 1_024 + 9);
    // A record accounts for the numbers between it and the one before.
    let mut expected = 0;
    for record in &records {
        expected += record["dropped"].as_u64().unwrap_or(0);
        assert_eq!(record["event"].as_u64(), Some(expected), "{record}");
        expected += 1;
    }
    let recorded = disk.recorded();
    assert!(critical.iter().all(|number| recorded.contains(number)));
}

#[tokio::test]
async fn a_journal_that_is_dropped_writes_what_it_has() {
    let disk = Disk::new();
    let journal = journal(disk.clone(), RecordAll);
    for number in 0..8 {
        journal.append(&event(number));
    }
    let mut status = journal.shared.status.subscribe();
    drop(journal);
    status.wait_for(|status| status.closed).await.unwrap();
    assert_eq!(disk.recorded().len(), 8);
}
