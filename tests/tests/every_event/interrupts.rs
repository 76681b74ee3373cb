//! The user interrupts at every event of a turn: the message is delivered once, what the model had written is kept, nothing is sent twice,
//! and the conversation is one that servers of others take, in this process and in the next.

use std::sync::Arc;
use std::time::Duration;

use flow::{Event, EventKind, Retained};
use serde_json::Value;
use tempfile::TempDir;
use tidegate::input::{Receipt, WhenBusy};
use tidegate::{Message, Session, TurnStatus};
use tidegate_kit::assert_valid;
use tokio::task::JoinSet;

use super::place::{QUESTION, Servers, WIRES, Wire, close, session, workspace};

const MESSAGE: &str = "Stop, and name the file.";

/// What the record of an answer, and the result of a call, have of the interrupt.
const CAUSE: &str = "the user interrupted";

/// Sessions that run at once: each mostly waits for its server.
const AT_ONCE: usize = 6;

/// No event reports the arguments of a call while they arrive: some interrupts come so long after an event.
const LATER: Duration = Duration::from_millis(50);

/// What became of a turn.
struct Interrupted {
    folder: TempDir,
    events: Vec<Event>,
    /// The number of the event at which the interrupt came.
    at: usize,
}

/// Interrupts a turn at its event with this number. `None`: it has fewer. An interrupt at the last of them comes after the turn.
async fn interrupted(wire: Wire, base_url: String, at: usize) -> Option<Interrupted> {
    let folder = workspace();
    let session = session(&folder, wire, &base_url).await;
    let mut all = session.subscribe();
    let mut turn = session.prompt(QUESTION);
    let (mut id, mut number) = (None, 0);
    while turn.next().await.is_some() {
        if number == at {
            if at % 3 == 1 {
                tokio::time::sleep(LATER).await;
            }
            id = Some(session.send(MESSAGE, WhenBusy::Interrupt).id);
        }
        number += 1;
    }
    assert_eq!(turn.report().await.status, TurnStatus::Completed, "{wire:?}, event {at}");
    let Some(id) = id else {
        close(session).await;
        return None;
    };
    // After the last event of the turn it starts one of its own.
    let delivered = delivery(&session, &mut all, id.as_str()).await;
    assert_eq!(delivered.iter().filter(|event| delivers(event, id.as_str())).count(), 1, "{wire:?}, event {at}");
    assert!(matches!(session.inbox().receipt(&id), Some(Receipt::Delivered { .. })), "{wire:?}, event {at}");
    assert_valid(&session.history());
    assert_kept(&delivered, &session.history());
    close(session).await;
    Some(Interrupted { folder, events: delivered, at })
}

fn delivers(event: &Event, wanted: &str) -> bool {
    match &event.kind {
        EventKind::SteeringMessage { id: Some(id), .. } | EventKind::InputReceived { id: Some(id), .. } => {
            id.as_str() == wanted
        }
        _ => false,
    }
}

/// The events until a turn has ended in which, or before which, the message was delivered.
async fn delivery(session: &Session, events: &mut tidegate::Subscription, wanted: &str) -> Vec<Event> {
    let (mut taken, mut delivered) = (Vec::new(), false);
    while let Some(event) = events.next().await {
        delivered |= delivers(&event, wanted);
        let ended = matches!(event.kind, EventKind::TurnFinish { .. });
        taken.push(event);
        if ended && delivered {
            break;
        }
    }
    while session.is_running() {
        tokio::task::yield_now().await;
    }
    taken
}

/// Nothing is lost: what an answer had, when it was stopped, is in the conversation; and every call of an accepted one has its result.
fn assert_kept(events: &[Event], history: &[Arc<Message>]) {
    for event in events {
        let EventKind::CognitionOut { text, partial: Some(partial), retained, .. } = &event.kind else { continue };
        assert!(partial.error.starts_with(CAUSE), "{}", partial.error);
        let is_blank = text.trim().is_empty();
        let end = format!("{text}\n\n[Stream interrupted: {CAUSE}");
        let kept = history.iter().filter(|message| message.plain_text().contains(&end)).count();
        // Reasoning without a signature stays, too, also where there is no text yet.
        match retained {
            Retained::Marked if is_blank => assert!(kept > 0, "{history:#?}"),
            Retained::Marked => assert_eq!(kept, 1, "{text:?} in {history:#?}"),
            other => assert!(is_blank && *other == Retained::Nothing, "{text:?}: {other:?}"),
        }
    }
    for text in [QUESTION, MESSAGE] {
        assert_eq!(history.iter().filter(|message| message.plain_text() == text).count(), 1, "{text}: {history:#?}");
    }
}

/// What interrupts have met: an answer in its reasoning, or in its text; a call that runs, or one that has not begun.
fn met(events: &[Event]) -> [bool; 3] {
    let mut met = [false; 3];
    for event in events {
        match &event.kind {
            EventKind::CognitionOut { partial: Some(_), text, blocks, .. } => {
                met[0] |= text.is_empty() && !blocks.is_empty();
                met[1] |= !text.is_empty();
            }
            EventKind::ToolCallResult { output, .. } => met[2] |= output.contains(CAUSE),
            _ => {}
        }
    }
    met
}

/// How often a string is in a request.
fn count(body: &Value, text: &str) -> usize {
    body.to_string().matches(text).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn case_5_an_interrupt_at_every_event_leaves_a_conversation_that_every_server_takes() {
    let mut servers = Servers::start();
    for wire in WIRES {
        let (mut seen, mut turns, mut next, mut is_over) = ([false; 3], 0, 0, false);
        let mut running = JoinSet::new();
        loop {
            while !is_over && running.len() < AT_ONCE {
                running.spawn(interrupted(wire, servers.aimock.base_url().to_owned(), next));
                next += 1;
            }
            let Some(ended) = running.join_next().await else { break };
            let Some(Interrupted { folder, events, at }) = ended.unwrap() else {
                is_over = true;
                continue;
            };
            let context = format!("{}, interrupted at event {at}", wire.0);
            let body = servers.accept(&folder, wire, at, &context).await;
            assert_eq!((count(&body, MESSAGE), count(&body, QUESTION)), (1, 1), "{context}: {body:#}");
            met(&events).iter().zip(&mut seen).for_each(|(found, seen)| *seen |= found);
            turns += 1;
        }
        assert!(turns > 30, "{wire:?}: {turns}");
        assert_eq!(seen, [true; 3], "{wire:?}: the interrupts come in all kinds of content");
    }
}
