//! A turn that waits for a summary or for a decision about a limit is interrupted and cancelled as one that waits for an answer.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::Approvals;
use flow::{
    Callback, Delta, ErrorClass, Event, EventKind, InputAnswer, InputId, InputWay, Limit, LimitDecision, Limits,
    Message, ModelError, Receipt, StopReason, StreamKind, TurnStatus, Usage,
};
use record::Record;
use tidegate_kit::{Decisions, Plugin, Script, ScriptedModel, blocks, drain, ready, rule_set, say, text};
use tidegate_turn as turn;
use turn::rebuild::Rebuild;
use turn::{Budget, CancellationToken, Compaction, Session, SessionParts, SessionSettings, TurnReport};

const INTERRUPTED: &str = "the user interrupted it";

struct Scene {
    model: Arc<ScriptedModel>,
    session: Session,
    desk: Arc<Decisions>,
    events: turn::Subscription,
}

/// An answer whose deltas take time, and whose tokens are counted as it begins.
fn slow(words: &str) -> Script {
    let mut deltas = blocks(&[(StreamKind::Text, words)], 4, StopReason::EndTurn);
    deltas.insert(1, Delta::Usage(Usage { input: Some(30), output: Some(2), ..Usage::default() }));
    Script::Slow(deltas.into_iter().map(|delta| (1, delta)).collect())
}

/// A session whose next turn begins with a question about its steps and with a summary, the first request for which is refused.
async fn scene(decisions: Vec<LimitDecision>, plugins: Vec<Plugin>) -> Scene {
    let mut limits = Limits::default();
    limits.steps = Some(2);
    limited(limits, decisions, plugins).await
}

async fn limited(limits: Limits, decisions: Vec<LimitDecision>, plugins: Vec<Plugin>) -> Scene {
    let busy = Script::Refuse(ModelError::new(ErrorClass::Transient, "busy"));
    let scripts =
        vec![text(&"one ".repeat(100), 50), text(&"two ".repeat(100), 50), busy, slow("They counted."), slow("Three.")];
    let model = Arc::new(ScriptedModel {
        scripts: Mutex::new(scripts),
        otherwise: Some(say("Fine.")),
        ..ScriptedModel::default()
    });
    let compaction = Some(Compaction { context_tokens: Some(640), at: 0.5, keep_turns: 2 });
    let settings = SessionSettings { compaction, ..SessionSettings::default() };
    let parts = SessionParts { settings, ..tidegate_kit::parts(&model, plugins, rule_set(&[], |_| {})) };
    let desk = Decisions::new(decisions);
    let session = ready(Session::open(parts)).unwrap();
    let mut session = session.with_budget(Budget::new(limits, None), Some(Arc::clone(&desk) as Arc<dyn Approvals>));
    let events = session.subscribe();
    for input in ["first", "second"] {
        let report = session.run(vec![Message::user(input)], &CancellationToken::new()).await;
        assert_eq!(report.status, TurnStatus::Completed);
    }
    Scene { model, session, desk, events }
}

fn approved() -> LimitDecision {
    LimitDecision::Approved { max: 9.0 }
}

/// Runs the turn, and does something before the poll of this number. Returns how many polls it took.
async fn run(
    scene: &mut Scene,
    at: Option<usize>,
    what: impl Fn(&turn::Inputs, &CancellationToken),
) -> (TurnReport, usize) {
    let (inputs, cancel) = (scene.session.handles().inputs, CancellationToken::new());
    let mut run = std::pin::pin!(scene.session.run(vec![Message::user("third")], &cancel));
    let mut polls = 0;
    let report = std::future::poll_fn(|cx| {
        if at == Some(polls) {
            what(&inputs, &cancel);
        }
        polls += 1;
        run.as_mut().poll(cx)
    });
    let report = report.await;
    (report, polls)
}

fn stop(inputs: &turn::Inputs, _: &CancellationToken) {
    let message = (Some(InputId::new("stop")), Message::user("Stop that."));
    let _ = inputs.wait(vec![message], InputWay::Interrupt);
}

/// Nothing is left running, and the records say what the session is.
fn settled(scene: &mut Scene, context: &str) -> Vec<Event> {
    assert_eq!(scene.model.open.load(Ordering::SeqCst), 0, "{context}: a stream is open");
    let (events, history) = (drain(&mut scene.events), scene.session.history());
    tidegate_kit::assert_valid(&history);
    tidegate_kit::assert_rebuilt(&events, &history);
    let mut rebuild = Rebuild::default();
    events.iter().for_each(|event| rebuild.take(&Record::of(event, "test")).unwrap());
    assert_eq!(rebuild.finish().spent, scene.session.budget().spent(), "{context}");
    let begun = events.iter().filter(|event| event.kind.name() == "context_compaction_start").count();
    assert_eq!(begun, ends(&events).len(), "{context}: each summary has an end");
    events
}

/// Why each summary was not made, and its tokens.
fn ends(events: &[Event]) -> Vec<(Option<String>, Option<u64>)> {
    let end = |event: &Event| match &event.kind {
        EventKind::ContextCompactionEnd { error, usage, left_out, .. } if left_out.is_empty() => {
            Some((error.clone(), usage.input))
        }
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

#[tokio::test(start_paused = true)]
async fn a_summary_may_be_interrupted_at_any_point() {
    let mut whole = scene(vec![approved()], vec![]).await;
    let (report, polls) = run(&mut whole, None, stop).await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Three."));
    assert_eq!(ends(&settled(&mut whole, "")), [(None, Some(30))]);
    let mut summaries = 0;
    for at in 0..polls {
        let context = format!("interrupted before poll {at} of {polls}");
        let mut scene = scene(vec![approved(), approved()], vec![]).await;
        let (report, _) = run(&mut scene, Some(at), stop).await;
        assert_eq!(report.status, TurnStatus::Completed, "{context}");
        let events = settled(&mut scene, &context);
        let delivered = events.iter().filter(|event| event.kind.name() == "steering_message").count();
        assert_eq!((delivered, scene.session.handles().inputs.waiting().len()), (1, 0), "{context}");
        assert!(matches!(
            scene.session.handles().inputs.receipt(&InputId::new("stop")),
            Some(Receipt::Delivered { .. })
        ));
        let last = scene.model.asked() - 1;
        assert!(scene.model.request(last).iter().any(|(_, text)| text == "Stop that."), "{context}");
        summaries += ends(&events).iter().filter(|(error, _)| error.as_deref() == Some(INTERRUPTED)).count();
    }
    assert!(summaries > 5, "{summaries} summaries were interrupted");
}

#[tokio::test(start_paused = true)]
async fn a_summary_and_a_decision_may_be_cancelled_at_any_point() {
    let cancel = |_: &turn::Inputs, cancel: &CancellationToken| cancel.cancel();
    let (_, polls) = run(&mut scene(vec![approved()], vec![]).await, None, stop).await;
    let mut counted = 0;
    for at in 0..polls {
        let context = format!("cancelled before poll {at} of {polls}");
        let mut scene = scene(vec![approved()], vec![]).await;
        let (report, taken) = run(&mut scene, Some(at), cancel).await;
        assert_eq!((report.status, taken), (TurnStatus::Cancelled, at + 1), "{context}: not at once");
        let events = settled(&mut scene, &context);
        let cancelled = |(error, _): &&(Option<String>, Option<u64>)| error.as_deref() == Some("cancelled");
        counted += ends(&events).iter().filter(cancelled).filter(|(_, input)| *input == Some(30)).count();
    }
    assert!(counted > 3, "the tokens of {counted} summaries that were cancelled are counted");
}

/// The model reads the message before a summary is made, and the step after that begins with the summary.
#[tokio::test(start_paused = true)]
async fn an_interrupted_summary_is_asked_for_again_after_the_message() {
    let mut scene = scene(vec![approved()], vec![]).await;
    let call = tidegate_kit::calls(&[("1", "read", "{}")], usize::MAX);
    *scene.model.scripts.lock().unwrap() = vec![slow("Half a summary."), call, say("They counted."), say("Done.")];
    let (inputs, cancel) = (scene.session.handles().inputs, CancellationToken::new());
    let model = Arc::clone(&scene.model);
    let interrupt = async {
        while model.asked() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        stop(&inputs, &CancellationToken::new());
    };
    let (report, ()) = tokio::join!(scene.session.run(vec![Message::user("third")], &cancel), interrupt);
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Done."));
    let events = settled(&mut scene, "");
    assert_eq!(ends(&events), [(Some(INTERRUPTED.to_owned()), Some(30)), (None, None)]);
    let requests: Vec<usize> = (2..6).map(|number| scene.model.request(number).len()).collect();
    assert_eq!(requests, [1, 6, 1, 7], "a summary, the whole conversation, a summary, what is left of it");
    assert_eq!(scene.model.request(3).last().unwrap().1, "Stop that.");
}

/// The model reads both messages before a summary is made: that of the interrupt of the summary, and that of the question after it.
#[tokio::test(start_paused = true)]
async fn a_second_interrupt_does_not_bring_the_summary_before_the_messages() {
    let mut limits = Limits::default();
    // Enough for the request for a summary, and not for the whole conversation after it.
    limits.tokens = Some(800);
    let mut scene = limited(limits, vec![LimitDecision::Approved { max: 9_000.0 }; 2], vec![]).await;
    *scene.model.scripts.lock().unwrap() = vec![slow("Half a summary."), say("Stopped.")];
    let (inputs, cancel) = (scene.session.handles().inputs, CancellationToken::new());
    let (model, desk) = (Arc::clone(&scene.model), Arc::clone(&scene.desk));
    let interrupts = async {
        for (number, is_reached) in
            [&(|| model.asked() == 3) as &dyn Fn() -> bool, &|| desk.asked().len() == 1].into_iter().enumerate()
        {
            while !is_reached() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            let message = (Some(InputId::new(format!("stop-{number}"))), Message::user(format!("Stop {number}.")));
            let _ = inputs.wait(vec![message], InputWay::Interrupt);
        }
    };
    let (report, ()) = tokio::join!(scene.session.run(vec![Message::user("third")], &cancel), interrupts);
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Stopped."));
    let events = settled(&mut scene, "");
    assert_eq!(ends(&events), [(Some(INTERRUPTED.to_owned()), Some(30))]);
    assert_eq!((scene.model.asked(), scene.desk.asked().len()), (4, 2));
    let texts: Vec<String> = scene.model.request(3).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts[texts.len() - 2..], ["Stop 0.", "Stop 1."]);
}

/// The wait before a request for a summary is repeated ends, too.
#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_the_wait_before_a_repeated_summary() {
    let mut scene = scene(vec![approved()], vec![]).await;
    let (inputs, cancel) = (scene.session.handles().inputs, CancellationToken::new());
    let model = Arc::clone(&scene.model);
    let interrupt = async {
        while model.asked() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        stop(&inputs, &cancel);
    };
    let (report, ()) = tokio::join!(scene.session.run(vec![Message::user("third")], &cancel), interrupt);
    assert_eq!(report.status, TurnStatus::Completed);
    let events = settled(&mut scene, "");
    assert_eq!(ends(&events), [(Some(INTERRUPTED.to_owned()), None)]);
    let at = |name: &str| events.iter().find(|event| event.kind.name() == name).unwrap().at_ms;
    assert!(at("steering_message") - at("retry_scheduled") < 100, "the retry is not waited for");
    assert_eq!(scene.model.request(3).last().unwrap().1, "Stop that.");
}

/// Runs the turn, and interrupts it after so many seconds, and again so many later.
async fn waiting(scene: &mut Scene, seconds: &[u64]) -> TurnReport {
    let (inputs, cancel) = (scene.session.handles().inputs, CancellationToken::new());
    let interrupts = async {
        for (number, seconds) in seconds.iter().enumerate() {
            tokio::time::sleep(Duration::from_secs(*seconds)).await;
            let message = (Some(InputId::new(format!("stop-{number}"))), Message::user(format!("Stop {number}.")));
            let _ = inputs.wait(vec![message], InputWay::Interrupt);
        }
    };
    let run = async { tokio::join!(scene.session.run(vec![Message::user("third")], &cancel), interrupts).0 };
    tokio::time::timeout(Duration::from_secs(86_400), run).await.unwrap()
}

/// The message is delivered at once. The question is the same one then, and the time in which it was open is nobody's.
#[tokio::test(start_paused = true)]
async fn an_interrupt_is_delivered_while_a_decision_is_waited_for() {
    let mut scene = scene(vec![approved(); 3], vec![]).await;
    let report = waiting(&mut scene, &[5, 7]).await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Three."));
    let events = settled(&mut scene, "");
    let ids: Vec<String> = scene.desk.asked().into_iter().map(|request| request.id).collect();
    assert_eq!(ids, ["limit-1"; 3]);
    let names = ["limit_escalation_requested", "limit_escalation_resolved", "steering_message", "step_start"];
    let order: Vec<&str> = events.iter().map(|event| event.kind.name()).filter(|name| names.contains(name)).collect();
    let expected = [names[0], names[2], names[0], names[2], names[0], names[1], names[3]];
    assert_eq!(order[2..], expected, "two turns have a step before");
    assert!(scene.session.budget().spent().duration < Duration::from_secs(60));
    let last = scene.model.request(scene.model.asked() - 1);
    assert!(last.iter().any(|(_, text)| text == "Stop 0.") && last.iter().any(|(_, text)| text == "Stop 1."));
}

/// Where an extension refuses the message of an interrupt, the turn ends, and the request stays open.
#[tokio::test(start_paused = true)]
async fn a_refused_interrupt_ends_the_turn_that_waits_for_a_decision() {
    let refuses = |messages: Vec<Message>| match messages[0].plain_text().starts_with("Stop") {
        true => Ok(InputAnswer::Reject("not now".into())),
        false => Ok(InputAnswer::Pass),
    };
    let guard = Plugin {
        id: "guard",
        callbacks: vec![(Callback::InputMessages, 50)],
        input: Some(Box::new(refuses)),
        ..Plugin::default()
    };
    let mut scene = scene(vec![], vec![guard]).await;
    let report = waiting(&mut scene, &[5]).await;
    assert!(matches!(report.status, TurnStatus::Rejected { .. }), "{report:?}");
    let events = settled(&mut scene, "");
    let mut rebuild = Rebuild::default();
    events.iter().for_each(|event| rebuild.take(&Record::of(event, "test")).unwrap());
    assert_eq!(rebuild.finish().open_request, Some(("limit-1".into(), Limit::Steps)));
}

/// Between two attempts of a step: what the next one would have continued stays in the conversation, before the message.
#[tokio::test(start_paused = true)]
async fn an_interrupt_between_two_attempts_ends_the_step() {
    let usage = Usage { input: Some(100), output: Some(60), ..Usage::default() };
    let mut deltas = blocks(&[(StreamKind::Text, "One line.\nThen FORBIDDEN words.")], 50, StopReason::EndTurn);
    deltas.insert(1, Delta::Usage(usage));
    let model = ScriptedModel::going_on([Script::Say(deltas, Some(Ok(()))), say("Stopped.")]);
    let rules = rule_set(&[("hard", "+++\ncondition = \"FORBIDDEN\"\n+++\nNo.")], |settings| {
        settings.context_mode = rules::ContextMode::Rewind;
    });
    let (desk, mut limits) = (Decisions::new(vec![LimitDecision::Approved { max: 9_000.0 }; 2]), Limits::default());
    limits.tokens = Some(200);
    let session = ready(Session::open(tidegate_kit::parts(&model, vec![], rules))).unwrap();
    let session = session.with_budget(Budget::new(limits, None), Some(Arc::clone(&desk) as Arc<dyn Approvals>));
    let events = session.subscribe();
    let mut scene = Scene { model, session, desk, events };
    let report = waiting(&mut scene, &[5]).await;
    assert_eq!((report.status, scene.desk.asked().len()), (TurnStatus::Completed, 2));
    settled(&mut scene, "");
    let texts: Vec<String> = scene.model.request(1).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts[2], format!("One line.\n\n[Stream interrupted: {INTERRUPTED}]"));
    assert_eq!(texts.last().unwrap(), "Stop 0.");
}
