//! Kills writers, and the server that they write to, at random moments: what was settled is there afterwards, and every batch is whole;
//! every record that was acknowledged is there, and at most one line is cut.
//!
//! `TIDEGATE_KILLS` is how often each of them is killed; `cargo xtask crash` sets it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and the long form reports figures")]

use std::sync::Arc;
use std::time::Duration;

use flow::SessionId;
use flow::ports::{Journal as _, JournalError, StateStore};
use system::SystemClock;
use tidegate_kit::Random;
use tidegate_servers::RedisServer;
use tidegate_store::{
    DiskStore, JsonRecord, RecordAll, RedisOptions, RedisStore, StoreOptions, TranscriptError, TranscriptStore,
};

use crate::support::{PATIENCE, Writer, left_by_a_killed_writer, open_when_free};

/// How often writers are killed; 20 times unless the environment asks for more.
fn kills() -> u32 {
    match std::env::var("TIDEGATE_KILLS") {
        Ok(kills) => kills.parse().unwrap_or_else(|error| panic!("TIDEGATE_KILLS={kills}: {error}")),
        Err(_) => 20,
    }
}

/// What is known to be stored, and what the kills met.
#[derive(Debug, Default)]
struct Seen {
    /// The number of the last flight.
    stored: u64,
    kills: u32,
    /// Kills before anything was reported.
    early: u32,
    /// Kills after which a flight is stored that was not reported.
    ahead: u32,
}

impl Seen {
    /// Looks at what a killed writer left, which reported `last`.
    async fn check(&mut self, store: &dyn StateStore, last: Option<u64>) {
        let state = open_when_free(store, "killed").await;
        let found = left_by_a_killed_writer(&*state).await;
        state.close(PATIENCE).await.unwrap();
        let [found, other] = found;
        assert_eq!(found, other, "a flight is one atomic step: the batches of both plugins are there, or none is");
        let before = last.unwrap_or(self.stored);
        let allowed = [before, before + 1];
        assert!(allowed.contains(&found), "{found} is stored, and not one of {allowed:?}: {last:?} was reported");
        self.kills += 1;
        self.early += u32::from(last.is_none());
        self.ahead += u32::from(last.is_some_and(|last| found > last));
        self.stored = found;
    }

    fn report(&self, what: &str) {
        println!("{what}: {self:?}");
    }
}

/// Starts a writer and waits for a random time, enough for several flights. Some are killed before they have opened the session.
fn run_a_writer(random: &mut Random, arguments: &[&str]) -> Writer {
    let writer = if random.once_in(4) { Writer::spawn(arguments) } else { Writer::start(arguments) };
    std::thread::sleep(Duration::from_micros(random.number() % 120_000));
    writer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_has_what_was_settled_whenever_its_writer_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let store = DiskStore::new(folder.path(), StoreOptions::default(), Arc::new(SystemClock)).unwrap();
    let (mut random, mut seen) = (Random::new(1), Seen::default());
    for _ in 0..kills() {
        let last = run_a_writer(&mut random, &["disk", folder.path().to_str().unwrap()]).kill_at_any_time();
        seen.check(&store, last).await;
    }
    seen.report("files");
    assert!(seen.stored > 0, "no writer came to its first flight: {seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_has_what_was_settled_whenever_a_writer_or_the_server_is_killed() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let (mut random, mut seen) = (Random::new(2), Seen::default());
    for number in 0..kills() {
        let writer = run_a_writer(&mut random, &["redis", &server.url(), "400"]);
        if number % 2 == 0 {
            server.kill();
        }
        let last = writer.kill_at_any_time();
        if number % 2 == 0 {
            server.start_again().unwrap();
        }
        let store = RedisStore::new(RedisOptions::new(server.url()), Arc::new(SystemClock)).unwrap();
        seen.check(&store, last).await;
    }
    seen.report("Redis");
    assert!(seen.stored > 0, "no writer came to its first flight: {seen:?}");
}

/// What kills of writers of a transcript met.
#[derive(Debug, Default)]
struct Recorded {
    /// The number after the last event.
    next: u64,
    kills: u32,
    /// Kills after which a line was cut.
    torn: u32,
    /// Kills after which more was there than was acknowledged.
    ahead: u32,
}

impl Recorded {
    /// Looks at what a killed writer left, which reported `last` as durable.
    async fn check(&mut self, store: &TranscriptStore, last: Option<u64>) {
        let id = SessionId::new("killed");
        let opened = loop {
            match store.open(&id, Arc::new(RecordAll)) {
                // The system has not yet ended the process.
                Err(TranscriptError::Journal(JournalError::Locked { .. })) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                opened => break opened.unwrap(),
            }
        };
        opened.journal.close().await.unwrap();
        let mut next = 0;
        for entry in store.read(&id).unwrap().records::<JsonRecord>() {
            let record = entry.unwrap().record;
            // The queue of a writer that waits that often is never full.
            assert_eq!((&record["event"], &record["dropped"]), (&next.into(), &JsonRecord::Null), "{record}");
            let payload = &record["payload"];
            let text = payload["message"].as_str().or(payload["text"].as_str());
            assert_eq!(text, Some(next.to_string().repeat(next as usize % 97 + 1).as_str()));
            next += 1;
        }
        assert_eq!(next, opened.next_event);
        let acknowledged = last.map_or(0, |last| last + 1);
        assert!(next >= acknowledged, "{acknowledged} events were acknowledged, and {next} are there");
        assert!(next >= self.next, "what was there once stays");
        self.kills += 1;
        self.torn += u32::from(opened.torn_bytes > 0);
        self.ahead += u32::from(last.is_some() && next > acknowledged);
        self.next = next;
    }
}

fn transcripts() -> (tempfile::TempDir, TranscriptStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = TranscriptStore::new(folder.path(), "the test", Arc::new(SystemClock)).unwrap();
    (folder, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_has_what_was_acknowledged_whenever_its_writer_is_killed() {
    let (mut random, mut seen) = (Random::new(3), Recorded::default());
    let (mut folder, mut store) = transcripts();
    for number in 0..kills() {
        // All of it is read after each kill: a session that grows without end takes too long.
        if number % 20 == 0 {
            (folder, store) = transcripts();
            seen.next = 0;
        }
        let last = run_a_writer(&mut random, &["transcript", folder.path().to_str().unwrap()]).kill_at_any_time();
        seen.check(&store, last).await;
    }
    println!("transcripts: {seen:?}");
    assert!(seen.next > 0, "no writer came to its first event: {seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_4_a_writer_that_is_killed_after_every_kth_record_loses_none_that_was_acknowledged() {
    for every in [50, 130, 400] {
        let (folder, store) = transcripts();
        let mut seen = Recorded::default();
        while seen.next < 1_000 {
            let mut writer = Writer::start(&["transcript", folder.path().to_str().unwrap()]);
            while writer.last().is_none_or(|last| last + 1 < seen.next + every) {
                writer.wait_for_a_batch();
            }
            let last = writer.kill();
            assert!(last + 1 >= seen.next + every);
            seen.check(&store, Some(last)).await;
        }
        println!("after every {every}: {seen:?}");
    }
}
