//! `_session/steering`: a message for the running turn.

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
        let is_running = open.session.is_running();
        if !is_running && about == Some("promptRequired") {
            let outcome = SteeringOutcome::PromptRequired;
            return Ok(SteeringResponse { outcome, reason: Some("noRunningTurn".to_owned()) });
        }
        open.session.steer(message);
        let outcome = if is_running { SteeringOutcome::Injected } else { SteeringOutcome::StartedNewTurn };
        Ok(SteeringResponse { outcome, reason: None })
    }
}
