//! Values as records have them: ids and words as strings, tokens and cost, evidence, questions and their answers, how turns and steps end.

use std::sync::Arc;

use flow::{
    Action, Annotation, AnswerBlock, BreakerScope, BreakerState, CallId, CallbackKind, Charged, CompactionCause,
    CompactionMethod, Confirmation, ErrorClass, ErrorMetadata, HoldOutcome, InputId, InputWay, KeptText, LeftOut,
    Limit, Message, OnFailure, Origin, PluginId, Preview, QuestionId, Registered, RegistrationAction, Role, RuleRecord,
    SessionId, Spend, StepEnd, StopReason, StreamKind, SuspendReason, TurnStatus, Usage, Withdrawal,
};
use serde_json::{Map, Value, json};

use super::message::{Author, MessageRecord};
use super::payload;

/// A value that has a form in records.
pub(super) trait Recorded {
    type Form;

    fn recorded(self) -> Self::Form;
}

/// Makes a payload of values, each in its form: `recorded!(InputEdited { id, text })`.
macro_rules! recorded {
    ($name:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {
        payload::$name { $($field: recorded!(@ $field $(, $value)?),)* }
    };
    (@ $field:ident) => { Recorded::recorded($field) };
    (@ $field:ident, $value:expr) => { Recorded::recorded($value) };
}
pub(super) use recorded;

impl<T: Recorded> Recorded for Option<T> {
    type Form = Option<T::Form>;

    fn recorded(self) -> Self::Form {
        self.map(T::recorded)
    }
}

impl<'a, T> Recorded for &'a Option<T>
where
    &'a T: Recorded,
{
    type Form = Option<<&'a T as Recorded>::Form>;

    fn recorded(self) -> Self::Form {
        self.as_ref().recorded()
    }
}

impl<'a, T> Recorded for &'a Vec<T>
where
    &'a T: Recorded,
{
    type Form = Vec<<&'a T as Recorded>::Form>;

    fn recorded(self) -> Self::Form {
        self.iter().map(<&T>::recorded).collect()
    }
}

macro_rules! forms {
    ($($type:ty => $form:ty: |$value:pat_param| $recorded:expr;)+) => {
        $(
            impl Recorded for $type {
                type Form = $form;

                fn recorded(self) -> $form {
                    let $value = self;
                    $recorded
                }
            }
        )+
    };
}

/// Types that records have as they are.
macro_rules! plain {
    ($($type:ty)+) => { forms! { $($type => $type: |value| value; &$type => $type: |value| value.clone();)+ } };
}

/// Types that records have as a string.
macro_rules! words {
    ($($type:ty)+) => { forms! { $(&$type => String: |value| value.as_str().to_owned();)+ } };
}

plain! { bool u32 u64 f64 String Value Map<String, Value> payload::Cost }

words! {
    SessionId CallId PluginId InputId QuestionId SuspendReason ErrorClass InputWay Withdrawal Role StreamKind StopReason Action
    HoldOutcome RegistrationAction CallbackKind BreakerScope BreakerState OnFailure CompactionCause CompactionMethod
}

forms! {
    &str => String: |text| text.to_owned();
    &usize => u64: |count| *count as u64;
    &Limit => String: |limit| limit.code().to_owned();
    &Spend => f64: |spend| spend.dollars();
    &Origin => Author: |origin| Author::of(origin);
    &Arc<Message> => MessageRecord: |message| MessageRecord::of(message);
    &Usage => payload::Tokens: |usage| recorded!(Tokens {
        input_tokens: usage.input,
        output_tokens: usage.output,
        cache_read_tokens: usage.cache_read,
        cache_write_tokens: usage.cache_write,
    });
    &Charged => payload::Charged: |Charged { tokens, spend, spawns, .. }| recorded!(Charged { tokens, spend, spawns });
    &flow::Evidence => payload::Evidence: |found| recorded!(Evidence {
        pattern: &found.pattern,
        text: &found.text,
        start: found.start,
        end: found.end,
        line: found.line,
        field: &found.field,
        path: &found.path,
        unread: found.unread.then_some(true),
    });
    &RuleRecord => payload::Injected: |record| {
        let (call_id, tool) = named_call(&record.stream);
        recorded!(Injected {
            rule: &record.rule,
            // Not every reader of JSON keeps 64 bits of a number.
            hash: format!("{:016x}", record.hash),
            turn: record.turn,
            stream: &record.stream,
            action: &record.action,
            tokens_discarded: record.tokens_discarded,
            tokens_estimated: record.tokens_estimated,
            evidence: &record.evidence,
            call_id,
            tool,
        })
    };
    &LeftOut => payload::LeftOut: |one| payload::LeftOut::of(one);
    &Preview => payload::Preview: |preview| recorded!(Preview {
        arguments: &preview.arguments,
        diff: &preview.diff,
        notes: &preview.notes,
    });
    &flow::Argument => payload::Argument: |flow::Argument { name, value }| recorded!(Argument { name, value });
    &AnswerBlock => payload::Block: |block| {
        let (call_id, tool) = named_call(&block.kind);
        recorded!(Block {
            stream: &block.kind,
            bytes: (!block.kind.is_tool()).then_some(block.bytes),
            text_before: (block.kind == StreamKind::Thinking).then_some(block.text_before),
            signature: &block.signature,
            redacted: block.redacted.then_some(true),
            call_id,
            tool,
            arguments: &block.arguments,
            shown: &block.shown,
            changed: block.changed.then_some(true),
            complete: block.complete,
            prefix_bytes: above(block.prefix_bytes, 0),
        })
    };
    &(PluginId, Annotation) => payload::Note: |(by, note)| recorded!(Note {
        extension_id: by,
        key: &note.key,
        value: &note.value,
    });
    &(PluginId, String) => payload::Rewrite: |(by, text)| recorded!(Rewrite { extension_id: by, text });
    &Registered => payload::RegisteredCallback: |one| recorded!(RegisteredCallback {
        callback: &one.kind(),
        priority: u32::from(one.priority),
        on_failure: &one.on_failure,
        keep: (one.keep == KeptText::Shown).then(|| one.keep.as_str()),
    });
    &flow::PromptText => payload::PromptText: |one| recorded!(PromptText { place: &one.place, text: &one.text });
    &flow::PlanEntry => payload::PlanEntry: |entry| recorded!(PlanEntry {
        content: &entry.content,
        status: entry.status.as_str(),
    });
    &(String, String) => payload::SchemaProblem: |(path, message)| recorded!(SchemaProblem { path, message });
}

pub(super) fn named_call(stream: &StreamKind) -> (Option<String>, Option<String>) {
    match stream {
        StreamKind::Tool { call, name } => (Some(call.as_str().to_owned()), Some(name.clone())),
        StreamKind::Text | StreamKind::Thinking => (None, None),
    }
}

/// A list of a record that has none where it is empty.
pub(super) fn listed<T>(all: &Vec<T>) -> Option<&Vec<T>> {
    Some(all).filter(|all| !all.is_empty())
}

/// A number of a record that has it only where it is greater than another one.
pub(super) fn above<N: PartialOrd + Copy>(number: N, least: N) -> Option<N> {
    Some(number).filter(|number| *number > least)
}

fn total(usage: &Usage) -> Option<u64> {
    match (usage.input, usage.output) {
        (None, None) => None,
        (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
    }
}

pub(super) fn cost(turns: u32, usage: &Usage, spend: &Option<Spend>, duration_ms: u64) -> payload::Cost {
    let duration_seconds = duration_ms as f64 / 1000.0;
    payload::Cost { turns, tokens: total(usage), spend: spend.recorded(), duration_seconds }
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
        TurnStatus::NoProgress { message } => finished.error = Some(message.clone()),
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
