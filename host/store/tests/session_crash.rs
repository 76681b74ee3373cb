//! Kills processes that run sessions: each critical event that a subscriber got is in the transcript, a second writer is refused meanwhile,
//! and the session that continues has a conversation that a provider takes.
//!
//! `TIDEGATE_KILLS` is how often; `cargo xtask crash` sets it. The process to kill is this test program: [`child`] runs the session.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and reports figures")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use config::events::{Catalogue, Variables};
use flow::ports::{Durability, JournalError};
use flow::{Message, SessionId};
use record::Record;
use system::SystemClock;
use tidegate_kit::{Random, Script, ScriptedModel, assert_valid, calls, rule_set, text};
use tidegate_store::emission::EmissionPolicy;
use tidegate_store::{OpenedTranscript, TranscriptError, TranscriptStore};
use turn::rebuild::{Rebuild, Resumed};
use turn::{CancellationToken, Session, SessionParts};

/// Tells the child where its transcript is.
const FOLDER: &str = "TIDEGATE_CRASH_FOLDER";

fn kills() -> u32 {
    std::env::var("TIDEGATE_KILLS").map_or(20, |kills| kills.parse().unwrap())
}

fn id() -> SessionId {
    SessionId::new("killed")
}

fn policy() -> EmissionPolicy {
    let catalogue = Catalogue::of_sources(&[]).unwrap_or_else(|found| panic!("{found}"));
    EmissionPolicy::new(catalogue.for_session(&Variables::default()))
}

fn store(folder: &Path) -> TranscriptStore {
    TranscriptStore::new(folder, format!("process {}", std::process::id()), Arc::new(SystemClock)).unwrap()
}

/// Opens the session; the system may not have ended yet the process that was killed.
fn open(store: &TranscriptStore) -> OpenedTranscript {
    loop {
        match store.open(&id(), Arc::new(policy())) {
            Err(TranscriptError::Journal(JournalError::Locked { .. })) => std::thread::sleep(Duration::from_millis(1)),
            opened => break opened.unwrap(),
        }
    }
}

fn records(store: &TranscriptStore) -> Vec<Record> {
    store.read(&id()).unwrap().records::<Record>().map(|entry| entry.unwrap().record).collect()
}

fn rebuilt(records: &[Record]) -> Resumed {
    let mut rebuild = Rebuild::default();
    records.iter().for_each(|record| rebuild.take(record).unwrap());
    rebuild.finish()
}

/// Answers that rules stop, tools, and text, for more turns than a child lives.
fn scripts() -> Vec<Script> {
    let turn = |number: usize| {
        let (one, two) = (format!("{number}a"), format!("{number}b"));
        let long = format!("Answer {number}. ").repeat(number % 40 + 1);
        let run = [(one.as_str(), "read", "{\"path\":\"a\"}"), (two.as_str(), "steps", "{}")];
        [text("This is FORBIDDEN.", 3), calls(&run, 4), text(&long, 5)]
    };
    (0..2_000).flat_map(turn).collect()
}

/// The process to kill: turns without end, and a line for each critical event that a subscriber gets.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let store = store(Path::new(&folder));
    let (opened, policy) = (open(&store), policy());
    let resumed = (opened.records > 0).then(|| {
        let mut resumed = rebuilt(&records(&store));
        resumed.next_event = opened.next_event;
        resumed
    });
    let rules =
        rule_set(&[("no-forbidden", "+++\ncondition = 'FORBIDDEN'\nrepeat = 'always'\n+++\nNever say it.")], |_| {});
    let parts = SessionParts {
        clock: Arc::new(SystemClock),
        ..tidegate_kit::parts(&ScriptedModel::new(scripts()), vec![], rules)
    };
    let mut session = Session::open(SessionParts { id: id(), ..parts }).await.unwrap();
    session = session.with_journal(Arc::new(opened.journal), resumed);
    let mut events = session.subscribe();
    println!("open");
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if policy.durability(&event.kind) == Durability::Critical {
                println!("got {} {}", event.seq, event.kind.name());
            }
        }
    });
    loop {
        let report = session.run(vec![Message::user("go")], &CancellationToken::new()).await;
        assert_eq!(report.status, flow::TurnStatus::Completed);
    }
}

/// Starts the child.
fn start(folder: &Path) -> Child {
    let arguments = ["session_crash::child", "--exact", "--nocapture", "--quiet"];
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments).env(FOLDER, folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// What the kills met.
#[derive(Debug, Default)]
struct Seen {
    kills: u32,
    /// Kills before a subscriber got anything.
    early: u32,
    /// Critical events that subscribers got.
    notified: u64,
    /// Kills after which a line was cut.
    torn: u32,
    /// Kills in the middle of a turn.
    interrupted: u32,
    /// Second writers that were refused.
    refused: u32,
    /// Records that all transcripts had at their ends.
    records: u64,
}

impl Seen {
    /// Kills a child at a random time, and looks at what it left. `before` is what was recorded before it started.
    fn kill(&mut self, random: &mut Random, folder: &Path, before: &[Record]) -> Vec<Record> {
        let (store, mut child) = (store(folder), start(folder));
        let mut output = BufReader::new(child.stdout.take().unwrap());
        if !random.once_in(8) {
            let mut line = String::new();
            while !line.ends_with("open\n") {
                line.clear();
                assert!(output.read_line(&mut line).unwrap() > 0, "the child ends");
            }
            if random.once_in(4) {
                self.second_writer(&store, child.id());
            }
        }
        std::thread::sleep(Duration::from_micros(random.number() % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        let opened = open(&store);
        let torn = opened.torn_bytes;
        drop(opened);
        let after = records(&store);
        self.check(&String::from_utf8(rest).unwrap(), before, &after);
        self.torn += u32::from(torn > 0);
        after
    }

    fn second_writer(&mut self, store: &TranscriptStore, child: u32) {
        let refused = store.open(&id(), Arc::new(policy())).map(drop).unwrap_err();
        assert_eq!(refused, JournalError::Locked { by: format!("process {child}") }.into());
        self.refused += 1;
    }

    fn check(&mut self, output: &str, before: &[Record], after: &[Record]) {
        assert_eq!(after.get(..before.len()), Some(before), "what was there once stays");
        let recorded: BTreeSet<(u64, &str)> =
            after.iter().map(|record| (record.event.unwrap(), record.body.name())).collect();
        assert_eq!(recorded.len(), after.len(), "no event is there twice");
        let mut any = false;
        // The last line may be cut.
        for line in output.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let Some((seq, name)) = line.trim_end().strip_prefix("got ").and_then(|rest| rest.split_once(' ')) else {
                continue;
            };
            let event = (seq.parse().unwrap(), name);
            assert!(recorded.contains(&event), "a subscriber got {event:?}, which is not recorded");
            (any, self.notified) = (true, self.notified + 1);
        }
        let resumed = rebuilt(after);
        assert_eq!(resumed.problems, Vec::<String>::new());
        assert_valid(&resumed.history);
        self.kills += 1;
        self.early += u32::from(!any);
        self.interrupted += u32::from(resumed.is_interrupted);
    }
}

#[test]
fn a_subscriber_got_nothing_that_a_kill_undoes() {
    let (mut random, mut seen) = (Random::new(5), Seen::default());
    let (mut folder, mut before) = (tempfile::tempdir().unwrap(), Vec::new());
    for number in 0..kills() {
        // All of it is read after each kill: a session that grows without end takes too long.
        if number % 10 == 0 {
            seen.records += before.len() as u64;
            (folder, before) = (tempfile::tempdir().unwrap(), Vec::new());
        }
        before = seen.kill(&mut random, folder.path(), &before);
    }
    seen.records += before.len() as u64;
    println!("sessions: {seen:?}");
    assert!(seen.notified > 0 && seen.interrupted > 0, "{seen:?}");
}
