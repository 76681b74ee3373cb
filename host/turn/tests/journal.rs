//! A session with a journal: when the turn waits, what subscribers get and when, and how a failure ends it.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use flow::ports::{BoxFuture, Durability, Journal, JournalError, JournalProgress};
use flow::{Event, EventKind, Message, TurnStatus};
use record::Record;
use tidegate_kit::{Script, ScriptedModel, calls, drain, ready, rule_set, text};
use tidegate_turn as turn;
use tokio::sync::watch;
use turn::rebuild::Rebuild;
use turn::{CancellationToken, Session};

type Watcher = Box<dyn Fn(JournalProgress) + Send + Sync>;

/// A disk that writes when the test says so, or at once.
struct Disk {
    events: Mutex<Vec<Event>>,
    durable: watch::Sender<Result<u64, JournalError>>,
    watcher: Mutex<Option<Watcher>>,
    at_once: AtomicBool,
}

impl Disk {
    fn new(at_once: bool) -> Arc<Self> {
        let (durable, _) = watch::channel(Ok(0));
        let at_once = AtomicBool::new(at_once);
        Arc::new(Self { events: Mutex::default(), durable, watcher: Mutex::default(), at_once })
    }

    /// Everything so far becomes durable.
    fn write(&self) {
        let count = self.events.lock().unwrap().len() as u64;
        let last = self.events.lock().unwrap().last().map(|event| event.seq);
        if let (Some(last), Some(watcher)) = (last, &*self.watcher.lock().unwrap()) {
            watcher(JournalProgress::Durable(last));
        }
        drop(self.durable.send_replace(Ok(count)));
    }

    fn fail(&self) {
        let error = JournalError::Full { path: "t.jsonl".into() };
        if let Some(watcher) = &*self.watcher.lock().unwrap() {
            watcher(JournalProgress::Failed(error.clone()));
        }
        drop(self.durable.send_replace(Err(error)));
    }
}

impl Journal for Disk {
    fn append(&self, event: &Event) -> Durability {
        self.events.lock().unwrap().push(event.clone());
        match event.kind {
            EventKind::CognitionOutDelta { .. } => Durability::Droppable,
            _ => Durability::Critical,
        }
    }

    fn durable(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        if self.at_once.load(Ordering::SeqCst) {
            self.write();
        }
        let wanted = self.events.lock().unwrap().len() as u64;
        let mut durable = self.durable.subscribe();
        Box::pin(async move {
            let enough = |durable: &Result<u64, JournalError>| durable.as_ref().map_or(true, |count| *count >= wanted);
            durable.wait_for(enough).await.unwrap().clone().map(drop)
        })
    }

    fn watch(&self, watcher: Watcher) {
        *self.watcher.lock().unwrap() = Some(watcher);
    }

    fn close(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.durable()
    }
}

fn session(scripts: impl IntoIterator<Item = Script>, disk: &Arc<Disk>) -> (Arc<ScriptedModel>, Session) {
    let model = ScriptedModel::new(scripts);
    let session = tidegate_kit::session(&model, vec![], rule_set(&[], |_| {}));
    let journal: Arc<dyn Journal> = Arc::<Disk>::clone(disk);
    (model, session.with_journal(journal, None))
}

async fn run(session: &mut Session) -> turn::TurnReport {
    session.run(vec![Message::user("go")], &CancellationToken::new()).await
}

fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.kind.name()).collect()
}

/// At each barrier everything before it has to be on disk: what follows has not happened before the disk has written.
#[tokio::test(start_paused = true)]
async fn the_turn_waits_at_five_barriers() {
    let disk = Disk::new(false);
    let (model, mut session) = session([calls(&[("1", "read", "{}")], 9), text("Done.", 9)], &disk);
    let mut events = session.subscribe();
    let (seen, at) = (Arc::clone(&disk), Arc::clone(&model));
    let mut barriers = Vec::new();
    let turn = run(&mut session);
    tokio::pin!(turn);
    let report = loop {
        if let Some(report) = poll(&mut turn).await {
            break report;
        }
        // The turn is stuck: nothing critical of what has happened since was delivered.
        let last = seen.events.lock().unwrap().last().unwrap().kind.name();
        assert!(drain(&mut events).iter().all(|event| matches!(event.kind, EventKind::CognitionOutDelta { .. })));
        barriers.push((last, at.asked()));
        seen.write();
        let delivered = drain(&mut events);
        assert_eq!(delivered.last().unwrap().kind.name(), last, "what is on disk is delivered");
    };
    assert_eq!(report.status, TurnStatus::Completed);
    assert_eq!(
        barriers,
        [
            ("step_start", 0),       // before a request
            ("cognition_out", 1),    // when an answer is accepted
            ("tool_call_start", 1),  // before a tool runs
            ("tool_call_result", 1), // after its result
            ("step_start", 1),
            ("cognition_out", 2),
            ("turn_finish", 2), // at the end of the turn
        ]
    );
}

/// Polls a future until it waits for what only the test can do.
async fn poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> Option<F::Output> {
    for _ in 0..50 {
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx))).await;
        if let std::task::Poll::Ready(output) = polled {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// The disk is full from the nth barrier on: the turn ends with the cause, no tool runs unrecorded, and subscribers are told what is
/// not recorded.
#[tokio::test(start_paused = true)]
async fn a_full_disk_ends_the_turn() {
    for barriers in 0..7 {
        let disk = Disk::new(false);
        let (model, mut session) = session([calls(&[("1", "read", "{}")], 9), text("Done.", 9)], &disk);
        let mut events = session.subscribe();
        let report = {
            let turn = run(&mut session);
            tokio::pin!(turn);
            let mut passed = 0;
            loop {
                if let Some(report) = poll(&mut turn).await {
                    break report;
                }
                if passed == barriers {
                    disk.fail();
                } else {
                    disk.write();
                }
                passed += 1;
            }
        };
        let TurnStatus::Failed { message, .. } = &report.status else { panic!("{barriers}: {report:?}") };
        assert!(message.contains("the disk is full"), "{message}");
        let events = drain(&mut events);
        let told = events.iter().filter(|event| matches!(event.kind, EventKind::JournalFailed { .. })).count();
        assert_eq!(told, 1, "{barriers}: {:?}", names(&events));
        let ran = events.iter().any(|event| {
            matches!(&event.kind, EventKind::ToolCallResult { output, is_error: false, .. } if output.contains("done"))
        });
        assert_eq!(ran, barriers > 2, "{barriers}: the call runs once its start is on disk");
        assert_eq!(model.asked(), usize::from(barriers > 0) + usize::from(barriers > 4), "{barriers}");
        tidegate_kit::assert_valid(&session.history());
    }
}

/// What a session continues from, as its records say.
fn resumed(disk: &Disk) -> turn::rebuild::Resumed {
    let mut rebuild = Rebuild::default();
    for event in &*disk.events.lock().unwrap() {
        rebuild.take(&Record::of(event, "test")).unwrap();
    }
    rebuild.finish()
}

#[tokio::test]
async fn a_resumed_session_continues_its_numbers_and_its_conversation() {
    let disk = Disk::new(true);
    let (_, mut first) = session([calls(&[("1", "read", "{}")], 9), text("Done.", 9)], &disk);
    run(&mut first).await;
    let history = first.history();
    first.close().await;
    let from = resumed(&disk);
    assert_eq!((from.turns, from.steps, from.is_interrupted), (1, 2, false));
    assert_eq!(from.history, history);

    let before = disk.events.lock().unwrap().len();
    let model = ScriptedModel::new([text("More.", 9)]);
    let second = ready(Session::open(tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {})))).unwrap();
    let journal: Arc<dyn Journal> = Arc::<Disk>::clone(&disk);
    let mut second = second.with_journal(journal, Some(from));
    let report = run(&mut second).await;
    assert_eq!((report.status, report.place.turn), (TurnStatus::Completed, 2));
    let events = disk.events.lock().unwrap().clone();
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(events[before].kind.name(), "thread_resumed");
    let steps: Vec<u32> = events
        .iter()
        .filter_map(|event| if let EventKind::StepStart { number } = event.kind { Some(number) } else { None })
        .collect();
    assert_eq!(steps, [1, 2, 3]);
    assert_eq!(resumed(&disk).history, second.history());
}

/// A process that dies at any record leaves a conversation that a provider accepts, and that has what the user saw.
#[tokio::test]
async fn a_thread_that_breaks_off_at_any_record_can_be_continued() {
    let disk = Disk::new(true);
    let scripts = [calls(&[("1", "read", "{}"), ("2", "steps", "{}")], 9), text("A longer answer.", 3)];
    let (_, mut session) = session(scripts, &disk);
    run(&mut session).await;
    let events = disk.events.lock().unwrap().clone();
    for cut in 0..=events.len() {
        let mut rebuild = Rebuild::default();
        events[..cut].iter().for_each(|event| rebuild.take(&Record::of(event, "test")).unwrap());
        let resumed = rebuild.finish();
        tidegate_kit::assert_valid(&resumed.history);
        let ended = events[..cut].iter().any(|event| matches!(event.kind, EventKind::TurnFinish { .. }));
        let began = events[..cut].iter().any(|event| event.kind == EventKind::TurnStart);
        assert_eq!(resumed.is_interrupted, began && !ended, "{cut}");
        let streaming: String = events[..cut]
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::CognitionOutDelta { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let last = resumed.history.last().map(|message| message.plain_text()).unwrap_or_default();
        let answered = last == "A longer answer.";
        if !streaming.is_empty() && !answered {
            assert_eq!(last, format!("{streaming}\n\n[Stream interrupted: the process ended]"), "{cut}");
        }
    }
}
