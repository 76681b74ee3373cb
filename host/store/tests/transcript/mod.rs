//! Transcripts on a real disk: opening, reading, forks, lists and repairs.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod forks;
mod lists;
#[cfg(target_os = "linux")]
mod many;
mod opening;
mod reading;
mod repairs;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use flow::ports::Journal as _;
use flow::{Event, EventKind, Message, RunPosition, SessionId, TurnStatus};
use tidegate_kit::Still;
use tidegate_store::{JsonRecord, OpenedTranscript, RecordAll, TranscriptError, TranscriptStore};

/// A store in a folder of its own.
struct Place {
    store: TranscriptStore,
    folder: tempfile::TempDir,
}

fn id(id: &str) -> SessionId {
    SessionId::new(id)
}

/// A turn: what was said, shown in parts, and the end.
fn turn(number: u32, first_event: u64) -> Vec<Event> {
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
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store =
            TranscriptStore::new(folder.path().join("all/sessions"), "first process", Arc::new(Still::default()))
                .unwrap();
        Self { store, folder }
    }

    /// The same folder, for another process.
    fn other(&self) -> TranscriptStore {
        TranscriptStore::new(self.store.root(), "second process", Arc::new(Still::default())).unwrap()
    }

    fn path(&self, session: &str) -> PathBuf {
        self.store.folder(&id(session)).join("transcript.jsonl")
    }

    fn try_open(&self, session: &str) -> Result<OpenedTranscript, TranscriptError> {
        self.store.open(&id(session), Arc::new(RecordAll))
    }

    fn open(&self, session: &str) -> OpenedTranscript {
        self.try_open(session).unwrap()
    }

    /// Opens a session, adds turns to it and closes it.
    async fn add_turns(&self, session: &str, turns: std::ops::RangeInclusive<u32>) {
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

    fn records(&self, session: &str) -> Vec<JsonRecord> {
        let entries = self.store.read(&id(session)).unwrap().records::<JsonRecord>();
        entries.map(|entry| entry.unwrap().record).collect()
    }

    /// `seq/event/type` of all records; the numbers of the records have no gaps.
    fn listing(&self, session: &str) -> Vec<String> {
        let records = self.records(session);
        assert!(records.iter().enumerate().all(|(number, record)| record["seq"] == number), "{records:?}");
        let listed =
            |record: &JsonRecord| format!("{}/{}/{}", record["seq"], record["event"], record["type"].as_str().unwrap());
        records.iter().map(listed).collect()
    }

    fn lines(&self, session: &str) -> Vec<String> {
        fs::read_to_string(self.path(session)).unwrap().lines().map(str::to_owned).collect()
    }

    fn write_lines(&self, session: &str, lines: &[String]) {
        fs::write(self.path(session), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }
}

/// What `result` failed with.
fn error<T>(result: Result<T, TranscriptError>) -> TranscriptError {
    result.map(drop).unwrap_err()
}
