//! `_session/steering`: a message for the running turn.

use std::sync::Arc;

use tidegate::{EventKind, InputId, Receipt, Subscription};

use super::agent::{Agent, answered};
use super::content;
use super::hosts::error;
use super::sdk::{Error, Responder, SteeringOutcome, SteeringRequest, SteeringResponse};
use super::session::Open;

/// What became of a message at once.
enum Handed {
    /// The running turn, or the one after it, takes it.
    Over(InputId),
    Started,
    /// The client wants to send a prompt instead.
    Back,
}

impl Agent {
    /// Hands a message to the running turn. Where none runs it begins one, unless the client wants to send a prompt then. Returns at once: the
    /// response follows when the message is recorded, so that no end of this process loses what the client takes for sent.
    pub(super) fn steer(&self, request: SteeringRequest, responder: Responder<SteeringResponse>) {
        let read = self.session(&request.session_id).and_then(|open| {
            let message = content::message(request.prompt).map_err(|reason| error(-32602, reason))?;
            Ok((open, message))
        });
        let (open, message) = match read {
            Ok(read) => read,
            Err(error) => return answered(responder.respond_with_error(error)),
        };
        let events = open.session.subscribe();
        let about = request.meta.as_ref().and_then(|meta| meta.get("steering")?.get("idleBehavior")?.as_str());
        // What is reported is what happened: a turn can end, or begin, at any moment.
        let handed = if about == Some("promptRequired") {
            open.session.steer_running(message).map_or(Handed::Back, Handed::Over)
        } else {
            match open.session.steer_or_start(message) {
                (_, true) => Handed::Started,
                (id, false) => Handed::Over(id),
            }
        };
        drop(tokio::spawn(async move {
            answered(responder.respond_with_result(outcome(&open, handed, events).await));
        }));
    }
}

async fn outcome(open: &Arc<Open>, handed: Handed, events: Subscription) -> Result<SteeringResponse, Error> {
    let (outcome, reason) = match handed {
        Handed::Over(id) if open.session.receipt(&id) == Some(Receipt::Returned) => {
            return Err(error(-32603, "the session was closed: it has not taken the message"));
        }
        Handed::Over(id) => {
            recorded(&id, events).await;
            (SteeringOutcome::Injected, None)
        }
        Handed::Started => (SteeringOutcome::StartedNewTurn, None),
        Handed::Back => (SteeringOutcome::PromptRequired, Some("noRunningTurn".to_owned())),
    };
    Ok(SteeringResponse { outcome, reason })
}

/// Waits for an event about a message that waits: none is reported before it is on the disk.
async fn recorded(id: &InputId, mut events: Subscription) {
    while let Some(event) = events.next().await {
        match &event.kind {
            EventKind::InputQueued { id: about, .. } | EventKind::InputWithdrawn { id: about, .. } if about == id => {
                return;
            }
            EventKind::InputReceived { id: Some(about), .. } | EventKind::SteeringMessage { id: Some(about), .. }
                if about == id =>
            {
                return;
            }
            _ => {}
        }
    }
}
