//! Tool calls and the questions about them.

use flow::{CallId, Confirmation, EventKind, PlanStatus, QuestionId};
use serde_json::Value;

use super::Read;
use crate::{
    PlanEntry, PlanUpdated, Preview, ToolCallProgress, ToolCallResult, ToolCallStart, ToolConfirmationRequested,
    ToolConfirmationResolved,
};

impl ToolCallStart {
    pub(super) fn kind(&self) -> EventKind {
        let (call, tool) = (CallId::new(self.call_id.as_str()), self.tool.clone());
        EventKind::ToolCallStart { call, tool, arguments: arguments(&self.input) }
    }
}

impl ToolCallProgress {
    pub(super) fn kind(&self) -> EventKind {
        let (call, message) = (CallId::new(self.call_id.as_str()), self.message.clone());
        EventKind::ToolCallProgress { call, message, percent: self.progress }
    }
}

impl ToolCallResult {
    pub(super) fn kind(&self) -> EventKind {
        EventKind::ToolCallResult {
            call: CallId::new(self.call_id.as_str()),
            tool: self.tool.clone(),
            output: self.output.clone(),
            reminder: self.reminder.clone(),
            diff: self.diff.clone(),
            is_error: self.error.is_some(),
            duration_ms: self.duration_ms,
            waited_ms: self.waited_ms,
            original: None,
            annotations: Vec::new(),
        }
    }
}

impl PlanUpdated {
    pub(super) fn kind(&self) -> Read<EventKind> {
        let entry = |entry: &PlanEntry| {
            let status = PlanStatus::from_word(&entry.status).ok_or("entries")?;
            Ok(flow::PlanEntry { content: entry.content.clone(), status })
        };
        let entries = self.entries.iter().flatten().map(entry).collect::<Read<_>>()?;
        Ok(EventKind::PlanUpdated { entries })
    }
}

impl ToolConfirmationRequested {
    pub(super) fn kind(&self) -> EventKind {
        EventKind::ToolConfirmationRequested {
            question: question(self.question_id.as_ref(), &self.call_id),
            call: CallId::new(self.call_id.as_str()),
            tool: self.tool.clone(),
            arguments: arguments(&self.input),
            reason: self.reason.clone(),
            preview: self.preview.preview(),
            always: self.always.clone(),
            timeout_ms: self.timeout_ms,
        }
    }
}

impl ToolConfirmationResolved {
    pub(super) fn kind(&self) -> Read<EventKind> {
        Ok(EventKind::ToolConfirmationResolved {
            question: question(self.question_id.as_ref(), &self.call_id),
            call: CallId::new(self.call_id.as_str()),
            decision: self.confirmation()?,
            by: self.decided_by.clone().unwrap_or_default(),
        })
    }

    /// The decision. Records of early versions have no word for it.
    fn confirmation(&self) -> Read<Confirmation> {
        let reason = || self.reason.clone().unwrap_or_default();
        let word = self.decision.as_deref().unwrap_or(if self.approved { "approved" } else { "denied" });
        Ok(match word {
            "approved" => Confirmation::Approved,
            "always" => Confirmation::Always { pattern: self.pattern.clone().ok_or("pattern")? },
            "edited" => Confirmation::Edited { arguments: self.arguments.clone().ok_or("arguments")? },
            "denied" => Confirmation::Denied { reason: reason() },
            "unavailable" => Confirmation::Unavailable { reason: reason() },
            "timed_out" => Confirmation::TimedOut { approved: self.approved },
            "cancelled" => Confirmation::Cancelled,
            _ => return Err("decision"),
        })
    }
}

impl Preview {
    fn preview(&self) -> flow::Preview {
        let argument = |one: &crate::Argument| flow::Argument { name: one.name.clone(), value: one.value.clone() };
        let arguments = self.arguments.iter().map(argument).collect();
        flow::Preview { arguments, diff: self.diff.clone(), notes: self.notes.clone() }
    }
}

/// Records of early versions name the call alone.
fn question(id: Option<&String>, call: &str) -> QuestionId {
    QuestionId::new(id.map_or(call, String::as_str))
}

/// Arguments that were no JSON object are in a record as `{"raw": …}`.
fn arguments(input: &Value) -> String {
    match input.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("raw")) {
        Some(Value::String(raw)) => raw.clone(),
        _ => input.to_string(),
    }
}
