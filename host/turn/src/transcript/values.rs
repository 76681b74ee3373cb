//! Values of records: tokens and cost, evidence, questions and their answers, the arguments of a call, how turns and steps end.

use flow::{Charged, Confirmation, ErrorMetadata, Preview, Spend, StepEnd, StopReason, StreamKind, TurnStatus, Usage};
use serde_json::{Value, json};

use super::payload;

pub(super) fn named_call(stream: &StreamKind) -> (Option<String>, Option<String>) {
    match stream {
        StreamKind::Tool { call, name } => (Some(call.as_str().to_owned()), Some(name.clone())),
        StreamKind::Text | StreamKind::Thinking => (None, None),
    }
}

pub(super) fn evidence(found: &flow::Evidence) -> payload::Evidence {
    payload::Evidence {
        pattern: found.pattern.clone(),
        text: found.text.clone(),
        start: found.start,
        end: found.end,
        line: found.line,
        field: found.field.clone(),
        path: found.path.clone(),
        unread: found.unread.then_some(true),
    }
}

pub(super) fn tokens(usage: &Usage) -> payload::Tokens {
    payload::Tokens {
        input_tokens: usage.input,
        output_tokens: usage.output,
        cache_read_tokens: usage.cache_read,
        cache_write_tokens: usage.cache_write,
    }
}

pub(super) fn total(usage: &Usage) -> Option<u64> {
    match (usage.input, usage.output) {
        (None, None) => None,
        (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
    }
}

pub(super) fn cost(turns: u32, usage: &Usage, spend: Option<Spend>, duration_ms: u64) -> payload::Cost {
    let duration_seconds = duration_ms as f64 / 1000.0;
    payload::Cost { turns, tokens: total(usage), spend: spend.map(Spend::dollars), duration_seconds }
}

pub(super) fn charged(charged: Charged) -> payload::Charged {
    payload::Charged { tokens: charged.tokens, spend: charged.spend.dollars(), spawns: charged.spawns }
}

pub(super) fn preview(preview: &Preview) -> payload::Preview {
    let argument = |one: &flow::Argument| payload::Argument { name: one.name.clone(), value: one.value.clone() };
    payload::Preview {
        arguments: preview.arguments.iter().map(argument).collect(),
        diff: preview.diff.clone(),
        notes: preview.notes.clone(),
    }
}

/// The part of a resolved question that is about the decision.
pub(super) fn resolved(decision: &Confirmation, by: &str) -> payload::ToolConfirmationResolved {
    let (mut reason, mut pattern, mut arguments) = (None, None, None);
    match decision {
        Confirmation::Approved | Confirmation::TimedOut { .. } | Confirmation::Cancelled => {}
        Confirmation::Always { pattern: covered } => pattern = Some(covered.clone()),
        Confirmation::Edited { arguments: edited } => arguments = Some(edited.clone()),
        Confirmation::Denied { reason: why } | Confirmation::Unavailable { reason: why } => reason = Some(why.clone()),
    }
    payload::ToolConfirmationResolved {
        approved: decision.is_approval(),
        decision: Some(decision.as_str().to_owned()),
        reason,
        pattern,
        arguments,
        decided_by: (!by.is_empty()).then(|| by.to_owned()),
        ..payload::ToolConfirmationResolved::default()
    }
}

/// Arguments as the object they are; anything else is kept as a string.
pub(super) fn input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => json!({"raw": arguments}),
    }
}

pub(super) fn error_metadata(message: &str, metadata: &ErrorMetadata) -> Value {
    let known = [
        ("provider", metadata.provider.as_deref().map(Value::from)),
        ("status", metadata.status.map(Value::from)),
        ("kind", metadata.kind.map(|kind| kind.as_str().into())),
        ("type", metadata.error_type.as_deref().map(Value::from)),
        ("pattern", metadata.pattern.as_deref().map(Value::from)),
    ];
    let known = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(std::iter::once(("message".to_owned(), message.into())).chain(known).collect())
}

pub(super) fn finished(status: &TurnStatus) -> payload::TurnFinish {
    let mut finished = payload::TurnFinish { status: status.as_str().to_owned(), ..payload::TurnFinish::default() };
    match status {
        TurnStatus::Completed | TurnStatus::Cancelled => {}
        TurnStatus::Rejected { by, reason } => {
            finished.extension_id = Some(by.as_str().to_owned());
            finished.reason = Some(reason.clone());
        }
        TurnStatus::StoppedByRule { rule } => finished.rule = Some(rule.clone()),
        TurnStatus::Failed { class, message } => {
            finished.category = Some(class.as_str().to_owned());
            finished.error = Some(message.clone());
        }
        TurnStatus::StepLimit { steps } => finished.steps = Some(*steps),
        TurnStatus::Suspended { reason, message } => {
            finished.reason = Some(reason.as_str().to_owned());
            finished.error = Some(message.clone());
        }
    }
    finished
}

/// The four values of the specification and `cancelled`; the model's own value is next to it as `stop_reason`.
pub(super) fn finish_reason(end: &StepEnd) -> &'static str {
    match end {
        StepEnd::Cancelled => "cancelled",
        StepEnd::Failed => "error",
        StepEnd::Answered(stop) => match stop {
            StopReason::EndTurn | StopReason::StopSequence | StopReason::Pause => "end_turn",
            StopReason::ToolUse => "tool_use",
            StopReason::MaxTokens | StopReason::ContextFull => "limit_exceeded",
            StopReason::Refusal | StopReason::Other(_) => "error",
        },
    }
}
