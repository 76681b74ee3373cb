//! Measures transcripts: what `append` costs, what a droppable event costs until it is in the file, a critical event next to a bare `fdatasync`, 200 sessions at once, reopening, and
//! resuming a long session.
//!
//! `cargo run --release -p tidegate-store --example transcript_figures [FOLDER]`; the folder is on the disk to measure.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a measurement for developers")]

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::events::{Catalogue, Variables};
use flow::ports::Journal as _;
use flow::{Event, EventKind, RunPosition, SessionId};
use system::SystemClock;
use tidegate_store::emission::EmissionPolicy;
use tidegate_store::{EventPolicy, FileJournal, JsonRecord, RecordAll, TranscriptStore};

const SESSIONS: usize = 200;
const ROUNDS: usize = 30;

fn main() {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from).join("transcript-figures");
    fs::remove_dir_all(&folder).ok();
    let store = TranscriptStore::new(&folder, "figures", Arc::new(SystemClock)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        append(&store).await;
        droppable(&store).await;
        critical(&store, &folder).await;
        sessions(&store).await;
    });
    bare_sessions(&folder);
    reopen(&store);
    resume(&store);
    fs::remove_dir_all(&folder).unwrap();
}

/// What a session of 10,000 messages takes until its next turn can begin.
fn resume(store: &TranscriptStore) {
    let journal = open(store, "long");
    let message = |text: String| Arc::new(flow::Message::user(text));
    for turn in 0..5_000_u64 {
        let place = RunPosition { turn: turn as u32 + 1, step: 1, attempt: 1 };
        let question = EventKind::CognitionIn { message: message(format!("What about number {turn}? ").repeat(10)) };
        let answer = EventKind::CognitionOut {
            text: format!("About number {turn} much can be said. ").repeat(20),
            keep: flow::KeptText::Original,
            model: None,
            author: flow::Origin::Plugin("figures".parse().unwrap()),
            shown: None,
            partial: None,
            retained: flow::Retained::Answer,
            blocks: Vec::new(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        };
        let end = EventKind::TurnFinish { status: flow::TurnStatus::Completed };
        for (at, kind) in (3 * turn..).zip([question, answer, end]) {
            journal.append(&Event::new(at, 1_790_000_000_000, place, kind));
        }
    }
    drop(journal);
    std::thread::sleep(Duration::from_secs(2));
    for _ in 0..3 {
        let start = Instant::now();
        let opened = store.open(&SessionId::new("long"), Arc::new(RecordAll)).unwrap();
        let checked = start.elapsed();
        let mut rebuild = turn::rebuild::Rebuild::default();
        for entry in store.read(&SessionId::new("long")).unwrap().records::<record::Record>() {
            rebuild.take(&entry.unwrap().record).unwrap();
        }
        let messages = rebuild.finish().history.len();
        println!("resuming {messages} messages: {:?}, of which the check of all lines {checked:?}", start.elapsed());
        drop(opened);
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn open(store: &TranscriptStore, id: &str) -> FileJournal {
    store.open(&SessionId::new(id), Arc::new(RecordAll)).unwrap().journal
}

fn delta(number: u64) -> Event {
    let kind = EventKind::CognitionOutDelta { text: "some twenty letters ".to_owned(), index: 0, is_final: false };
    Event::new(number, 1_790_000_000_000, RunPosition::default(), kind)
}

fn critical_event(number: u64) -> Event {
    let kind = EventKind::Notice { message: "a critical event of some hundred bytes ".repeat(3) };
    Event::new(number, 1_790_000_000_000, RunPosition::default(), kind)
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!("median {:?}, 90 % {:?}, 99 % {:?}, most {:?}", at(0.5), at(0.9), at(0.99), at(1.0))
}

/// What the emitter of an event pays.
async fn append(store: &TranscriptStore) {
    for (name, event, burst, pause_us) in [
        ("droppable, 100 every 2 ms", delta as fn(u64) -> Event, 100, 2_000),
        ("droppable, one every ms", delta, 1, 1_000),
        ("critical, one every 5 ms", critical_event, 1, 5_000),
        ("critical, 20 every 5 ms", critical_event, 20, 5_000),
    ] {
        let journal = open(store, "append");
        let mut times = Vec::new();
        for round in 0..200 {
            for number in 0..burst {
                let event = event(round * burst + number);
                let start = Instant::now();
                journal.append(&event);
                times.push(start.elapsed());
            }
            std::thread::sleep(Duration::from_micros(pause_us));
        }
        journal.close().await.unwrap();
        println!("append, {name}: {}", quantiles(times));
        store.remove(&SessionId::new("append")).unwrap();
    }
}

/// The processor time of all threads of this process, in microseconds. Only Linux has the file.
fn processor_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which can contain spaces: the times in user and system mode are fields 14 and 15, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks * 10_000.0)
}

/// What droppable events cost, from `append` to the file: all of them recorded, and as the default catalogue has it, where payloads are
/// checked and chunks of text are one record each second.
async fn droppable(store: &TranscriptStore) {
    const BURST: u64 = 1_000;
    const BURSTS: u64 = 300;
    let log = |number: u64| {
        let message = "a line that a plugin has logged".to_owned();
        let kind = EventKind::ExtensionLog { plugin: "notes".parse().unwrap(), level: "info".to_owned(), message };
        Event::new(number, 1_790_000_000_000 + number / 10, RunPosition::default(), kind)
    };
    let catalogue = Catalogue::of_sources(&[]).unwrap_or_else(|found| panic!("{found}"));
    let catalogue = EmissionPolicy::new(catalogue.for_session(&Variables::default()));
    let policies: [(&str, Arc<dyn EventPolicy>); 2] =
        [("all recorded", Arc::new(RecordAll)), ("the default catalogue", Arc::new(catalogue))];
    for (name, policy) in policies {
        for (what, event) in [("chunks of text", delta as fn(u64) -> Event), ("lines of plugins", log)] {
            let id = SessionId::new("droppable");
            let opened = store.open(&id, Arc::clone(&policy)).unwrap();
            let (mut made, mut before) = (Duration::ZERO, processor_time());
            for burst in 0..BURSTS {
                // Events are made outside of the measurement, as far as wall time goes.
                let start = Instant::now();
                let events: Vec<Event> = (burst * BURST..(burst + 1) * BURST).map(event).collect();
                made += start.elapsed();
                events.iter().for_each(|event| _ = opened.journal.append(event));
                // The writer takes them within 50 ms; more than 1,024 that wait are lost.
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
            opened.journal.close().await.unwrap();
            if let (Some(before), Some(after)) = (before.take(), processor_time()) {
                let each = (after - before - made.as_micros() as f64) / (BURST * BURSTS) as f64;
                println!("droppable, {what}, {name}: {each:.2} µs of processor time each");
            }
            let records = store.read(&id).unwrap().records::<JsonRecord>();
            let dropped: u64 = records.filter_map(|entry| entry.unwrap().record["dropped"].as_u64()).sum();
            println!("    of {} events {dropped} were dropped", BURST * BURSTS);
            store.remove(&id).unwrap();
        }
    }
}

/// One critical event until it is durable, next to the same bytes written and synced without us. In turns, so that both meet the same
/// disk.
async fn critical(store: &TranscriptStore, folder: &Path) {
    let journal = open(store, "critical");
    let path = folder.join("bare");
    let mut bare = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let line = vec![b'x'; 330];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..500 {
        let start = Instant::now();
        journal.append(&critical_event(number));
        journal.durable().await.unwrap();
        ours.push(start.elapsed());
        let start = Instant::now();
        bare.write_all(&line).unwrap();
        bare.sync_data().unwrap();
        theirs.push(start.elapsed());
    }
    journal.close().await.unwrap();
    println!("a critical event: {}", quantiles(ours));
    println!("write and fdatasync: {}", quantiles(theirs));
}

/// Many sessions that each wait for one critical event after the other.
async fn sessions(store: &TranscriptStore) {
    let journals: Vec<_> = (0..SESSIONS).map(|number| open(store, &format!("session-{number}"))).collect();
    let start = Instant::now();
    let tasks = journals.into_iter().map(|journal| {
        tokio::spawn(async move {
            let mut times = Vec::new();
            for number in 0..ROUNDS as u64 {
                let start = Instant::now();
                // A tool call: its result, and the events around it.
                for event in 0..4 {
                    journal.append(&critical_event(number * 4 + event));
                }
                journal.durable().await.unwrap();
                times.push(start.elapsed());
            }
            journal.close().await.unwrap();
            times
        })
    });
    let mut times = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        times.extend(task.await.unwrap());
    }
    report("sessions, a thread each", start.elapsed(), times);
}

fn report(name: &str, total: Duration, times: Vec<Duration>) {
    let rate = (SESSIONS * ROUNDS) as f64 / total.as_secs_f64();
    println!("{SESSIONS} {name}: {rate:.0} barriers/s, each {}", quantiles(times));
}

/// The same bytes without us: one thread that syncs file after file, and threads that sync at the same time.
fn bare_sessions(folder: &Path) {
    let lines = vec![b'x'; 4 * 330];
    for threads in [1, 4, 16, SESSIONS] {
        let files = (0..SESSIONS).map(|number| {
            let path = folder.join(format!("bare-{threads}-{number}"));
            OpenOptions::new().create(true).append(true).open(path).unwrap()
        });
        let mut files: Vec<File> = files.collect();
        let start = Instant::now();
        let times: Vec<Vec<Duration>> = std::thread::scope(|scope| {
            let parts = files.chunks_mut(SESSIONS.div_ceil(threads)).map(|part| {
                scope.spawn(|| {
                    let mut times = Vec::new();
                    for _ in 0..ROUNDS {
                        let start = Instant::now();
                        for file in part.iter_mut() {
                            file.write_all(&lines).unwrap();
                            file.sync_data().unwrap();
                            times.push(start.elapsed());
                        }
                    }
                    times
                })
            });
            parts.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        report(&format!("bare files, {threads} threads"), start.elapsed(), times.concat());
    }
}

/// Opens a session of 100 MB, and reads it.
fn reopen(store: &TranscriptStore) {
    drop(open(store, "large"));
    let path = store.folder(&SessionId::new("large")).join("transcript.jsonl");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let (mut text, mut seq, mut size) = (String::new(), 0_u64, 0);
    while size < 100 << 20 {
        // Of ten events nine are chunks of text, and one is a tool's output.
        let event = if seq % 10 == 9 {
            let message = "    let \"found\" = self.items.iter().find(|one| one.name == name);\n".repeat(40);
            Event::new(seq, 1_790_000_000_000, RunPosition::default(), EventKind::Notice { message })
        } else {
            delta(seq)
        };
        let mut record = record::json(&event, "large");
        record["event"] = seq.into();
        text.push_str(&record.to_string());
        text.push('\n');
        seq += 1;
        if text.len() > 1 << 20 {
            size += text.len();
            file.write_all(text.as_bytes()).unwrap();
            text.clear();
        }
    }
    let rate = |time: Duration| (size as f64 / 1e6) / time.as_secs_f64();
    file.sync_all().unwrap();
    for _ in 0..3 {
        let start = Instant::now();
        let opened = store.open(&SessionId::new("large"), Arc::new(RecordAll)).unwrap();
        let time = start.elapsed();
        println!("reopening {} records, {} MB: {time:?}, {:.0} MB/s", opened.records, size / 1_000_000, rate(time));
        drop(opened);
        std::thread::sleep(Duration::from_millis(300));
        let start = Instant::now();
        let bytes = fs::read(&path).unwrap();
        let lines = memchr::memchr_iter(b'\n', &bytes).count();
        let time = start.elapsed();
        println!("reading the file and counting its {lines} lines: {time:?}, {:.0} MB/s", rate(time));
    }
    let start = Instant::now();
    let count = store.read(&SessionId::new("large")).unwrap().records::<JsonRecord>().count();
    println!("reading {count} records as JSON: {:.0} MB/s", rate(start.elapsed()));
    let start = Instant::now();
    store.list().unwrap();
    println!("listing {} sessions: {:?}", SESSIONS + 2, start.elapsed());
}
