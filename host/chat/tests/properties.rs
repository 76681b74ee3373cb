//! Random sessions: no sequence of events panics, and each change is reported.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use flow::{
    AnswerBlock, CallId, Confirmation, Event, EventKind, Message, Origin, Partial, Preview, Retained, Role,
    RunPosition, StepEnd, StreamKind, TurnStatus, Usage,
};
use proptest::prelude::*;
use serde_json::json;
use support::{chat, state};
use tidegate_chat::{ChatSession, ChildThread, RenderMode};

/// Text with characters of each length.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "\u{e9}", "\u{4e16}", "\u{1f980}", "\n", " "]), 0..6)
        .prop_map(|letters| letters.concat())
}

fn call() -> impl Strategy<Value = CallId> {
    prop::sample::select(vec!["a", "b", ""]).prop_map(CallId::new)
}

fn answer() -> impl Strategy<Value = EventKind> {
    let retained = prop_oneof![
        Just(Retained::Nothing),
        Just(Retained::Answer),
        Just(Retained::Marked),
        (0..9_u64).prop_map(|bytes| Retained::Start { bytes })
    ];
    let partial = prop::option::of((0..9_u64, 0..9_u64).prop_map(|(shown, kept)| Partial::new("cut", shown, kept)));
    let calls = prop::collection::vec(call(), 0..3);
    (text(), prop::option::of(text()), partial, retained, calls).prop_map(|(text, shown, partial, retained, calls)| {
        let block = |call| AnswerBlock::prose(StreamKind::Tool { call, name: "shell".into() }, 0);
        EventKind::CognitionOut {
            text,
            model: None,
            author: Origin::Model,
            shown,
            partial,
            retained,
            blocks: calls.into_iter().map(block).collect(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        }
    })
}

fn tool() -> impl Strategy<Value = EventKind> {
    let requested = |call| EventKind::ToolConfirmationRequested {
        call,
        tool: "shell".into(),
        arguments: "{}".into(),
        reason: "ask".into(),
        preview: Preview::default(),
    };
    let resolved = |call| EventKind::ToolConfirmationResolved { call, decision: Confirmation::Approved };
    let start = |call| EventKind::ToolCallStart { call, tool: "shell".into(), arguments: "{ }".into() };
    let progress = |(call, message)| EventKind::ToolCallProgress { call, message, percent: Some(1.0) };
    let result = |(call, output, is_error, duration_ms)| EventKind::ToolCallResult {
        call,
        tool: "shell".into(),
        output,
        reminder: None,
        diff: None,
        is_error,
        duration_ms,
        waited_ms: None,
    };
    prop_oneof![
        call().prop_map(requested),
        call().prop_map(resolved),
        call().prop_map(start),
        (call(), text()).prop_map(progress),
        (call(), text(), any::<bool>(), prop::option::of(0..9_u64)).prop_map(result),
    ]
}

fn kind() -> impl Strategy<Value = EventKind> {
    let said =
        |(text, hidden)| EventKind::InputReceived { message: Arc::new(Message { hidden, ..Message::user(text) }) };
    let host = |(text, hidden)| EventKind::CustomMessage { custom_type: "note".into(), text, hidden };
    let finish = prop::sample::select(vec![
        TurnStatus::Completed,
        TurnStatus::Cancelled,
        TurnStatus::failed("failed"),
        TurnStatus::StepLimit { steps: 1 },
    ]);
    let step_finish = EventKind::StepFinish { usage: Usage::default(), end: StepEnd::Failed, context_tokens: None };
    let resumed = EventKind::ThreadResumed { by: "input".into(), provider: String::new(), model: String::new() };
    let history = |text: String| EventKind::HistoryReplaced { messages: vec![Arc::new(Message::user(text))] };
    prop_oneof![
        6 => text().prop_map(|text| EventKind::CognitionOutDelta { text, index: 0 }),
        2 => text().prop_map(|text| EventKind::CognitionReasoningDelta { text }),
        4 => answer(),
        4 => tool(),
        1 => Just(EventKind::TurnStart),
        1 => finish.prop_map(|status| EventKind::TurnFinish { status }),
        1 => Just(EventKind::StepStart { number: 1 }),
        1 => Just(step_finish),
        1 => Just(resumed),
        1 => text().prop_map(history),
        1 => (text(), any::<bool>()).prop_map(said),
        1 => (text(), any::<bool>()).prop_map(host),
        1 => text().prop_map(|text| EventKind::SteeringMessage { role: Role::User, text }),
        1 => Just(EventKind::Notice { message: "other".into() }),
    ]
}

/// Events whose places move on as those of a thread do, in whatever order their kinds are.
fn session() -> impl Strategy<Value = Vec<Event>> {
    let one = (kind(), prop_oneof![6 => Just(0_u8), 2 => Just(1), 2 => Just(2), 1 => Just(3)], 1..3_u64);
    prop::collection::vec(one, 0..40).prop_map(|kinds| {
        let (mut place, mut seq) = (RunPosition::default(), 0);
        let next = |(kind, moves, gap)| {
            match moves {
                1 => place.attempt += 1,
                2 => (place.step, place.attempt) = (place.step + 1, 1),
                3 => (place.turn, place.step, place.attempt) = (place.turn + 1, 1, 1),
                _ => {}
            }
            seq += gap;
            Event::new(seq, seq, place, kind)
        };
        kinds.into_iter().map(next).collect()
    })
}

const MODES: [&str; 4] = ["streaming", "block", "message", "at_end"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// What is not reported has not changed, and ids are unique.
    #[test]
    fn a_change_that_is_not_reported_did_not_happen(events in session()) {
        for mode in MODES {
            let mut chat = chat(&json!({"render_mode": mode, "mode": "queue"}));
            chat.submit("a");
            chat.submit("b");
            let mut before = state(&chat.snapshot());
            for event in &events {
                let changed = chat.process(event);
                let after = state(&chat.snapshot());
                prop_assert!(changed.is_yes() || before == after, "{mode}: {event:?}\n{before}\n{after}");
                before = after;
            }
            let ids: Vec<String> = chat.snapshot().messages.messages().map(|one| one.id.as_str().to_owned()).collect();
            let unique: BTreeSet<&String> = ids.iter().collect();
            prop_assert_eq!(unique.len(), ids.len(), "{:?}", ids);
            // Nothing of it is sent twice.
            let sent = chat.take_commands().len();
            prop_assert!(sent <= 3, "{} commands for two messages, one of which can come back", sent);
        }
    }

    /// A front end that gets the saved state at any event ends with the same state.
    #[test]
    fn a_saved_state_continues_as_the_session_does(events in session(), cut in any::<prop::sample::Index>()) {
        let cut = if events.is_empty() { 0 } else { cut.index(events.len()) };
        let mut whole = ChatSession::default();
        let mut half = ChatSession::default();
        let child = ChildThread::new("child", "helper");
        for event in &events {
            let _changed = whole.process(event).or(whole.process_child(&child, event));
        }
        for event in &events[..cut] {
            let _changed = half.process(event).or(half.process_child(&child, event));
        }
        let saved = half.save();
        let read = serde_json::from_str(&serde_json::to_string(&saved).unwrap()).unwrap();
        prop_assert_eq!(&saved, &read);
        let mut rest = ChatSession::default();
        let _changed = rest.restore(read);
        prop_assert_eq!(state(&rest.snapshot()), state(&half.snapshot()));
        for event in &events[cut..] {
            let _changed = rest.process(event).or(rest.process_child(&child, event));
        }
        prop_assert_eq!(state(&rest.snapshot()), state(&whole.snapshot()));
        prop_assert_eq!(rest.save(), whole.save());
    }

    /// A snapshot does not change when the session does.
    #[test]
    fn a_snapshot_stays_as_it_was(events in session()) {
        let mut chat = ChatSession::default();
        let mut kept = Vec::new();
        for event in &events {
            let snapshot = chat.snapshot();
            kept.push((state(&snapshot), snapshot));
            let _changed = chat.process(event);
        }
        for (then, snapshot) in kept {
            prop_assert_eq!(then, state(&snapshot));
        }
    }

    /// At every end of a turn all modes show the same.
    #[test]
    fn all_modes_agree_when_a_turn_ends(events in session()) {
        let end = EventKind::TurnFinish { status: TurnStatus::Completed };
        let last = events.last().map_or((1, RunPosition::default()), |last| (last.seq + 1, last.place));
        let ends: Vec<_> = MODES.into_iter().map(|mode| {
            let mut chat = chat(&json!({"render_mode": mode}));
            events.iter().for_each(|event| _ = chat.process(event));
            let _changed = chat.process(&Event::new(last.0, 0, last.1, end.clone()));
            state(&chat.snapshot())["messages"].clone()
        }).collect();
        prop_assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", ends);
    }
}

#[test]
fn the_modes_are_those_of_the_options() {
    let modes: std::collections::HashSet<RenderMode> =
        MODES.iter().map(|mode| serde_json::from_value(json!(mode)).unwrap()).collect();
    assert_eq!(modes.len(), MODES.len());
}
