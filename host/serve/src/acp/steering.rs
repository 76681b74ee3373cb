//! `_session/steering`: a message for the running turn.

use tidegate::{EventKind, InputId, Receipt, Subscription};

use super::agent::{Agent, answered};
use super::content;
use super::hosts::error;
use super::sdk::{Error, Responder, SteeringOutcome, SteeringRequest, SteeringResponse};

/// What became of a message at once.
enum Handed {
    /// The running turn, or the one after it, takes it.
    Over(InputId),
    Started(InputId),
    /// The session is closed.
    Refused,
    /// The client wants to send a prompt instead.
    Back,
}

impl Agent {
    /// Hands a message to the running turn. Where none runs it begins one, unless the client wants to send a prompt then. Returns at once: the
    /// response follows when the message is recorded, so that the end of this process does not lose what the client takes for sent. Where
    /// recording has failed, which the user was told, it follows at once.
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
                (id, true) => Handed::Started(id),
                (id, false) if open.session.receipt(&id) == Some(Receipt::Returned) => Handed::Refused,
                (id, false) => Handed::Over(id),
            }
        };
        drop(tokio::spawn(async move {
            answered(responder.respond_with_result(outcome(handed, events).await));
        }));
    }
}

async fn outcome(handed: Handed, events: Subscription) -> Result<SteeringResponse, Error> {
    let (outcome, id) = match handed {
        Handed::Over(id) => (SteeringOutcome::Injected, id),
        Handed::Started(id) => (SteeringOutcome::StartedNewTurn, id),
        Handed::Refused => return Err(error(-32603, "the session was closed: it has not taken the message")),
        Handed::Back => {
            let reason = Some("noRunningTurn".to_owned());
            return Ok(SteeringResponse { outcome: SteeringOutcome::PromptRequired, reason });
        }
    };
    if !is_recorded(&id, events).await {
        return Err(error(-32603, "the session was closed before the message was recorded: send it again"));
    }
    Ok(SteeringResponse { outcome, reason: None })
}

/// Waits for an event about an input: it is reported when it is recorded. `false`: the session has ended before.
async fn is_recorded(id: &InputId, mut events: Subscription) -> bool {
    while let Some(event) = events.next().await {
        let about = match &event.kind {
            EventKind::InputQueued { id, .. } | EventKind::InputWithdrawn { id, .. } => Some(id),
            EventKind::InputReceived { id, .. } | EventKind::SteeringMessage { id, .. } => id.as_ref(),
            _ => None,
        };
        if about == Some(id) {
            return true;
        }
    }
    false
}
