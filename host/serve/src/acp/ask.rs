//! Questions to the user of the editor: about tool calls, and about limits.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;
use tidegate::limit::{Limit, LimitDecision, LimitRequest};
use tidegate::question::{Answer, Confirm, Question};
use tidegate::{BoxFuture, Session};
use tokio::sync::watch;

use super::client::Client;
use super::names::{self, meta};
use super::options::{Mode, Settings};
use super::sdk::v1::{
    self, PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SessionUpdate, ToolCallStatus,
    ToolCallUpdateFields, ToolKind,
};
use super::sdk::{self, Error};
use super::tool;

/// Ids of the options.
const ALLOW: &str = "allow";
const ALWAYS: &str = "allow-always";
const REJECT: &str = "reject";

/// Why there is no answer.
const CLOSED: &str = "the user closed the question without an answer";

/// The handler of the questions of a session and of its agents.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) workspace: PathBuf,
    /// The entries of the calls that the client was sent a question's update about, by the place and the id of the call.
    pub(super) announced: watch::Receiver<BTreeMap<String, v1::ToolCallId>>,
}

impl Confirm for Asker {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            match self.settings.mode() {
                // What offers no answer for the session is a person's to approve, each time.
                Mode::Approve if question.always.is_some() => Answer::Approve,
                Mode::Deny => unavailable("the user has chosen to refuse calls that need a confirmation"),
                Mode::Approve | Mode::Ask => self.ask(question).await,
            }
        })
    }

    fn name(&self) -> &str {
        &self.client.can.name
    }
}

impl Asker {
    async fn ask(&self, question: &Question) -> Answer {
        let (id, mut entry) = self.announce(question).await;
        let about = tool::describe(&self.workspace, &question.call.name, &question.call.arguments);
        let preview = &question.preview;
        let mut content = about.proposed(preview.diff.as_deref());
        // What is approved is what runs: all of it is shown, where a change does not show it already.
        if content.is_empty() || tool::hides(preview) {
            content.extend(tool::arguments(preview));
        }
        content.extend(preview.notes.iter().map(tool::text));
        // Clients show nothing but the diffs of a call that edits files. What a person has to approve each time is not in them.
        let is_special = question.always.is_none() || preview.notes.len() > 1 || tool::hides(preview);
        if is_special {
            content.push(tool::text(tool::shown(&question.reason)));
        }
        let fields = ToolCallUpdateFields::new()
            .title(self.title(question, &about))
            .name(question.call.name.clone())
            .kind(if is_special { ToolKind::Other } else { about.kind })
            .status(ToolCallStatus::Pending)
            .content(content)
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
        let call = v1::ToolCallUpdate::new(id.clone(), fields);
        let response = self.client.ask(call, options, Some(meta(names::QUESTION, fact))).await;
        if response.as_ref().is_err_and(sdk::is_gone) {
            // The session is going to be closed, and its question stays open for the next process.
            std::future::pending::<()>().await;
        }
        let answer = match outcome(response) {
            Ok(Some(option)) if option == ALLOW => Answer::Approve,
            Ok(Some(option)) if option == ALWAYS => Answer::Always,
            Ok(Some(_)) => Answer::Deny { reason: String::new() },
            Ok(None) => unavailable(CLOSED),
            Err(error) => unavailable(&unanswered(&error)),
        };
        if matches!(answer, Answer::Approve | Answer::Always | Answer::Edit { .. }) {
            entry.iter_mut().for_each(|entry| entry.status = ToolCallStatus::Completed);
        }
        answer
    }

    /// The title of a call; that of an agent's call says whose it is.
    fn title(&self, question: &Question, about: &tool::Described) -> String {
        if question.session.as_str() == &*self.client.session.0 {
            return about.title.clone();
        }
        format!("{}: {}", question.agent, about.title)
    }

    /// Waits until the client knows the call, which its events report. Those of a child agent are not sent: its call has an entry as long
    /// as its question is open.
    async fn announce(&self, question: &Question) -> (v1::ToolCallId, Option<Entry>) {
        let own = names::call(question.place, &question.call.id);
        if question.session.as_str() == &*self.client.session.0 {
            // If nothing is reported any more, the question is asked all the same.
            let mut announced = self.announced.clone();
            let entries = announced.wait_for(|entries| entries.contains_key(&*own.0)).await;
            let entry = entries.ok().and_then(|entries| entries.get(&*own.0).cloned());
            return (entry.unwrap_or(own), None);
        }
        let id = v1::ToolCallId::new(format!("{}/{}", question.session, own.0));
        let about = tool::describe(&self.workspace, &question.call.name, &question.call.arguments);
        let title = self.title(question, &about);
        self.client.update(SessionUpdate::ToolCall(v1::ToolCall::new(id.clone(), title).kind(about.kind)));
        let entry = Entry { client: self.client.clone(), id: id.clone(), status: ToolCallStatus::Failed };
        (id, Some(entry))
    }
}

/// The entry of an agent's call. It ends with its question, also where that is decided elsewhere and this is dropped.
struct Entry {
    client: Client,
    id: v1::ToolCallId,
    status: ToolCallStatus,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let fields = ToolCallUpdateFields::new().status(self.status);
        self.client.update(SessionUpdate::ToolCallUpdate(v1::ToolCallUpdate::new(self.id.clone(), fields)));
    }
}

/// The option that the user has chosen; `None`: the question was closed.
fn outcome(answer: Result<RequestPermissionOutcome, Error>) -> Result<Option<String>, Error> {
    Ok(match answer? {
        RequestPermissionOutcome::Selected(selected) => Some(selected.option_id.0.to_string()),
        _ => None,
    })
}

fn unanswered(error: &Error) -> String {
    format!("the editor did not answer the question: {error}")
}

fn unavailable(reason: &str) -> Answer {
    Answer::Unavailable { reason: format!("not run: {reason}") }
}

/// The id of the entry of a request for a higher limit.
pub(super) fn limit_id(session: &Session, request: &str) -> v1::ToolCallId {
    v1::ToolCallId::new(format!("{}/{request}", session.id()))
}

/// Asks the user about a limit, as about a call: the protocol has no other question. The event of the decision ends the entry, whoever
/// has decided. Dropping the future closes the dialog.
pub(super) async fn limit(client: Client, session: Session, request: LimitRequest) {
    let id = limit_id(&session, &request.id);
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
        Ok(Some(option)) if option == ALLOW => LimitDecision::Approved { max: request.proposed },
        Ok(Some(_)) => LimitDecision::Denied { reason: String::new() },
        // As for a call: who closes a question does not want it. Nobody else may be there to decide.
        Ok(None) => LimitDecision::Denied { reason: CLOSED.to_owned() },
        // The user has not seen it: a file or the time-out decides.
        Err(error) => {
            let reason = format!("Not decided here: {}", unanswered(&error));
            return client.update(limit_ended(id, ToolCallStatus::InProgress, reason));
        }
    };
    if let Err(error) = session.decide_limit(&request.id, decision, &client.can.name) {
        client.update(limit_ended(id, ToolCallStatus::Failed, error.to_string()));
    }
}

/// The last update about a limit.
pub(super) fn limit_decided(id: v1::ToolCallId, limit: Limit, decision: &LimitDecision, by: &str) -> SessionUpdate {
    let by = if by.is_empty() { String::new() } else { format!(", decided by {by}") };
    let (status, text) = match decision {
        LimitDecision::Approved { max } => {
            (ToolCallStatus::Completed, format!("The limit is {} now{by}.", limit.amount(*max)))
        }
        LimitDecision::Denied { reason } if reason.trim().is_empty() => {
            (ToolCallStatus::Failed, format!("The limit is unchanged{by}."))
        }
        LimitDecision::Denied { reason } => (ToolCallStatus::Failed, format!("The limit is unchanged{by}: {reason}")),
        LimitDecision::TimedOut => {
            (ToolCallStatus::Failed, "The limit is unchanged: nobody has decided in time.".to_owned())
        }
    };
    limit_ended(id, status, text)
}

/// The state of the entry of a limit.
pub(super) fn limit_ended(id: v1::ToolCallId, status: ToolCallStatus, text: impl Into<String>) -> SessionUpdate {
    let fields = ToolCallUpdateFields::new().status(status).content(vec![tool::text(text)]);
    SessionUpdate::ToolCallUpdate(v1::ToolCallUpdate::new(id, fields))
}
