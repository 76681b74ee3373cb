//! Threads, turns and steps.

use flow::{Charged, ErrorClass, EventKind, StepEnd, StopReason, SuspendReason, TurnStatus, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::{Read, fields, plugin, read};

pub(super) fn thread_resumed(payload: Value) -> Read<EventKind> {
    fields!(payload { resumed_by: String, provider: String, model: String });
    Ok(EventKind::ThreadResumed { by: resumed_by, suspended: None, provider, model })
}

pub(super) fn thread_completed(_payload: Value) -> Read<EventKind> {
    Ok(EventKind::ThreadCompleted { turns: 0, usage: Usage::default(), spend: None, duration_ms: 0 })
}

pub(super) fn thread_error(payload: Value) -> Read<EventKind> {
    fields!(payload { category: String, error: String });
    Ok(EventKind::ThreadError { class: class(&category), message: error })
}

pub(super) fn thread_cancelled(payload: Value) -> Read<EventKind> {
    fields!(payload { cancelled_by: String, reason: Option<String> });
    Ok(EventKind::ThreadCancelled { by: cancelled_by, reason })
}

pub(super) fn step_start(payload: Value) -> Read<EventKind> {
    fields!(payload { turn_number: u32 });
    Ok(EventKind::StepStart { number: turn_number })
}

pub(super) fn step_finish(payload: Value) -> Read<EventKind> {
    fields!(payload { finish_reason: String });
    let end = match finish_reason.as_str() {
        "cancelled" => StepEnd::Cancelled,
        "error" => StepEnd::Failed,
        _ => StepEnd::Answered(StopReason::Other(finish_reason)),
    };
    let (usage, charged) = (Usage::default(), Charged::default());
    Ok(EventKind::StepFinish { usage, spend: None, charged, end, context_tokens: None })
}

pub(super) fn finish(payload: Value) -> Read<EventKind> {
    Ok(EventKind::TurnFinish { status: read::<Finish>(payload)?.status()? })
}

#[derive(Deserialize)]
struct Finish {
    status: String,
    extension_id: Option<String>,
    reason: Option<String>,
    rule: Option<String>,
    category: Option<String>,
    error: Option<String>,
    steps: Option<u32>,
}

impl Finish {
    fn status(self) -> Read<TurnStatus> {
        Ok(match self.status.as_str() {
            "completed" => TurnStatus::Completed,
            "cancelled" => TurnStatus::Cancelled,
            "rejected" => TurnStatus::Rejected {
                by: plugin(&self.extension_id.unwrap_or_default())?,
                reason: self.reason.unwrap_or_default(),
            },
            "stopped_by_rule" => TurnStatus::StoppedByRule { rule: self.rule.unwrap_or_default() },
            "step_limit" => TurnStatus::StepLimit { steps: self.steps.unwrap_or_default() },
            "failed" => TurnStatus::Failed {
                class: class(&self.category.unwrap_or_default()),
                message: self.error.unwrap_or_default(),
            },
            "no_progress" => TurnStatus::NoProgress { message: self.error.unwrap_or_default() },
            "suspended" => TurnStatus::Suspended {
                reason: SuspendReason::from_word(&self.reason.unwrap_or_default()).unwrap_or(SuspendReason::Limit),
                message: self.error.unwrap_or_default(),
            },
            // A status of a later version: the turn is over, and did not complete.
            other => TurnStatus::failed(format!("the turn ended as `{other}`")),
        })
    }
}

fn class(word: &str) -> ErrorClass {
    ErrorClass::from_word(word).unwrap_or(ErrorClass::Permanent)
}
