//! Stage: gives every event its record, `{seq, ts, thread_id, type, payload}`, in the vocabulary of thread events.
//!
//! The names and the required fields are those of the thread-event specification. `turn_start`, `turn_finish`,
//! `retry_scheduled`, `rule_hold_released`, `rule_held`, `ttsr_rearmed`, `rules_reloaded`, `extension_breaker`, `extension_log`
//! and `notice` are our additions. This module writes nothing: `tidegate run --output stream-json` prints the records as the
//! events arrive.

mod rules;

use flow::{
    Annotation, AnswerBlock, CallFailure, CallbackOutcome, CallbackReport, Called, Confirmation, Event, EventKind,
    EventView, Partial, PluginId, Preview, Registered, StopReason, StreamKind, ToolOutcome, ToolReport, TurnStatus,
    Usage,
};
use serde_json::{Map, Value, json};

pub use self::rules::kept_rules;

/// Returns the record of an event.
///
/// ```
/// use flow::{Event, EventKind, RunPosition};
/// let kind = EventKind::CognitionOutDelta { text: "Hello".into(), index: 0 };
/// let event = Event::new(7, 0, RunPosition { turn: 1, step: 1, attempt: 1 }, kind);
/// let record = tidegate_turn::transcript::record(&event, "thread-1");
/// assert_eq!(record["type"], "cognition_out_delta");
/// assert_eq!(record["payload"]["text"], "Hello");
/// ```
pub fn record(event: &Event, thread_id: &str) -> Value {
    let mut payload = payload(&event.kind);
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
        "type": event.kind.name(),
        "payload": payload,
    })
}

/// Returns the payload of an event's record: one arm for each kind, in their order, so that a new kind needs its own.
fn payload(kind: &EventKind) -> Value {
    use EventView as Kind;
    match kind.into() {
        Kind::ThreadStarted { session, provider, model } => json!({
            "directive": "run", "session_id": session.as_str(), "provider": provider, "model": model,
            "thread_mode": "conversation",
        }),
        Kind::ThreadCompleted { turns, usage, duration_ms } => json!({
            "cost": {"turns": turns, "tokens": total(usage), "duration_seconds": *duration_ms as f64 / 1000.0},
            "tokens": tokens(usage),
        }),
        Kind::ThreadError { class, message } => json!({"category": class.as_str(), "error": message}),
        Kind::ThreadCancelled { by } => json!({"cancelled_by": by}),
        Kind::TurnStart | Kind::StepStart => json!({}),
        Kind::TurnFinish { status } => self::status(status),
        // No price is known here: the cost is unknown, which is not the same as nothing.
        Kind::StepFinish { usage, stop } => json!({
            "cost": null, "tokens": tokens(usage), "finish_reason": finish_reason(stop), "stop_reason": stop.as_str(),
        }),
        Kind::CognitionIn { role, text, hidden } => json!({"text": text, "role": role.as_str(), "hidden": hidden}),
        Kind::CognitionOut { text, model, partial, blocks, annotations, rewrites } => {
            let mut payload = answer(text, model.as_deref(), partial.as_ref());
            list_parts(&mut payload, blocks, annotations, rewrites);
            payload
        }
        Kind::CognitionOutDelta { text, index } => json!({"text": text, "chunk_index": index}),
        Kind::CognitionReasoning { text, interrupted } => {
            json!({"text": text, "is_partial": interrupted, "was_interrupted": interrupted})
        }
        Kind::CognitionReasoningDelta { text } => json!({"text": text}),
        Kind::ToolCallStart { call, tool, arguments } => {
            json!({"tool": tool, "call_id": call.as_str(), "input": input(arguments)})
        }
        // A tool does not report how far it is: the progress is unknown, not invented.
        Kind::ToolCallProgress { call, message } => {
            json!({"call_id": call.as_str(), "progress": null, "message": message})
        }
        Kind::ToolCallResult { call, tool, output, reminder, diff, is_error, duration_ms } => {
            let mut payload =
                json!({"call_id": call.as_str(), "tool": tool, "output": output, "duration_ms": duration_ms});
            let error = is_error.then_some(output);
            for (key, value) in [("error", error), ("reminder", reminder.as_ref()), ("diff", diff.as_ref())] {
                if let Some(value) = value {
                    payload[key] = json!(value);
                }
            }
            payload
        }
        Kind::ToolConfirmationRequested { call, tool, arguments, reason, preview } => json!({
            "call_id": call.as_str(), "tool": tool, "input": input(arguments), "reason": reason,
            "preview": self::preview(preview),
        }),
        Kind::ToolConfirmationResolved { call, decision } => {
            let reason = if let Confirmation::Denied { reason } = decision { Some(reason) } else { None };
            json!({"call_id": call.as_str(), "approved": *decision == Confirmation::Approved, "reason": reason})
        }
        Kind::ErrorClassified { class, code, message } => json!({
            "error_code": code, "category": class.as_str(), "retryable": class.retryable(),
            "metadata": {"message": message},
        }),
        Kind::RetryScheduled { retry, max_retries, delay_ms, asked } => json!({
            "retry": retry, "max_retries": max_retries, "delay_ms": delay_ms, "asked_by_provider": asked,
        }),
        Kind::RetrySucceeded { original_error, retry_count, total_delay_ms } => json!({
            "original_error": original_error, "retry_count": retry_count, "total_delay_ms": total_delay_ms,
        }),
        Kind::RuleFired { found, action, first, again } => rules::fired(found, *action, *first, *again),
        Kind::RuleHoldReleased { stream, bytes, bound } => {
            json!({"stream": stream.as_str(), "bytes": bytes, "bound": bound})
        }
        Kind::RuleHeld { stream, rules, holds, bytes_max, ms_max, outcome } => json!({
            "stream": stream.as_str(), "rules": rules, "holds": holds, "bytes_max": bytes_max, "ms_max": ms_max,
            "outcome": outcome.as_str(),
        }),
        Kind::TtsrInjection { rules, discarded_bytes, records } => json!({
            "rules": rules, "discarded_bytes": discarded_bytes,
            "records": records.iter().map(rules::write).collect::<Vec<_>>(),
        }),
        Kind::TtsrRearmed { rules } => json!({"rules": rules}),
        Kind::RulesReloaded { active, notices } => json!({"active": active, "notices": notices}),
        Kind::SteeringMessage { role, text } => json!({"role": role.as_str(), "text": text}),
        Kind::CustomMessage { custom_type, text, hidden } => {
            json!({"custom_type": custom_type, "text": text, "hidden": hidden})
        }
        Kind::ExtensionRegistered { plugin, version, action, callbacks } => json!({
            "extension_id": plugin.as_str(), "version": version, "action": action.as_str(),
            "callbacks": callbacks.iter().map(registered).collect::<Vec<_>>(),
        }),
        Kind::ExtensionUnregistered { plugin, action, reason } => {
            json!({"extension_id": plugin.as_str(), "action": action.as_str(), "reason": reason})
        }
        Kind::ExtensionPrompt(prompt) => {
            let text = |one: &flow::PromptText| json!({"place": one.place, "text": one.text});
            json!({
                "extension_id": prompt.plugin.as_str(), "changed": prompt.changed, "digest": prompt.digest,
                "texts": prompt.texts.iter().map(text).collect::<Vec<_>>(),
            })
        }
        Kind::ExtensionCallback(report) => callback(report),
        Kind::ExtensionTool(report) => tool(report),
        Kind::ExtensionBreaker { plugin, called, scope, state, reason, retry_after_ms } => {
            let (callback, tool) = match called {
                Called::Callback(callback) => (Some(callback.as_str()), None),
                Called::Tool(name) => (None, Some(name)),
            };
            json!({
                "extension_id": plugin.as_str(), "callback": callback, "tool": tool, "scope": scope.as_str(),
                "state": state.as_str(), "reason": reason, "retry_after_ms": retry_after_ms,
            })
        }
        Kind::ExtensionWithheld { plugin, callback, bytes, reason } => json!({
            "extension_id": plugin.as_str(), "callback": callback.as_str(), "bytes": bytes, "reason": reason,
        }),
        Kind::ExtensionState { plugin, operation, key, size_bytes } => json!({
            "extension_id": plugin.as_str(), "operation": operation, "key": key, "size_bytes": size_bytes,
        }),
        Kind::ExtensionLog { plugin, level, message } => {
            json!({"extension_id": plugin.as_str(), "level": level, "message": message})
        }
        Kind::Notice { message } | Kind::StateLost { message } => json!({"message": message}),
    }
}

fn answer(text: &str, model: Option<&str>, partial: Option<&Partial>) -> Value {
    let mut payload = json!({"text": text, "is_partial": partial.is_some(), "truncated": partial.is_some()});
    if let Some(model) = model {
        payload["model"] = json!(model);
    }
    if let Some(partial) = partial {
        payload["error"] = json!(partial.error);
        payload["shown_bytes"] = json!(partial.shown_bytes);
        payload["kept_bytes"] = json!(partial.kept_bytes);
    }
    payload
}

/// Adds the lists of an answer that are not empty.
fn list_parts(
    payload: &mut Value,
    blocks: &[AnswerBlock],
    annotations: &[(PluginId, Annotation)],
    rewrites: &[(PluginId, String)],
) {
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
}

/// A block of an answer: how many bytes of `text` (or of the reasoning) it is, and for a tool its arguments as
/// received.
fn block(block: &AnswerBlock) -> Value {
    let mut listed = match &block.kind {
        StreamKind::Text => json!({"stream": "text", "bytes": block.bytes}),
        StreamKind::Thinking => json!({"stream": "thinking", "bytes": block.bytes}),
        StreamKind::Tool { call, name } => {
            json!({"stream": "tool", "call_id": call.as_str(), "tool": name, "arguments": block.arguments})
        }
    };
    listed["complete"] = json!(block.complete);
    if block.prefix_bytes > 0 {
        listed["prefix_bytes"] = json!(block.prefix_bytes);
    }
    listed
}

fn registered(one: &Registered) -> Value {
    json!({"callback": one.kind().as_str(), "priority": one.priority, "on_failure": one.on_failure.as_str()})
}

fn callback(report: &CallbackReport) -> Value {
    let mut payload = json!({
        "extension_id": report.plugin.as_str(),
        "callback": report.callback.as_str(),
        "duration_us": report.nanos as f64 / 1000.0,
        "outcome": report.outcome.as_str(),
    });
    match &report.outcome {
        CallbackOutcome::Passed | CallbackOutcome::Changed => {}
        CallbackOutcome::Skipped(why) | CallbackOutcome::NotPermitted(why) | CallbackOutcome::Ignored(why) => {
            payload["reason"] = json!(why);
        }
        CallbackOutcome::Failed(failure) => put_failure(&mut payload, failure),
    }
    put_reads(&mut payload, report.state_reads);
    payload
}

fn put_failure(payload: &mut Value, failure: &CallFailure) {
    payload["cause"] = json!(failure.cause.as_str());
    payload["frames"] = json!(failure.frames);
    payload["reason"] = json!(failure.message);
}

fn put_reads(payload: &mut Value, reads: u64) {
    if reads > 0 {
        payload["state_reads"] = json!(reads);
    }
}

fn tool(report: &ToolReport) -> Value {
    let mut payload = json!({
        "extension_id": report.plugin.as_str(),
        "tool": report.tool,
        "call_id": report.call.as_str(),
        "duration_us": report.nanos as f64 / 1000.0,
        "outcome": report.outcome.as_str(),
    });
    match &report.outcome {
        ToolOutcome::Done | ToolOutcome::Stopped => {}
        ToolOutcome::Rejected(why) | ToolOutcome::NotPermitted(why) => payload["reason"] = json!(why),
        ToolOutcome::Failed(failure) => put_failure(&mut payload, failure),
    }
    put_reads(&mut payload, report.state_reads);
    payload
}

/// How a turn ended, as the payload of `turn_finish`.
pub fn status(status: &TurnStatus) -> Value {
    let word = status.as_str();
    match status {
        TurnStatus::Completed | TurnStatus::Cancelled => json!({"status": word}),
        TurnStatus::Rejected { by, reason } => json!({"status": word, "extension_id": by.as_str(), "reason": reason}),
        TurnStatus::StoppedByRule { rule } => json!({"status": word, "rule": rule}),
        TurnStatus::Failed { class, message } => {
            json!({"status": word, "category": class.as_str(), "error": message})
        }
        TurnStatus::StepLimit { steps } => json!({"status": word, "steps": steps}),
    }
}

/// The four values of the specification; the model's own value is next to it as `stop_reason`.
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

/// The preview of a call: exact strings, to be escaped by the front end.
fn preview(preview: &Preview) -> Value {
    let arguments = preview.arguments.iter().map(|one| json!({"name": one.name, "value": one.value}));
    json!({"arguments": arguments.collect::<Vec<_>>(), "diff": preview.diff, "notes": preview.notes})
}

/// Arguments as the object they are; anything else is kept as a string.
fn input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => json!({"raw": arguments}),
    }
}
