//! Messages that arrive while a turn runs: when they reach the model, and that no end of a turn loses one.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use flow::{Callback, EventKind, InputAnswer, Message, TurnStatus};
use tidegate_kit::{Plugin, ScriptedModel, calls, drain, rule_set, said, text};
use tidegate_turn as turn;
use turn::ports::Inbox;
use turn::{CancellationToken, Session};

/// What each look into the inbox finds, in order; then nothing.
#[derive(Default)]
struct Mailbox(Mutex<VecDeque<Vec<&'static str>>>);

impl Mailbox {
    fn of<const LOOKS: usize>(looks: [&[&'static str]; LOOKS]) -> Arc<Self> {
        Arc::new(Self(Mutex::new(looks.into_iter().map(<[_]>::to_vec).collect())))
    }
}

impl Inbox for Mailbox {
    fn take(&self) -> Vec<Message> {
        self.0.lock().unwrap().pop_front().unwrap_or_default().into_iter().map(Message::user).collect()
    }
}

fn session(model: &Arc<ScriptedModel>, plugins: Vec<Plugin>, inbox: Arc<Mailbox>) -> Session {
    tidegate_kit::session(model, plugins, rule_set(&[], |_| {})).with_inbox(inbox)
}

fn conversation(session: &Session) -> Vec<String> {
    session.history().iter().map(|message| said(message)).collect()
}

#[tokio::test]
async fn a_message_is_delivered_once_after_all_results_and_before_the_next_request() {
    let model = ScriptedModel::new([calls(&[("1", "echo", "{}"), ("2", "echo", "{}")], 1), text("done", 1)]);
    let mut session = session(&model, vec![], Mailbox::of([&[], &["only in this file", "please"]]));
    let mut events = session.subscribe();
    let report = session.run(vec![Message::user("rename")], &CancellationToken::new()).await;
    assert_eq!((report.status, report.place.step, model.asked()), (TurnStatus::Completed, 2, 2));
    let all = conversation(&session);
    assert_eq!(
        (all[0].as_str(), &all[3..]),
        ("rename", &["only in this file", "please", "done"].map(str::to_owned)[..])
    );
    assert_eq!(model.request(1).len(), 5, "both results come before the messages: {:?}", model.request(1));
    let delivered = |event: &flow::Event| match &event.kind {
        EventKind::SteeringMessage { text, .. } => Some((event.place.step, text.clone())),
        _ => None,
    };
    let delivered: Vec<_> = drain(&mut events).iter().filter_map(delivered).collect();
    assert_eq!(delivered, [(1, "only in this file".to_owned()), (1, "please".to_owned())]);
}

#[tokio::test]
async fn a_message_at_the_last_instant_keeps_the_turn_going() {
    let model = ScriptedModel::new([text("one", 1), text("two", 1)]);
    let mut session = session(&model, vec![], Mailbox::of([&[], &["wait"]]));
    let report = session.run(vec![Message::user("go")], &CancellationToken::new()).await;
    assert_eq!((report.text.as_str(), report.place.step), ("onetwo", 2));
    assert_eq!(conversation(&session), ["go", "one", "wait", "two"]);
}

#[tokio::test]
async fn extensions_see_steering_messages_as_input() {
    let guard = |answer: fn(&str) -> InputAnswer| Plugin {
        id: "guard",
        callbacks: vec![(Callback::InputMessages, 50)],
        input: Some(Box::new(move |messages| {
            let text = messages[0].plain_text();
            Ok(if text == "go" { InputAnswer::Pass } else { answer(&text) })
        })),
        ..Plugin::default()
    };
    type Case = (fn(&str) -> InputAnswer, &'static [&'static str]);
    let cases: [Case; 3] = [
        (|text| InputAnswer::Replace(vec![Message::user(text.to_uppercase())]), &["go", "one", "WAIT", "two"]),
        (|_| InputAnswer::Reject("not now".into()), &["go", "one"]),
        (|_| InputAnswer::Reply("by hand".into()), &["go", "one", "wait", "by hand"]),
    ];
    for (answer, wanted) in cases {
        let model = ScriptedModel::new([text("one", 1), text("two", 1)]);
        let mut session = session(&model, vec![guard(answer)], Mailbox::of([&[], &["wait"]]));
        let mut events = session.subscribe();
        let report = session.run(vec![Message::user("go")], &CancellationToken::new()).await;
        assert_eq!(
            (report.status, conversation(&session)),
            (TurnStatus::Completed, wanted.iter().map(|s| (*s).to_owned()).collect())
        );
        let said = drain(&mut events).iter().any(|event| {
            matches!(&event.kind, EventKind::Notice { message } if message.contains("`guard` rejected a steering message: not now"))
        });
        assert_eq!(said, wanted.len() == 2, "{wanted:?}");
    }
}

/// An inbox whose messages are taken at the moment in which the turn is cancelled.
struct Cancelling(Mutex<Vec<Message>>, CancellationToken);

impl Inbox for Cancelling {
    fn take(&self) -> Vec<Message> {
        self.1.cancel();
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_it_delivers_loses_no_message() {
    let model = ScriptedModel::new([text("one", 1)]);
    let slow = Plugin { id: "slow", callbacks: vec![(Callback::InputMessages, 50)], yields: true, ..Plugin::default() };
    let cancel = CancellationToken::new();
    let inbox = Arc::new(Cancelling(Mutex::new(vec![Message::user("wait")]), cancel.clone()));
    let mut session = tidegate_kit::session(&model, vec![slow], rule_set(&[], |_| {})).with_inbox(inbox.clone());
    assert_eq!(session.run(vec![Message::user("go")], &cancel).await.status, TurnStatus::Cancelled);
    assert!(inbox.0.lock().unwrap().is_empty(), "it was taken");
    assert_eq!(conversation(&session), ["go"], "and not delivered");
    assert_eq!(
        session.run(vec![Message::user("again")], &CancellationToken::new()).await.status,
        TurnStatus::Completed
    );
    assert_eq!(conversation(&session), ["go", "again", "wait", "one"]);
}
