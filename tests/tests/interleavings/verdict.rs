//! What must be true of a session when everything is over.

use std::collections::{BTreeMap, BTreeSet};

use flow::{Confirmation, Event, EventKind, Role, TurnStatus};
use tidegate::Session;
use tidegate::input::Receipt;
use tidegate_kit::assert_valid;

use super::model::RandomModel;
use super::user::{User, is_expected};

pub(crate) fn check(seed: u64, session: &Session, events: &[Event], user: &User, _: &RandomModel) {
    let history = session.history();
    assert_valid(&history);
    let said: Vec<String> =
        history.iter().filter(|message| message.role == Role::User).map(|message| message.plain_text()).collect();
    for (id, text) in &user.inputs {
        let times = said.iter().filter(|said| *said == text).count();
        let receipt = session.inbox().receipt(id);
        let expected = usize::from(matches!(receipt, Some(Receipt::Delivered { .. })));
        assert_eq!(
            times, expected,
            "seed {seed}: {id} is {receipt:?}, and {times} times in the conversation: {said:#?}"
        );
        let is_waiting = session.inbox().waiting().iter().any(|input| input.id == *id);
        assert_eq!(is_waiting, receipt == Some(Receipt::Queued), "seed {seed}: {id} is {receipt:?}");
    }
    delivered_once(seed, session, events);
    calls(seed, events);
    for event in events {
        if let EventKind::TurnFinish { status } = &event.kind {
            assert!(is_expected(status), "seed {seed}: {status:?}");
        }
    }
}

/// Receipts and events agree.
fn delivered_once(seed: u64, session: &Session, events: &[Event]) {
    let mut seen = BTreeSet::new();
    for event in events {
        let (EventKind::InputReceived { id: Some(id), .. } | EventKind::SteeringMessage { id: Some(id), .. }) =
            &event.kind
        else {
            continue;
        };
        assert!(seen.insert(id.clone()), "seed {seed}: {id} was delivered twice");
        match session.inbox().receipt(id) {
            Some(Receipt::Delivered { seq, .. }) => assert_eq!(seq, event.seq, "seed {seed}: {id}"),
            other => panic!("seed {seed}: {id} was delivered, and its receipt is {other:?}"),
        }
    }
}

/// A call runs once, after its own approval where it needs one, and has one result; the questions about it are resolved.
fn calls(seed: u64, events: &[Event]) {
    let (mut open, mut approved, mut ran, mut done) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for event in events {
        match &event.kind {
            EventKind::ToolConfirmationRequested { question, call, .. } => {
                open.insert(question.clone(), call.clone());
            }
            EventKind::ToolConfirmationResolved { question, call, decision, .. } => {
                assert_eq!(open.remove(question).as_ref(), Some(call), "seed {seed}: {question} was not open");
                if let Confirmation::Edited { arguments } = decision {
                    approved.insert(call.clone(), Some(arguments.clone()));
                } else if decision.is_approval() {
                    approved.insert(call.clone(), None);
                }
            }
            EventKind::ToolCallStart { call, tool, arguments } => {
                assert!(ran.insert(call.clone(), event.place.turn).is_none(), "seed {seed}: {call} ran twice");
                let approval = approved.get(call);
                let is_always = approved_always(events, event.seq);
                assert!(tool == "list_dir" || approval.is_some() || is_always, "seed {seed}: {call} ran unasked");
                if let Some(Some(edited)) = approval {
                    assert_eq!(arguments, edited, "seed {seed}: {call} ran with other arguments");
                }
            }
            EventKind::ToolCallResult { call, .. } => {
                assert!(done.insert(call.clone()), "seed {seed}: {call} has two results");
            }
            _ => {}
        }
    }
    assert_eq!(open, BTreeMap::new(), "seed {seed}: questions are open");
    for (call, turn) in ran.iter().filter(|(call, _)| !done.contains(*call)) {
        let cancelled = |event: &Event| {
            event.place.turn == *turn && event.kind == EventKind::TurnFinish { status: TurnStatus::Cancelled }
        };
        assert!(events.iter().any(cancelled), "seed {seed}: {call} has no result");
    }
}

fn approved_always(events: &[Event], before: u64) -> bool {
    events.iter().take_while(|event| event.seq < before).any(|event| {
        matches!(&event.kind, EventKind::ToolConfirmationResolved { decision: Confirmation::Always { .. }, .. })
    })
}
