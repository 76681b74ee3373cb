//! What earlier chat primitives got wrong, as tests of what these do instead.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::{
    AnswerBlock, CallId, Confirmation, Event, EventKind, Message, Origin, Retained, RunPosition, StreamKind, TurnStatus,
};
use serde_json::json;
use tidegate_chat::{
    Answer, Author, Changed, ChatMessage, ChatMode, ChatOptions, ChatSession, ChildThread, LogOptions, MessageId,
    MessageLog, MessageSteering, OutgoingId, Policy, Question, QuestionId, Receipt, RenderMode, SteeringMode,
    SteeringOptions, ToolConfirmations, ToolStatus,
};

use crate::support::{commands, event, requested};

fn resolved(call: &str) -> EventKind {
    decided(call, Confirmation::Approved)
}

fn decided(call: &str, decision: Confirmation) -> EventKind {
    let question = flow::QuestionId::new(format!("question-{call}"));
    EventKind::ToolConfirmationResolved { question, call: CallId::new(call), decision, by: "Ada".into() }
}

fn started(call: &str) -> EventKind {
    EventKind::ToolCallStart { call: CallId::new(call), tool: "shell".into(), arguments: "{}".into() }
}

fn result(call: &str, duration_ms: Option<u64>) -> EventKind {
    EventKind::ToolCallResult {
        call: CallId::new(call),
        tool: "shell".into(),
        output: "done".into(),
        reminder: None,
        diff: None,
        is_error: false,
        duration_ms,
        waited_ms: None,
        original: None,
        annotations: Vec::new(),
    }
}

fn input(text: &str) -> EventKind {
    EventKind::InputReceived { id: None, message: Arc::new(Message::user(text)) }
}

fn delta(text: &str) -> EventKind {
    EventKind::CognitionOutDelta { text: text.into(), index: 0, is_final: false }
}

fn answer(text: &str, calls: &[&str]) -> EventKind {
    let call = |id: &&str| {
        let kind = StreamKind::Tool { call: CallId::new(*id), name: "shell".into() };
        let mut block = AnswerBlock::prose(kind, 2);
        block.arguments = Some("{}".into());
        block
    };
    EventKind::CognitionOut {
        text: text.into(),
        keep: flow::KeptText::Original,
        model: None,
        author: Origin::Model,
        shown: None,
        partial: None,
        retained: Retained::Answer,
        blocks: calls.iter().map(call).collect(),
        annotations: Vec::new(),
        rewrites: Vec::new(),
    }
}

fn finish(status: TurnStatus) -> EventKind {
    EventKind::TurnFinish { status }
}

fn feed(chat: &mut ChatSession, kinds: impl IntoIterator<Item = EventKind>) -> Changed {
    kinds.into_iter().fold(Changed::No, |changed, kind| {
        let next = event(chat.next_seq(), kind);
        changed.or(chat.process(&next))
    })
}

fn pending(chat: &ChatSession) -> Vec<String> {
    chat.snapshot().questions.pending().map(|question| question.call.to_string()).collect()
}

fn id(chat: &ChatSession, call: &str) -> QuestionId {
    let questions = chat.snapshot().questions;
    questions.questions().iter().find(|question| *question.call == *call).unwrap().id.clone()
}

fn texts(chat: &ChatSession) -> Vec<String> {
    chat.snapshot().messages.messages().map(|message| message.text()).collect()
}

fn queueing() -> ChatSession {
    ChatSession::new(ChatOptions::default().steering(SteeringOptions::default().mode(SteeringMode::Queue)))
}

#[test]
fn the_reason_of_a_denial_is_in_the_answer() {
    let mut chat = ChatSession::default();
    let _changed = feed(&mut chat, [requested("a")]);
    chat.respond(&id(&chat, "a"), Answer::deny("not in this folder")).unwrap();
    assert_eq!(commands(&mut chat)[0]["answer"], json!({"decision": "deny", "reason": "not in this folder"}));
}

#[test]
fn edited_arguments_and_always_are_in_the_answer() {
    let mut chat = ChatSession::default();
    let _changed = feed(&mut chat, [requested("a"), requested("b")]);
    chat.respond(&id(&chat, "a"), Answer::Edit { arguments: "{\"path\":\"b\"}".into() }).unwrap();
    chat.respond(&id(&chat, "b"), Answer::Always).unwrap();
    let commands = commands(&mut chat);
    assert_eq!(commands[0]["answer"]["arguments"], "{\"path\":\"b\"}");
    assert_eq!(commands[1]["answer"]["decision"], "always");
}

#[test]
fn a_question_that_is_answered_elsewhere_or_whose_turn_ends_is_gone() {
    for (gone, kind) in [
        (vec!["b"], resolved("a")),
        (vec!["b"], started("a")),
        (vec!["b"], result("a", None)),
        (vec![], finish(TurnStatus::Completed)),
        (vec![], finish(TurnStatus::Cancelled)),
        (vec![], finish(TurnStatus::failed("overloaded"))),
        (vec![], EventKind::ThreadCancelled { by: "the user".into(), reason: None }),
        (vec!["a", "b"], resolved("c")),
    ] {
        let mut chat = ChatSession::default();
        let _changed = feed(&mut chat, [EventKind::TurnStart, requested("a"), requested("b")]);
        let first = id(&chat, "a");
        let changed = feed(&mut chat, [kind.clone()]);
        assert_eq!(pending(&chat), gone, "{kind:?}");
        let open = gone.contains(&"a");
        assert_eq!(chat.respond(&first, Answer::Approve).is_ok(), open, "a late answer to a resolved question");
        assert_eq!(commands(&mut chat).as_array().unwrap().len(), usize::from(open));
        assert!(changed.is_yes() || open);
    }
}

#[test]
fn the_end_of_a_child_ends_nothing_of_its_parent() {
    let mut chat = queueing();
    let child = ChildThread::new("child", "helper");
    chat.submit("Go");
    let _changed = feed(&mut chat, [EventKind::TurnStart, input("Go"), requested("a")]);
    chat.queue("Later");
    let _commands = chat.take_commands();
    let before = texts(&chat);
    let kinds = [EventKind::TurnStart, input("Task"), delta("Child"), finish(TurnStatus::Completed)];
    for (seq, kind) in (0..).zip(kinds) {
        let _changed = chat.process_child(&child, &event(seq, kind));
    }
    let state = chat.snapshot();
    assert!(state.steering.is_executing() && state.mode == ChatMode::ConfirmingTool);
    assert_eq!((pending(&chat), texts(&chat)), (vec!["a".to_owned()], before));
    assert_eq!((state.steering.queued().len(), commands(&mut chat)), (1, json!([])));
    let own: Vec<String> = state.messages.child_messages("child").map(|message| message.text()).collect();
    assert_eq!(own, ["Task", "Child"]);
}

/// Case 6 of the specification.
#[test]
fn a_cancelled_or_failed_turn_sends_nothing_of_the_queue() {
    let statuses = [
        TurnStatus::Cancelled,
        TurnStatus::failed("overloaded"),
        TurnStatus::StepLimit { steps: 3 },
        TurnStatus::StoppedByRule { rule: "no".into() },
        TurnStatus::Rejected { by: "guard".parse().unwrap(), reason: "no".into() },
    ];
    for status in statuses {
        let mut chat = queueing();
        chat.submit("Go");
        let _changed = feed(&mut chat, [EventKind::TurnStart, input("Go")]);
        let ids = ["a", "b", "c", "d"].map(|text| chat.submit(text));
        let _commands = chat.take_commands();
        let _changed = feed(&mut chat, [finish(status.clone())]);
        let steering = chat.snapshot().steering;
        let queued: Vec<&str> = steering.queued().iter().map(|message| &*message.text).collect();
        assert_eq!((queued, commands(&mut chat)), (vec!["a", "b", "c", "d"], json!([])), "{status:?}");
        assert!(ids.iter().all(|id| steering.receipt(id) == Some(Receipt::Queued)));
        assert_eq!(&*chat.take_back(&ids[1]).unwrap().text, "b");
        assert_eq!(chat.snapshot().steering.receipt(&ids[1]), Some(Receipt::Returned));
    }
}

#[test]
fn of_two_quick_messages_in_queue_mode_one_is_sent_and_one_is_queued() {
    let mut chat = queueing();
    chat.submit("One");
    let second = chat.submit("Two");
    assert_eq!(commands(&mut chat)[0]["messages"], json!([{"id": "user-1", "text": "One"}]));
    assert!(texts(&chat).is_empty(), "the log has what is in the conversation");
    let turn = [EventKind::TurnStart, input("One"), finish(TurnStatus::Completed)];
    chat.remove(&second).unwrap();
    let _changed = feed(&mut chat, turn);
    assert_eq!(texts(&chat), ["One"], "a message that was removed is in no log");
    chat.submit("Three");
    let _changed = feed(&mut chat, [EventKind::TurnStart, input("Three"), finish(TurnStatus::Completed)]);
    assert_eq!(texts(&chat), ["One", "Three"], "each once");
    assert_eq!(chat.snapshot().last_submitted, None);
}

#[test]
fn durations_belong_to_the_call_of_their_own_step() {
    let mut log = MessageLog::default();
    let at = |seq: u64, step: u32, kind: EventKind| {
        Event::new(seq, seq * 100, RunPosition { turn: 1, step, attempt: 1 }, kind)
    };
    for (seq, step, kind) in [
        (0, 1, answer("", &["0", "1"])),
        (1, 1, started("0")),
        (2, 1, started("1")),
        (3, 1, result("1", Some(7))),
        (4, 1, result("0", None)),
        (5, 2, answer("", &["0"])),
        (6, 2, started("0")),
        (8, 2, result("0", None)),
    ] {
        assert_eq!(log.process(&at(seq, step, kind)), Changed::Yes);
    }
    let snapshot = log.snapshot();
    let calls: Vec<_> =
        snapshot.messages().flat_map(|message| message.calls.iter().cloned().collect::<Vec<_>>()).collect();
    let durations: Vec<_> = calls.iter().map(|call| (&*call.call, call.duration_ms)).collect();
    // Where the event has no duration, it is the time between start and result.
    assert_eq!(durations, [("0", Some(300)), ("1", Some(7)), ("0", Some(200))]);
    assert!(calls.iter().all(|call| call.status == ToolStatus::Done));
}

#[test]
fn messages_are_matched_by_id_and_not_by_count() {
    // A stored view that was trimmed, in which a transform has merged messages: fewer messages than the events have.
    let stored = [("in-1", Author::User, "One"), ("1.1", Author::Assistant, "A")];
    let stored = stored.map(|(id, author, text)| ChatMessage::new(MessageId::new(id), author, text));
    let mut log = MessageLog::new(LogOptions::default().initial_messages(stored));
    let kinds = [EventKind::TurnStart, input("One"), delta("A"), answer("A", &[]), input("Two"), delta("late")];
    for (seq, kind) in (0..).zip(kinds) {
        let _changed = log.process(&event(seq, kind));
    }
    let ids: Vec<String> = log.snapshot().messages().map(|message| message.id.as_str().to_owned()).collect();
    assert_eq!(ids, ["in-1", "1.1", "in-4", "1.1.1"]);
}

#[test]
fn a_front_end_knows_where_to_continue_and_takes_nothing_twice() {
    let kinds = [EventKind::TurnStart, input("Go"), delta("Good "), delta("morning"), answer("Good morning", &["a"])];
    let events: Vec<Event> = (0..).zip(kinds).map(|(seq, kind)| event(seq, kind)).collect();
    let mut chat = ChatSession::default();
    for event in &events[..3] {
        assert!(chat.process(event).is_yes());
    }
    assert_eq!(chat.next_seq(), 3);
    // The connection was lost, and the backlog begins too early.
    let changed: Vec<bool> = events.iter().map(|event| chat.process(event).is_yes()).collect();
    assert_eq!(changed, [false, false, false, true, true]);
    assert_eq!(texts(&chat), ["Go", "Good morning"]);
}

/// Case 1 of the specification, as far as it is the front end's.
#[test]
fn no_question_waits_for_another() {
    let mut chat = ChatSession::default();
    let _changed = feed(&mut chat, ["a", "b", "c"].map(requested));
    assert_eq!(pending(&chat), ["a", "b", "c"]);
    chat.respond(&id(&chat, "b"), Answer::deny("no")).unwrap();
    assert_eq!(pending(&chat), ["a", "c"]);
    // The time of one is over: the session answers it.
    let _changed = feed(&mut chat, [decided("a", Confirmation::TimedOut { approved: false })]);
    assert_eq!(pending(&chat), ["c"]);
    chat.respond(&id(&chat, "c"), Answer::Approve).unwrap();
    let _changed = feed(&mut chat, [resolved("b"), resolved("c")]);
    assert_eq!(chat.snapshot().mode, ChatMode::Idle);
}

#[test]
fn a_policy_that_panics_and_an_answer_that_is_lost_leave_the_question_open() {
    let mut confirmations = ToolConfirmations::with_policy(|question: &Question| match question.call.as_str() {
        "a" => panic!("no such tool"),
        "b" => Policy::APPROVE,
        _ => Policy::deny("never"),
    });
    for (seq, call) in (0..).zip(["a", "b", "c"]) {
        assert!(confirmations.process(&event(seq, requested(call))).is_yes());
    }
    let state = confirmations.snapshot();
    let open: Vec<&Question> = state.pending().collect();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].policy_error.as_deref(), Some("the confirmation policy panicked: no such tool"));
    let approved = state.questions()[1].id.clone();
    assert_eq!(confirmations.take_commands().len(), 2);
    assert!(confirmations.answer_failed(&approved, "the connection was lost").is_yes());
    assert_eq!(confirmations.state().pending().count(), 2);
    confirmations.respond(&approved, Answer::Approve).unwrap();
    assert_eq!(confirmations.take_commands().len(), 1);
}

/// Case 8 of the specification, by what is shared: time is measured by the bench.
#[test]
fn a_delta_copies_neither_other_messages_nor_the_text_so_far() {
    let mut log = MessageLog::default();
    let at = |seq: u64, turn: u32, kind: EventKind| Event::new(seq, 0, RunPosition { turn, step: 1, attempt: 1 }, kind);
    for turn in 0..200_u32 {
        let _changed = log.process(&at(u64::from(turn) * 2, turn, input("Question")));
        let _changed = log.process(&at(u64::from(turn) * 2 + 1, turn, answer("Answer", &[])));
    }
    let mut kept = Vec::new();
    for seq in 400..100_400 {
        assert_eq!(log.process(&at(seq, 500, delta("word"))), Changed::Yes);
        if seq % 9_973 == 0 {
            kept.push(log.snapshot());
        }
    }
    kept.push(log.snapshot());
    for pair in kept.windows(2) {
        let (before, after): (Vec<_>, Vec<_>) = (pair[0].messages().collect(), pair[1].messages().collect());
        let same = before.iter().zip(&after).filter(|(one, two)| one.is_same(two)).count();
        assert_eq!((same, before.len(), after.len()), (400, 401, 401));
        let text = |messages: &[tidegate_chat::Shared<ChatMessage>]| messages[400].blocks.last().unwrap().text.clone();
        let (before, after) = (text(&before), text(&after));
        let chunks = before.chunks().count();
        let copied = before.chunks().zip(after.chunks()).filter(|(one, two)| one.as_ptr() != two.as_ptr()).count();
        assert!(copied <= 1, "{copied} of {chunks} chunks were copied");
    }
    let last = kept.last().unwrap().messages().next_back().unwrap();
    let text = last.blocks.last().unwrap().text.clone();
    assert_eq!((last.blocks.len(), text.len()), (1, 400_000));
    assert!(text.chunks().count() <= 400_000 / 512, "{} chunks", text.chunks().count());
}

#[test]
fn modes_that_do_not_show_deltas_are_not_notified_of_them() {
    for (mode, wanted) in
        [(RenderMode::AtEnd, 1), (RenderMode::Message, 1), (RenderMode::Block, 1), (RenderMode::Streaming, 101)]
    {
        let mut log = MessageLog::new(LogOptions::default().render_mode(mode));
        let kinds = (0..100).map(|_| delta("word ")).chain([answer(&"word ".repeat(100), &[])]);
        let kinds = kinds.chain([finish(TurnStatus::Completed)]);
        let changes = (0..).zip(kinds).filter(|(seq, kind)| log.process(&event(*seq, kind.clone())).is_yes()).count();
        assert_eq!(changes, wanted, "{mode:?}");
    }
}

/// Case 7 of the specification, as far as it is the front end's.
#[test]
fn a_message_that_is_removed_while_it_is_delivered_has_one_receipt() {
    for delivered_first in [true, false] {
        let mut steering = MessageSteering::default();
        let _changed = steering.process(&event(0, EventKind::TurnStart));
        let id = steering.steer("Faster", Vec::new());
        steering.remove(&id).unwrap();
        let message =
            EventKind::SteeringMessage { id: None, role: flow::Role::User, text: "Faster".into(), hidden: false };
        if delivered_first {
            assert!(steering.process(&event(1, message)).is_yes());
            assert_eq!(steering.acknowledge(&id, Receipt::Removed), Changed::No);
            assert_eq!(steering.state().receipt(&id), Some(Receipt::Delivered { turn: 1, step: 1, seq: 1 }));
        } else {
            assert!(steering.acknowledge(&id, Receipt::Removed).is_yes());
            assert_eq!(steering.process(&event(1, message)), Changed::No);
            assert_eq!(steering.state().receipt(&id), Some(Receipt::Removed));
        }
        assert!(steering.edit(&id, "Slower").is_err() && steering.remove(&id).is_err());
    }
}

#[test]
fn the_queue_waits_for_what_was_sent_and_for_a_front_end_that_sends_it_itself() {
    let run = |options: SteeringOptions, steered: bool| {
        let mut steering = MessageSteering::new(options);
        let _changed = steering.process(&event(0, EventKind::TurnStart));
        steering.queue("Later");
        if steered {
            // It was too late for this turn, and starts the next.
            steering.steer("Now", Vec::new());
        }
        let _commands = steering.take_commands();
        let _changed = steering.process(&event(1, finish(TurnStatus::Completed)));
        (steering.take_commands().len(), steering.state().queued().len())
    };
    assert_eq!(run(SteeringOptions::default(), false), (1, 0));
    assert_eq!(run(SteeringOptions::default(), true), (0, 1));
    assert_eq!(run(SteeringOptions::default().auto_flush(false), false), (0, 1));
}

#[test]
fn prompts_that_a_cancel_drops_return_to_the_queue_and_are_not_sent_twice() {
    let mut chat = ChatSession::default();
    let id = chat.submit("Mine");
    assert_eq!(commands(&mut chat)[0]["command"], "prompt");
    // Another front end's turn was first, and is cancelled: the prompts that wait for it are, too.
    let _changed = feed(&mut chat, [EventKind::TurnStart, input("Theirs")]);
    let interrupt = chat.interrupt("Stop");
    let _changed = feed(&mut chat, [finish(TurnStatus::Cancelled)]);
    let receipt = |chat: &ChatSession, id: &OutgoingId| chat.snapshot().steering.receipt(id);
    assert_eq!(receipt(&chat, &id), Some(Receipt::Queued));
    assert_eq!(receipt(&chat, &interrupt), Some(Receipt::Sent), "an interrupt is what cancelled it");
    assert_eq!(chat.snapshot().last_submitted.map(|last| last.id), Some(interrupt));
    // The session had it all the same.
    let _changed = feed(&mut chat, [EventKind::TurnStart, input("Mine")]);
    assert!(matches!(receipt(&chat, &id), Some(Receipt::Delivered { turn: 1, .. })));
    assert!(chat.snapshot().steering.queued().is_empty());
}

#[test]
fn what_was_delivered_while_the_front_end_was_away_has_its_receipt() {
    let mut server = ChatSession::default();
    let mut chat = ChatSession::default();
    let first = [EventKind::TurnStart, input("Same"), finish(TurnStatus::Completed)];
    let _changed = feed(&mut server, first.clone()).or(feed(&mut chat, first));
    let id = chat.submit("Same");
    let edited = chat.steer("Old");
    chat.edit(&edited, "New").unwrap();
    let steered = EventKind::SteeringMessage { id: None, role: flow::Role::User, text: "New".into(), hidden: false };
    let _changed = feed(&mut server, [EventKind::TurnStart, input("Same"), steered]);
    assert!(chat.restore(server.save()).is_yes());
    let state = chat.snapshot();
    assert_eq!(state.steering.receipt(&id), Some(Receipt::Delivered { turn: 1, step: 1, seq: 4 }));
    assert!(matches!(state.steering.receipt(&edited), Some(Receipt::Delivered { seq: 5, .. })));
    assert_eq!((state.last_submitted, state.steering.sent().len()), (None, 0));
    assert!(state.steering.is_executing());
}

#[test]
fn a_message_is_shown_as_submitted_until_the_mode_shows_it() {
    let mut chat = ChatSession::new(ChatOptions::default().log(LogOptions::default().render_mode(RenderMode::AtEnd)));
    chat.submit("Go");
    let _changed = feed(&mut chat, [EventKind::TurnStart, input("Go")]);
    assert!(chat.snapshot().last_submitted.is_some() && texts(&chat).is_empty());
    let _changed = feed(&mut chat, [finish(TurnStatus::Completed)]);
    assert!(chat.snapshot().last_submitted.is_none() && texts(&chat) == ["Go"]);
}

#[test]
fn attachments_have_limits_that_are_errors() {
    let mut attachments = tidegate_chat::Attachments::new(1, &["image/png"]);
    let image = |name: &str| tidegate_chat::Attachment::new(name, "image/png", "https://example.com/a.png");
    attachments.add(image("a")).unwrap();
    let error = attachments.add(image("b")).unwrap_err().to_string();
    assert_eq!(error, "cannot attach `b`: a message has at most 1 attachments; send it or remove one");
    let error = attachments.add(tidegate_chat::Attachment::new("c", "text/x", "YQ==")).unwrap_err().to_string();
    assert_eq!(error, "cannot attach `c`: its type `text/x` is none of image/png");
    assert!(attachments.list()[0].is_address() && attachments.take().len() == 1 && attachments.take().is_empty());
}

#[test]
fn states_go_to_other_threads() {
    fn goes<T: Send + Sync + Clone + 'static>(_: &T) {}
    let mut chat = ChatSession::default();
    goes(&chat.snapshot());
    goes(&chat.save());
    goes(&MessageLog::default());
    let handle = std::thread::spawn(move || chat.submit("Hello"));
    assert_eq!(handle.join().unwrap().as_str(), "user-1");
}

#[test]
fn a_late_resolution_changes_nothing_of_a_call_that_runs() {
    let mut log = MessageLog::default();
    let status = |log: &MessageLog| log.snapshot().messages().next_back().unwrap().calls.get(0).map(|call| call.status);
    for (seq, kind, wanted) in [
        (0, requested("a"), ToolStatus::Asking),
        (1, resolved("a"), ToolStatus::Proposed),
        (2, started("a"), ToolStatus::Running),
        (3, resolved("a"), ToolStatus::Running),
        (4, result("a", Some(1)), ToolStatus::Done),
        (5, resolved("a"), ToolStatus::Done),
    ] {
        let _changed = log.process(&event(seq, kind));
        assert_eq!(status(&log), Some(wanted), "after event {seq}");
    }
}

#[test]
fn an_answer_that_is_on_its_way_survives_a_reconnect() {
    let (mut server, mut chat) = (ChatSession::default(), ChatSession::default());
    let _changed = feed(&mut server, [requested("a"), requested("b")]);
    let _changed = chat.restore(server.save());
    chat.respond(&id(&chat, "a"), Answer::Approve).unwrap();
    let _changed = chat.restore(server.save());
    assert_eq!(pending(&chat), ["b"]);
    assert!(chat.respond(&id(&chat, "a"), Answer::Approve).is_err(), "it is not sent twice");
    assert_eq!(commands(&mut chat).as_array().unwrap().len(), 1);
    // Another front end that gets the same state has not answered.
    let mut other = ChatSession::default();
    let _changed = other.restore(chat.save());
    assert_eq!(pending(&other), ["a", "b"]);
}

#[test]
fn a_message_that_could_not_be_handed_over_returns_as_it_was_edited() {
    let mut steering = MessageSteering::default();
    let id = steering.submit("Old", Vec::new());
    steering.edit(&id, "New").unwrap();
    assert!(steering.acknowledge(&id, Receipt::Queued).is_yes());
    assert_eq!(&*steering.state().queued()[0].text, "New");
}
