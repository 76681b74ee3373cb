//! From a line of the shown stream back to its event, as far as front ends use it.

use flow::{CallId, EventKind, KeptText, Partial, Retained, RunPosition};
use serde::Deserialize;
use serde_json::Value;

use super::Read;
use crate::line::Fields;
use crate::{Body, RecordError, ShownAnswer, ShownToolResult};

/// Reads a line of the shown stream, of a transcript or of `--output stream-json`: the event of it, for a front end that shows a session;
/// `None`: no front end shows its type, or this version does not know it.
///
/// The text of an answer is in its deltas alone, and so the event of a shown `cognition_out` has none: a front end keeps what the deltas gave.
///
/// ```
/// use flow::{Event, EventKind, RunPosition};
/// use tidegate_record::{Shown, read_event};
/// let kind = EventKind::CognitionOutDelta { text: "Hello".into(), index: 0, is_final: false };
/// let event = Event::new(7, 0, RunPosition { turn: 1, step: 1, attempt: 1 }, kind);
/// let line = Shown::of(&event, "thread-1").unwrap().json();
/// assert_eq!(read_event(line)?.unwrap().seq, 7);
/// # Ok::<(), tidegate_record::RecordError>(())
/// ```
///
/// # Errors
/// As [`Record::read`](crate::Record::read) and [`Record::event`](crate::Record::event).
pub fn read_event(line: Value) -> Result<Option<flow::Event>, RecordError> {
    if line.get("format").is_some() && line.get("type").is_none() {
        return Ok(None);
    }
    let Fields { seq, event, ts, turn, step, attempt, r#type: kind, payload, .. } =
        Fields::deserialize(line).map_err(RecordError::Line)?;
    let read = match used(&kind, payload) {
        Ok(Some(read)) => read.map_err(|key| RecordError::Value { seq, kind, key })?,
        Ok(None) => return Ok(None),
        Err(error) => return Err(RecordError::Payload { kind, error }),
    };
    let place = RunPosition { turn, step, attempt };
    Ok(read.map(|kind| flow::Event::new(event.unwrap_or(seq), ts, place, kind)))
}

/// Reads the payload of a type that front ends use. No other payload is read: a front end in WebAssembly has no code for it.
fn used(kind: &str, payload: Value) -> Result<Option<Read<Option<EventKind>>>, serde_json::Error> {
    let has = |key: &str| payload.get(key).is_some();
    match kind {
        "cognition_out" if !has("text") => return Ok(Some(ShownAnswer::deserialize(payload)?.kind().map(Some))),
        "tool_call_result" if has("is_error") => {
            return Ok(Some(Ok(Some(ShownToolResult::deserialize(payload)?.kind()))));
        }
        "history_replaced" if payload["messages"].is_number() => return Ok(None),
        _ => {}
    }
    macro_rules! read {
        ($($word:literal $name:ident,)+) => {
            match kind {
                $($word => Body::$name(Deserialize::deserialize(payload)?),)+
                _ => return Ok(None),
            }
        };
    }
    let body = read! {
        "thread_resumed" ThreadResumed,
        "thread_completed" ThreadCompleted,
        "thread_error" ThreadError,
        "thread_cancelled" ThreadCancelled,
        "turn_start" TurnStart,
        "input_received" InputReceived,
        "input_queued" InputQueued,
        "input_edited" InputEdited,
        "input_withdrawn" InputWithdrawn,
        "turn_finish" TurnFinish,
        "step_start" StepStart,
        "step_finish" StepFinish,
        "cognition_out" CognitionOut,
        "cognition_out_delta" CognitionOutDelta,
        "cognition_reasoning_delta" CognitionReasoningDelta,
        "tool_call_start" ToolCallStart,
        "tool_call_progress" ToolCallProgress,
        "tool_call_result" ToolCallResult,
        "tool_confirmation_requested" ToolConfirmationRequested,
        "tool_confirmation_resolved" ToolConfirmationResolved,
        "plan_updated" PlanUpdated,
        "limit_escalation_requested" LimitEscalationRequested,
        "limit_escalation_resolved" LimitEscalationResolved,
        "steering_message" SteeringMessage,
        "custom_message" CustomMessage,
        "history_replaced" HistoryReplaced,
    };
    Ok(Some(body.kind()))
}

impl ShownAnswer {
    fn kind(&self) -> Read<EventKind> {
        let partial = || {
            let error = self.error.clone().unwrap_or_default();
            Partial::new(error, self.shown_bytes.unwrap_or(0), self.kept_bytes.unwrap_or(0))
        };
        Ok(EventKind::CognitionOut {
            text: String::new(),
            keep: KeptText::default(),
            model: self.model.clone(),
            author: self.author.origin()?,
            shown: None,
            partial: self.is_partial.then(partial),
            retained: match self.retained.as_deref() {
                // How many bytes stay in the conversation is not shown, and no front end uses it.
                Some("start") => Retained::Start { bytes: 0 },
                Some("marked") => Retained::Marked,
                Some("answer") => Retained::Answer,
                _ => Retained::Nothing,
            },
            blocks: Vec::new(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        })
    }
}

impl ShownToolResult {
    fn kind(&self) -> EventKind {
        EventKind::ToolCallResult {
            call: CallId::new(self.call_id.as_str()),
            tool: self.tool.clone(),
            output: self.output.clone().unwrap_or_default(),
            reminder: None,
            diff: self.diff.clone(),
            is_error: self.is_error,
            duration_ms: self.duration_ms,
            waited_ms: self.waited_ms,
            original: None,
            annotations: Vec::new(),
        }
    }
}
