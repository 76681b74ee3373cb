//! Stage: gives every event its record, `{seq, ts, thread_id, turn, step, attempt, type, payload}`, and reads records back.
//!
//! Transcripts, `tidegate run --output stream-json` and `rules replay` share these types. Names and required fields are those of the
//! thread-event specification; ARCHITECTURE.md lists what is added. This module does no I/O: the store writes the lines.

mod convert;
mod inputs;
mod kept_rules;
mod left_out;
mod message;
mod open_calls;
mod payload;
mod rebuild;
mod spent;
mod values;

use flow::{Event, EventKind, TurnStatus};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

pub use self::kept_rules::kept_rules;
pub use self::message::{Author, MessageRecord, PartRecord};
pub use self::open_calls::OpenCalls;
pub use self::payload::*;
pub use self::rebuild::{Rebuild, RebuildError, Resumed};

/// The version of the records. A reader accepts all versions up to its own; what a later version adds to a record is ignored.
pub const VERSION: u32 = 1;

/// One line of a transcript: what happened, and where in the run of the thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// The number of the record in its stream, from 0. In a transcript it has no gaps.
    pub seq: u64,
    /// In a transcript: the number of the event in the thread. Events that have no record leave gaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// In a transcript: how many droppable events were lost since the record before this one, because they came too fast.
    #[serde(skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub dropped: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub ts: u64,
    /// The session's id.
    pub thread_id: String,
    /// The turn, from 1; 0 before the first.
    pub turn: u32,
    /// The step in the turn, from 1; 0 before the first.
    pub step: u32,
    /// The attempt in the step, from 1; 0 before the first.
    pub attempt: u32,
    /// The type, and what is to be said about it.
    #[serde(flatten)]
    pub body: Body,
}

/// A line as it is on disk, before its payload is looked at.
#[derive(Deserialize)]
struct Line {
    seq: u64,
    #[serde(default)]
    event: Option<u64>,
    #[serde(default)]
    dropped: u64,
    #[serde(default)]
    ts: u64,
    thread_id: String,
    turn: u32,
    step: u32,
    attempt: u32,
    r#type: String,
    payload: Value,
}

/// Why a line is not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is not JSON.
    #[error("is not valid JSON: {0}")]
    Json(serde_json::Error),
    /// It is not an object with the fields of a record.
    #[error("is not a record: {0}")]
    Line(serde_json::Error),
    /// The payload of a known type is not as that type requires.
    #[error("the payload of `{kind}` is not valid: {error}")]
    Payload {
        /// The type of the record.
        kind: String,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

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
            /// The types that have a variant, in the order of [`EventKind::NAMES`].
            pub const TYPES: &[&str] = &[$($word),+];

            /// Returns the type's name.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$name(_) => $word,)+
                    Self::Unknown { r#type, .. } => r#type,
                }
            }

            /// Reads the payload of a type.
            fn read(kind: String, payload: Value) -> Result<Self, RecordError> {
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

impl Record {
    /// The record of an event of the thread, with the event's number as its own.
    ///
    /// ```
    /// use flow::{Event, EventKind, RunPosition};
    /// use tidegate_turn::transcript::Record;
    /// let kind = EventKind::CognitionOutDelta { text: "Hello".into(), index: 0, is_final: false };
    /// let event = Event::new(7, 0, RunPosition { turn: 1, step: 1, attempt: 1 }, kind);
    /// let record = Record::of(&event, "thread-1");
    /// assert_eq!(record.body.name(), "cognition_out_delta");
    /// let line = serde_json::to_string(&record)?;
    /// assert_eq!(Record::read(line.as_bytes())?, record);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(event: &Event, thread_id: &str) -> Self {
        Self {
            seq: event.seq,
            event: None,
            dropped: 0,
            ts: event.at_ms,
            thread_id: thread_id.to_owned(),
            turn: event.place.turn,
            step: event.place.step,
            attempt: event.place.attempt,
            body: Body::of(&event.kind),
        }
    }

    /// Reads one line. A type that this version does not know is [`Body::Unknown`].
    ///
    /// # Errors
    /// The line is not JSON, not a record, or the payload is not that of its type.
    pub fn read(line: &[u8]) -> Result<Self, RecordError> {
        Self::of_line(serde_json::from_slice(line).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => RecordError::Line(error),
            _ => RecordError::Json(error),
        })?)
    }

    fn of_line(line: Line) -> Result<Self, RecordError> {
        let Line { seq, event, dropped, ts, thread_id, turn, step, attempt, r#type, payload } = line;
        let body = Body::read(r#type, payload)?;
        Ok(Self { seq, event, dropped, ts, thread_id, turn, step, attempt, body })
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        Self::of_line(Line::deserialize(line)?).map_err(D::Error::custom)
    }
}

/// Returns the record of an event as JSON, as `--output stream-json` prints it.
pub fn record(event: &Event, thread_id: &str) -> Value {
    // Records have string keys, and no number in them is infinite: nothing of them is refused.
    serde_json::to_value(Record::of(event, thread_id)).unwrap_or_else(|error| json!({"error": error.to_string()}))
}

/// How a turn ended, as the payload of `turn_finish`.
pub fn status(status: &TurnStatus) -> Value {
    let kind = EventKind::TurnFinish { status: status.clone() };
    match Body::of(&kind) {
        Body::TurnFinish(payload) => serde_json::to_value(payload).unwrap_or_default(),
        _ => Value::Null,
    }
}
