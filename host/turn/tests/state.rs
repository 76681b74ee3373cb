//! When extensions learn of attempts, and where a turn waits until their state is durable.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use flow::ports::{AttemptEnd, BoxFuture, EventSink, ExtensionHost, Extensions, SessionView, StateError, TtsrEvent};
use flow::{
    EventKind, InputAnswer, Message, ModelOutput, NoAnswer, OutputAnswer, Registration, SessionId, Tag, TagAnswer,
    TagPlace, TextAnswer, TextPlace, TurnStatus,
};
use tidegate_kit::{Script, ScriptedModel, calls, drain, rule_set, text};
use tidegate_turn as turn;
use turn::{CancellationToken, Session, SessionParts, TurnReport};

/// Extensions without callbacks, which write down what they are told, and whose store fails as it is told.
#[derive(Clone, Default)]
struct Log {
    told: Arc<Mutex<Vec<String>>>,
    /// An attempt is under way.
    open: Arc<AtomicBool>,
    /// The error of every barrier from this number on, counted from 0.
    fails: Option<(usize, StateError)>,
}

impl Log {
    fn add(&self, what: &str) {
        self.told.lock().unwrap().push(what.to_owned());
    }
}

impl ExtensionHost for Log {
    fn registrations(&self) -> Arc<[Registration]> {
        Arc::default()
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionId,
        _: Arc<dyn SessionView>,
        _: Arc<dyn EventSink>,
    ) -> BoxFuture<'a, Result<Arc<dyn Extensions>, StateError>> {
        Box::pin(async { Ok(Arc::new(self.clone()) as Arc<dyn Extensions>) })
    }
}

type Answered<'a, T> = BoxFuture<'a, Result<T, NoAnswer>>;

impl Extensions for Log {
    fn input_messages<'a>(&'a self, _: usize, _: &'a [Message]) -> Answered<'a, InputAnswer> {
        Box::pin(async { Ok(InputAnswer::Pass) })
    }

    fn plain_text<'a>(&'a self, _: usize, _: &'a str, _: &'a TextPlace) -> Answered<'a, TextAnswer> {
        Box::pin(async { Ok(TextAnswer::Pass) })
    }

    fn tag<'a>(&'a self, _: usize, _: &'a Tag, _: &'a TagPlace) -> Answered<'a, TagAnswer> {
        Box::pin(async { Ok(TagAnswer::Keep) })
    }

    fn llm_output<'a>(&'a self, _: usize, _: &'a ModelOutput) -> Answered<'a, OutputAnswer> {
        Box::pin(async { Ok(OutputAnswer::default()) })
    }

    fn ttsr_triggered<'a>(&'a self, _: usize, _: &'a TtsrEvent) -> Answered<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn begin_turn(&self) {
        self.add("turn begins");
    }

    fn end_turn(&self) {
        self.add("turn ends");
    }

    fn begin_attempt(&self) {
        if !self.open.swap(true, Ordering::Relaxed) {
            self.add("attempt begins");
        }
    }

    fn end_attempt(&self, end: AttemptEnd) {
        // Without an attempt nothing happens.
        if self.open.swap(false, Ordering::Relaxed) {
            self.add(if end == AttemptEnd::Accepted { "accepted" } else { "discarded" });
        }
    }

    fn close(&self, _: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        let failed = self.fails.as_ref().map(|(_, error)| error.clone());
        Box::pin(async { failed.map_or(Ok(()), Err) })
    }

    fn settle(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        self.add(if patience.is_zero() { "barrier" } else { "save" });
        let barriers = self.told.lock().unwrap().iter().filter(|one| *one == "barrier" || *one == "save").count();
        let failed = self.fails.as_ref().filter(|(from, _)| barriers > *from).map(|(_, error)| error.clone());
        Box::pin(async { failed.map_or(Ok(()), Err) })
    }
}

async fn run_turn(log: &Log, scripts: Vec<Script>, context: rules::ContextMode) -> (TurnReport, Vec<EventKind>) {
    let rules = rule_set(&[("no-x", "+++\ncondition = \"FORBIDDEN\"\nscope = \"text\"\n+++\nDo not.")], |settings| {
        settings.context_mode = context;
    });
    let model = ScriptedModel::new(scripts);
    let parts = SessionParts { extensions: Arc::new(log.clone()), ..tidegate_kit::parts(&model, vec![], rules) };
    let mut session = Session::open(parts).await.unwrap();
    let mut events = session.subscribe();
    let report = session.run(vec![Message::user("go")], &CancellationToken::new()).await;
    (report, drain(&mut events).into_iter().map(|event| event.kind).collect())
}

fn scripts() -> Vec<Script> {
    vec![text("kept. FORBIDDEN words", 3), calls(&[("1", "read", "{}")], 1), text("done", 4)]
}

#[tokio::test]
async fn a_turn_waits_before_each_request_and_before_tools() {
    let log = Log::default();
    let (report, _) = run_turn(&log, scripts(), rules::ContextMode::Discard).await;
    assert_eq!(report.status, TurnStatus::Completed);
    expect![[r#"
        turn begins
        barrier
        barrier
        attempt begins
        discarded
        barrier
        attempt begins
        accepted
        barrier
        barrier
        attempt begins
        accepted
        turn ends
        save"#]]
    .assert_eq(&log.told.lock().unwrap().join("\n"));
}

#[tokio::test]
async fn what_is_kept_of_an_answer_is_accepted() {
    let log = Log::default();
    run_turn(&log, scripts(), rules::ContextMode::Keep).await;
    assert!(!log.told.lock().unwrap().iter().any(|one| one == "discarded"));
}

#[tokio::test]
async fn a_store_that_is_away_does_not_stop_a_turn_which_reports_what_is_not_saved() {
    let cause = Arc::new(std::io::Error::other("refused"));
    let away = StateError::Unavailable { place: "redis://host".into(), cause };
    let log = Log { fails: Some((0, away)), ..Log::default() };
    let (report, events) = run_turn(&log, scripts(), rules::ContextMode::Discard).await;
    assert_eq!(report.status, TurnStatus::Completed);
    let notices: Vec<&String> = events
        .iter()
        .filter_map(|event| if let EventKind::Notice { message } = event { Some(message) } else { None })
        .filter(|message| message.contains("is not saved"))
        .collect();
    assert!(matches!(notices.as_slice(), [one] if one.contains("redis://host")), "{notices:?}");
}

#[tokio::test]
async fn what_cannot_be_saved_when_the_session_is_closed_is_lost_and_an_event() {
    for fails in [true, false] {
        let cause = Arc::new(std::io::Error::other("refused"));
        let away = StateError::Unavailable { place: "redis://host".into(), cause };
        let log = Log { fails: fails.then_some((0, away)), ..Log::default() };
        let model = ScriptedModel::new(vec![text("done", 4)]);
        let parts =
            SessionParts { extensions: Arc::new(log), ..tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {})) };
        let session = Session::open(parts).await.unwrap();
        let mut events = session.subscribe();
        session.close().await;
        let lost = |event: flow::Event| match event.kind {
            EventKind::StateLost { message } => Some(message),
            _ => None,
        };
        let lost: Vec<String> = drain(&mut events).into_iter().filter_map(lost).collect();
        assert_eq!(lost.len(), usize::from(fails), "{lost:?}");
        assert!(lost.iter().all(|message| message.contains("redis://host")), "{lost:?}");
    }
}

#[tokio::test]
async fn a_session_that_was_taken_over_asks_and_runs_nothing_more() {
    let fenced = StateError::Fenced { session: SessionId::new("test"), by: "process 1 on other".into() };
    // The barriers of the turn, of the first request and of the second have passed: that before the tools fails.
    let log = Log { fails: Some((3, fenced)), ..Log::default() };
    let (report, events) = run_turn(&log, scripts(), rules::ContextMode::Discard).await;
    let TurnStatus::Failed { message, .. } = &report.status else { panic!("{report:?}") };
    assert!(message.contains("process 1 on other"), "{message}");
    assert!(!events.iter().any(|event| matches!(event, EventKind::ToolCallStart { .. })), "no tool has run");
}
