//! Child agents in a chat: their messages and questions, next to those of their parent, and over a reconnect.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use flow::{CallId, EventKind, TurnStatus};
use serde_json::json;
use tidegate_chat::{Answer, Changed, ChatSession, ChildThread, MessageLog, ToolConfirmations};

use crate::support::{commands, event, requested};

#[test]
fn questions_of_children_that_run_at_the_same_time_are_all_open() {
    let mut chat = ChatSession::default();
    for child in ["one", "two", "three"] {
        let _changed = chat.process_child(&ChildThread::new(child, "helper"), &event(0, requested("a")));
    }
    let _changed = chat.process(&event(0, requested("a")));
    let questions = chat.snapshot().questions;
    let children: Vec<_> =
        questions.pending().map(|one| one.child.as_ref().map(|child| child.id.to_string())).collect();
    assert_eq!(children, [Some("one".into()), Some("two".into()), Some("three".into()), None]);
    // An answer goes to the child that asks, although all calls have the same id.
    let second = questions.questions()[1].id.clone();
    chat.respond(&second, Answer::Approve).unwrap();
    assert_eq!(commands(&mut chat)[0]["child"], json!({"id": "two", "agent": "helper"}));
}

#[test]
fn the_end_of_a_turn_ends_the_questions_of_its_children_and_a_child_only_its_own() {
    let child = |id: &str| ChildThread::new(id, "helper");
    let mut confirmations = ToolConfirmations::default();
    let _changed = confirmations.process(&event(0, requested("a")));
    for id in ["one", "two"] {
        assert!(confirmations.process_child(&child(id), &event(0, requested("a"))).is_yes());
        assert_eq!(confirmations.process_child(&child(id), &event(0, requested("a"))), Changed::No, "taken already");
    }
    let count = |confirmations: &ToolConfirmations| confirmations.state().pending().count();
    let end = |seq| event(seq, EventKind::TurnFinish { status: TurnStatus::Completed });
    assert!(confirmations.process_child(&child("one"), &end(1)).is_yes());
    assert_eq!(count(&confirmations), 2);
    assert!(confirmations.process(&end(1)).is_yes());
    assert_eq!(count(&confirmations), 0);
}

/// The state of a session's chat has nothing of its children: each has events of its own.
#[test]
fn children_survive_a_snapshot_of_their_parent() {
    let child = ChildThread::new("child", "helper");
    let delta = EventKind::CognitionOutDelta { text: "I search".into(), index: 0, is_final: false };
    let mut server = ChatSession::default();
    for (seq, kind) in [
        EventKind::TurnStart,
        EventKind::ToolCallStart { call: CallId::new("a"), tool: "spawn_agent".into(), arguments: "{}".into() },
    ]
    .into_iter()
    .enumerate()
    {
        let _changed = server.process(&event(seq as u64, kind));
    }
    let (running, mut ended) = (server.save(), server);
    let _changed = ended.process(&event(2, EventKind::TurnFinish { status: TurnStatus::Completed }));
    for (saved, open) in [(running, 1), (ended.save(), 0)] {
        let mut chat = ChatSession::default();
        let _changed = chat.process(&event(0, EventKind::TurnStart));
        for (seq, kind) in [delta.clone(), requested("a")].into_iter().enumerate() {
            let _changed = chat.process_child(&child, &event(seq as u64, kind));
        }
        let _changed = chat.restore(saved);
        let state = chat.snapshot();
        let texts: Vec<String> = state.messages.child_messages("child").map(|message| message.text()).collect();
        assert_eq!((texts, state.questions.pending().count()), (vec!["I search".to_owned()], open));
        // What it has had of the child is not taken twice.
        let _changed = chat.process_child(&child, &event(0, delta.clone()));
        let _changed = chat.process_child(&child, &event(1, requested("a")));
        assert_eq!(chat.snapshot(), state);
    }
}

/// Of two logs of a child, the one that is ahead is kept.
#[test]
fn a_snapshot_with_children_brings_what_was_missed_of_them() {
    let child = ChildThread::new("child", "helper");
    let delta = |text: &str| EventKind::CognitionOutDelta { text: text.into(), index: 0, is_final: false };
    let mut ahead = MessageLog::default();
    let _changed = ahead.process_child(&child, &event(0, delta("one")));
    let mut behind = ahead.clone();
    let _changed = ahead.process_child(&child, &event(1, delta(", two")));
    let text = |log: &MessageLog| log.snapshot().child_messages("child").map(|one| one.text()).collect::<String>();
    for (mut log, state) in [(ahead.clone(), behind.state().clone()), (behind.clone(), ahead.state().clone())] {
        let _changed = log.restore(state);
        assert_eq!(text(&log), "one, two");
    }
    assert_eq!(behind.restore(behind.state().clone()), Changed::No);
}
