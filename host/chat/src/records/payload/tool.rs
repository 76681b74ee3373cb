//! Tool calls and the questions about them.

use flow::{Argument, CallId, Confirmation, EventKind, Preview, QuestionId};
use serde::Deserialize;
use serde_json::Value;

use super::{Read, fields, read};

pub(super) fn start(payload: Value) -> Read<EventKind> {
    fields!(payload { call_id: String, tool: String, input: Value });
    Ok(EventKind::ToolCallStart { call: CallId::new(call_id), tool, arguments: arguments(&input) })
}

pub(super) fn progress(payload: Value) -> Read<EventKind> {
    fields!(payload { call_id: String, progress: Option<f64>, message: String });
    Ok(EventKind::ToolCallProgress { call: CallId::new(call_id), message, percent: progress })
}

pub(super) fn result(payload: Value) -> Read<EventKind> {
    fields!(payload {
        call_id: String,
        tool: String,
        output: String,
        error: Option<String>,
        diff: Option<String>,
        duration_ms: Option<u64>,
        waited_ms: Option<u64>
    });
    let (call, is_error) = (CallId::new(call_id), error.is_some());
    Ok(EventKind::ToolCallResult {
        call,
        tool,
        output,
        reminder: None,
        diff,
        is_error,
        duration_ms,
        waited_ms,
        original: None,
        annotations: Vec::new(),
    })
}

pub(super) fn requested(payload: Value) -> Read<EventKind> {
    fields!(payload {
        question_id: Option<String>,
        call_id: String,
        tool: String,
        input: Value,
        #[serde(default)]
        reason: String,
        #[serde(default)]
        preview: PreviewRecord,
        always: Option<String>,
        timeout_ms: Option<u64>
    });
    Ok(EventKind::ToolConfirmationRequested {
        question: question(question_id, &call_id),
        call: CallId::new(call_id),
        tool,
        arguments: arguments(&input),
        reason,
        preview: preview.preview(),
        always,
        timeout_ms,
    })
}

pub(super) fn resolved(payload: Value) -> Read<EventKind> {
    let resolved: Resolved = read(payload)?;
    let question = question(resolved.question_id.clone(), &resolved.call_id);
    let (call, by) = (CallId::new(&*resolved.call_id), resolved.decided_by.clone().unwrap_or_default());
    Ok(EventKind::ToolConfirmationResolved { question, call, decision: resolved.decision()?, by })
}

#[derive(Deserialize)]
struct Resolved {
    question_id: Option<String>,
    call_id: String,
    approved: bool,
    decision: Option<String>,
    reason: Option<String>,
    pattern: Option<String>,
    arguments: Option<String>,
    decided_by: Option<String>,
}

impl Resolved {
    /// The decision. Records of early versions have no word for it.
    fn decision(self) -> Read<Confirmation> {
        let Self { approved, decision, reason, pattern, arguments, .. } = self;
        let reason = reason.unwrap_or_default();
        let word = decision.unwrap_or_else(|| if approved { "approved" } else { "denied" }.to_owned());
        Ok(match word.as_str() {
            "approved" => Confirmation::Approved,
            "always" => Confirmation::Always { pattern: pattern.ok_or("pattern")? },
            "edited" => Confirmation::Edited { arguments: arguments.ok_or("arguments")? },
            "denied" => Confirmation::Denied { reason },
            "unavailable" => Confirmation::Unavailable { reason },
            "timed_out" => Confirmation::TimedOut { approved },
            "cancelled" => Confirmation::Cancelled,
            other => return Err(format!("the decision `{other}` is not known")),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PreviewRecord {
    arguments: Vec<ArgumentRecord>,
    diff: Option<String>,
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct ArgumentRecord {
    name: String,
    value: String,
}

impl PreviewRecord {
    fn preview(self) -> Preview {
        let argument = |one: ArgumentRecord| Argument { name: one.name, value: one.value };
        let arguments = self.arguments.into_iter().map(argument).collect();
        Preview { arguments, diff: self.diff, notes: self.notes }
    }
}

/// Records of early versions name the call alone.
fn question(id: Option<String>, call: &str) -> QuestionId {
    QuestionId::new(id.unwrap_or_else(|| call.to_owned()))
}

/// Arguments that were no JSON object are in a record as `{"raw": …}`.
fn arguments(input: &Value) -> String {
    match input.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("raw")) {
        Some(Value::String(raw)) => raw.clone(),
        _ => input.to_string(),
    }
}
