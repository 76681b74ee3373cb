//! The order in which the calls of one message run, and the order of their results.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::ports::{PreparedCall, Tools};
use flow::{Event, EventKind, Message, Part, ToolCall, ToolSpec, TurnStatus};
use tidegate_kit::{EchoTools, ScriptedModel, assert_valid, calls, drain, rule_set, say};
use tidegate_turn as turn;
use turn::{CancellationToken, Session, SessionParts, Subscription};

/// The echo tools, whose calls run in this order.
struct InOrder(Vec<usize>);

impl Tools for InOrder {
    fn specs(&self) -> Vec<ToolSpec> {
        EchoTools.specs()
    }

    fn order(&self, calls: &[ToolCall]) -> Vec<usize> {
        assert!(calls.len() > 1, "nobody is asked about a single call");
        self.0.clone()
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        EchoTools.prepare(call)
    }
}

fn session(model: &Arc<ScriptedModel>, order: &[usize], rules: &[(&str, &str)]) -> (Session, Subscription) {
    let tools = Arc::new(InOrder(order.to_vec()));
    let session = tidegate_kit::ready(Session::open(SessionParts {
        tools,
        ..tidegate_kit::parts(model, vec![], rule_set(rules, |_| {}))
    }))
    .unwrap();
    let events = session.subscribe();
    (session, events)
}

/// The calls in the order in which they ran.
fn ran(events: &[Event]) -> Vec<String> {
    let started = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolCallStart { call, .. } => Some(call.to_string()),
        _ => None,
    });
    started.collect()
}

/// The calls that have results in the conversation, in the order of these.
fn answered(session: &Session) -> Vec<String> {
    let parts = |message: &Arc<Message>| message.parts.clone();
    let call = |part| if let Part::ToolResult(result) = part { Some(result.call.to_string()) } else { None };
    session.history().iter().flat_map(parts).filter_map(call).collect()
}

fn notices(events: &[Event]) -> Vec<&str> {
    let mut found = Vec::new();
    for event in events {
        if let EventKind::Notice { message } = &event.kind {
            found.push(message.as_str());
        }
    }
    found
}

const THREE: [(&str, &str, &str); 3] = [("1", "read", "{}"), ("2", "write", "{}"), ("3", "edit", "{}")];

#[tokio::test]
async fn calls_run_in_the_order_of_the_tools_and_results_keep_that_of_the_calls() {
    let model = ScriptedModel::new([calls(&THREE, 3), say("Done.")]);
    let (mut session, mut events) = session(&model, &[2, 0, 1], &[]);
    let report = session.run(vec![Message::user("go")], &CancellationToken::new()).await;
    assert_eq!(report.status, TurnStatus::Completed);
    let events = drain(&mut events);
    assert_eq!(ran(&events), ["3", "1", "2"]);
    assert_eq!(answered(&session), ["1", "2", "3"]);
    assert!(notices(&events).is_empty());
    assert_valid(&session.history());
}

#[tokio::test]
async fn an_order_that_omits_or_repeats_a_call_is_not_used() {
    for order in [&[][..], &[0, 1], &[0, 1, 1], &[0, 1, 2, 2], &[1, 2, 3]] {
        let model = ScriptedModel::new([calls(&THREE, 3), say("Done.")]);
        let (mut session, mut events) = session(&model, order, &[]);
        session.run(vec![Message::user("go")], &CancellationToken::new()).await;
        let events = drain(&mut events);
        assert_eq!(ran(&events), ["1", "2", "3"]);
        assert_eq!(answered(&session), ["1", "2", "3"]);
        let [notice] = notices(&events)[..] else { panic!("{order:?}") };
        assert!(notice.contains("an order of 3 calls that omits or repeats one"), "{notice}");
    }
}

#[tokio::test]
async fn a_single_call_needs_no_order() {
    let model = ScriptedModel::new([calls(&THREE[..1], 3), say("Done.")]);
    let (mut session, mut events) = session(&model, &[7], &[]);
    session.run(vec![Message::user("go")], &CancellationToken::new()).await;
    assert_eq!((ran(&drain(&mut events)), answered(&session)), (vec!["1".to_owned()], vec!["1".to_owned()]));
}

/// The reasons of rules go to the calls that they are about.
#[tokio::test]
async fn a_rule_blocks_its_call_in_any_order() {
    let rule = "+++\ncondition = 'FORBIDDEN'\nscope = 'tool:write'\ninterrupt = 'never'\naction = 'block'\n+++\nNo.";
    let arguments = "{\"content\":\"FORBIDDEN\"}";
    let three = [("1", "read", "{}"), ("2", "write", arguments), ("3", "edit", "{}")];
    let model = ScriptedModel::new([calls(&three, 3), say("Done.")]);
    let (mut session, mut events) = session(&model, &[1, 2, 0], &[("r", rule)]);
    session.run(vec![Message::user("go")], &CancellationToken::new()).await;
    assert_eq!(ran(&drain(&mut events)), ["3", "1"]);
    let is_error = |part: &Part| if let Part::ToolResult(result) = part { Some(result.is_error) } else { None };
    let failed: Vec<bool> = session
        .history()
        .iter()
        .flat_map(|message| message.parts.iter().filter_map(is_error).collect::<Vec<_>>())
        .collect();
    assert_eq!((answered(&session), failed), (["1", "2", "3"].map(str::to_owned).to_vec(), vec![false, true, false]));
}

#[tokio::test]
async fn a_cancelled_turn_keeps_the_results_in_the_order_of_the_calls() {
    let four = [("1", "read", "{}"), ("2", "slow", "{}"), ("3", "edit", "{}"), ("4", "write", "{}")];
    let model = ScriptedModel::new([calls(&four, 3)]);
    let (mut session, mut events) = session(&model, &[2, 0, 1, 3], &[]);
    let mut watch = session.subscribe();
    let cancel = CancellationToken::new();
    let stop = async {
        loop {
            let event = watch.next().await.unwrap();
            if matches!(&event.kind, EventKind::ToolCallStart { call, .. } if call.as_str() == "2") {
                return cancel.cancel();
            }
        }
    };
    let (report, ()) = tokio::join!(session.run(vec![Message::user("go")], &cancel), stop);
    assert_eq!(report.status, TurnStatus::Cancelled);
    assert_eq!(ran(&drain(&mut events)), ["3", "1", "2"]);
    assert_eq!(answered(&session), ["1", "3"], "calls without a result are left out");
    assert_valid(&session.history());
}
