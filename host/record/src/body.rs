//! The types of records: one variant for each, with its payload.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RecordError;
use super::payload::*;

/// Defines [`Body`] with a variant for each type, and what a type that is not known becomes.
macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident($payload:ty) = $word:literal,)+) => {
        /// The type and the payload of a record.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "type", content = "payload")]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each variant is the type of its name, and its payload is documented")]
        pub enum Body {
            $(#[serde(rename = $word)] $name($payload),)+
            /// A type that this version does not know.
            #[serde(untagged)]
            Unknown {
                /// The name of the type.
                // A known type with a payload of another shape is not valid.
                #[cfg_attr(feature = "schema", schemars(extend("not" = {"enum": Self::TYPES})))]
                r#type: String,
                /// Its payload, as it is in the record.
                payload: Value,
            },
        }

        impl Body {
            /// The types that have a variant, in the order of [`flow::EventKind::NAMES`].
            pub const TYPES: &[&str] = &[$($word),+];

            /// Returns the type's name.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$name(_) => $word,)+
                    Self::Unknown { r#type, .. } => r#type,
                }
            }

            /// Reads the payload of a type.
            pub(crate) fn read(kind: String, payload: Value) -> Result<Self, RecordError> {
                let read = match kind.as_str() {
                    $($word => <$payload>::deserialize(payload).map(Self::$name),)+
                    _ => return Ok(Self::Unknown { r#type: kind, payload }),
                };
                read.map_err(|error| RecordError::Payload { kind, error })
            }
        }
    };
}

bodies! {
    ThreadStarted(ThreadStarted) = "thread_started",
    ThreadResumed(ThreadResumed) = "thread_resumed",
    ThreadSuspended(ThreadSuspended) = "thread_suspended",
    ThreadCompleted(ThreadCompleted) = "thread_completed",
    ThreadError(ThreadError) = "thread_error",
    ThreadCancelled(ThreadCancelled) = "thread_cancelled",
    TurnStart(Empty) = "turn_start",
    InputReceived(MessagePayload) = "input_received",
    InputQueued(InputQueued) = "input_queued",
    InputEdited(InputEdited) = "input_edited",
    InputWithdrawn(InputWithdrawn) = "input_withdrawn",
    TurnFinish(TurnFinish) = "turn_finish",
    StepStart(StepStart) = "step_start",
    StepFinish(StepFinish) = "step_finish",
    CognitionIn(MessagePayload) = "cognition_in",
    CognitionOut(CognitionOut) = "cognition_out",
    CognitionOutDelta(CognitionOutDelta) = "cognition_out_delta",
    CognitionReasoning(CognitionReasoning) = "cognition_reasoning",
    CognitionReasoningDelta(CognitionReasoningDelta) = "cognition_reasoning_delta",
    ToolCallStart(ToolCallStart) = "tool_call_start",
    ToolCallProgress(ToolCallProgress) = "tool_call_progress",
    ToolCallResult(ToolCallResult) = "tool_call_result",
    ToolConfirmationRequested(ToolConfirmationRequested) = "tool_confirmation_requested",
    ToolConfirmationResolved(ToolConfirmationResolved) = "tool_confirmation_resolved",
    PlanUpdated(PlanUpdated) = "plan_updated",
    ErrorClassified(ErrorClassified) = "error_classified",
    RetryScheduled(RetryScheduled) = "retry_scheduled",
    RetrySucceeded(RetrySucceeded) = "retry_succeeded",
    LimitEscalationRequested(LimitEscalationRequested) = "limit_escalation_requested",
    LimitEscalationResolved(LimitEscalationResolved) = "limit_escalation_resolved",
    RuleFired(RuleFired) = "rule_fired",
    RuleHoldReleased(RuleHoldReleased) = "rule_hold_released",
    RuleHeld(RuleHeld) = "rule_held",
    TtsrInjection(TtsrInjection) = "ttsr_injection",
    TtsrRearmed(TtsrRearmed) = "ttsr_rearmed",
    RulesReloaded(RulesReloaded) = "rules_reloaded",
    SteeringMessage(MessagePayload) = "steering_message",
    CustomMessage(CustomMessage) = "custom_message",
    HistoryReplaced(HistoryReplaced) = "history_replaced",
    ContextCompactionStart(ContextCompactionStart) = "context_compaction_start",
    ContextCompactionEnd(ContextCompactionEnd) = "context_compaction_end",
    ChildThreadStarted(ChildThreadStarted) = "child_thread_started",
    ChildThreadFailed(ChildThreadFailed) = "child_thread_failed",
    ExtensionRegistered(ExtensionRegistered) = "extension_registered",
    ExtensionUnregistered(ExtensionUnregistered) = "extension_unregistered",
    ExtensionPrompt(ExtensionPrompt) = "extension_prompt",
    ExtensionCallback(ExtensionCallback) = "extension_callback",
    ExtensionTool(ExtensionTool) = "extension_tool",
    ExtensionBreaker(ExtensionBreaker) = "extension_breaker",
    ExtensionWithheld(ExtensionWithheld) = "extension_withheld",
    ExtensionState(ExtensionState) = "extension_state",
    StateLost(Notice) = "state_lost",
    SchemaViolation(SchemaViolation) = "schema_violation",
    JournalFailed(JournalFailed) = "journal_failed",
    ExtensionLog(ExtensionLog) = "extension_log",
    CustomEvent(CustomEvent) = "custom_event",
    Notice(Notice) = "notice",
}
