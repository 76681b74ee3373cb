//! The queue of the session, where a front end uses it: messages are handed over, asked back and removed there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use flow::{Event, EventKind, InputId, InputWay, Message, RunPosition, Withdrawal};
use serde_json::{Value, json};
use tidegate_chat::{ChatOptions, ChatSession, OutgoingId, Receipt, SteeringOptions};

fn feed(chat: &mut ChatSession, kinds: impl IntoIterator<Item = EventKind>) {
    for kind in kinds {
        let next = Event::new(chat.next_seq(), 0, RunPosition::default(), kind);
        let _changed = chat.process(&next);
    }
}

fn commands(chat: &mut ChatSession) -> Value {
    serde_json::to_value(chat.take_commands()).unwrap()
}

#[test]
fn a_message_that_waits_in_the_session_is_asked_back() {
    let options = SteeringOptions::default().session_queue();
    let mut chat = ChatSession::new(ChatOptions::default().steering(options));
    feed(&mut chat, [EventKind::TurnStart]);
    let own = chat.queue("own");
    let _queue = chat.take_commands();
    let waits = |id: &str| EventKind::InputQueued {
        id: InputId::new(id),
        way: InputWay::Queue,
        message: Arc::new(Message::user("other")),
    };
    feed(&mut chat, [waits(own.as_str()), waits("input-7")]);
    let others = OutgoingId::new("input-7");
    assert_eq!(
        [chat.take_back(&own), chat.take_back(&others), chat.take_back(&OutgoingId::new("nobody"))],
        [const { None }; 3]
    );
    let asked = json!([{"command": "take_back", "id": "user-1"}, {"command": "take_back", "id": "input-7"}]);
    assert_eq!(commands(&mut chat), asked);
    let withdrawn = |id: &OutgoingId| EventKind::InputWithdrawn { id: id.into(), receipt: Withdrawal::Returned };
    feed(&mut chat, [withdrawn(&own)]);
    assert_eq!(chat.snapshot().steering.receipt(&own), Some(Receipt::Returned));
    // To clear the queue is to remove what is in that of the session.
    let _changed = chat.clear_queue();
    assert_eq!(commands(&mut chat), json!([{"command": "remove", "id": "input-7"}]));
}

/// A process ended before an input was in the conversation: the next one reports that it waits again, and it can be edited.
#[test]
fn a_message_that_waits_again_is_in_the_queue_and_then_in_the_log_as_it_is_now() {
    let mut chat = ChatSession::new(ChatOptions::default());
    let id = || InputId::new("input-1");
    let text = |text: &str| Arc::new(Message::user(text));
    let received = |said: &str| EventKind::InputReceived { id: Some(id()), message: text(said) };
    let waits = |said: &str| EventKind::InputQueued { id: id(), way: InputWay::Queue, message: text(said) };
    feed(&mut chat, [waits("first"), EventKind::TurnStart, received("first"), waits("first")]);
    assert_eq!(chat.snapshot().steering.waiting().len(), 1);
    let edited = EventKind::InputEdited { id: id(), text: "second".into(), hidden: false };
    feed(&mut chat, [edited, EventKind::TurnStart, received("second")]);
    let state = chat.snapshot();
    assert!(state.steering.waiting().is_empty());
    let texts: Vec<String> = state.messages.messages().map(|message| message.text()).collect();
    assert_eq!(texts, ["second"]);
}
