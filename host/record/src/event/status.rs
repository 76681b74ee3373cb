//! How steps and turns end.

use flow::{ErrorClass, StepEnd, StopReason, SuspendReason, TurnStatus};

use super::Read;
use crate::{StepFinish, TurnFinish};

impl StepFinish {
    /// How the step ended.
    pub(super) fn end(&self) -> StepEnd {
        match self.finish_reason.as_str() {
            "cancelled" => StepEnd::Cancelled,
            "error" => StepEnd::Failed,
            "limit_exceeded" => StepEnd::Answered(StopReason::MaxTokens),
            other => StepEnd::Answered(StopReason::Other(other.to_owned())),
        }
    }
}

impl TurnFinish {
    /// How the turn ended.
    pub(super) fn turn_status(&self) -> Read<TurnStatus> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Ok(match self.status.as_str() {
            "completed" => TurnStatus::Completed,
            "cancelled" => TurnStatus::Cancelled,
            "rejected" => TurnStatus::Rejected {
                by: self.extension_id.as_deref().unwrap_or_default().parse().map_err(|_| "extension_id")?,
                reason: text(&self.reason),
            },
            "stopped_by_rule" => TurnStatus::StoppedByRule { rule: text(&self.rule) },
            "step_limit" => TurnStatus::StepLimit { steps: self.steps.unwrap_or_default() },
            "failed" => {
                let class = class(self.category.as_deref().unwrap_or_default());
                TurnStatus::Failed { class, message: text(&self.error) }
            }
            "no_progress" => TurnStatus::NoProgress { message: text(&self.error) },
            "suspended" => {
                let reason = self.reason.as_deref().and_then(SuspendReason::from_word);
                TurnStatus::Suspended { reason: reason.unwrap_or(SuspendReason::Limit), message: text(&self.error) }
            }
            // A status of a later version: the turn is over, and did not complete.
            other => TurnStatus::failed(format!("the turn ended as `{other}`")),
        })
    }
}

/// The class of an error; one of a later version is not retried.
pub(super) fn class(word: &str) -> ErrorClass {
    ErrorClass::from_word(word).unwrap_or(ErrorClass::Permanent)
}
