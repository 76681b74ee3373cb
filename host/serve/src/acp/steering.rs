//! `_session/steering`: a message for the running turn.

use tidegate::Receipt;

use super::agent::Agent;
use super::content;
use super::hosts::error;
use super::sdk::{Error, SteeringOutcome, SteeringRequest, SteeringResponse};

impl Agent {
    /// Hands a message to the running turn. Where none runs it begins one, unless the client wants to send a prompt then.
    pub(super) fn steer(&self, request: &SteeringRequest) -> Result<SteeringResponse, Error> {
        let open = self.session(&request.session_id)?;
        let message = content::message(request.prompt.clone()).map_err(|reason| error(-32602, reason))?;
        let about = request.meta.as_ref().and_then(|meta| meta.get("steering")?.get("idleBehavior")?.as_str());
        // What is reported is what happened: a turn can end, or begin, at any moment.
        let (outcome, reason) = if about == Some("promptRequired") {
            match open.session.steer_running(message) {
                Ok(_) => (SteeringOutcome::Injected, None),
                Err(_) => (SteeringOutcome::PromptRequired, Some("noRunningTurn".to_owned())),
            }
        } else {
            match open.session.steer_or_start(message) {
                (_, true) => (SteeringOutcome::StartedNewTurn, None),
                (id, false) if open.session.receipt(&id) == Some(Receipt::Returned) => {
                    return Err(error(-32603, "the session was closed: it has not taken the message"));
                }
                (_, false) => (SteeringOutcome::Injected, None),
            }
        };
        Ok(SteeringResponse { outcome, reason })
    }
}
