//! `session/fork`: a session of its own, which continues another one from the end of its last turn.

use std::sync::Arc;

use tidegate::transcript::{ForkedState, TranscriptError, TranscriptStore, last_finished_turn};
use tidegate::{PluginId, SessionId, new_session_id};

use super::agent::{Agent, answered, missing, recorded};
use super::hosts::{error, failed};
use super::sdk::{Connection, Error, Responder, v1};
use super::session::Open;
use super::trust::Place;

impl Agent {
    pub(super) async fn fork_session(
        &self,
        request: v1::ForkSessionRequest,
        responder: Responder<v1::ForkSessionResponse>,
        connection: Connection,
    ) {
        let mcp_servers = request.mcp_servers.len();
        match Box::pin(self.fork(request, connection)).await {
            Err(error) => answered(responder.respond_with_error(error)),
            Ok((open, warning)) => {
                let response = v1::ForkSessionResponse::new(open.client.session.clone())
                    .modes(open.modes())
                    .config_options(open.options());
                answered(responder.respond(response));
                open.introduce(mcp_servers);
                warning.into_iter().for_each(|title| open.client.notice(v1::NoticeSeverity::Warning, &title, None));
            }
        }
    }

    /// Opens a fork. Returns what its user has to know about it.
    async fn fork(
        &self,
        request: v1::ForkSessionRequest,
        connection: Connection,
    ) -> Result<(Arc<Open>, Option<String>), Error> {
        let parent = SessionId::new(Arc::clone(&request.session_id.0));
        let open = self.state().sessions.get(parent.as_str()).cloned();
        // The client knows the parent: a question about the workspace is asked there.
        let asked = Place { id: parent.clone(), workspace: request.cwd, connection };
        let settings = self.decided(&asked, self.settings(&asked).await?).await?;
        let host = self.hosts.of(settings.clone()).await?;
        let place = Place { id: new_session_id(), ..asked };
        let (child, mut warning) = (place.id.clone(), None);
        match last_turn(recorded(&host)?, parent.clone()).await? {
            Ok(Some(turn)) => {
                let state = host.fork(&parent, turn, &place.id).await.map_err(|reason| failed(&reason))?;
                warning = state_warning(&state, turn);
            }
            // Nothing has happened in it, so that a new session is the same.
            Ok(None) | Err(TranscriptError::Missing { .. })
                if open.as_ref().is_some_and(|open| !open.session.is_running()) => {}
            Ok(None) => return Err(error(-32602, "no turn of the session has finished: there is nothing to fork")),
            Err(reason) => return Err(missing(&request.session_id, &reason)),
        }
        // A choice that no turn has used yet is not recorded.
        let model = open.and_then(|open| open.model.clone());
        match Box::pin(self.open_with(place, settings, model)).await {
            Ok(open) => Ok((open, warning)),
            Err(error) => {
                // The client has no session of this id: it must not be in the list.
                if let Err(left) = host.remove_session(&child).await {
                    tracing::warn!("the fork {child} cannot be opened, and is not removed either: {left}");
                }
                Err(error)
            }
        }
    }
}

async fn last_turn(store: TranscriptStore, id: SessionId) -> Result<Result<Option<u32>, TranscriptError>, Error> {
    let read = tokio::task::spawn_blocking(move || last_finished_turn(&store, &id)).await;
    read.map_err(|panicked| error(-32603, panicked.to_string()))
}

/// That the extensions of a fork do not have what they have kept.
fn state_warning(state: &ForkedState, turn: u32) -> Option<String> {
    let ForkedState::Unknown { latest, plugins } = state else { return None };
    let plugins = plugins.iter().map(PluginId::as_str).collect::<Vec<_>>().join(", ");
    Some(format!(
        "The fork begins without the state of {plugins}: it is stored as turn {latest} has left it, and not as turn {turn} has"
    ))
}
