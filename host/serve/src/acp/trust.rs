//! The question whether the operator's file of a workspace counts. A session that waits for the answer has its id, so that the client can show
//! the question, and its prompts wait.

use std::path::PathBuf;
use std::sync::Arc;

use tidegate::SessionId;
use tidegate::question::Preview;
use tidegate::trust::WorkspaceSettings;

use super::agent::{Agent, State, answered};
use super::client::Client;
use super::hosts::error;
use super::options::{self, Mode};
use super::sdk::v1::{
    self, PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SessionUpdate, ToolCallStatus,
    ToolCallUpdateFields,
};
use super::sdk::{Connection, Error, Responder};
use super::session::Open;
use super::tool;

/// Ids of the options.
const TRUST: &str = "trust";
const WITHOUT: &str = "without";
const STOP: &str = "stop";

/// How to go on.
const HELP: &str = "`tidegate trust` in the workspace shows what it asks for, and trusts it";

/// Where a session is to be opened.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) id: SessionId,
    pub(super) workspace: PathBuf,
    pub(super) connection: Connection,
}

/// A session that is opened when the user has decided.
pub(super) struct Waiting {
    place: Place,
    mcp_servers: usize,
    is_asked: bool,
    prompts: Vec<(v1::PromptRequest, Responder<v1::PromptResponse>)>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Waiting {
    /// Ends its prompts.
    pub(super) fn cancel(self) {
        for (_, responder) in self.prompts {
            answered(responder.respond(v1::PromptResponse::new(v1::StopReason::Cancelled)));
        }
    }
}

impl Agent {
    /// Keeps a session that has its id until the user has decided.
    pub(super) fn wait(&self, place: Place, mcp_servers: usize) {
        let id = place.id.as_str().to_owned();
        self.state().waiting.insert(id, Waiting { place, mcp_servers, is_asked: false, prompts: Vec::new() });
    }

    /// Keeps a prompt of a session that waits, and asks the user again where the last answer was no. Any other prompt is returned.
    pub(super) fn keep_waiting(
        self: &Arc<Self>,
        request: v1::PromptRequest,
        responder: Responder<v1::PromptResponse>,
    ) -> Option<(v1::PromptRequest, Responder<v1::PromptResponse>)> {
        let mut state = self.state();
        let Some(waiting) = state.waiting.get_mut(&*request.session_id.0) else { return Some((request, responder)) };
        waiting.prompts.push((request, responder));
        if !waiting.is_asked {
            let (agent, id) = (Arc::clone(self), waiting.place.id.clone());
            drop(tokio::spawn(async move { agent.decide(&id).await }));
        }
        None
    }

    /// Cancels the prompts of a session that waits.
    pub(super) fn cancel_waiting(&self, id: &v1::SessionId) {
        let prompts = self.state().waiting.get_mut(&*id.0).map(|waiting| std::mem::take(&mut waiting.prompts));
        for (_, responder) in prompts.into_iter().flatten() {
            answered(responder.respond(v1::PromptResponse::new(v1::StopReason::Cancelled)));
        }
    }

    /// Asks about the workspace of a session that waits, and opens it when it counts. Otherwise its prompts are refused, and the next one
    /// asks again.
    pub(super) async fn decide(&self, id: &SessionId) {
        let Some((place, mcp_servers)) = self.begin(id) else { return };
        let opened = async {
            let settings = self.decided(&place, self.settings(&place).await?).await?;
            self.open(place.clone(), settings).await
        };
        match Box::pin(opened).await {
            // It was closed while the user was asked.
            Ok(open) if !self.state().waiting.contains_key(id.as_str()) => {
                self.state().sessions.remove(id.as_str());
                open.close().await;
            }
            Ok(open) => self.begin_waiting(&open, mcp_servers),
            Err(reason) => self.refuse_waiting(id, &reason),
        }
    }

    /// The place of a session that waits and about which nobody is asked yet.
    fn begin(&self, id: &SessionId) -> Option<(Place, usize)> {
        let mut state = self.state();
        let waiting = state.waiting.get_mut(id.as_str()).filter(|waiting| !waiting.is_asked)?;
        waiting.is_asked = true;
        Some((waiting.place.clone(), waiting.mcp_servers))
    }

    /// The session is open: what the client could not know before is sent, and the prompts that wait begin, in their order.
    fn begin_waiting(&self, open: &Arc<Open>, mcp_servers: usize) {
        open.introduce(mcp_servers);
        open.client.update(options::mode_update(Mode::default()));
        let known = v1::ConfigOptionUpdate::new(open.options());
        open.client.update(SessionUpdate::ConfigOptionUpdate(known));
        loop {
            let prompts = {
                let mut state = self.state();
                let State { waiting, .. } = &mut *state;
                let id = &*open.client.session.0;
                let prompts = waiting.get_mut(id).map(|waiting| std::mem::take(&mut waiting.prompts));
                // Under the lock, so that no prompt comes to wait for nothing.
                match prompts.filter(|prompts| !prompts.is_empty()) {
                    Some(prompts) => prompts,
                    None => break drop(waiting.remove(id)),
                }
            };
            prompts.into_iter().for_each(|(request, responder)| self.start(request, responder));
        }
    }

    fn refuse_waiting(&self, id: &SessionId, reason: &Error) {
        let prompts = self.state().waiting.get_mut(id.as_str()).map(|waiting| {
            waiting.is_asked = false;
            std::mem::take(&mut waiting.prompts)
        });
        for (_, responder) in prompts.into_iter().flatten() {
            answered(responder.respond_with_error(reason.clone()));
        }
    }

    /// The settings of a session, after the user has decided about the file of the workspace where that is needed.
    ///
    /// # Errors
    /// It is not trusted: the reason is for the user.
    pub(super) async fn decided(&self, place: &Place, settings: WorkspaceSettings) -> Result<WorkspaceSettings, Error> {
        let (Some(request), Some(preview)) = (settings.request(), settings.preview()) else { return Ok(settings) };
        let file = request.file.display().to_string();
        let refused = |why: &str| error(-32603, format!("{file} is not trusted, so nothing was run: {why}; {HELP}"));
        if !request.is_readable() {
            return Err(refused("it is too long to be read in a question"));
        }
        let answer = ask(&self.client(place), &file, &preview).await;
        match answer.map_err(|error| refused(&format!("the editor did not answer the question: {error}")))?.as_deref() {
            Some(TRUST) => settings.trust().map_err(|error| refused(&error.to_string())),
            Some(WITHOUT) => Ok(self.hosts.leave_out(&place.workspace, settings).await),
            Some(_) => Err(refused("you have refused it")),
            None => Err(refused("the question was closed without an answer")),
        }
    }
}

/// Asks the user, as about a call: the protocol has no other question. Whoever answers all questions with "allow once" works without the file.
async fn ask(client: &Client, file: &str, preview: &Preview) -> Result<Option<String>, Error> {
    let id = v1::ToolCallId::new(format!("trust/{}", tidegate::new_session_id().as_str()));
    let title = format!("Trust {file}?");
    let about = "It counts when you trust it: it came with the folder, and asks for more than a project decides.";
    let mut content = vec![tool::text(about)];
    content.extend(preview.notes.iter().map(tool::text));
    content.extend(tool::arguments(preview));
    content.extend(preview.diff.as_ref().map(|diff| tool::text(tool::fenced("diff", &tool::shown(diff)))));
    client.update(SessionUpdate::ToolCall(v1::ToolCall::new(id.clone(), title.clone()).content(content.clone())));
    let options = vec![
        PermissionOption::new(TRUST, "Trust it as it is now", PermissionOptionKind::AllowAlways),
        PermissionOption::new(WITHOUT, "Work without it", PermissionOptionKind::AllowOnce),
        PermissionOption::new(STOP, "Run nothing here", PermissionOptionKind::RejectOnce),
    ];
    let fields = ToolCallUpdateFields::new().title(title).status(ToolCallStatus::Pending).content(content);
    let answer = client.ask(v1::ToolCallUpdate::new(id.clone(), fields), options, None).await;
    let option = answer.map(|outcome| match outcome {
        RequestPermissionOutcome::Selected(selected) => Some(selected.option_id.0.to_string()),
        _ => None,
    });
    let is_settled = matches!(&option, Ok(Some(option)) if option != STOP);
    let status = if is_settled { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let fields = ToolCallUpdateFields::new().status(status);
    client.update(SessionUpdate::ToolCallUpdate(v1::ToolCallUpdate::new(id, fields)));
    option
}
