//! Limits: when they are checked, who is asked, what is recorded, and how a thread continues.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{Approvals, BoxFuture, LimitAnswer};
use flow::{
    Event, EventKind, InputWay, Limit, LimitDecision, LimitRequest, Limits, Message, Price, Role, Spend, SuspendReason,
    TurnStatus, Usage,
};
use record::Record;
use tidegate_kit::{Decisions, Scene, Script, ScriptedModel, calls, ready, rule_set, say};
use tidegate_turn as turn;
use turn::rebuild::{Rebuild, Resumed};
use turn::{Budget, CancellationToken, Session, SessionParts, SessionSettings, Subscription};

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// The price of a prompt token is a cent, that of a token of the answer ten.
fn price() -> Price {
    let mut price = Price::default();
    (price.input, price.output) = (1e4, 1e5);
    price
}

fn scene(scripts: Vec<Script>, limits: Limits, desk: Option<Arc<Decisions>>, price: Option<Price>) -> Scene {
    resumed(scripts, limits, desk, price, None)
}

fn resumed(
    scripts: Vec<Script>,
    limits: Limits,
    desk: Option<Arc<Decisions>>,
    price: Option<Price>,
    from: Option<&[Event]>,
) -> Scene {
    let model = ScriptedModel::new(scripts);
    let settings = SessionSettings { price, ..SessionSettings::default() };
    let parts = SessionParts { settings, ..tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {})) };
    let mut session = ready(Session::open(parts)).unwrap();
    session = session.with_budget(Budget::new(limits, None), desk.map(|desk| desk as Arc<dyn Approvals>));
    if let Some(past) = from {
        session = session.with_journal(Arc::new(Unwritten), Some(rebuilt(past)));
    }
    let events = session.subscribe();
    Scene { model, session, events, past: from.map(<[Event]>::to_vec).unwrap_or_default() }
}

/// A journal that keeps nothing, at once.
struct Unwritten;

impl flow::ports::Journal for Unwritten {
    fn append(&self, _: &Event) -> flow::ports::Durability {
        flow::ports::Durability::Droppable
    }

    fn durable(&self) -> BoxFuture<'_, Result<(), flow::ports::JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn watch(&self, _: Box<dyn Fn(flow::ports::JournalProgress) + Send + Sync>) {}

    fn close(&self) -> BoxFuture<'_, Result<(), flow::ports::JournalError>> {
        self.durable()
    }
}

fn rebuilt(past: &[Event]) -> Resumed {
    let mut rebuild = Rebuild::default();
    past.iter().for_each(|event| rebuild.take(&Record::of(event, "test")).unwrap());
    rebuild.finish()
}

/// A step that calls a tool, and another one: as many as wanted.
fn steps(count: usize) -> Vec<Script> {
    let call = |id: usize| calls(&[(&id.to_string(), "read", "{}")], 50);
    (1..count).map(call).chain([say("Done.")]).collect()
}

fn names(events: &[Event]) -> Vec<&'static str> {
    let wanted = |name: &&str| name.starts_with("thread_") || name.starts_with("limit_") || *name == "turn_finish";
    events.iter().map(|event| event.kind.name()).filter(wanted).collect()
}

#[tokio::test(start_paused = true)]
async fn three_steps_are_made_and_the_fourth_after_an_approval() {
    let desk = Decisions::new([LimitDecision::Approved { max: 4.0 }]);
    let mut scene = scene(steps(4), limits(|limits| limits.steps = Some(3)), Some(Arc::clone(&desk)), None);
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Done."));
    let expected = ["thread_started", "limit_escalation_requested", "limit_escalation_resolved", "turn_finish"];
    assert_eq!(names(&events), expected);
    let asked = desk.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].limit, asked[0].current, asked[0].max, asked[0].proposed), (Limit::Steps, 3.0, 3.0, 7.0));
    // Waiting for the decision took none of the session's time.
    // What was spent is the same for who reads the records, also what was estimated because nobody counted.
    assert_eq!(rebuilt(&scene.past).spent, scene.session.budget().spent());
    assert!(scene.session.budget().spent().tokens > 100);
    assert!(scene.session.budget().spent().duration < Duration::from_secs(60));
    assert_eq!(rebuilt(&scene.past).raised, [(Limit::Steps, 4.0)]);
}

/// A front end that answers at once, and notes which events it has received before a request is open.
#[derive(Default)]
struct Quick {
    events: Mutex<Option<Subscription>>,
    received_before: Mutex<Vec<&'static str>>,
}

impl Approvals for Quick {
    fn decide<'a>(&'a self, request: &'a LimitRequest) -> BoxFuture<'a, LimitAnswer> {
        let mut events = self.events.lock().unwrap();
        let received = names(&tidegate_kit::drain(events.as_mut().unwrap()));
        self.received_before.lock().unwrap().extend(received);
        let decision = LimitDecision::Approved { max: request.proposed };
        Box::pin(std::future::ready(LimitAnswer { decision, by: "the front end".into() }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_open_before_its_event_is_emitted() {
    let desk = Arc::new(Quick::default());
    let mut scene = scene(steps(2), Limits::default(), None, None);
    scene.session = scene.session.with_budget(
        Budget::new(limits(|limits| limits.steps = Some(1)), None),
        Some(Arc::clone(&desk) as Arc<dyn Approvals>),
    );
    *desk.events.lock().unwrap() = Some(scene.session.subscribe());
    assert_eq!(scene.turn("go").await.0.status, TurnStatus::Completed);
    assert_eq!(*desk.received_before.lock().unwrap(), ["thread_started"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_decides_and_the_thread_continues_later_without_an_input() {
    let limit = || limits(|limits| limits.steps = Some(3));
    let mut first = scene(
        steps(3).into_iter().take(2).chain(steps(2)).collect(),
        limit(),
        Some(Decisions::new([LimitDecision::TimedOut])),
        None,
    );
    let (report, events) = first.turn("go").await;
    assert!(
        matches!(&report.status, TurnStatus::Suspended { reason: SuspendReason::Limit, message } if message.contains("`steps` of 3: 3 spent")),
        "{:?}",
        report.status
    );
    let end = ["limit_escalation_requested", "limit_escalation_resolved", "turn_finish", "thread_suspended"];
    assert_eq!(names(&events)[1..], end);
    assert_eq!(first.model.asked(), 3, "no request was sent beyond the limit");

    // Another process: the same question is asked again, under the same id.
    let desk = Decisions::new([LimitDecision::Approved { max: 10.0 }]);
    let mut second = resumed(vec![say("Done.")], limit(), Some(Arc::clone(&desk)), None, Some(&first.past));
    let report = second.session.resume("approval", &CancellationToken::new()).await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Done."));
    let events = tidegate_kit::drain(&mut second.events);
    let resumed = events.iter().find_map(|event| match &event.kind {
        EventKind::ThreadResumed { by, suspended, .. } => Some((by.clone(), *suspended)),
        _ => None,
    });
    assert_eq!(resumed, Some(("approval".into(), Some(SuspendReason::Limit))));
    assert_eq!(desk.asked()[0].id, "limit-1");
    let roles: Vec<Role> = second.model.request(0).iter().map(|(role, _)| *role).collect();
    assert_eq!(roles.last(), Some(&Role::Tool), "no message was added: {roles:?}");
    second.past.extend(events);
    assert_eq!(rebuilt(&second.past).open_request, None);
    assert_eq!(rebuilt(&second.past).raised, [(Limit::Steps, 10.0)]);
}

#[tokio::test(start_paused = true)]
async fn a_denial_suspends_with_the_reason_and_the_next_input_resumes() {
    let denied = LimitDecision::Denied { reason: "enough".into() };
    let desk = Decisions::new([denied, LimitDecision::Approved { max: 5.0 }]);
    let mut scene = scene(
        steps(1).into_iter().chain(steps(1)).collect(),
        limits(|limits| limits.turns = Some(1)),
        Some(desk),
        None,
    );
    assert_eq!(scene.turn("one").await.0.status, TurnStatus::Completed);
    let (report, _) = scene.turn("two").await;
    assert!(
        matches!(&report.status, TurnStatus::Suspended { message, .. } if message.ends_with("it was denied: enough"))
    );
    let (report, events) = scene.turn("three").await;
    assert_eq!(report.status, TurnStatus::Completed);
    assert_eq!(names(&events)[0], "thread_resumed");
    assert_eq!(rebuilt(&scene.past).limit_requests, 2);
}

#[tokio::test(start_paused = true)]
async fn without_anybody_to_ask_the_thread_is_suspended() {
    let mut scene = scene(steps(2), limits(|limits| limits.steps = Some(1)), None, None);
    let (report, events) = scene.turn("go").await;
    assert!(matches!(report.status, TurnStatus::Suspended { .. }));
    assert_eq!(names(&events)[1..], ["turn_finish", "thread_suspended"]);
}

/// A request whose prompt does not fit any more is not sent, and nothing of the limit is exceeded.
#[tokio::test(start_paused = true)]
async fn tokens_and_spend_are_limited_before_they_are_exceeded() {
    let counted = |script: Script, input, output| {
        let Script::Say(mut deltas, end) = script else { unreachable!() };
        let usage = Usage { input: Some(input), output: Some(output), ..Usage::default() };
        deltas.insert(deltas.len() - 1, flow::Delta::Usage(usage));
        Script::Say(deltas, end)
    };
    let scripts = || -> Vec<Script> { steps(3).into_iter().map(|script| counted(script, 100, 10)).collect() };
    for (limit, reason, current) in [
        (limits(|limits| limits.tokens = Some(300)), SuspendReason::Limit, 220.0),
        (limits(|limits| limits.spend = Some(Spend::of_dollars(5.0))), SuspendReason::Budget, 4.0),
    ] {
        let desk = Decisions::new([LimitDecision::Denied { reason: String::new() }]);
        let mut scene = scene(scripts(), limit, Some(Arc::clone(&desk)), Some(price()));
        let (report, events) = scene.turn("go").await;
        assert!(matches!(report.status, TurnStatus::Suspended { reason: why, .. } if why == reason), "{report:?}");
        assert_eq!((scene.model.asked(), desk.asked()[0].current), (2, current));
        let costs: Vec<_> = events
            .iter()
            .filter_map(|event| if let EventKind::StepFinish { spend, .. } = event.kind { Some(spend) } else { None })
            .collect();
        assert_eq!(costs, [Some(Spend::of_dollars(2.0)); 2]);
        assert_eq!(rebuilt(&scene.past).spent, scene.session.budget().spent());
        assert_eq!(rebuilt(&scene.past).spend, Some(Spend::of_dollars(4.0)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_price_is_unknown_and_not_nothing() {
    let mut scene = scene(steps(1), Limits::default(), None, None);
    let (_, events) = scene.turn("go").await;
    let spend = events.iter().find_map(|event| match event.kind {
        EventKind::StepFinish { spend, .. } => Some(spend),
        _ => None,
    });
    assert_eq!((spend, rebuilt(&scene.past).spend), (Some(None), None));
}

#[tokio::test(start_paused = true)]
async fn there_is_nothing_to_continue_after_a_complete_answer() {
    let mut scene = scene(steps(1), Limits::default(), None, None);
    scene.turn("go").await;
    let report = scene.session.resume("approval", &CancellationToken::new()).await;
    assert!(matches!(&report.status, TurnStatus::Failed { message, .. } if message.contains("nothing to continue")));
}

/// Whether an answer is complete does not depend on what it says.
#[tokio::test(start_paused = true)]
async fn an_answer_that_quotes_the_mark_of_an_interrupted_one_is_complete() {
    let mut scene = scene(vec![say("It says:\n\n[Stream interrupted: cancelled]")], Limits::default(), None, None);
    scene.turn("go").await;
    let report = scene.session.resume("continue", &CancellationToken::new()).await;
    assert!(matches!(&report.status, TurnStatus::Failed { message, .. } if message.contains("nothing to continue")));
    let mut again = resumed(vec![], Limits::default(), None, None, Some(&scene.past));
    let report = again.session.resume("continue", &CancellationToken::new()).await;
    assert!(matches!(&report.status, TurnStatus::Failed { message, .. } if message.contains("nothing to continue")));
}

/// What a request that broke off has taken counts before the next one is sent.
#[tokio::test(start_paused = true)]
async fn a_repeated_attempt_is_within_the_limits() {
    let usage = Usage { input: Some(100), output: Some(60), ..Usage::default() };
    let broken = || {
        let error = flow::ModelError::new(flow::ErrorClass::Transient, "connection reset");
        Script::Say(vec![flow::Delta::Start { model: None }, flow::Delta::Usage(usage)], Some(Err(error)))
    };
    for (decision, asked) in [(LimitDecision::Approved { max: 1_000.0 }, 2), (LimitDecision::TimedOut, 1)] {
        let desk = Decisions::new([decision]);
        let limit = limits(|limits| limits.tokens = Some(200));
        let mut scene = scene(vec![broken(), say("Done.")], limit, Some(Arc::clone(&desk)), None);
        let (report, events) = scene.turn("go").await;
        assert_eq!(scene.model.asked(), asked);
        assert_eq!(
            desk.asked().iter().map(|one| (one.limit, one.current)).collect::<Vec<_>>(),
            [(Limit::Tokens, 160.0)]
        );
        assert_eq!(report.status == TurnStatus::Completed, asked == 2, "{report:?}");
        assert_eq!(names(&events).contains(&"thread_suspended"), asked == 1);
        let place = events.iter().find(|event| event.kind.name() == "limit_escalation_requested").unwrap().place;
        assert_eq!((place.step, place.attempt), (1, 2));
    }
}

/// What the next attempt would have continued stays in the conversation where that attempt is not permitted.
#[tokio::test(start_paused = true)]
async fn a_kept_start_is_not_lost_where_the_next_attempt_is_not_permitted() {
    let usage = Usage { input: Some(100), output: Some(60), ..Usage::default() };
    let text = [(flow::StreamKind::Text, "One line.\nThen FORBIDDEN words.")];
    let mut deltas = tidegate_kit::blocks(&text, 50, flow::StopReason::EndTurn);
    deltas.insert(1, flow::Delta::Usage(usage));
    let model = ScriptedModel::going_on([Script::Say(deltas, Some(Ok(())))]);
    let rules = rule_set(&[("hard", "+++\ncondition = \"FORBIDDEN\"\n+++\nNo.")], |settings| {
        settings.context_mode = rules::ContextMode::Rewind;
    });
    let session = ready(Session::open(tidegate_kit::parts(&model, vec![], rules))).unwrap();
    let session = session.with_budget(Budget::new(limits(|limits| limits.tokens = Some(200)), None), None);
    let events = session.subscribe();
    let mut scene = Scene { model, session, events, past: Vec::new() };
    let (report, _) = scene.turn("go").await;
    assert!(matches!(report.status, TurnStatus::Suspended { .. }), "{report:?}");
    let history = scene.session.history();
    let last = history.last().unwrap().plain_text();
    assert!(last.starts_with("One line.\n\n[Stream interrupted: the session has reached its limit `tokens`"), "{last}");
    assert_eq!(rebuilt(&scene.past).history, history);
    assert!(rebuilt(&scene.past).ends_partial);
}

/// A cancel while a decision is waited for ends the turn at once; the request remains open.
#[tokio::test(start_paused = true)]
async fn cancelled_while_a_decision_is_waited_for() {
    let mut scene = scene(steps(2), limits(|limits| limits.steps = Some(1)), Some(Decisions::new([])), None);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stop.cancel();
    });
    let report = scene.session.run(vec![Message::user("go")], &cancel).await;
    assert_eq!(report.status, TurnStatus::Cancelled);
    let events = tidegate_kit::drain(&mut scene.events);
    assert_eq!(rebuilt(&events).open_request, Some(("limit-1".into(), Limit::Steps)));
}

/// The time after a process was killed in a turn is not that of the turn, however often the thread is resumed.
#[tokio::test(start_paused = true)]
async fn the_time_in_which_no_process_ran_does_not_count() {
    let mut scene = scene(steps(2), Limits::default(), None, None);
    scene.turn("go").await;
    let end = scene.past.iter().position(|event| event.kind.name() == "tool_call_result").unwrap();
    let mut records: Vec<_> = scene.past[..end].iter().map(|event| Record::of(event, "test")).collect();
    let mut again: Vec<_> = scene.past.iter().map(|event| Record::of(event, "test")).collect();
    let days = 3 * 24 * 3_600_000;
    again.iter_mut().for_each(|record| record.ts += days);
    records.extend(again);
    let mut rebuild = Rebuild::default();
    records.iter().for_each(|record| rebuild.take(record).unwrap());
    let spent = rebuild.finish().spent;
    assert!(spent.duration < Duration::from_secs(60), "{spent:?}");
    assert_eq!(spent.turns, 2);
}

/// The user writes something while the session waits for a decision: the request that was waiting for it has the message.
#[tokio::test(start_paused = true)]
async fn what_is_said_during_a_decision_is_read_with_the_next_request() {
    let scripts = vec![calls(&[("1", "read", "{}")], usize::MAX), say("Read.")];
    let desk = Decisions::new([LimitDecision::Approved { max: 9.0 }]);
    let mut scene = scene(scripts, limits(|limits| limits.steps = Some(1)), Some(Arc::clone(&desk)), None);
    let (inputs, cancel) = (scene.session.handles().inputs, CancellationToken::new());
    let turn = scene.session.run(vec![Message::user("Read it.")], &cancel);
    let said = async {
        while desk.asked().is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        inputs.wait(vec![(None, Message::user("All of it."))], InputWay::Steer);
    };
    let (report, _) = tokio::join!(turn, said);
    assert_eq!((report.status, scene.model.asked()), (TurnStatus::Completed, 2));
    assert_eq!(scene.model.request(1).last().unwrap(), &(Role::User, "All of it.".to_owned()));
}
