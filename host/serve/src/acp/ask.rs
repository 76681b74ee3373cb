//! Questions to the user of the editor: about tool calls, and about limits.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;
use tidegate::{Answer, BoxFuture, Confirm, LimitDecision, LimitRequest, Question, Session};
use tokio::sync::watch;

use super::client::Client;
use super::names::{self, meta};
use super::options::{Mode, Settings};
use super::sdk::Error;
use super::sdk::v1::{
    self, PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SessionUpdate, ToolCallStatus,
    ToolCallUpdateFields,
};
use super::tool;

/// Ids of the options.
const ALLOW: &str = "allow";
const ALWAYS: &str = "allow-always";
const REJECT: &str = "reject";

/// The handler of the questions of a session and of its agents.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) workspace: PathBuf,
    /// The calls that the client was sent a question's update about.
    pub(super) announced: watch::Receiver<BTreeSet<String>>,
}

impl Confirm for Asker {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            match self.settings.mode() {
                Mode::Approve => Answer::Approve,
                Mode::Deny => unavailable("the user has chosen to refuse calls that need a confirmation"),
                Mode::Ask => self.ask(question).await,
            }
        })
    }

    fn name(&self) -> &str {
        &self.client.can.name
    }
}

impl Asker {
    async fn ask(&self, question: &Question) -> Answer {
        let id = self.announce(question).await;
        let about = tool::describe(&self.workspace, &question.call.name, &question.call.arguments);
        let preview = &question.preview;
        let change = about.proposed(preview.diff.as_deref()).into_iter();
        let notes = preview.notes.iter().map(tool::text);
        let fields = ToolCallUpdateFields::new()
            .title(about.title.clone())
            .name(question.call.name.clone())
            .kind(about.kind)
            .status(ToolCallStatus::Pending)
            .content(change.chain(notes).collect::<Vec<_>>())
            .locations(about.locations.clone())
            .raw_input(about.input.clone());
        let allow = PermissionOption::new(ALLOW, "Allow", PermissionOptionKind::AllowOnce);
        let always = question.always.as_ref().map(|pattern| {
            let name = format!("Allow `{pattern}` in this session");
            PermissionOption::new(ALWAYS, name, PermissionOptionKind::AllowAlways)
        });
        let reject = PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce);
        let options = std::iter::once(allow).chain(always).chain([reject]).collect();
        let fact = json!({
            "id": question.id.as_str(),
            "reason": question.reason,
            "agent": question.agent,
            "notes": preview.notes,
        });
        let call = v1::ToolCallUpdate::new(id, fields);
        match outcome(self.client.ask(call, options, Some(meta(names::QUESTION, fact))).await) {
            Ok(option) if option == ALLOW => Answer::Approve,
            Ok(option) if option == ALWAYS => Answer::Always,
            Ok(_) => Answer::Deny { reason: String::new() },
            Err(reason) => unavailable(&reason),
        }
    }

    /// Waits until the client knows the call, which its events report; those of a child agent are not the client's.
    async fn announce(&self, question: &Question) -> v1::ToolCallId {
        let own = names::call(question.place, &question.call.id);
        if question.session.as_str() == &*self.client.session.0 {
            // If nothing is reported any more, the question is asked all the same.
            let _ended = self.announced.clone().wait_for(|ids| ids.contains(&*own.0)).await.is_err();
            return own;
        }
        let id = v1::ToolCallId::new(format!("{}/{}", question.session, own.0));
        let about = tool::describe(&self.workspace, &question.call.name, &question.call.arguments);
        let title = format!("{}: {}", question.agent, about.title);
        self.client.update(SessionUpdate::ToolCall(v1::ToolCall::new(id.clone(), title).kind(about.kind)));
        id
    }
}

/// The option that the user has chosen; why there is none.
fn outcome(answer: Result<RequestPermissionOutcome, Error>) -> Result<String, String> {
    match answer {
        Ok(RequestPermissionOutcome::Selected(selected)) => Ok(selected.option_id.0.to_string()),
        Ok(_) => Err("the user closed the question without an answer".to_owned()),
        Err(error) => Err(format!("the editor did not answer the question: {error}")),
    }
}

fn unavailable(reason: &str) -> Answer {
    Answer::Unavailable { reason: format!("not run: {reason}") }
}

/// Asks the user about a limit, as about a call: the protocol has no other question. Another process can decide first.
pub(super) async fn limit(client: Client, session: Session, request: LimitRequest) {
    let id = v1::ToolCallId::new(format!("{}/{}", session.id(), request.id));
    let title = format!("Raise the limit `{}` to {}", request.limit, request.limit.amount(request.proposed));
    let call = v1::ToolCall::new(id.clone(), title.clone()).content(vec![tool::text(&request.message)]);
    client.update(SessionUpdate::ToolCall(call));
    let options = vec![
        PermissionOption::new(ALLOW, "Raise it", PermissionOptionKind::AllowOnce),
        PermissionOption::new(REJECT, "Stop here", PermissionOptionKind::RejectOnce),
    ];
    let fields = ToolCallUpdateFields::new().title(title).content(vec![tool::text(&request.message)]);
    let answer = outcome(client.ask(v1::ToolCallUpdate::new(id.clone(), fields), options, None).await);
    let decision = match answer {
        Ok(option) if option == ALLOW => LimitDecision::Approved { max: request.proposed },
        Ok(_) => LimitDecision::Denied { reason: String::new() },
        Err(reason) => LimitDecision::Denied { reason },
    };
    let is_raised = matches!(decision, LimitDecision::Approved { .. });
    let by = client.can.name.clone();
    let (status, text) = match session.decide_limit(&request.id, decision, &by) {
        Ok(()) if is_raised => (ToolCallStatus::Completed, "The limit is raised.".to_owned()),
        Ok(()) => (ToolCallStatus::Failed, "The limit stays.".to_owned()),
        Err(error) => (ToolCallStatus::Failed, error.to_string()),
    };
    let fields = ToolCallUpdateFields::new().status(status).content(vec![tool::text(text)]);
    client.update(SessionUpdate::ToolCallUpdate(v1::ToolCallUpdate::new(id, fields)));
}
