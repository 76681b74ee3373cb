//! Messages that arrive while a turn runs: when they reach the model, and that no end of a turn loses one.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use flow::{Callback, EventKind, InputAnswer, InputId, InputWay, Message, OutputMode, Receipt, TurnStatus};
use tidegate_kit::{Plugin, ScriptedModel, assert_rebuilt, assert_valid, calls, drain, live, rule_set, said, text};
use tidegate_turn as turn;
use turn::{CancellationToken, Inputs, Session};

/// The inputs of a session, once it is open.
type Handle = Arc<OnceLock<Inputs>>;

/// Hands messages over while answers are accepted: those of the first answer, then those of the second.
fn person(inputs: &Handle, messages: impl IntoIterator<Item = &'static [&'static str]>) -> Plugin {
    let (inputs, messages) = (Arc::clone(inputs), Mutex::new(messages.into_iter().collect::<VecDeque<_>>()));
    Plugin {
        id: "person",
        callbacks: vec![(Callback::LlmOutput(OutputMode::Observe), 50)],
        output: Some(Box::new(move |_| {
            let now = messages.lock().unwrap().pop_front().unwrap_or_default();
            now.iter().for_each(|text| drop(steer(inputs.get().unwrap(), text)));
            Ok(flow::OutputAnswer::default())
        })),
        ..Plugin::default()
    }
}

fn hand_over(inputs: &Inputs, text: &str, way: InputWay) -> InputId {
    inputs.wait(vec![(None, Message::user(text))], way).1.remove(0)
}

fn steer(inputs: &Inputs, text: &str) -> InputId {
    hand_over(inputs, text, InputWay::Steer)
}

fn session(model: &Arc<ScriptedModel>, plugins: Vec<Plugin>, handle: &Handle) -> Session {
    let session = tidegate_kit::session(model, plugins, rule_set(&[], |_| {}));
    assert!(handle.set(session.handles().inputs).is_ok());
    session
}

fn conversation(session: &Session) -> Vec<String> {
    session.history().iter().map(|message| said(message)).collect()
}

async fn go(session: &mut Session) -> turn::TurnReport {
    session.run(vec![Message::user("go")], &CancellationToken::new()).await
}

#[tokio::test]
async fn a_message_is_delivered_once_after_all_results_and_before_the_next_request() {
    let model = ScriptedModel::new([calls(&[("1", "echo", "{}"), ("2", "echo", "{}")], 1), text("done", 1)]);
    let handle = Handle::default();
    let mut session = session(&model, vec![person(&handle, [&["only in this file", "please"][..]])], &handle);
    let mut events = session.subscribe();
    let report = go(&mut session).await;
    assert_eq!((report.status, report.place.step, model.asked()), (TurnStatus::Completed, 2, 2));
    let all = conversation(&session);
    assert_eq!((all[0].as_str(), &all[3..]), ("go", &["only in this file", "please", "done"].map(str::to_owned)[..]));
    assert_eq!(model.request(1).len(), 5, "both results come before the messages: {:?}", model.request(1));
    let events = drain(&mut events);
    let delivered = |event: &flow::Event| match &event.kind {
        EventKind::SteeringMessage { id, text, .. } => {
            Some((id.clone().unwrap(), event.place, event.seq, text.clone()))
        }
        _ => None,
    };
    let delivered: Vec<_> = events.iter().filter_map(delivered).collect();
    let texts: Vec<_> = delivered.iter().map(|(_, place, _, text)| (place.step, text.as_str())).collect();
    assert_eq!(texts, [(1, "only in this file"), (1, "please")]);
    for (id, place, seq, _) in delivered {
        assert_eq!(session.handles().inputs.receipt(&id), Some(Receipt::Delivered { place, seq }));
    }
    assert_rebuilt(&events, &session.history());
}

#[tokio::test]
async fn a_message_at_the_last_instant_keeps_the_turn_going() {
    let model = ScriptedModel::new([text("one", 1), text("two", 1)]);
    let handle = Handle::default();
    let mut session = session(&model, vec![person(&handle, [&["wait"][..]])], &handle);
    let report = go(&mut session).await;
    assert_eq!((report.text.as_str(), report.place.step), ("onetwo", 2));
    assert_eq!(conversation(&session), ["go", "one", "wait", "two"]);
}

#[tokio::test]
async fn a_queued_message_is_not_for_the_running_turn() {
    let model = ScriptedModel::new([text("one", 1), text("two", 1)]);
    let handle = Handle::default();
    let mut session = session(&model, vec![], &handle);
    let inputs = session.handles().inputs;
    let id = hand_over(&inputs, "later", InputWay::Queue);
    assert_eq!(go(&mut session).await.text, "one");
    assert_eq!(inputs.receipt(&id), Some(Receipt::Queued));
    let claim = inputs.claim_queued(turn::FlushMode::Sequential).unwrap();
    assert_eq!(session.run_claimed(claim, &CancellationToken::new()).await.text, "two");
    assert!(
        matches!(inputs.receipt(&id), Some(Receipt::Delivered { place, .. }) if (place.turn, place.step) == (2, 0))
    );
    assert_eq!(conversation(&session), ["go", "one", "later", "two"]);
}

fn guard(answer: fn(&str) -> Result<InputAnswer, String>) -> Plugin {
    Plugin {
        id: "guard",
        callbacks: vec![(Callback::InputMessages, 50)],
        input: Some(Box::new(move |messages| {
            let text = messages[0].plain_text();
            if text == "go" { Ok(InputAnswer::Pass) } else { answer(&text) }
        })),
        ..Plugin::default()
    }
}

#[tokio::test]
async fn extensions_see_steering_messages_as_input() {
    type Case = (fn(&str) -> Result<InputAnswer, String>, &'static [&'static str]);
    let cases: [Case; 4] = [
        (|text| Ok(InputAnswer::Replace(vec![Message::user(text.to_uppercase())])), &["go", "one", "WAIT", "two"]),
        (|_| Ok(InputAnswer::Reject("not now".into())), &["go", "one"]),
        (|_| Ok(InputAnswer::Reply("by hand".into())), &["go", "one", "wait", "by hand"]),
        (|_| Ok(InputAnswer::Replace(vec![])), &["go", "one"]),
    ];
    for (answer, wanted) in cases {
        let model = ScriptedModel::new([text("one", 1), text("two", 1)]);
        let handle = Handle::default();
        let mut session = session(&model, vec![guard(answer), person(&handle, [&["wait"][..]])], &handle);
        let mut events = session.subscribe();
        let report = go(&mut session).await;
        assert_eq!(
            (report.status, conversation(&session)),
            (TurnStatus::Completed, wanted.iter().map(|s| (*s).to_owned()).collect())
        );
        let rejected = drain(&mut events).iter().any(|event| {
            matches!(&event.kind, EventKind::Notice { message } if message.contains("`guard` rejected a steering message: not now"))
        });
        assert!(!rejected || wanted.len() == 2, "{wanted:?}");
        let receipt = session.handles().inputs.receipt(&InputId::new("input-1"));
        assert!(matches!(receipt, Some(Receipt::Delivered { .. })), "the session has taken it: {receipt:?}");
    }
}

#[tokio::test]
async fn a_required_extension_that_fails_on_a_message_ends_the_turn_once() {
    let model = ScriptedModel::new([text("one", 1), text("two", 1)]);
    let handle = Handle::default();
    let strict = Plugin { required: true, ..guard(|_| Err("it broke".into())) };
    let mut session = session(&model, vec![strict, person(&handle, [&["wait"][..]])], &handle);
    let TurnStatus::Failed { message, .. } = go(&mut session).await.status else { panic!("it ran on") };
    assert!(message.contains("a required extension failed"), "{message}");
    assert!(matches!(session.handles().inputs.receipt(&InputId::new("input-1")), Some(Receipt::Delivered { .. })));
    assert_eq!(go(&mut session).await.status, TurnStatus::Completed, "the message is not sent again");
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_it_delivers_loses_no_message() {
    let model = ScriptedModel::new([text("one", 1)]);
    let slow = Plugin { id: "slow", callbacks: vec![(Callback::InputMessages, 50)], yields: true, ..Plugin::default() };
    let handle = Handle::default();
    let mut session = session(&model, vec![slow], &handle);
    let inputs = session.handles().inputs;
    let (steered, queued) = (steer(&inputs, "wait"), hand_over(&inputs, "later", InputWay::Queue));
    let cancel = CancellationToken::new();
    {
        let run = session.run(vec![Message::user("go")], &cancel);
        let mut run = std::pin::pin!(run);
        while inputs.edit(&steered, "wait!").is_ok() {
            assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(run.as_mut().poll(cx))).await.is_pending());
        }
        let error = inputs.edit(&steered, "no").unwrap_err();
        assert_eq!(error.to_string(), "the input `input-1` does not wait: it is being delivered");
        cancel.cancel();
        assert_eq!(run.await.status, TurnStatus::Cancelled);
    }
    assert_eq!(conversation(&session), ["go"], "it is not delivered");
    let waiting: Vec<_> = inputs.waiting().into_iter().map(|input| (input.id, input.is_taken)).collect();
    assert_eq!(waiting, [(steered, false), (queued, false)]);
    assert_eq!(
        session.run(vec![Message::user("again")], &CancellationToken::new()).await.status,
        TurnStatus::Completed
    );
    assert_eq!(conversation(&session), ["go", "again", "wait!", "one"]);
}

#[tokio::test]
async fn a_queued_input_whose_turn_is_cancelled_waits_again_and_a_prompt_is_given_back() {
    let slow = || Plugin {
        id: "slow",
        callbacks: vec![(Callback::InputMessages, 50)],
        hangs: None,
        yields: true,
        ..Plugin::default()
    };
    for (way, wanted) in
        [(InputWay::Queue, Receipt::Queued), (InputWay::Steer, Receipt::Queued), (InputWay::Prompt, Receipt::Returned)]
    {
        let model = ScriptedModel::new([text("one", 1)]);
        let handle = Handle::default();
        let mut session = session(&model, vec![slow()], &handle);
        let mut events = session.subscribe();
        let inputs = session.handles().inputs;
        let (ids, claim) = inputs.start(vec![(None, Message::user("now"))], way);
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert_eq!(session.run_claimed(claim.unwrap(), &cancel).await.status, TurnStatus::Cancelled);
        assert_eq!(inputs.receipt(&ids[0]), Some(wanted), "{way:?}");
        assert_eq!(inputs.waiting().len(), usize::from(wanted == Receipt::Queued), "{way:?}");
        let events = drain(&mut events);
        let reported = events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::InputQueued { .. } | EventKind::InputWithdrawn { .. }));
        assert_eq!(reported.count(), 1, "{way:?}: {events:?}");
    }
}

#[tokio::test]
async fn an_interrupt_aborts_the_answer_and_keeps_its_text() {
    let (say, endless) = live();
    let model = ScriptedModel::new([endless, text("stopped", 1)]);
    let handle = Handle::default();
    let mut session = session(&model, vec![], &handle);
    let (inputs, mut events) = (session.handles().inputs, session.subscribe());
    say.send("half").unwrap();
    let person = async {
        while !matches!(events.next().await.unwrap().kind, EventKind::CognitionOutDelta { .. }) {}
        steer(&inputs, "by the way");
        hand_over(&inputs, "stop", InputWay::Interrupt)
    };
    let (report, id) = tokio::join!(go(&mut session), person);
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "stopped"));
    let partial = "half\n\n[Stream interrupted: the user interrupted it]";
    assert_eq!(conversation(&session), ["go", partial, "by the way", "stop", "stopped"]);
    assert!(say.is_closed(), "the stream is dropped");
    assert!(
        matches!(inputs.receipt(&id), Some(Receipt::Delivered { place, .. }) if (place.turn, place.step) == (1, 1))
    );
    assert_valid(&session.history());
}

#[tokio::test]
async fn an_interrupt_stops_the_running_call_and_those_after_it() {
    let script = calls(&[("1", "read", "{}"), ("2", "slow", "{}"), ("3", "write", "{}")], 4);
    let model = ScriptedModel::new([script, text("stopped", 1)]);
    let handle = Handle::default();
    let mut session = session(&model, vec![], &handle);
    let (inputs, mut events) = (session.handles().inputs, session.subscribe());
    let person = async {
        let runs = |kind: &EventKind| matches!(kind, EventKind::ToolCallStart { tool, .. } if tool == "slow");
        while !runs(&events.next().await.unwrap().kind) {}
        hand_over(&inputs, "stop", InputWay::Interrupt);
    };
    let (report, ()) = tokio::join!(go(&mut session), person);
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "stopped"));
    let all = conversation(&session);
    let results: Vec<_> = all[2].lines().collect();
    assert!(results[0].contains("read done"), "{all:?}");
    assert!(results[1].contains("interrupted this call while it was running"), "{all:?}");
    assert!(results[2].contains("not run: the user interrupted"), "{all:?}");
    assert_eq!(all[3..], ["stop", "stopped"]);
    let started = drain(&mut events).into_iter().filter(|event| matches!(event.kind, EventKind::ToolCallStart { .. }));
    assert_eq!(started.count(), 0, "the third call has not begun");
    assert_valid(&session.history());
}

#[tokio::test]
async fn an_interrupt_that_an_extension_rejects_ends_the_turn() {
    let (say, endless) = live();
    let model = ScriptedModel::new([endless]);
    let handle = Handle::default();
    let plugins = vec![guard(|_| Ok(InputAnswer::Reject("not now".into())))];
    let mut session = session(&model, plugins, &handle);
    let (inputs, mut events) = (session.handles().inputs, session.subscribe());
    say.send("half").unwrap();
    let person = async {
        while !matches!(events.next().await.unwrap().kind, EventKind::CognitionOutDelta { .. }) {}
        hand_over(&inputs, "stop", InputWay::Interrupt);
    };
    let (report, ()) = tokio::join!(go(&mut session), person);
    assert!(matches!(report.status, TurnStatus::Rejected { .. }), "{report:?}");
    assert_eq!(model.asked(), 1);
}
