//! Kills writers, and the server that they write to, at random moments: what was settled is there afterwards, and every batch is whole.
//!
//! `TIDEGATE_KILLS` is how often each of the two is killed; `cargo xtask crash` sets it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and the long form reports figures")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{PATIENCE, Writer, left_by_a_killed_writer, open_when_free};
use tidegate_kit::Random;
use tidegate_servers::RedisServer;
use tidegate_store::{DiskStore, RedisOptions, RedisStore, StoreOptions};
use turn::SystemClock;
use turn::ports::StateStore;

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
