//! How steps and turns end.

use flow::{ErrorClass, StepEnd, StopReason, SuspendReason, TurnStatus};

use super::Read;
use crate::{StepFinish, TurnFinish};

impl StepFinish {
    /// How the step ended.
    pub(super) fn end(&self) -> StepEnd {
        match (self.finish_reason.as_str(), &self.stop_reason) {
            ("cancelled", _) => StepEnd::Cancelled,
            (_, Some(word)) => StepEnd::Answered(StopReason::of_word(word)),
            ("error", None) => StepEnd::Failed,
            ("limit_exceeded", None) => StepEnd::Answered(StopReason::MaxTokens),
            (other, None) => StepEnd::Answered(StopReason::of_word(other)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;

    #[test]
    fn the_end_of_a_step_is_what_it_was() {
        let stops =
            ["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause", "context_full", "other"];
        let answered = stops.map(|word| StepEnd::Answered(StopReason::of_word(word)));
        for end in answered.into_iter().chain([StepEnd::Cancelled, StepEnd::Failed]) {
            let (usage, charged) = Default::default();
            let kind =
                flow::EventKind::StepFinish { usage, spend: None, charged, end: end.clone(), context_tokens: None };
            let Body::StepFinish(finish) = Body::of(&kind) else { panic!("{end:?}") };
            assert_eq!(finish.end(), end);
        }
    }
}
