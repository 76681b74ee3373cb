//! Prompts: each is a turn, and is answered when the client has all updates of it.

use std::sync::Arc;

use serde_json::json;
use tidegate::input::{InputId, NewInput};
use tidegate::model::StopReason;
use tidegate::{Turn, TurnReport, TurnStatus};

use super::agent::{Agent, answered};
use super::commands::{self, Command};
use super::content;
use super::hosts::error;
use super::names::{self, meta};
use super::sdk::{Error, Responder, v1};
use super::session::Open;
use super::updates::why;

impl Agent {
    /// Starts the turn of a prompt, or lets it wait for those before it. Returns at once: the response follows.
    pub(super) fn prompt(self: &Arc<Self>, request: v1::PromptRequest, responder: Responder<v1::PromptResponse>) {
        // One that comes before the user has decided about the workspace waits for that.
        if let Some((request, responder)) = self.keep_waiting(request, responder) {
            self.start(request, responder);
        }
    }

    /// Starts the turn of a prompt.
    pub(super) fn start(&self, request: v1::PromptRequest, responder: Responder<v1::PromptResponse>) {
        let read = self.session(&request.session_id).and_then(|open| {
            let message = content::message(request.prompt).map_err(|reason| error(-32602, reason))?;
            Ok((open, message))
        });
        let (open, message) = match read {
            Ok(read) => read,
            Err(error) => return answered(responder.respond_with_error(error)),
        };
        let turn = match commands::of(&open.session, &message) {
            Some(Command::Answer(text) | Command::Refused(text)) => {
                if !open.session.is_running() {
                    open.client.tail.reset();
                }
                open.client.say(&text);
                return answered(responder.respond(v1::PromptResponse::new(v1::StopReason::EndTurn)));
            }
            Some(Command::Continue) => open.session.resume(),
            None => {
                let id = InputId::new(tidegate::new_session_id().as_str());
                open.prompts().begin(id.clone());
                open.session.prompt(NewInput::from(message).id(id))
            }
        };
        drop(tokio::spawn(answer(open, turn, responder)));
    }

    /// Cancels what runs in a session, and the prompts that wait. Nothing happens where nothing runs.
    pub(super) fn cancel(&self, notification: &v1::CancelNotification) {
        self.cancel_waiting(&notification.session_id);
        // A client can be late: the session is closed.
        if let Ok(open) = self.session(&notification.session_id) {
            let reason = notification.meta.as_ref().and_then(|meta| meta.get(names::REASON)?.as_str());
            open.session.cancel_because(&open.client.can.name, reason.unwrap_or_default());
        }
    }
}

async fn answer(open: Arc<Open>, mut turn: Turn, responder: Responder<v1::PromptResponse>) {
    let cancellation = responder.cancellation();
    let mut is_asked = false;
    loop {
        tokio::select! {
            // The events reach the client through the subscription of the session, which has those of all turns.
            event = turn.next() => if event.is_none() { break },
            () = cancellation.cancelled(), if !is_asked => {
                is_asked = true;
                turn.cancel();
            }
        }
    }
    let inputs = turn.inputs().to_vec();
    let report = turn.report().await;
    // An update after the response would be taken for one of the next prompt.
    open.sent(report.place.turn).await;
    let is_reported = open.prompts().end(&inputs, report.place.turn) || inputs.is_empty();
    let response = response(&open, &report, is_reported);
    answered(responder.respond_with_result(response));
}

/// `is_reported`: how the turn ended was sent as a message, because it has no input or failed before it received one.
fn response(open: &Open, report: &TurnReport, is_reported: bool) -> Result<v1::PromptResponse, Error> {
    let status = &report.status;
    let reason = match status {
        TurnStatus::Suspended { .. } | TurnStatus::Failed { .. } if is_reported => v1::StopReason::EndTurn,
        TurnStatus::Completed => stop(report.stop.as_ref()),
        TurnStatus::Cancelled => v1::StopReason::Cancelled,
        TurnStatus::StepLimit { .. } | TurnStatus::NoProgress { .. } => v1::StopReason::MaxTurnRequests,
        // The input is not part of the conversation.
        TurnStatus::Rejected { .. } => v1::StopReason::Refusal,
        TurnStatus::StoppedByRule { .. } => v1::StopReason::EndTurn,
        TurnStatus::Suspended { message, .. } | TurnStatus::Failed { message, .. } => {
            return Err(error(-32603, message).data(json!({names::STATUS: status.as_str()})));
        }
    };
    if let Some(why) = why(status).filter(|_| !is_reported) {
        open.client.say(&why);
    }
    let about = meta(names::STATUS, json!(status.as_str()));
    Ok(v1::PromptResponse::new(reason).meta(about))
}

fn stop(reason: Option<&StopReason>) -> v1::StopReason {
    match reason {
        Some(StopReason::MaxTokens | StopReason::ContextFull) => v1::StopReason::MaxTokens,
        Some(StopReason::Refusal) => v1::StopReason::Refusal,
        _ => v1::StopReason::EndTurn,
    }
}
