//! The transcripts of the corpus, and files that are compared or written.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

pub(crate) mod page;

use std::path::{Path, PathBuf};

use flow::Event;
use record::Record;
use serde_json::json;
use tidegate_report::Report;

/// When the sessions began, in milliseconds since 1970.
const BEGAN: u64 = 1_795_420_271_000;

/// The folder of the transcripts.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/transcripts")
}

/// The names of the transcripts, sorted.
pub(crate) fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.filter_map(|file| Some(file.strip_suffix(".jsonl")?.to_owned())).collect();
    names.sort();
    assert!(names.len() > 3, "only {names:?}");
    names
}

/// The records of a transcript; the first line is its header.
pub(crate) fn records(name: &str) -> Vec<Record> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.jsonl"))).unwrap();
    let read = |(at, line): (usize, &str)| {
        Record::read(line.as_bytes()).unwrap_or_else(|error| panic!("{name}.jsonl:{}: {error}", at + 1))
    };
    text.lines().enumerate().skip(1).map(read).collect()
}

/// The report of a transcript.
pub(crate) fn report(name: &str) -> Report {
    Report::of(records(name).into_iter())
}

/// Compares the transcript of these events with its file. Only the durations of callbacks are replaced.
pub(crate) fn recorded(name: &str, events: &[Event]) {
    let header = json!({"format": "tidegate-transcript", "version": 1, "thread_id": name, "created_ms": BEGAN});
    let mut text = format!("{header}\n");
    for (seq, event) in events.iter().enumerate() {
        let mut record = record::json(event, name);
        record["seq"] = json!(seq);
        record["event"] = json!(event.seq);
        record["ts"] = json!(BEGAN + event.at_ms);
        if let Some(time) = record["payload"].get_mut("duration_us") {
            *time = json!(100.0 * (1 + seq % 7) as f64);
        }
        if record["type"] == "thread_started" {
            record["payload"]["session_id"] = json!(name);
        }
        text.push_str(&format!("{record}\n"));
    }
    same(&format!("{name}.jsonl"), &text);
}

/// Compares a file of the corpus with what it should be, or writes it.
pub(crate) fn same(file: &str, text: &str) {
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(folder().join(file), text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(folder().join(file)).unwrap_or_default();
    let different = expected.lines().zip(text.lines()).position(|(a, b)| a != b);
    let line = different.unwrap_or(expected.lines().count().min(text.lines().count()));
    let at = |text: &str| text.lines().nth(line).unwrap_or("the end").to_owned();
    assert!(
        expected == text,
        "{file}:{}: expected {:?}, got {:?}; `TIDEGATE_BLESS=1 cargo test -p tidegate-report` writes it",
        line + 1,
        at(&expected),
        at(text)
    );
}
