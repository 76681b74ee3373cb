//! What the tests of all backends need: a clock that they move, entries, and a process to kill.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flow::ports::{BoxFuture, Clock, SessionState, StateChange, StateEntry, StateError, StateLifetime, StateStore};
use flow::{PluginId, SessionId};

/// One second, minute, hour and day in milliseconds.
pub(crate) const SECOND: u64 = 1_000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;
/// Long enough for a healthy backend on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A clock that stands where a test puts it. Pauses take real time.
#[derive(Debug)]
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    /// Some day in 2026.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(1_790_000_000_000)))
    }

    pub(crate) fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn set(&self, ms: u64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

pub(crate) fn plugin(id: &str) -> PluginId {
    id.parse().unwrap()
}

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::new(id)
}

/// The default time to live of most tests.
pub(crate) const DEFAULT: StateLifetime = StateLifetime::Default { ttl_ms: HOUR };

pub(crate) fn own(ttl_ms: u64) -> StateLifetime {
    StateLifetime::Own { ttl_ms }
}

pub(crate) fn entry(clock: &TestClock, key: &str, value: &str, lifetime: StateLifetime) -> StateEntry {
    StateEntry::written(key, value.as_bytes(), lifetime, clock.now_ms())
}

pub(crate) fn set(clock: &TestClock, key: &str, value: &str, lifetime: StateLifetime) -> StateChange {
    StateChange::Set(entry(clock, key, value, lifetime))
}

/// A read of an entry.
pub(crate) fn touch(clock: &TestClock, key: &str, lifetime: StateLifetime) -> StateChange {
    let used_ms = clock.now_ms();
    StateChange::Touch { key: key.to_owned(), expires_ms: lifetime.expires_after(used_ms), used_ms }
}

/// Applies and settles.
pub(crate) async fn save(state: &dyn SessionState, id: &str, changes: Vec<StateChange>) {
    state.apply(&plugin(id), changes.into());
    state.settle(PATIENCE).await.unwrap();
}

/// `key=value` of all entries of a plugin.
pub(crate) async fn listed(state: &dyn SessionState, id: &str) -> Vec<String> {
    let entries = state.load(&plugin(id)).await.unwrap().entries;
    entries.iter().map(|entry| format!("{}={}", entry.key, String::from_utf8_lossy(&entry.value))).collect()
}

/// Opens a session as soon as its lease is free.
pub(crate) async fn open_when_free(store: &dyn StateStore, id: &str) -> Arc<dyn SessionState> {
    let session = session(id);
    let opened = async {
        loop {
            match store.open(&session).await {
                Ok(state) => return state,
                Err(StateError::Leased { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, opened).await.expect("the lease ends")
}

/// The process of `writer.rs`. Dropping it kills it.
pub(crate) struct Writer {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The last number that was reported as durable.
    last: Option<u64>,
}

impl Writer {
    /// Starts it and waits until it has opened its session.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut writer = Self::spawn(arguments);
        assert_eq!(writer.line().as_deref(), Some("open"));
        writer
    }

    /// Starts it and waits for nothing.
    pub(crate) fn spawn(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-store-writer"));
        let mut child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, last: None }
    }

    /// The last number that was read of those that it reported.
    pub(crate) fn last(&self) -> Option<u64> {
        self.last
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line; `None` where the process has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).unwrap();
        (read > 0 && line.ends_with('\n')).then(|| line.trim_end().to_owned())
    }

    /// Waits until it reports another batch as durable.
    pub(crate) fn wait_for_a_batch(&mut self) {
        let line = self.line().expect("the writer runs");
        self.last = Some(line.parse().unwrap());
    }

    /// Kills it with SIGKILL and returns the last number that it reported as durable.
    pub(crate) fn kill(self) -> u64 {
        self.kill_at_any_time().expect("a batch was waited for")
    }

    /// The same; `None` where it has reported nothing.
    pub(crate) fn kill_at_any_time(mut self) -> Option<u64> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while let Some(line) = self.line() {
            if line != "open" {
                self.last = Some(line.parse().unwrap());
            }
        }
        self.last
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the numbers of the batches that a killed writer left, one for each plugin; 0 where there is none. Asserts that each batch is
/// whole.
pub(crate) async fn left_by_a_killed_writer(state: &dyn SessionState) -> [u64; 2] {
    let mut numbers = [0; 2];
    for (id, number) in ["writer", "other"].into_iter().zip(&mut numbers) {
        let stored = state.load(&plugin(id)).await.unwrap();
        let Some(version) = stored.version else {
            assert!(stored.entries.is_empty(), "{id}: entries without a version");
            continue;
        };
        *number = u64::from(version);
        let mut keys: Vec<String> =
            (0..10).map(|key| format!("key-{key}")).chain([format!("only-{version}")]).collect();
        keys.sort_unstable();
        let mut found: Vec<&str> = stored.entries.iter().map(|entry| entry.key.as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, keys, "{id}: parts of batch {version} are missing, or parts of another one are there");
        for entry in &stored.entries {
            assert_eq!(*entry.value, number.to_le_bytes().repeat(500), "{id}: {} is of another batch", entry.key);
        }
    }
    numbers
}

/// Asserts that what a killed writer left is one whole batch, the last that was reported or the one after it.
pub(crate) async fn check_what_a_killed_writer_left(state: &dyn SessionState, last: u64) {
    for number in left_by_a_killed_writer(state).await {
        assert!(number == last || number == last + 1, "{number} is stored, {last} was reported as durable");
    }
}
