//! Stage: gives every event its record, `{seq, ts, thread_id, type, payload}`, in the vocabulary of thread events.
//!
//! The names and the required fields are those of the thread-event specification. `turn_start`, `turn_finish`,
//! `retry_scheduled`, `rule_hold_released`, `rule_held`, `ttsr_rearmed`, `rules_reloaded`, `extension_log` and `notice` are our additions. Where a record is written is another room's
//! business; `tidegate run --output stream-json` prints them as they come.

mod rules;

use flow::{
    AnswerBlock, CallbackOutcome, Confirmation, Event, EventKind, Preview, StopReason, StreamKind, TurnStatus, Usage,
};
use serde_json::{Map, Value, json};

pub use self::rules::kept_rules;

/// The type and the payload of an event.
///
/// ```
/// use flow::{Event, EventKind, Place};
/// let kind = EventKind::CognitionOutDelta { text: "Hello".into(), index: 0 };
/// let event = Event { seq: 7, at_ms: 0, place: Place { turn: 1, step: 1, attempt: 1 }, kind };
/// let record = tidegate_turn::transcript::record(&event, "thread-1");
/// assert_eq!(record["type"], "cognition_out_delta");
/// assert_eq!(record["payload"]["text"], "Hello");
/// ```
pub fn record(event: &Event, thread_id: &str) -> Value {
    let (name, mut payload) = describe(&event.kind);
    if event.kind == EventKind::StepStart {
        payload["turn_number"] = json!(event.place.step);
    }
    json!({
        "seq": event.seq,
        "ts": event.at_ms,
        "thread_id": thread_id,
        "turn": event.place.turn,
        "step": event.place.step,
        "attempt": event.place.attempt,
        "type": name,
        "payload": payload,
    })
}

/// One arm an event, in the order of [`EventKind`].
fn describe(kind: &EventKind) -> (&'static str, Value) {
    match kind {
        EventKind::ThreadStarted { session, provider, model } => (
            "thread_started",
            json!({"directive": "run", "session_id": session.as_str(), "provider": provider, "model": model, "thread_mode": "conversation"}),
        ),
        EventKind::ThreadCompleted { turns, usage, duration_ms } => (
            "thread_completed",
            json!({"cost": {"turns": turns, "tokens": total(usage), "duration_seconds": *duration_ms as f64 / 1000.0}, "tokens": tokens(usage)}),
        ),
        EventKind::ThreadError { class, message } => {
            ("thread_error", json!({"category": class.as_str(), "error": message}))
        }
        EventKind::ThreadCancelled { by } => ("thread_cancelled", json!({"cancelled_by": by})),
        EventKind::TurnStart => ("turn_start", json!({})),
        EventKind::TurnFinish { status } => ("turn_finish", self::status(status)),
        EventKind::StepStart => ("step_start", json!({})),
        EventKind::StepFinish { usage, stop } => (
            "step_finish",
            // No price is known here: the cost is said to be unknown, not to be nothing.
            json!({"cost": null, "tokens": tokens(usage), "finish_reason": finish_reason(stop), "stop_reason": stop.as_str()}),
        ),
        EventKind::CognitionIn { .. }
        | EventKind::CognitionOut { .. }
        | EventKind::CognitionOutDelta { .. }
        | EventKind::CognitionReasoning { .. }
        | EventKind::CognitionReasoningDelta { .. } => cognition(kind),
        EventKind::ToolCallStart { .. }
        | EventKind::ToolCallProgress { .. }
        | EventKind::ToolCallResult { .. }
        | EventKind::ToolConfirmationRequested { .. }
        | EventKind::ToolConfirmationResolved { .. } => tool(kind),
        EventKind::ErrorClassified { class, code, message } => (
            "error_classified",
            json!({"error_code": code, "category": class.as_str(), "retryable": class.retryable(), "metadata": {"message": message}}),
        ),
        EventKind::RetryScheduled { retry, max_retries, delay_ms, asked } => (
            "retry_scheduled",
            json!({"retry": retry, "max_retries": max_retries, "delay_ms": delay_ms, "asked_by_provider": asked}),
        ),
        EventKind::RetrySucceeded { original_error, retry_count, total_delay_ms } => (
            "retry_succeeded",
            json!({"original_error": original_error, "retry_count": retry_count, "total_delay_ms": total_delay_ms}),
        ),
        EventKind::RuleFired { .. }
        | EventKind::RuleHoldReleased { .. }
        | EventKind::RuleHeld { .. }
        | EventKind::TtsrInjection { .. }
        | EventKind::TtsrRearmed { .. }
        | EventKind::RulesReloaded { .. } => rules::describe(kind),
        EventKind::SteeringMessage { role, text } => ("steering_message", json!({"role": role.as_str(), "text": text})),
        EventKind::CustomMessage { custom_type, text, hidden } => {
            ("custom_message", json!({"custom_type": custom_type, "text": text, "hidden": hidden}))
        }
        EventKind::ExtensionRegistered { .. }
        | EventKind::ExtensionUnregistered { .. }
        | EventKind::ExtensionCallback(_)
        | EventKind::ExtensionWithheld { .. }
        | EventKind::ExtensionState { .. }
        | EventKind::ExtensionLog { .. } => extension(kind),
        EventKind::Notice { message } => ("notice", json!({"message": message})),
    }
}

fn cognition(kind: &EventKind) -> (&'static str, Value) {
    match kind {
        EventKind::CognitionIn { role, text, hidden } => {
            ("cognition_in", json!({"text": text, "role": role.as_str(), "hidden": hidden}))
        }
        EventKind::CognitionOut { text, model, partial, blocks, annotations, rewrites } => {
            let mut payload = json!({"text": text, "is_partial": partial.is_some(), "truncated": partial.is_some()});
            if let Some(model) = model {
                payload["model"] = json!(model);
            }
            if let Some(partial) = partial {
                payload["error"] = json!(partial.error);
                payload["shown_bytes"] = json!(partial.shown_bytes);
                payload["stands_bytes"] = json!(partial.stands_bytes);
            }
            if !blocks.is_empty() {
                payload["blocks"] = blocks.iter().map(block).collect();
            }
            if !annotations.is_empty() {
                let notes = annotations
                    .iter()
                    .map(|(by, note)| json!({"extension_id": by.as_str(), "key": note.key, "value": note.value}));
                payload["annotations"] = notes.collect();
            }
            if !rewrites.is_empty() {
                let steps = rewrites.iter().map(|(by, text)| json!({"extension_id": by.as_str(), "text": text}));
                payload["rewrites"] = steps.collect();
            }
            ("cognition_out", payload)
        }
        EventKind::CognitionOutDelta { text, index } => {
            ("cognition_out_delta", json!({"text": text, "chunk_index": index}))
        }
        EventKind::CognitionReasoning { text, interrupted } => {
            ("cognition_reasoning", json!({"text": text, "is_partial": interrupted, "was_interrupted": interrupted}))
        }
        EventKind::CognitionReasoningDelta { text } => ("cognition_reasoning_delta", json!({"text": text})),
        _ => unknown(),
    }
}

/// A block of an answer: how many bytes of `text` (or of the reasoning) it is, and for a tool its arguments as they came.
fn block(block: &AnswerBlock) -> Value {
    let mut listed = match &block.kind {
        StreamKind::Text => json!({"stream": "text", "bytes": block.bytes}),
        StreamKind::Thinking => json!({"stream": "thinking", "bytes": block.bytes}),
        StreamKind::Tool { call, name } => {
            json!({"stream": "tool", "call_id": call.as_str(), "tool": name, "arguments": block.arguments})
        }
    };
    listed["complete"] = json!(block.complete);
    if block.stood_bytes > 0 {
        listed["stood_bytes"] = json!(block.stood_bytes);
    }
    listed
}

fn tool(kind: &EventKind) -> (&'static str, Value) {
    match kind {
        EventKind::ToolCallStart { call, tool, arguments } => {
            ("tool_call_start", json!({"tool": tool, "call_id": call.as_str(), "input": input(arguments)}))
        }
        // How far a tool is it does not say: said to be unknown, not invented.
        EventKind::ToolCallProgress { call, message } => {
            ("tool_call_progress", json!({"call_id": call.as_str(), "progress": null, "message": message}))
        }
        EventKind::ToolCallResult { call, tool, output, reminder, diff, is_error, duration_ms } => {
            let mut payload =
                json!({"call_id": call.as_str(), "tool": tool, "output": output, "duration_ms": duration_ms});
            if *is_error {
                payload["error"] = json!(output);
            }
            if let Some(reminder) = reminder {
                payload["reminder"] = json!(reminder);
            }
            if let Some(diff) = diff {
                payload["diff"] = json!(diff);
            }
            ("tool_call_result", payload)
        }
        EventKind::ToolConfirmationRequested { call, tool, arguments, reason, preview } => (
            "tool_confirmation_requested",
            json!({"call_id": call.as_str(), "tool": tool, "input": input(arguments), "reason": reason, "preview": self::preview(preview)}),
        ),
        EventKind::ToolConfirmationResolved { call, decision } => {
            let reason = if let Confirmation::Denied { reason } = decision { Some(reason) } else { None };
            let approved = *decision == Confirmation::Approved;
            ("tool_confirmation_resolved", json!({"call_id": call.as_str(), "approved": approved, "reason": reason}))
        }
        _ => unknown(),
    }
}

fn extension(kind: &EventKind) -> (&'static str, Value) {
    match kind {
        EventKind::ExtensionRegistered { plugin, version, callbacks } => {
            let callbacks: Vec<Value> = callbacks
                .iter()
                .map(|one| {
                    json!({
                        "callback": one.kind().as_str(),
                        "priority": one.priority,
                        "on_failure": one.on_failure.as_str(),
                    })
                })
                .collect();
            (
                "extension_registered",
                json!({"extension_id": plugin.as_str(), "version": version, "callbacks": callbacks}),
            )
        }
        EventKind::ExtensionUnregistered { plugin, reason } => {
            ("extension_unregistered", json!({"extension_id": plugin.as_str(), "reason": reason}))
        }
        EventKind::ExtensionCallback(report) => {
            let mut payload = json!({
                "extension_id": report.plugin.as_str(),
                "callback": report.callback.as_str(),
                "duration_us": report.nanos as f64 / 1000.0,
            });
            let (outcome, reason) = match &report.outcome {
                CallbackOutcome::Passed => ("passed", None),
                CallbackOutcome::Changed => ("changed", None),
                CallbackOutcome::Skipped(why) => ("skipped", Some(why.clone())),
                CallbackOutcome::Ignored(why) => ("ignored", Some(why.clone())),
                CallbackOutcome::Failed(failure) => {
                    payload["cause"] = json!(failure.cause.as_str());
                    payload["frames"] = json!(failure.frames);
                    ("error", Some(failure.message.clone()))
                }
            };
            payload["outcome"] = json!(outcome);
            if let Some(reason) = reason {
                payload["reason"] = json!(reason);
            }
            ("extension_callback", payload)
        }
        EventKind::ExtensionWithheld { plugin, callback, bytes, reason } => (
            "extension_withheld",
            json!({
                "extension_id": plugin.as_str(),
                "callback": callback.as_str(),
                "bytes": bytes,
                "reason": reason,
            }),
        ),
        EventKind::ExtensionState { plugin, operation, key, size_bytes } => (
            "extension_state",
            json!({"extension_id": plugin.as_str(), "operation": operation, "key": key, "size_bytes": size_bytes}),
        ),
        EventKind::ExtensionLog { plugin, level, message } => {
            ("extension_log", json!({"extension_id": plugin.as_str(), "level": level, "message": message}))
        }
        _ => unknown(),
    }
}

/// What an arm of [`describe`] that names the wrong group would come to; a test walks all kinds and never meets it.
fn unknown() -> (&'static str, Value) {
    ("unknown", Value::Null)
}

/// How a turn ended, as the payload of `turn_finish`.
pub fn status(status: &TurnStatus) -> Value {
    match status {
        TurnStatus::Completed => json!({"status": "completed"}),
        TurnStatus::Rejected { by, reason } => {
            json!({"status": "rejected", "extension_id": by.as_str(), "reason": reason})
        }
        TurnStatus::StoppedByRule { rule } => json!({"status": "stopped_by_rule", "rule": rule}),
        TurnStatus::Cancelled => json!({"status": "cancelled"}),
        TurnStatus::Failed { class, message } => {
            json!({"status": "failed", "category": class.as_str(), "error": message})
        }
        TurnStatus::StepLimit { steps } => json!({"status": "step_limit", "steps": steps}),
    }
}

/// The four words of the specification; the model's own is beside it as `stop_reason`.
fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Pause => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens | StopReason::ContextFull => "limit_exceeded",
        StopReason::Refusal | StopReason::Other(_) => "error",
    }
}

fn tokens(usage: &Usage) -> Value {
    let fields = [
        ("input_tokens", usage.input),
        ("output_tokens", usage.output),
        ("cache_read_tokens", usage.cache_read),
        ("cache_write_tokens", usage.cache_write),
    ];
    let known = fields.into_iter().filter_map(|(name, tokens)| Some((name.to_owned(), json!(tokens?))));
    Value::Object(known.collect::<Map<String, Value>>())
}

fn total(usage: &Usage) -> Option<u64> {
    match (usage.input, usage.output) {
        (None, None) => None,
        (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
    }
}

/// What a person is shown of a call: exact strings, to be escaped by whoever displays them.
fn preview(preview: &Preview) -> Value {
    let arguments = preview.arguments.iter().map(|one| json!({"name": one.name, "value": one.value}));
    json!({"arguments": arguments.collect::<Vec<_>>(), "diff": preview.diff, "notes": preview.notes})
}

/// Arguments as the object they are; what is no object is kept as text.
fn input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => json!({"raw": arguments}),
    }
}
