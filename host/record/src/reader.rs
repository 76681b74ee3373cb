//! Lines of the shown stream as the events of a front end. They have less than records: no text of a whole answer, which is that of its deltas.

use flow::{CallId, Event, EventKind, Partial, Retained, RunPosition};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Line, RecordError, ShownAnswer, ShownToolResult};
use crate::line::Fields;

/// Types of which the shown stream has no more than a number or a name, and no front end shows that.
const WITHOUT_EVENT: [&str; 10] = [
    "child_thread_failed",
    "context_compaction_end",
    "extension_breaker",
    "extension_callback",
    "extension_tool",
    "extension_withheld",
    "history_replaced",
    "rule_fired",
    "schema_violation",
    "ttsr_injection",
];

/// Reads the lines of one thread in their order: those of the shown stream ([`Shown`](crate::Shown)), or records.
///
/// Of an answer the shown stream has the deltas, and how it ended. The event of its end has the text of the deltas, so that front ends get the
/// same from both. What the shown stream has not, is not in its events: notes of extensions, messages of the host, calls before they are asked
/// about or run, arguments and output of calls that did not run, and a conversation that was put in the place of another.
///
/// ```
/// use flow::EventKind;
/// use tidegate_record::LineReader;
/// let mut reader = LineReader::default();
/// let delta = br#"{"seq":3,"ts":0,"thread_id":"t","turn":1,"step":1,"attempt":1,"type":"cognition_out_delta","payload":{"text":"Hi","chunk_index":0}}"#;
/// let end = br#"{"seq":4,"ts":0,"thread_id":"t","turn":1,"step":1,"attempt":1,"type":"cognition_out","payload":{"author":"model","is_partial":false,"retained":"answer"}}"#;
/// assert!(matches!(reader.read(delta)?.unwrap().kind, EventKind::CognitionOutDelta { .. }));
/// assert!(matches!(reader.read(end)?.unwrap().kind, EventKind::CognitionOut { text, .. } if text == "Hi"));
/// # Ok::<(), tidegate_record::RecordError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LineReader {
    /// The turn and the step whose answer this is.
    step: (u32, u32),
    /// The text of the answer that was shown so far, and that counts.
    shown: String,
}

impl LineReader {
    /// Reads a line; `None`: it has nothing that a front end shows.
    ///
    /// # Errors
    /// As [`Record::read`](crate::Record::read).
    pub fn read(&mut self, line: &[u8]) -> Result<Option<Event>, RecordError> {
        self.take(serde_json::from_slice(line).map_err(RecordError::Json)?)
    }

    /// As [`LineReader::read`], of a line that is JSON already.
    ///
    /// # Errors
    /// As [`Record::read`](crate::Record::read).
    pub fn take(&mut self, line: Value) -> Result<Option<Event>, RecordError> {
        if !is_of_shown_stream(&line) {
            return match Line::of(line)? {
                Line::Record(record) => Ok(record.event()?.inspect(|event| self.see(event))),
                Line::Header => Ok(None),
            };
        }
        let fields = Fields::deserialize(line).map_err(RecordError::Line)?;
        let place = RunPosition { turn: fields.turn, step: fields.step, attempt: fields.attempt };
        let kind = match fields.r#type.as_str() {
            "cognition_out" => Some(self.answer(place, &payload(fields.r#type, fields.payload)?)),
            "tool_call_result" => Some(result(payload(fields.r#type, fields.payload)?)),
            _ => None,
        };
        Ok(kind.map(|kind| Event::new(fields.seq, fields.ts, place, kind)))
    }

    /// Takes an event that was read elsewhere.
    pub fn see(&mut self, event: &Event) {
        if let EventKind::CognitionOutDelta { text, .. } = &event.kind {
            self.of_step(event.place).push_str(text);
        }
    }

    fn of_step(&mut self, place: RunPosition) -> &mut String {
        if self.step != (place.turn, place.step) {
            (self.step, self.shown) = ((place.turn, place.step), String::new());
        }
        &mut self.shown
    }

    fn answer(&mut self, place: RunPosition, answer: &ShownAnswer) -> EventKind {
        let shown = self.of_step(place);
        let text = shown.clone();
        let kept = usize::try_from(answer.kept_bytes.unwrap_or(0)).unwrap_or(usize::MAX);
        let retained = match answer.retained.as_str() {
            "start" => Retained::Start { bytes: kept as u64 },
            "marked" => Retained::Marked,
            "answer" => Retained::Answer,
            _ => Retained::Nothing,
        };
        let next = if answer.is_partial && !matches!(retained, Retained::Marked | Retained::Answer) { kept } else { 0 };
        shown.truncate(shown.floor_char_boundary(next));
        let error = answer.error.clone().unwrap_or_default();
        EventKind::CognitionOut {
            partial: answer.is_partial.then(|| Partial::new(error, text.len() as u64, kept as u64)),
            text,
            keep: flow::KeptText::default(),
            model: answer.model.clone(),
            author: answer.author.origin().unwrap_or(flow::Origin::Model),
            shown: None,
            retained,
            blocks: Vec::new(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        }
    }
}

/// Whether a line has what only the shown stream has of its type.
fn is_of_shown_stream(line: &Value) -> bool {
    let (kind, payload) = (line["type"].as_str().unwrap_or_default(), &line["payload"]);
    match kind {
        "cognition_out" => payload.get("text").is_none(),
        "tool_call_result" => payload.get("is_error").is_some(),
        "history_replaced" => payload["messages"].is_number(),
        _ => WITHOUT_EVENT.contains(&kind),
    }
}

fn payload<T: DeserializeOwned>(kind: String, payload: Value) -> Result<T, RecordError> {
    serde_json::from_value(payload).map_err(|error| RecordError::Payload { kind, error })
}

fn result(result: ShownToolResult) -> EventKind {
    EventKind::ToolCallResult {
        call: CallId::new(result.call_id),
        tool: result.tool,
        output: result.output.unwrap_or_default(),
        reminder: None,
        diff: result.diff,
        is_error: result.is_error,
        duration_ms: result.duration_ms,
        waited_ms: result.waited_ms,
        original: None,
        annotations: Vec::new(),
    }
}
