//! Random sessions: events of every kind that a primitive uses, in any order.

use std::sync::Arc;

use flow::{
    AnswerBlock, CallId, Charged, Confirmation, Event, EventKind, InputId, InputWay, Message, Origin, Partial, Preview,
    QuestionId, Retained, Role, RunPosition, StepEnd, StreamKind, TurnStatus, Usage, Withdrawal,
};
use proptest::prelude::*;

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
            keep: flow::KeptText::Original,
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
    let requested = |call: CallId| EventKind::ToolConfirmationRequested {
        question: QuestionId::new(format!("question-{call}")),
        call,
        tool: "shell".into(),
        arguments: "{}".into(),
        reason: "ask".into(),
        preview: Preview::default(),
        always: None,
        timeout_ms: None,
    };
    let resolved = |call: CallId| EventKind::ToolConfirmationResolved {
        question: QuestionId::new(format!("question-{call}")),
        call,
        decision: Confirmation::Approved,
        by: "Ada".into(),
    };
    let start = |call| EventKind::ToolCallStart { call, tool: "shell".into(), arguments: "{}".into() };
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
        original: None,
        annotations: Vec::new(),
    };
    prop_oneof![
        call().prop_map(requested),
        call().prop_map(resolved),
        call().prop_map(start),
        (call(), text()).prop_map(progress),
        (call(), text(), any::<bool>(), prop::option::of(0..9_u64)).prop_map(result),
    ]
}

/// What happens to inputs: those of the front end under test, and one of another.
fn input() -> impl Strategy<Value = EventKind> {
    let id = || prop::sample::select(vec!["user-1", "user-2", "other-1"]).prop_map(InputId::new);
    let ways = vec![InputWay::Prompt, InputWay::Queue, InputWay::Steer, InputWay::Interrupt];
    let queued =
        |(id, way, text): (_, _, String)| EventKind::InputQueued { id, way, message: Arc::new(Message::user(text)) };
    let received =
        |(id, text): (_, String)| EventKind::InputReceived { id: Some(id), message: Arc::new(Message::user(text)) };
    let receipts = vec![Withdrawal::Removed, Withdrawal::Returned];
    prop_oneof![
        (id(), prop::sample::select(ways), text()).prop_map(queued),
        (id(), text()).prop_map(|(id, text)| EventKind::InputEdited { id, text, hidden: false }),
        (id(), prop::sample::select(receipts)).prop_map(|(id, receipt)| EventKind::InputWithdrawn { id, receipt }),
        (id(), text()).prop_map(received),
        (id(), text()).prop_map(|(id, text)| EventKind::SteeringMessage {
            id: Some(id),
            role: Role::User,
            text,
            hidden: false
        }),
    ]
}

fn kind() -> impl Strategy<Value = EventKind> {
    let said = |(text, hidden)| EventKind::InputReceived {
        id: None,
        message: Arc::new(Message { hidden, ..Message::user(text) }),
    };
    let host = |(text, hidden)| EventKind::CustomMessage { custom_type: "note".into(), text, hidden };
    let finish = prop::sample::select(vec![
        TurnStatus::Completed,
        TurnStatus::Cancelled,
        TurnStatus::failed("failed"),
        TurnStatus::StepLimit { steps: 1 },
    ]);
    let step_finish = EventKind::StepFinish {
        usage: Usage::default(),
        spend: None,
        charged: Charged::default(),
        end: StepEnd::Failed,
        context_tokens: None,
    };
    let resumed =
        EventKind::ThreadResumed { by: "input".into(), suspended: None, provider: String::new(), model: String::new() };
    let history = |text: String| EventKind::HistoryReplaced { messages: vec![Arc::new(Message::user(text))] };
    prop_oneof![
        6 => text().prop_map(|text| EventKind::CognitionOutDelta { text, index: 0, is_final: false }),
        2 => text().prop_map(|text| EventKind::CognitionReasoningDelta { text }),
        4 => answer(),
        4 => tool(),
        4 => input(),
        1 => Just(EventKind::TurnStart),
        1 => finish.prop_map(|status| EventKind::TurnFinish { status }),
        1 => Just(EventKind::StepStart { number: 1 }),
        1 => Just(step_finish),
        1 => Just(resumed),
        1 => text().prop_map(history),
        1 => (text(), any::<bool>()).prop_map(said),
        1 => (text(), any::<bool>()).prop_map(host),
        1 => text().prop_map(|text| EventKind::SteeringMessage { id: None, role: Role::User, text, hidden: false }),
        1 => Just(EventKind::Notice { message: "other".into() }),
    ]
}

/// Events whose places move on as those of a thread do, in whatever order their kinds are.
pub(crate) fn session() -> impl Strategy<Value = Vec<Event>> {
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
