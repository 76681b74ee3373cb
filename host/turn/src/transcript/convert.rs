//! From events to the bodies of their records: one arm for each kind, so that a new kind does not compile without its own.

use flow::{
    AnswerBlock, CallFailure, CallbackOutcome, CallbackReport, Called, EventKind, EventView, LimitDecision, Partial,
    Retained, RuleMatch, RuleRecord, Spend, StepEnd, StreamKind, ToolOutcome, ToolReport, Usage,
};

use super::inputs::{message_payload, queued};
use super::message::{Author, MessageRecord};
use super::values::{
    charged as values_charged, cost, error_metadata, evidence, finish_reason, finished, input, named_call, preview,
    resolved, tokens,
};
use super::{Body, payload};

impl Body {
    /// The body of an event's record.
    #[allow(clippy::too_many_lines, reason = "one exhaustive match, with an arm for each kind")]
    pub(super) fn of(kind: &EventKind) -> Self {
        use EventView as Kind;
        match EventView::from(kind) {
            Kind::ThreadStarted { session, agent, provider, model, workspace } => {
                Self::ThreadStarted(payload::ThreadStarted {
                    directive: agent.clone(),
                    session_id: session.as_str().to_owned(),
                    provider: provider.clone(),
                    model: model.clone(),
                    thread_mode: "conversation".to_owned(),
                    workspace: workspace.clone(),
                })
            }
            Kind::ThreadResumed { by, suspended, provider, model } => Self::ThreadResumed(payload::ThreadResumed {
                resumed_by: by.clone(),
                previous_suspend_reason: suspended.map(|reason| reason.as_str().to_owned()),
                provider: provider.clone(),
                model: model.clone(),
            }),
            Kind::ThreadSuspended { reason, message, turns, usage, spend, duration_ms } => {
                Self::ThreadSuspended(payload::ThreadSuspended {
                    suspend_reason: reason.as_str().to_owned(),
                    message: message.clone(),
                    cost: cost(*turns, usage, *spend, *duration_ms),
                })
            }
            Kind::ThreadCompleted { turns, usage, spend, duration_ms } => {
                let cost = cost(*turns, usage, *spend, *duration_ms);
                Self::ThreadCompleted(payload::ThreadCompleted { cost, tokens: tokens(usage) })
            }
            Kind::ThreadError { class, message } => {
                Self::ThreadError(payload::ThreadError { category: class.as_str().to_owned(), error: message.clone() })
            }
            Kind::ThreadCancelled { by } => {
                Self::ThreadCancelled(payload::ThreadCancelled { cancelled_by: by.clone() })
            }
            Kind::TurnStart => Self::TurnStart(payload::Empty {}),
            Kind::InputReceived { id, message } => Self::InputReceived(payload::MessagePayload {
                id: id.as_ref().map(|id| id.as_str().to_owned()),
                ..message_payload(message)
            }),
            Kind::InputQueued { id, way, message } => Self::InputQueued(queued(id, *way, message)),
            Kind::InputEdited { id, text } => {
                Self::InputEdited(payload::InputEdited { id: id.as_str().to_owned(), text: text.clone() })
            }
            Kind::InputWithdrawn { id, receipt } => Self::InputWithdrawn(payload::InputWithdrawn {
                id: id.as_str().to_owned(),
                receipt: receipt.as_str().to_owned(),
            }),
            Kind::TurnFinish { status } => Self::TurnFinish(finished(status)),
            Kind::StepStart { number } => Self::StepStart(payload::StepStart { turn_number: *number }),
            Kind::StepFinish { usage, spend, charged, end, context_tokens } => Self::StepFinish(payload::StepFinish {
                context_tokens: *context_tokens,
                charged: Some(values_charged(*charged)),
                // An unknown cost is absent, which is not the same as nothing.
                cost: spend.map(Spend::dollars),
                tokens: tokens(usage),
                finish_reason: finish_reason(end).to_owned(),
                stop_reason: if let StepEnd::Answered(stop) = end { Some(stop.as_str().to_owned()) } else { None },
            }),
            Kind::CognitionIn { message } => Self::CognitionIn(message_payload(message)),
            Kind::CognitionOut { text, model, author, shown, partial, retained, blocks, annotations, rewrites } => {
                let (word, bytes) = self::retained(*retained);
                let partial_bytes = |bytes: fn(&Partial) -> u64| partial.as_ref().map(bytes);
                let note = |(by, note): &(flow::PluginId, flow::Annotation)| payload::Note {
                    extension_id: by.as_str().to_owned(),
                    key: note.key.clone(),
                    value: note.value.clone(),
                };
                let rewrite = |(by, text): &(flow::PluginId, String)| payload::Rewrite {
                    extension_id: by.as_str().to_owned(),
                    text: text.clone(),
                };
                Self::CognitionOut(payload::CognitionOut {
                    text: text.clone(),
                    model: model.clone(),
                    author: Author::of(author),
                    shown: shown.clone(),
                    is_partial: partial.is_some(),
                    truncated: partial.is_some(),
                    error: partial.as_ref().map(|partial| partial.error.clone()),
                    shown_bytes: partial_bytes(|partial| partial.shown_bytes),
                    kept_bytes: partial_bytes(|partial| partial.kept_bytes),
                    retained: word.to_owned(),
                    retained_bytes: bytes,
                    blocks: listed(blocks, block),
                    annotations: listed(annotations, note),
                    rewrites: listed(rewrites, rewrite),
                })
            }
            Kind::CognitionOutDelta { text, index } => {
                Self::CognitionOutDelta(payload::CognitionOutDelta { text: text.clone(), chunk_index: *index })
            }
            Kind::CognitionReasoning { text, interrupted, retained } => {
                Self::CognitionReasoning(payload::CognitionReasoning {
                    text: text.clone(),
                    is_partial: *interrupted,
                    was_interrupted: *interrupted,
                    retained: *retained,
                })
            }
            Kind::CognitionReasoningDelta { text } => {
                Self::CognitionReasoningDelta(payload::CognitionReasoningDelta { text: text.clone() })
            }
            Kind::ToolCallStart { call, tool, arguments } => Self::ToolCallStart(payload::ToolCallStart {
                tool: tool.clone(),
                call_id: call.as_str().to_owned(),
                input: input(arguments),
            }),
            Kind::ToolCallProgress { call, message, percent } => Self::ToolCallProgress(payload::ToolCallProgress {
                call_id: call.as_str().to_owned(),
                progress: *percent,
                message: message.clone(),
            }),
            Kind::ToolCallResult { call, tool, output, reminder, diff, is_error, duration_ms, waited_ms } => {
                Self::ToolCallResult(payload::ToolCallResult {
                    call_id: call.as_str().to_owned(),
                    tool: tool.clone(),
                    output: output.clone(),
                    error: is_error.then(|| output.clone()),
                    reminder: reminder.clone(),
                    diff: diff.clone(),
                    duration_ms: *duration_ms,
                    waited_ms: *waited_ms,
                })
            }
            Kind::ToolConfirmationRequested {
                question,
                call,
                tool,
                arguments,
                reason,
                preview,
                always,
                timeout_ms,
            } => Self::ToolConfirmationRequested(payload::ToolConfirmationRequested {
                question_id: Some(question.as_str().to_owned()),
                call_id: call.as_str().to_owned(),
                tool: tool.clone(),
                input: input(arguments),
                reason: reason.clone(),
                preview: self::preview(preview),
                always: always.clone(),
                timeout_ms: *timeout_ms,
            }),
            Kind::ToolConfirmationResolved { question, call, decision, by } => {
                Self::ToolConfirmationResolved(payload::ToolConfirmationResolved {
                    question_id: Some(question.as_str().to_owned()),
                    call_id: call.as_str().to_owned(),
                    ..resolved(decision, by)
                })
            }
            Kind::ErrorClassified { class, code, message, retryable, metadata } => {
                Self::ErrorClassified(payload::ErrorClassified {
                    error_code: code.clone(),
                    category: class.as_str().to_owned(),
                    retryable: *retryable,
                    metadata: error_metadata(message, metadata),
                })
            }
            Kind::RetryScheduled { retry, max_retries, delay_ms, asked } => {
                Self::RetryScheduled(payload::RetryScheduled {
                    retry: *retry,
                    max_retries: *max_retries,
                    delay_ms: *delay_ms,
                    asked_by_provider: *asked,
                })
            }
            Kind::RetrySucceeded { original_error, retry_count, total_delay_ms } => {
                Self::RetrySucceeded(payload::RetrySucceeded {
                    original_error: original_error.clone(),
                    retry_count: *retry_count,
                    total_delay_ms: *total_delay_ms,
                })
            }
            Kind::LimitEscalationRequested(request) => {
                Self::LimitEscalationRequested(payload::LimitEscalationRequested {
                    limit_code: request.limit.code().to_owned(),
                    current_value: request.current,
                    current_max: request.max,
                    proposed_max: request.proposed,
                    message: request.message.clone(),
                    approval_request_id: request.id.clone(),
                })
            }
            Kind::LimitEscalationResolved { request, limit, decision, by } => {
                let (word, new_max, reason) = match decision {
                    LimitDecision::Approved { max } => ("approved", Some(*max), None),
                    LimitDecision::Denied { reason } => ("denied", None, Some(reason.clone())),
                    LimitDecision::TimedOut => ("timed_out", None, None),
                };
                Self::LimitEscalationResolved(payload::LimitEscalationResolved {
                    approval_request_id: request.clone(),
                    limit_code: limit.code().to_owned(),
                    decision: word.to_owned(),
                    new_max,
                    reason,
                    decided_by: by.clone(),
                })
            }
            Kind::RuleFired { found, action, first, again } => {
                let RuleMatch { rule, stream, evidence } = found;
                let (call_id, tool) = named_call(stream);
                Self::RuleFired(payload::RuleFired {
                    rule: rule.clone(),
                    stream: stream.as_str().to_owned(),
                    action: action.as_str().to_owned(),
                    first: *first,
                    again: *again,
                    evidence: self::evidence(evidence),
                    call_id,
                    tool,
                })
            }
            Kind::RuleHoldReleased { stream, bytes, bound } => Self::RuleHoldReleased(payload::RuleHoldReleased {
                stream: stream.as_str().to_owned(),
                bytes: *bytes,
                bound: bound.clone(),
            }),
            Kind::RuleHeld { stream, rules, holds, bytes_max, ms_max, outcome } => Self::RuleHeld(payload::RuleHeld {
                stream: stream.as_str().to_owned(),
                rules: rules.clone(),
                holds: *holds,
                bytes_max: *bytes_max,
                ms_max: *ms_max,
                outcome: outcome.as_str().to_owned(),
            }),
            Kind::TtsrInjection { rules, discarded_bytes, records } => Self::TtsrInjection(payload::TtsrInjection {
                rules: rules.clone(),
                discarded_bytes: *discarded_bytes,
                records: records.iter().map(injected).collect(),
            }),
            Kind::TtsrRearmed { rules } => Self::TtsrRearmed(payload::TtsrRearmed { rules: rules.clone() }),
            Kind::RulesReloaded { active, notices } => {
                Self::RulesReloaded(payload::RulesReloaded { active: *active as u64, notices: notices.clone() })
            }
            Kind::SteeringMessage { id, role, text } => Self::SteeringMessage(payload::MessagePayload {
                id: id.as_ref().map(|id| id.as_str().to_owned()),
                text: text.clone(),
                role: role.as_str().to_owned(),
                hidden: false,
                author: None,
                parts: None,
            }),
            Kind::CustomMessage { custom_type, text, hidden } => Self::CustomMessage(payload::CustomMessage {
                custom_type: custom_type.clone(),
                text: text.clone(),
                hidden: *hidden,
            }),
            Kind::HistoryReplaced { messages } => {
                let messages = messages.iter().map(|message| MessageRecord::of(message)).collect();
                Self::HistoryReplaced(payload::HistoryReplaced { messages })
            }
            Kind::ContextCompactionStart { used_tokens, ratio } => {
                Self::ContextCompactionStart(payload::ContextCompactionStart {
                    triggered_by: "context".to_owned(),
                    pressure_ratio: *ratio,
                    used_tokens: *used_tokens,
                })
            }
            Kind::ContextCompactionEnd { summary, prune_before_turn, kept, error, usage, spend, charged } => {
                Self::ContextCompactionEnd(payload::ContextCompactionEnd {
                    summary: summary.clone(),
                    prune_before_turn: *prune_before_turn,
                    kept_messages: *kept,
                    error: error.clone(),
                    tokens: (*usage != Usage::default()).then(|| tokens(usage)),
                    cost: spend.map(Spend::dollars),
                    charged: Some(values_charged(*charged)),
                })
            }
            Kind::ChildThreadStarted { child, agent, parent, call } => {
                Self::ChildThreadStarted(payload::ChildThreadStarted {
                    child_thread_id: child.as_str().to_owned(),
                    child_directive: agent.clone(),
                    parent_thread_id: parent.as_str().to_owned(),
                    call_id: Some(call.as_str().to_owned()),
                })
            }
            Kind::ChildThreadFailed { child, error } => Self::ChildThreadFailed(payload::ChildThreadFailed {
                child_thread_id: child.as_str().to_owned(),
                error: error.clone(),
            }),
            Kind::ExtensionRegistered { plugin, version, action, callbacks } => {
                let callback = |one: &flow::Registered| payload::RegisteredCallback {
                    callback: one.kind().as_str().to_owned(),
                    priority: u32::from(one.priority),
                    on_failure: one.on_failure.as_str().to_owned(),
                };
                Self::ExtensionRegistered(payload::ExtensionRegistered {
                    extension_id: plugin.as_str().to_owned(),
                    version: version.clone(),
                    action: action.as_str().to_owned(),
                    callbacks: callbacks.iter().map(callback).collect(),
                })
            }
            Kind::ExtensionUnregistered { plugin, action, reason } => {
                Self::ExtensionUnregistered(payload::ExtensionUnregistered {
                    extension_id: plugin.as_str().to_owned(),
                    action: action.as_str().to_owned(),
                    reason: reason.clone(),
                })
            }
            Kind::ExtensionPrompt(prompt) => {
                let text =
                    |one: &flow::PromptText| payload::PromptText { place: one.place.clone(), text: one.text.clone() };
                Self::ExtensionPrompt(payload::ExtensionPrompt {
                    extension_id: prompt.plugin.as_str().to_owned(),
                    changed: prompt.changed,
                    digest: prompt.digest.clone(),
                    texts: prompt.texts.iter().map(text).collect(),
                })
            }
            Kind::ExtensionCallback(report) => Self::ExtensionCallback(callback(report)),
            Kind::ExtensionTool(report) => Self::ExtensionTool(tool(report)),
            Kind::ExtensionBreaker { plugin, called, scope, state, reason, retry_after_ms } => {
                let (callback, tool) = match called {
                    Called::Callback(callback) => (Some(callback.as_str().to_owned()), None),
                    Called::Tool(name) => (None, Some(name.clone())),
                };
                Self::ExtensionBreaker(payload::ExtensionBreaker {
                    extension_id: plugin.as_str().to_owned(),
                    callback,
                    tool,
                    scope: scope.as_str().to_owned(),
                    state: state.as_str().to_owned(),
                    reason: reason.clone(),
                    retry_after_ms: *retry_after_ms,
                })
            }
            Kind::ExtensionWithheld { plugin, callback, bytes, reason } => {
                Self::ExtensionWithheld(payload::ExtensionWithheld {
                    extension_id: plugin.as_str().to_owned(),
                    callback: callback.as_str().to_owned(),
                    bytes: *bytes,
                    reason: reason.clone(),
                })
            }
            Kind::ExtensionState { plugin, operation, key, size_bytes } => {
                Self::ExtensionState(payload::ExtensionState {
                    extension_id: plugin.as_str().to_owned(),
                    operation: operation.clone(),
                    key: key.clone(),
                    size_bytes: *size_bytes,
                })
            }
            Kind::StateLost { message } => Self::StateLost(payload::Notice { message: message.clone() }),
            Kind::SchemaViolation { event_type, problems } => {
                let problem = |(path, message): &(String, String)| payload::SchemaProblem {
                    path: path.clone(),
                    message: message.clone(),
                };
                let problems = problems.iter().map(problem).collect();
                Self::SchemaViolation(payload::SchemaViolation { event_type: event_type.clone(), problems })
            }
            Kind::JournalFailed { message, recorded } => {
                Self::JournalFailed(payload::JournalFailed { message: message.clone(), recorded: *recorded })
            }
            Kind::ExtensionLog { plugin, level, message } => Self::ExtensionLog(payload::ExtensionLog {
                extension_id: plugin.as_str().to_owned(),
                level: level.clone(),
                message: message.clone(),
            }),
            Kind::Notice { message } => Self::Notice(payload::Notice { message: message.clone() }),
        }
    }
}

fn listed<T, R>(all: &[T], one: impl Fn(&T) -> R) -> Option<Vec<R>> {
    (!all.is_empty()).then(|| all.iter().map(one).collect())
}

fn retained(retained: Retained) -> (&'static str, Option<u64>) {
    match retained {
        Retained::Nothing => ("nothing", None),
        Retained::Answer => ("answer", None),
        Retained::Start { bytes } => ("start", Some(bytes)),
        Retained::Marked => ("marked", None),
    }
}

fn block(block: &AnswerBlock) -> payload::Block {
    let thinking = block.kind == StreamKind::Thinking;
    let (call_id, tool) = named_call(&block.kind);
    payload::Block {
        stream: block.kind.as_str().to_owned(),
        bytes: (!block.kind.is_tool()).then_some(block.bytes),
        text_before: thinking.then_some(block.text_before),
        signature: block.signature.clone(),
        redacted: block.redacted.then_some(true),
        call_id,
        tool,
        arguments: block.arguments.clone(),
        complete: block.complete,
        prefix_bytes: Some(block.prefix_bytes).filter(|bytes| *bytes > 0),
    }
}

fn injected(record: &RuleRecord) -> payload::Injected {
    let (call_id, tool) = named_call(&record.stream);
    payload::Injected {
        rule: record.rule.clone(),
        // Not every reader of JSON keeps 64 bits of a number.
        hash: format!("{:016x}", record.hash),
        turn: record.turn,
        stream: record.stream.as_str().to_owned(),
        action: record.action.as_str().to_owned(),
        tokens_discarded: record.tokens_discarded,
        tokens_estimated: record.tokens_estimated,
        evidence: evidence(&record.evidence),
        call_id,
        tool,
    }
}

/// Why there is no result, and for a failure its kind and its frames.
type Reason = (Option<String>, Option<String>, Option<Vec<String>>);

fn failure(failure: &CallFailure) -> Reason {
    (Some(failure.message.clone()), Some(failure.cause.as_str().to_owned()), Some(failure.frames.clone()))
}

fn callback(report: &CallbackReport) -> payload::ExtensionCallback {
    let (reason, cause, frames) = match &report.outcome {
        CallbackOutcome::Passed | CallbackOutcome::Changed => (None, None, None),
        CallbackOutcome::Skipped(why) | CallbackOutcome::NotPermitted(why) | CallbackOutcome::Ignored(why) => {
            (Some(why.clone()), None, None)
        }
        CallbackOutcome::Failed(failed) => failure(failed),
    };
    payload::ExtensionCallback {
        extension_id: report.plugin.as_str().to_owned(),
        callback: report.callback.as_str().to_owned(),
        calls: Some(report.calls).filter(|calls| *calls > 1),
        duration_us: report.nanos as f64 / 1000.0,
        outcome: report.outcome.as_str().to_owned(),
        reason,
        cause,
        frames,
        state_reads: Some(report.state_reads).filter(|reads| *reads > 0),
    }
}

fn tool(report: &ToolReport) -> payload::ExtensionTool {
    let (reason, cause, frames) = match &report.outcome {
        ToolOutcome::Done | ToolOutcome::Stopped => (None, None, None),
        ToolOutcome::Rejected(why) | ToolOutcome::NotPermitted(why) => (Some(why.clone()), None, None),
        ToolOutcome::Failed(failed) => failure(failed),
    };
    payload::ExtensionTool {
        extension_id: report.plugin.as_str().to_owned(),
        tool: report.tool.clone(),
        call_id: report.call.as_str().to_owned(),
        duration_us: report.nanos as f64 / 1000.0,
        outcome: report.outcome.as_str().to_owned(),
        reason,
        cause,
        frames,
        state_reads: Some(report.state_reads).filter(|reads| *reads > 0),
    }
}
