//! What holds for transcripts wherever they are: the program `it` runs these cases on the disk, and `processes` on a Redis server.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod forks;
mod lists;
mod reading;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::ports::Journal as _;
use flow::{Event, EventKind, Message, RunPosition, SessionId, TurnStatus};
use redis::{ConnectionLike as _, FromRedisValue};
use tidegate_kit::Still;
use tidegate_servers::RedisServer;
use tidegate_store::{JsonRecord, OpenedTranscript, RecordAll, RedisOptions, TranscriptError, TranscriptStore};

/// A store in a folder of its own, or on a server of its own.
pub(crate) struct Place {
    pub(crate) store: TranscriptStore,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: Option<RedisServer>,
}

pub(crate) fn id(id: &str) -> SessionId {
    SessionId::new(id)
}

/// A turn: what was said, shown in parts, and the end.
pub(crate) fn turn(number: u32, first_event: u64) -> Vec<Event> {
    let text = format!("input {number}\nwith a second line");
    let kinds = [
        EventKind::TurnStart,
        EventKind::CognitionIn { message: Arc::new(Message::user(text)) },
        EventKind::CognitionOutDelta { text: format!("answer {number}, part ä\u{1f600}"), index: 0, is_final: false },
        EventKind::Notice { message: "x".repeat(number as usize * 10) },
        EventKind::TurnFinish { status: TurnStatus::Completed },
    ];
    let place = RunPosition { turn: number, step: 1, attempt: 1 };
    (first_event..).zip(kinds).map(|(seq, kind)| Event::new(seq, 1_000 + seq, place, kind)).collect()
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(None)
    }

    pub(crate) fn with(server: Option<RedisServer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = store_in(&folder.path().join("all/sessions"), "first process", server.as_ref());
        Self { store, folder, server }
    }

    /// The place of the test program: the disk, or a server.
    pub(crate) fn start() -> Self {
        Self::with(crate::ON_SERVER.then(|| RedisServer::start().unwrap()))
    }

    /// The same place, for another process.
    pub(crate) fn other(&self) -> TranscriptStore {
        store_in(self.store.root(), "second process", self.server.as_ref())
    }

    pub(crate) fn path(&self, session: &str) -> PathBuf {
        self.store.folder(&id(session)).join("transcript.jsonl")
    }

    pub(crate) fn try_open(&self, session: &str) -> Result<OpenedTranscript, TranscriptError> {
        self.store.open(&id(session), Arc::new(RecordAll))
    }

    pub(crate) fn open(&self, session: &str) -> OpenedTranscript {
        self.try_open(session).unwrap()
    }

    /// Opens a session, adds turns to it and closes it.
    pub(crate) async fn add_turns(&self, session: &str, turns: std::ops::RangeInclusive<u32>) {
        let opened = self.open(session);
        let mut next = opened.next_event;
        for number in turns {
            for event in turn(number, next) {
                next = event.seq + 1;
                opened.journal.append(&event);
            }
        }
        opened.journal.close().await.unwrap();
    }

    pub(crate) fn records(&self, session: &str) -> Vec<JsonRecord> {
        let entries = self.store.read(&id(session)).unwrap().records::<JsonRecord>();
        entries.map(|entry| entry.unwrap().record).collect()
    }

    /// `seq/event/type` of all records; the numbers of the records have no gaps.
    pub(crate) fn listing(&self, session: &str) -> Vec<String> {
        let records = self.records(session);
        assert!(records.iter().enumerate().all(|(number, record)| record["seq"] == number), "{records:?}");
        let listed =
            |record: &JsonRecord| format!("{}/{}/{}", record["seq"], record["event"], record["type"].as_str().unwrap());
        records.iter().map(listed).collect()
    }

    pub(crate) fn lines(&self, session: &str) -> Vec<String> {
        if let Some(server) = &self.server {
            let entries: Vec<(String, Vec<String>)> = raw(server, &["XRANGE", &stream(session), "-", "+"]);
            return entries.into_iter().map(|(_, mut fields)| fields.remove(1)).collect();
        }
        fs::read_to_string(self.path(session)).unwrap().lines().map(str::to_owned).collect()
    }

    pub(crate) fn write_lines(&self, session: &str, lines: &[String]) {
        if let Some(server) = &self.server {
            raw::<()>(server, &["DEL", &stream(session)]);
            for (line, number) in lines.iter().zip(1..) {
                raw::<()>(server, &["XADD", &stream(session), &format!("{number}-0"), "line", line]);
            }
            return raw(
                server,
                &["HSET", &format!("{{tidegate:{session}}}:thread"), "lines", &lines.len().to_string()],
            );
        }
        fs::write(self.path(session), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }
}

pub(crate) fn store_in(folder: &Path, owner: &str, server: Option<&RedisServer>) -> TranscriptStore {
    let clock = Arc::new(Still::default());
    let Some(server) = server else { return TranscriptStore::new(folder, owner, clock).unwrap() };
    TranscriptStore::on_redis(folder, &options(server, owner), clock).unwrap()
}

pub(crate) fn options(server: &RedisServer, owner: &str) -> RedisOptions {
    let mut options = RedisOptions::new(server.url());
    options.store.owner = owner.to_owned();
    options
}

/// The key of the lines of a session.
pub(crate) fn stream(session: &str) -> String {
    format!("{{tidegate:{session}}}:records")
}

/// Sends a command next to the store.
pub(crate) fn raw<T: FromRedisValue>(server: &RedisServer, words: &[&str]) -> T {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut command = redis::Cmd::new();
    command.arg(words);
    let value = connection.req_command(&command).unwrap();
    redis::from_redis_value(value).unwrap()
}

/// What `result` failed with.
pub(crate) fn error<T>(result: Result<T, TranscriptError>) -> TranscriptError {
    result.map(drop).unwrap_err()
}
