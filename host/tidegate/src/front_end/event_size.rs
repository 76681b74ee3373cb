//! How much memory the texts of an event take, for what keeps events.

use flow::{AnswerBlock, CallFailure, Confirmation, EventKind, EventView, LimitDecision, Message, TurnStatus};

/// Bytes of the texts of an event that can be long: those that a model, a person, a tool, an extension or a file has written. Names, ids and
/// numbers are not counted.
pub(crate) fn text_of(kind: &EventKind) -> usize {
    use EventView as Kind;
    match EventView::from(kind) {
        Kind::InputReceived { message, .. } | Kind::InputQueued { message, .. } | Kind::CognitionIn { message } => {
            message.bytes()
        }
        Kind::HistoryReplaced { messages } => all(messages, |message| Message::bytes(message)),
        Kind::CognitionOutDelta { text, .. }
        | Kind::CognitionReasoningDelta { text }
        | Kind::CognitionReasoning { text, .. }
        | Kind::CustomMessage { text, .. }
        | Kind::InputEdited { text, .. }
        | Kind::SteeringMessage { text, .. } => text.len(),
        Kind::CognitionOut { text, shown, rewrites, blocks, annotations, .. } => {
            let rewrites = all(rewrites, |(_, text)| text.len());
            let annotations = all(annotations, |(_, note)| note.key.len() + note.value.to_string().len());
            text.len() + optional(shown.as_ref()) + rewrites + annotations + all(blocks, block)
        }
        Kind::ToolCallStart { arguments, .. } => arguments.len(),
        Kind::ToolCallResult { output, reminder, diff, original, annotations, .. } => {
            let notes = all(annotations, |(_, note)| note.key.len() + note.value.to_string().len());
            output.len() + optional(reminder.as_ref()) + optional(diff.as_ref()) + optional(original.as_ref()) + notes
        }
        Kind::ToolConfirmationRequested { arguments, reason, preview, always, .. } => {
            let shown = all(&preview.arguments, |one| one.name.len() + one.value.len());
            let notes = all(&preview.notes, String::len);
            arguments.len() + reason.len() + shown + notes + optional(preview.diff.as_ref()) + optional(always.as_ref())
        }
        Kind::ToolConfirmationResolved { decision, .. } => decided(decision),
        Kind::RuleFired { found, .. } => found.evidence.text.len(),
        Kind::TtsrInjection { records, .. } => all(records, |record| record.evidence.text.len()),
        Kind::ContextCompactionEnd { summary, error, left_out, .. } => {
            optional(summary.as_ref()) + optional(error.as_ref()) + size_of_val(left_out.as_slice())
        }
        Kind::ExtensionPrompt(prompt) => all(&prompt.texts, |one| one.text.len()),
        Kind::RulesReloaded { notices, .. } => all(notices, String::len),
        Kind::SchemaViolation { problems, .. } => all(problems, |(path, message)| path.len() + message.len()),
        Kind::LimitEscalationRequested(request) => request.message.len(),
        Kind::LimitEscalationResolved { decision: LimitDecision::Denied { reason }, .. } => reason.len(),
        Kind::LimitEscalationResolved {
            decision: LimitDecision::Approved { .. } | LimitDecision::TimedOut, ..
        } => 0,
        Kind::TurnFinish { status } => ended(status),
        Kind::ExtensionCallback(report) => failed(report.outcome.reason(), report.outcome.failure()),
        Kind::ExtensionTool(report) => failed(report.outcome.reason(), report.outcome.failure()),
        Kind::ToolCallProgress { message, .. }
        | Kind::ErrorClassified { message, .. }
        | Kind::ThreadSuspended { message, .. }
        | Kind::ThreadError { message, .. }
        | Kind::StateLost { message }
        | Kind::JournalFailed { message, .. }
        | Kind::ExtensionLog { message, .. }
        | Kind::Notice { message }
        | Kind::ChildThreadFailed { error: message, .. }
        | Kind::RetrySucceeded { original_error: message, .. }
        | Kind::ExtensionWithheld { reason: message, .. }
        | Kind::ExtensionUnregistered { reason: message, .. }
        | Kind::ExtensionBreaker { reason: message, .. } => message.len(),
        Kind::ThreadStarted { inputs, .. } => {
            inputs.iter().map(|(name, value)| name.len() + value.to_string().len()).sum()
        }
        Kind::CustomEvent { payload, .. } => payload.to_string().len(),
        Kind::ThreadCancelled { reason, .. } => optional(reason.as_ref()),
        Kind::ThreadResumed { .. }
        | Kind::ThreadCompleted { .. }
        | Kind::TurnStart
        | Kind::InputWithdrawn { .. }
        | Kind::StepStart { .. }
        | Kind::StepFinish { .. }
        | Kind::RetryScheduled { .. }
        | Kind::RuleHoldReleased { .. }
        | Kind::RuleHeld { .. }
        | Kind::TtsrRearmed { .. }
        | Kind::ContextCompactionStart { .. }
        | Kind::ChildThreadStarted { .. }
        | Kind::ExtensionRegistered { .. }
        | Kind::ExtensionState { .. } => 0,
    }
}

fn all<T>(items: &[T], bytes: impl Fn(&T) -> usize) -> usize {
    items.iter().map(bytes).sum()
}

fn optional(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

fn block(block: &AnswerBlock) -> usize {
    optional(block.arguments.as_ref()) + optional(block.shown.as_ref()) + optional(block.signature.as_ref())
}

fn decided(decision: &Confirmation) -> usize {
    match decision {
        Confirmation::Always { pattern: text }
        | Confirmation::Edited { arguments: text }
        | Confirmation::Denied { reason: text }
        | Confirmation::Unavailable { reason: text } => text.len(),
        Confirmation::Approved | Confirmation::TimedOut { .. } | Confirmation::Cancelled => 0,
    }
}

fn ended(status: &TurnStatus) -> usize {
    match status {
        TurnStatus::Rejected { reason: text, .. }
        | TurnStatus::Failed { message: text, .. }
        | TurnStatus::NoProgress { message: text }
        | TurnStatus::Suspended { message: text, .. } => text.len(),
        TurnStatus::Completed
        | TurnStatus::StoppedByRule { .. }
        | TurnStatus::Cancelled
        | TurnStatus::StepLimit { .. } => 0,
    }
}

fn failed(reason: Option<&str>, failure: Option<&CallFailure>) -> usize {
    reason.map_or(0, str::len) + failure.map_or(0, |failure| all(&failure.frames, String::len))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flow::{CallbackOutcome, ToolOutcome};

    use super::*;

    #[test]
    fn a_long_text_is_counted_wherever_an_event_has_it() {
        let text = "x".repeat(1_000);
        let message = Arc::new(Message::user(text.as_str()));
        let id = || flow::InputId::new("input-1");
        let plugin = || "p".parse::<flow::PluginId>().unwrap_or_else(|error| panic!("{error}"));
        let call = || flow::CallId::new("1");
        let failure = || CallFailure {
            plugin: plugin(),
            called: flow::CallbackKind::PlainText.into(),
            cause: flow::FailureCause::Trap,
            message: text[..400].to_owned(),
            frames: vec![text[..600].to_owned()],
        };
        let callback = |outcome| {
            EventKind::ExtensionCallback(flow::CallbackReport::new(plugin(), flow::CallbackKind::PlainText, outcome, 0))
        };
        let tool =
            |outcome| EventKind::ExtensionTool(flow::ToolReport::new(plugin(), "t".to_owned(), call(), outcome, 0));
        let kinds = [
            EventKind::InputQueued { id: id(), way: flow::InputWay::Queue, message: Arc::clone(&message) },
            EventKind::InputReceived { id: None, message: Arc::clone(&message) },
            EventKind::InputEdited { id: id(), text: text.clone() },
            EventKind::HistoryReplaced { messages: vec![message] },
            EventKind::Notice { message: text.clone() },
            EventKind::ToolCallProgress { call: flow::CallId::new("1"), message: text.clone(), percent: None },
            EventKind::ToolConfirmationResolved {
                question: flow::QuestionId::new("question-1"),
                call: flow::CallId::new("1"),
                decision: Confirmation::Edited { arguments: text.clone() },
                by: String::new(),
            },
            EventKind::TurnFinish { status: TurnStatus::failed(text.as_str()) },
            EventKind::TurnFinish { status: TurnStatus::Rejected { by: plugin(), reason: text.clone() } },
            EventKind::TurnFinish {
                status: TurnStatus::Suspended { reason: flow::SuspendReason::Limit, message: text.clone() },
            },
            callback(CallbackOutcome::Skipped(text.clone())),
            callback(CallbackOutcome::NotPermitted(text.clone())),
            callback(CallbackOutcome::Ignored(text.clone())),
            callback(CallbackOutcome::Failed(failure())),
            tool(ToolOutcome::Rejected(text.clone())),
            tool(ToolOutcome::NotPermitted(text.clone())),
            tool(ToolOutcome::Failed(failure())),
            EventKind::ExtensionUnregistered {
                plugin: plugin(),
                action: flow::RegistrationAction::Disable,
                reason: text.clone(),
            },
            EventKind::ContextCompactionEnd {
                summary: Some(text.clone()),
                prune_before_turn: 1,
                kept: 0,
                left_out: Vec::new(),
                used_tokens: 0,
                error: None,
                usage: flow::Usage::default(),
                spend: None,
                charged: flow::Charged::default(),
            },
        ];
        for kind in kinds {
            assert_eq!(text_of(&kind), 1_000, "{}", kind.name());
        }
    }
}
