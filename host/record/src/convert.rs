//! From events to the bodies of their records: one arm for each kind, so that a new kind does not compile without its own.

use flow::{
    CallbackReport, Called, EventKind, EventView, KeptText, LimitDecision, Retained, StepEnd, ToolReport, Usage,
};

use super::inputs::{message_payload, queued};
use super::values::{
    Recorded, above, cost, error_metadata, finish_reason, finished, input, listed, named_call, recorded, resolved,
};
use super::{Body, payload};

/// Makes a body whose payload has the name of its type.
macro_rules! body {
    ($name:ident $fields:tt) => {
        Body::$name(recorded!($name $fields))
    };
}

impl Body {
    /// The body of an event's record.
    pub fn of(kind: &EventKind) -> Self {
        use EventView as Kind;
        match EventView::from(kind) {
            Kind::ThreadStarted { session, agent, provider, model, workspace, mode, inputs } => body!(ThreadStarted {
                directive: agent,
                session_id: session,
                provider,
                model,
                thread_mode: mode.as_str(),
                workspace,
                inputs: Some(inputs).filter(|inputs| !inputs.is_empty()),
            }),
            Kind::ThreadResumed { by, suspended, provider, model } => {
                body!(ThreadResumed { resumed_by: by, previous_suspend_reason: suspended, provider, model })
            }
            Kind::ThreadSuspended { reason, message, turns, usage, spend, duration_ms } => {
                let cost = cost(*turns, usage, spend, *duration_ms);
                body!(ThreadSuspended { suspend_reason: reason, message, cost })
            }
            Kind::ThreadCompleted { turns, usage, spend, duration_ms } => {
                body!(ThreadCompleted { cost: cost(*turns, usage, spend, *duration_ms), tokens: usage })
            }
            Kind::ThreadError { class, message } => body!(ThreadError { category: class, error: message }),
            Kind::ThreadCancelled { by, reason } => body!(ThreadCancelled { cancelled_by: by, reason }),
            Kind::TurnStart => Self::TurnStart(payload::Empty {}),
            Kind::InputReceived { id, message } => {
                Self::InputReceived(payload::MessagePayload { id: id.recorded(), ..message_payload(message) })
            }
            Kind::InputQueued { id, way, message } => Self::InputQueued(queued(id, *way, message)),
            Kind::InputEdited { id, text, hidden } => body!(InputEdited { id, text, hidden: hidden.then_some(true) }),
            Kind::InputWithdrawn { id, receipt } => body!(InputWithdrawn { id, receipt }),
            Kind::TurnFinish { status } => Self::TurnFinish(finished(status)),
            Kind::StepStart { number } => body!(StepStart { turn_number: number }),
            // An unknown cost is absent, which is not the same as nothing.
            Kind::StepFinish { usage, spend, charged, end, context_tokens } => body!(StepFinish {
                context_tokens,
                charged: Some(charged),
                cost: spend,
                tokens: usage,
                finish_reason: finish_reason(end),
                stop_reason: if let StepEnd::Answered(stop) = end { Some(stop) } else { None },
            }),
            Kind::CognitionIn { message } => Self::CognitionIn(message_payload(message)),
            Kind::CognitionOut {
                text,
                keep,
                model,
                author,
                shown,
                partial,
                retained,
                blocks,
                annotations,
                rewrites,
            } => {
                let (retained, retained_bytes) = self::retained(*retained);
                body!(CognitionOut {
                    text,
                    keep: kept(*keep),
                    model,
                    author,
                    shown,
                    is_partial: partial.is_some(),
                    truncated: partial.is_some(),
                    error: partial.as_ref().map(|partial| &partial.error),
                    completion_percentage: partial.as_ref().and_then(|partial| partial.completion),
                    completion_estimated: partial.as_ref().and_then(|partial| partial.completion).map(|_| true),
                    shown_bytes: partial.as_ref().map(|partial| partial.shown_bytes),
                    kept_bytes: partial.as_ref().map(|partial| partial.kept_bytes),
                    retained,
                    retained_bytes,
                    blocks: listed(blocks),
                    annotations: listed(annotations),
                    rewrites: listed(rewrites),
                })
            }
            Kind::CognitionOutDelta { text, index, is_final } => {
                body!(CognitionOutDelta { text, chunk_index: index, is_final: is_final.then_some(true) })
            }
            Kind::CognitionReasoning { text, keep, interrupted, retained } => {
                body!(CognitionReasoning {
                    text,
                    keep: kept(*keep),
                    is_partial: interrupted,
                    was_interrupted: interrupted,
                    retained
                })
            }
            Kind::CognitionReasoningDelta { text } => body!(CognitionReasoningDelta { text }),
            Kind::ToolCallStart { call, tool, arguments } => {
                body!(ToolCallStart { tool, call_id: call, input: input(arguments) })
            }
            Kind::ToolCallProgress { call, message, percent } => {
                body!(ToolCallProgress { call_id: call, progress: percent, message })
            }
            Kind::ToolCallResult {
                call,
                tool,
                output,
                reminder,
                diff,
                is_error,
                duration_ms,
                waited_ms,
                original,
                annotations,
            } => {
                let (error, annotations) = (is_error.then_some(output), listed(annotations));
                body!(ToolCallResult {
                    call_id: call,
                    tool,
                    output,
                    error,
                    reminder,
                    diff,
                    duration_ms,
                    waited_ms,
                    original,
                    annotations,
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
            } => {
                body!(ToolConfirmationRequested {
                    question_id: Some(question),
                    call_id: call,
                    tool,
                    input: input(arguments),
                    reason,
                    preview,
                    always,
                    timeout_ms,
                })
            }
            Kind::ToolConfirmationResolved { question, call, decision, by } => {
                Self::ToolConfirmationResolved(payload::ToolConfirmationResolved {
                    question_id: Some(question.recorded()),
                    call_id: call.recorded(),
                    ..resolved(decision, by)
                })
            }
            Kind::ErrorClassified { class, code, message, retryable, metadata } => body!(ErrorClassified {
                error_code: code,
                category: class,
                retryable,
                metadata: error_metadata(message, metadata),
            }),
            Kind::RetryScheduled { retry, max_retries, delay_ms, asked } => {
                body!(RetryScheduled { retry, max_retries, delay_ms, asked_by_provider: asked })
            }
            Kind::RetrySucceeded { original_error, retry_count, total_delay_ms } => {
                body!(RetrySucceeded { original_error, retry_count, total_delay_ms })
            }
            Kind::LimitEscalationRequested(request) => body!(LimitEscalationRequested {
                limit_code: &request.limit,
                current_value: request.current,
                current_max: request.max,
                proposed_max: request.proposed,
                message: &request.message,
                approval_request_id: &request.id,
            }),
            Kind::LimitEscalationResolved { request, limit, decision, by } => {
                let (decision, new_max, reason) = match decision {
                    LimitDecision::Approved { max } => ("approved", Some(*max), None),
                    LimitDecision::Denied { reason } => ("denied", None, Some(reason)),
                    LimitDecision::TimedOut => ("timed_out", None, None),
                };
                body!(LimitEscalationResolved {
                    approval_request_id: request,
                    limit_code: limit,
                    decision,
                    new_max,
                    reason,
                    decided_by: by,
                })
            }
            Kind::RuleFired { found, action, first, again } => {
                let (call_id, tool) = named_call(&found.stream);
                body!(RuleFired {
                    rule: &found.rule,
                    stream: &found.stream,
                    action,
                    first,
                    again,
                    evidence: &found.evidence,
                    call_id,
                    tool,
                })
            }
            Kind::RuleHoldReleased { stream, bytes, bound } => body!(RuleHoldReleased { stream, bytes, bound }),
            Kind::RuleHeld { stream, rules, holds, bytes_max, ms_max, outcome } => {
                body!(RuleHeld { stream, rules, holds, bytes_max, ms_max, outcome })
            }
            Kind::TtsrInjection { rules, discarded_bytes, records } => {
                body!(TtsrInjection { rules, discarded_bytes, records })
            }
            Kind::TtsrRearmed { rules } => body!(TtsrRearmed { rules }),
            Kind::RulesReloaded { active, notices } => body!(RulesReloaded { active, notices }),
            Kind::SteeringMessage { id, role, text, hidden } => Self::SteeringMessage(payload::MessagePayload {
                id: id.recorded(),
                text: text.clone(),
                role: role.recorded(),
                hidden: *hidden,
                ..payload::MessagePayload::default()
            }),
            Kind::CustomMessage { custom_type, text, hidden } => body!(CustomMessage { custom_type, text, hidden }),
            Kind::HistoryReplaced { messages } => body!(HistoryReplaced { messages }),
            Kind::ContextCompactionStart { cause, method, used_tokens, ratio, context_tokens } => {
                body!(ContextCompactionStart {
                    triggered_by: cause,
                    method: Some(method),
                    pressure_ratio: ratio,
                    used_tokens,
                    context_tokens: Some(*context_tokens),
                })
            }
            Kind::ContextCompactionEnd {
                summary,
                prune_before_turn,
                kept,
                left_out,
                used_tokens,
                error,
                usage,
                spend,
                charged,
            } => {
                body!(ContextCompactionEnd {
                    summary,
                    prune_before_turn,
                    kept_messages: kept,
                    left_out: listed(left_out),
                    used_tokens: Some(*used_tokens),
                    error,
                    tokens: Some(usage).filter(|usage| **usage != Usage::default()),
                    cost: spend,
                    charged: Some(charged),
                })
            }
            Kind::ChildThreadStarted { child, agent, parent, call } => body!(ChildThreadStarted {
                child_thread_id: child,
                child_directive: agent,
                parent_thread_id: parent,
                call_id: Some(call),
            }),
            Kind::ChildThreadFailed { child, error } => body!(ChildThreadFailed { child_thread_id: child, error }),
            Kind::ExtensionRegistered { plugin, version, action, callbacks } => {
                body!(ExtensionRegistered { extension_id: plugin, version, action, callbacks })
            }
            Kind::ExtensionUnregistered { plugin, action, reason } => {
                body!(ExtensionUnregistered { extension_id: plugin, action, reason })
            }
            Kind::ExtensionPrompt(prompt) => body!(ExtensionPrompt {
                extension_id: &prompt.plugin,
                changed: prompt.changed,
                digest: &prompt.digest,
                texts: &prompt.texts,
            }),
            Kind::ExtensionCallback(report) => callback(report),
            Kind::ExtensionTool(report) => tool(report),
            Kind::ExtensionBreaker { plugin, called, scope, state, reason, retry_after_ms } => {
                let (callback, tool) = match called {
                    Called::Callback(callback) => (Some(callback), None),
                    Called::Tool(name) => (None, Some(name)),
                };
                body!(ExtensionBreaker { extension_id: plugin, callback, tool, scope, state, reason, retry_after_ms })
            }
            Kind::ExtensionWithheld { plugin, callback, bytes, reason } => {
                body!(ExtensionWithheld { extension_id: plugin, callback, bytes, reason })
            }
            Kind::PlanUpdated { entries } => body!(PlanUpdated { entries: listed(entries) }),
            Kind::ExtensionState { plugin, operation, key, size_bytes } => {
                body!(ExtensionState { extension_id: plugin, operation, key, size_bytes })
            }
            Kind::StateLost { message } => Self::StateLost(recorded!(Notice { message })),
            Kind::SchemaViolation { event_type, problems } => body!(SchemaViolation { event_type, problems }),
            Kind::JournalFailed { message, recorded } => body!(JournalFailed { message, recorded }),
            Kind::ExtensionLog { plugin, level, message } => {
                body!(ExtensionLog { extension_id: plugin, level, message })
            }
            Kind::CustomEvent { event_type, plugin, payload } => {
                body!(CustomEvent { event_type, extension_id: plugin, payload: &**payload })
            }
            Kind::Notice { message } => body!(Notice { message }),
        }
    }
}

/// What the user saw is named; the original is what a reader expects.
fn kept(keep: KeptText) -> Option<String> {
    (keep == KeptText::Shown).then(|| keep.as_str().to_owned())
}

pub(crate) fn retained(retained: Retained) -> (&'static str, Option<u64>) {
    match retained {
        Retained::Nothing => ("nothing", None),
        Retained::Answer => ("answer", None),
        Retained::Start { bytes } => ("start", Some(bytes)),
        Retained::Marked => ("marked", None),
    }
}

fn callback(report: &CallbackReport) -> Body {
    let failure = report.outcome.failure();
    body!(ExtensionCallback {
        extension_id: &report.plugin,
        callback: &report.callback,
        calls: above(report.calls, 1),
        duration_us: report.nanos as f64 / 1000.0,
        outcome: report.outcome.as_str(),
        reason: report.outcome.reason(),
        cause: failure.map(|failure| failure.cause.as_str()),
        frames: failure.map(|failure| &failure.frames),
        state_reads: above(report.state_reads, 0),
    })
}

fn tool(report: &ToolReport) -> Body {
    let failure = report.outcome.failure();
    body!(ExtensionTool {
        extension_id: &report.plugin,
        tool: &report.tool,
        call_id: &report.call,
        duration_us: report.nanos as f64 / 1000.0,
        outcome: report.outcome.as_str(),
        reason: report.outcome.reason(),
        cause: failure.map(|failure| failure.cause.as_str()),
        frames: failure.map(|failure| &failure.frames),
        state_reads: above(report.state_reads, 0),
    })
}
