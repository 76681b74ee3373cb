//! Values that several records have: tokens and cost, evidence, the preview of a question, the arguments of a call.

use flow::{Charged, Confirmation, Preview, Spend, StreamKind, Usage};
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
