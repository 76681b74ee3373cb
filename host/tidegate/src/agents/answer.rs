//! What a child agent answers, and what it is doing, from its events.

use flow::{EventKind, TurnStatus};

/// The last answer of a child, as its user would have seen it: what an extension withholds there does not reach the parent either.
#[derive(Default)]
pub(super) struct Answer(String);

impl Answer {
    /// Takes an event of the child; returns what it is doing now, where the event says that.
    pub(super) fn take(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::CognitionOut { text, shown, partial: None, .. } => {
                shown.as_ref().unwrap_or(text).trim().clone_into(&mut self.0);
                None
            }
            EventKind::StepStart { number } => Some(format!("step {number}")),
            EventKind::ToolCallStart { tool, .. } => Some(format!("`{tool}` runs")),
            EventKind::ToolCallProgress { message, .. } => Some(message.clone()),
            EventKind::ToolConfirmationRequested { tool, .. } => Some(format!("`{tool}` waits for a person")),
            EventKind::RetryScheduled { delay_ms, .. } => Some(format!("asks the model again in {delay_ms} ms")),
            _ => None,
        }
    }

    /// The result of the tool call; or why the child did not complete its task, in one sentence and for the model.
    pub(super) fn end(self, agent: &str, status: TurnStatus) -> Result<String, (String, String)> {
        let error = match status {
            TurnStatus::Completed if self.0.is_empty() => {
                return Ok(format!("The agent `{agent}` ended without an answer."));
            }
            TurnStatus::Completed => return Ok(self.0),
            TurnStatus::Rejected { by, reason } => format!("the extension `{by}` rejected the task: {reason}"),
            TurnStatus::StoppedByRule { rule } => format!("the rule `{rule}` ended its turn"),
            TurnStatus::Cancelled => "it was cancelled".to_owned(),
            TurnStatus::Failed { message, .. }
            | TurnStatus::NoProgress { message }
            | TurnStatus::Suspended { message, .. } => message,
            TurnStatus::StepLimit { steps } => format!("it reached its limit of {steps} steps"),
        };
        let mut text = format!("The agent `{agent}` did not complete the task: {error}");
        if !self.0.is_empty() {
            text.push_str("\n\nIts last answer:\n");
            text.push_str(&self.0);
        }
        Err((error, text))
    }
}

#[cfg(test)]
mod tests {
    use flow::{Origin, Partial, Retained};

    use super::*;

    fn out(text: &str, shown: Option<&str>, partial: Option<Partial>) -> EventKind {
        EventKind::CognitionOut {
            text: text.into(),
            keep: flow::KeptText::Original,
            model: None,
            author: Origin::Model,
            shown: shown.map(str::to_owned),
            partial,
            retained: Retained::Answer,
            blocks: Vec::new(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        }
    }

    fn ended(events: &[EventKind], status: TurnStatus) -> Result<String, (String, String)> {
        let mut answer = Answer::default();
        events.iter().for_each(|kind| drop(answer.take(kind)));
        answer.end("helper", status)
    }

    #[test]
    fn the_result_is_the_last_complete_answer_as_it_was_shown() {
        let events = [out("I look.", None, None), out("The key is 7.", Some("The key is ***."), None)];
        assert_eq!(ended(&events, TurnStatus::Completed), Ok("The key is ***.".to_owned()));
        let cut = out("half", None, Some(Partial::new("cut", 0, 0)));
        assert_eq!(ended(&[out("whole", None, None), cut], TurnStatus::Completed), Ok("whole".to_owned()));
        assert_eq!(ended(&[], TurnStatus::Completed), Ok("The agent `helper` ended without an answer.".to_owned()));
    }

    #[test]
    fn each_other_end_is_an_error_with_its_cause() {
        let by = || "guard".parse().expect("an id");
        let cases = [
            (TurnStatus::failed("the disk is full"), "the disk is full"),
            (TurnStatus::Cancelled, "it was cancelled"),
            (
                TurnStatus::Suspended { reason: flow::SuspendReason::Limit, message: "it has had its time".into() },
                "it has had its time",
            ),
            (TurnStatus::StepLimit { steps: 3 }, "it reached its limit of 3 steps"),
            (TurnStatus::StoppedByRule { rule: "r".into() }, "the rule `r` ended its turn"),
            (TurnStatus::Rejected { by: by(), reason: "no".into() }, "the extension `guard` rejected the task: no"),
        ];
        for (status, error) in cases {
            let text = format!("The agent `helper` did not complete the task: {error}");
            assert_eq!(ended(&[], status.clone()), Err((error.to_owned(), text.clone())));
            let with_answer = format!("{text}\n\nIts last answer:\nhalf");
            assert_eq!(ended(&[out("half", None, None)], status), Err((error.to_owned(), with_answer)));
        }
    }
}
