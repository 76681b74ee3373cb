//! `_session/steering`: a message for the running turn.

use tidegate::input::{InputId, Receipt, WhenBusy};
use tidegate::{EventKind, Message, Session, Subscription};

use super::agent::{Agent, answered};
use super::commands::{self, Command};
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
    /// The client wants to send a prompt instead, which it has to for this reason.
    Back(&'static str),
}

impl Agent {
    /// Hands a message to the running turn. Where none runs it begins one, unless the client wants to send a prompt then. Returns at once: the
    /// response follows when the message is recorded, so that the end of this process does not lose what the client takes for sent. Where
    /// recording has failed, which the user was told, it follows at once.
    pub(super) fn steer(&self, request: SteeringRequest, responder: Responder<SteeringResponse>) {
        let handed = self.session(&request.session_id).and_then(|open| {
            let message = content::message(request.prompt).map_err(|reason| error(-32602, reason))?;
            let about = request.meta.as_ref().and_then(|meta| meta.get("steering")?.get("idleBehavior")?.as_str());
            let events = open.session.subscribe();
            Ok((hand(&open.session, message, about == Some("promptRequired"))?, events))
        });
        let (handed, events) = match handed {
            Ok(handed) => handed,
            Err(error) => return answered(responder.respond_with_error(error)),
        };
        drop(tokio::spawn(async move {
            answered(responder.respond_with_result(outcome(handed, events).await));
        }));
    }
}

/// Hands a message over. What is reported is what happened: a turn can end, or begin, at any moment.
fn hand(session: &Session, message: Message, sends_prompts: bool) -> Result<Handed, Error> {
    Ok(match commands::of(session, &message) {
        Some(_) if sends_prompts => Handed::Back("command"),
        Some(command) => return Err(refused(command, &message.plain_text())),
        None if sends_prompts => session.inbox().join_turn(message).map_or(Handed::Back("noRunningTurn"), Handed::Over),
        None => match session.send(message, WhenBusy::Steer) {
            sent if sent.started => Handed::Started(sent.id),
            sent if session.inbox().receipt(&sent.id) == Some(Receipt::Returned) => Handed::Refused,
            sent => Handed::Over(sent.id),
        },
    })
}

/// A command is no message for the model, and the response has no place for its answer.
fn refused(command: Command, text: &str) -> Error {
    let reason = match command {
        Command::Refused(reason) => reason,
        Command::Answer(_) | Command::Continue => {
            format!(
                "`{}` is a command, and nothing was sent to the model: send it as a prompt, also while a turn runs",
                text.trim()
            )
        }
    };
    error(-32602, reason)
}

async fn outcome(handed: Handed, events: Subscription) -> Result<SteeringResponse, Error> {
    let (outcome, id) = match handed {
        Handed::Over(id) => (SteeringOutcome::Injected, id),
        Handed::Started(id) => (SteeringOutcome::StartedNewTurn, id),
        Handed::Refused => {
            return Err(error(-32603, "the session has not taken the message: it is blank, or the session was closed"));
        }
        Handed::Back(reason) => {
            return Ok(SteeringResponse { outcome: SteeringOutcome::PromptRequired, reason: Some(reason.to_owned()) });
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
