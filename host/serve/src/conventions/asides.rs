//! Lines that no convention has a place for and that a front end shows all the same: what rules and plugins did, limits, notices.

use chat::{ChildThread, SavedChat};
use record::{LimitEscalationRequested, Shown, ShownBody};
use serde_json::{Value, json};
use tidegate::SessionId;
use tidegate::question::QuestionId;

use super::act::Aside;
use super::calls::Calls;
use super::restored::requested;

/// Returns what a front end gets of a line in addition to the text and the calls; `None`: nothing.
pub(super) fn aside(line: &Shown, calls: &Calls) -> Option<Aside> {
    let id = id(line, calls)?;
    let mut body = serde_json::to_value(&line.body).ok()?;
    let (name, mut payload) = (body["type"].as_str()?.to_owned(), body["payload"].take());
    if let Some(Value::String(call)) = payload.get_mut("call_id") {
        *call = calls.id((line.turn, line.step), call);
    }
    Some(Aside { id, name, payload })
}

/// Returns that a child agent asks, or that it was decided. Its question has the id that the session answers it by.
pub(crate) fn asked_by_child(child: &ChildThread, line: &Shown) -> Option<Aside> {
    about_question(child, &line.body)
}

/// Returns what a child agent asks, of which a chat has the state in the place of lines that are not kept any more.
pub(crate) fn open_of_child(child: &ChildThread, saved: &SavedChat) -> Vec<Aside> {
    // Those of its own children have a state of their own.
    let own = saved.confirmations().questions().iter().filter(|question| question.child.is_none());
    own.filter_map(|question| about_question(child, &ShownBody::ToolConfirmationRequested(requested(question))))
        .collect()
}

fn about_question(child: &ChildThread, body: &ShownBody) -> Option<Aside> {
    let question = match body {
        ShownBody::ToolConfirmationRequested(asked) => asked.question_id.as_deref()?,
        ShownBody::ToolConfirmationResolved(resolved) => resolved.question_id.as_deref()?,
        _ => return None,
    };
    let id = QuestionId::new(question).of_child(&SessionId::new(&*child.id)).as_str().to_owned();
    let mut body = serde_json::to_value(body).ok()?;
    let (name, mut payload) = (body["type"].as_str()?.to_owned(), body["payload"].take());
    payload["question_id"] = json!(id);
    payload["child"] = json!(child);
    Some(Aside { id, name, payload })
}

/// Returns that a decision about a limit is waited for, in the place of a line that is not kept any more.
pub(super) fn limit_aside(limit: &LimitEscalationRequested) -> Option<Aside> {
    let mut body = serde_json::to_value(ShownBody::LimitEscalationRequested(limit.clone())).ok()?;
    let (name, payload) = (body["type"].as_str()?.to_owned(), body["payload"].take());
    Some(Aside { id: limit.approval_request_id.clone(), name, payload })
}

/// Returns the id of what a line is about: its number, unless a later line is about the same.
fn id(line: &Shown, calls: &Calls) -> Option<String> {
    Some(match &line.body {
        ShownBody::PlanUpdated(_) => "plan".to_owned(),
        ShownBody::ToolCallProgress(progress) => calls.id((line.turn, line.step), &progress.call_id),
        ShownBody::LimitEscalationRequested(limit) => limit.approval_request_id.clone(),
        ShownBody::LimitEscalationResolved(limit) => limit.approval_request_id.clone(),
        // A callback that did what it is for is no news.
        ShownBody::ExtensionCallback(report) if report.cause.is_none() => return None,
        ShownBody::ExtensionTool(report) if report.cause.is_none() => return None,
        ShownBody::RuleFired(_)
        | ShownBody::TtsrInjection(_)
        | ShownBody::ExtensionCallback(_)
        | ShownBody::ExtensionTool(_)
        | ShownBody::ExtensionBreaker(_)
        | ShownBody::ExtensionWithheld(_)
        | ShownBody::RetryScheduled(_)
        | ShownBody::ContextCompactionEnd(_)
        | ShownBody::ChildThreadStarted(_)
        | ShownBody::ChildThreadFailed(_)
        | ShownBody::StateLost(_)
        | ShownBody::JournalFailed(_)
        | ShownBody::Notice(_) => line.seq.to_string(),
        _ => return None,
    })
}
