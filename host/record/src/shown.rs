//! What front ends get of an event: only what was shown.
//!
//! A record has all that happened, also the text that a rule stopped, as evidence. [`Shown`] cannot carry such text: what an event gives it is
//! the allow list below, which has an answer for every kind and names every field, so that neither a kind nor a field that is added compiles
//! before somebody chose.

use flow::{CallbackReport, Event, EventKind, EventView as Kind, Origin, Partial, Retained, RuleMatch, ToolReport};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::inputs::{message_payload, queued};
use super::payload::*;
use super::values::{Recorded, named_call, recorded};
use super::{Body, Record, RecordError, payload};

/// One line of the shown stream: as a [`Record`](crate::Record), of the same types, without what was not shown.
///
/// Reading one ignores the fields that it does not have, so that nothing else of a record is in the line that is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Shown {
    /// The number of the event in the thread. Events of which nothing was shown leave gaps.
    pub seq: u64,
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
    /// The type, and what was shown.
    #[serde(flatten)]
    pub body: ShownBody,
}

impl Shown {
    /// What front ends get of an event; `None`: nothing of it was shown.
    ///
    /// ```
    /// use flow::{Event, EventKind, RunPosition};
    /// use tidegate_record::{Shown, ShownBody};
    /// let kind = EventKind::CognitionOutDelta { text: "Hello".into(), index: 0, is_final: false };
    /// let shown = Shown::of(&Event::new(7, 0, RunPosition::default(), kind), "thread-1").unwrap();
    /// assert!(matches!(&shown.body, ShownBody::CognitionOutDelta(delta) if delta.text == "Hello"));
    /// assert_eq!(shown.json()["type"], "cognition_out_delta");
    /// ```
    pub fn of(event: &Event, thread_id: &str) -> Option<Self> {
        Some(Self {
            seq: event.seq,
            ts: event.at_ms,
            thread_id: thread_id.to_owned(),
            turn: event.place.turn,
            step: event.place.step,
            attempt: event.place.attempt,
            body: ShownBody::of(&event.kind)?,
        })
    }

    /// What front ends get of a record; `None`: nothing of it was shown, or this program does not know its type.
    ///
    /// ```
    /// use flow::{Event, EventKind, RunPosition};
    /// use tidegate_record::{Record, Shown};
    /// let event = Event::new(7, 0, RunPosition::default(), EventKind::Notice { message: "Low on disk".into() });
    /// let record = Record::of(&event, "thread-1");
    /// assert_eq!(Shown::of_record(&record).unwrap(), Shown::of(&event, "thread-1"));
    /// ```
    ///
    /// # Errors
    /// A value of the record has another form than its type has.
    pub fn of_record(record: &Record) -> Result<Option<Self>, RecordError> {
        let of = |body| Self {
            seq: record.event.unwrap_or(record.seq),
            ts: record.ts,
            thread_id: record.thread_id.clone(),
            turn: record.turn,
            step: record.step,
            attempt: record.attempt,
            body,
        };
        if let Some(whole) = ShownBody::whole(&record.body) {
            return Ok(Some(of(whole)));
        }
        match record.event()? {
            Some(event) => Ok(Self::of(&event, &record.thread_id)),
            None => Ok(ShownBody::fields(&record.body).map(of)),
        }
    }

    /// The line as JSON.
    pub fn json(&self) -> Value {
        // As of records: string keys, finite numbers.
        serde_json::to_value(self).unwrap_or_else(|error| serde_json::json!({"error": error.to_string()}))
    }
}

/// Defines [`ShownBody`], and what of each kind becomes one: `whole` has the payload of the record, `part` one of its own, `nothing` none.
/// The fields in a pattern that have `_` are those that are left out.
macro_rules! shown {
    (
        whole { $($whole:ident($record:ident) { $($field:tt)* })+ }
        part { $($part:ident($payload:ident): $pattern:pat => $made:expr;)+ }
        nothing { $($left_out:pat,)+ }
    ) => {
        /// The type of a line of the shown stream, which has the name that it has in records, and its payload: that of the record where all
        /// of it is shown.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "type", content = "payload", rename_all = "snake_case")]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each variant is the type of its name, and its payload is documented")]
        pub enum ShownBody {
            $($whole(payload::$record),)+
            $($part(payload::$payload),)+
        }

        impl ShownBody {
            /// What is shown of a record that is shown as it is; `None`: it is not.
            fn whole(body: &Body) -> Option<Self> {
                match body {
                    $(Body::$whole(payload) => Some(Self::$whole(payload.clone())),)+
                    _ => None,
                }
            }

            /// What of an event is shown; `None`: nothing.
            pub fn of(kind: &EventKind) -> Option<Self> {
                match Kind::from(kind) {
                    $(Kind::$whole { $($field: _,)* } => match Body::of(kind) {
                        Body::$whole(payload) => Some(Self::$whole(payload)),
                        _ => None,
                    },)+
                    $($pattern => Option::<payload::$payload>::from($made).map(Self::$part),)+
                    $($left_out => None,)+
                }
            }
        }
    };
}

shown! {
    whole {
        ThreadStarted(ThreadStarted) { session agent provider model workspace mode inputs }
        ThreadResumed(ThreadResumed) { by suspended provider model }
        ThreadSuspended(ThreadSuspended) { reason message turns usage spend duration_ms }
        ThreadCompleted(ThreadCompleted) { turns usage spend duration_ms }
        ThreadError(ThreadError) { class message }
        ThreadCancelled(ThreadCancelled) { by reason }
        TurnStart(Empty) {}
        InputWithdrawn(InputWithdrawn) { id receipt }
        TurnFinish(TurnFinish) { status }
        StepStart(StepStart) { number }
        StepFinish(StepFinish) { usage spend charged end context_tokens }
        CognitionOutDelta(CognitionOutDelta) { text index is_final }
        CognitionReasoningDelta(CognitionReasoningDelta) { text }
        ToolCallStart(ToolCallStart) { call tool arguments }
        ToolCallProgress(ToolCallProgress) { call message percent }
        ToolConfirmationRequested(ToolConfirmationRequested) {
            question call tool arguments reason preview always timeout_ms
        }
        ToolConfirmationResolved(ToolConfirmationResolved) { question call decision by }
        PlanUpdated(PlanUpdated) { entries }
        ErrorClassified(ErrorClassified) { class code message retryable metadata }
        RetryScheduled(RetryScheduled) { retry max_retries delay_ms asked }
        RetrySucceeded(RetrySucceeded) { original_error retry_count total_delay_ms }
        LimitEscalationRequested(LimitEscalationRequested) { 0 }
        LimitEscalationResolved(LimitEscalationResolved) { request limit decision by }
        RuleHoldReleased(RuleHoldReleased) { stream bytes bound }
        RuleHeld(RuleHeld) { stream rules holds bytes_max ms_max outcome }
        TtsrRearmed(TtsrRearmed) { rules }
        RulesReloaded(RulesReloaded) { active notices }
        ContextCompactionStart(ContextCompactionStart) { cause method used_tokens ratio context_tokens }
        ChildThreadStarted(ChildThreadStarted) { child agent parent call }
        ExtensionRegistered(ExtensionRegistered) { plugin version action callbacks }
        ExtensionUnregistered(ExtensionUnregistered) { plugin action reason }
        ExtensionPrompt(ExtensionPrompt) { 0 }
        StateLost(Notice) { message }
        JournalFailed(JournalFailed) { message recorded }
        Notice(Notice) { message }
    }
    part {
        InputReceived(MessagePayload): Kind::InputReceived { id, message } => {
            let payload = MessagePayload { id: id.recorded(), ..message_payload(message) };
            (!message.hidden).then_some(payload)
        };
        InputEdited(InputEdited): Kind::InputEdited { id, text, hidden } => {
            (!hidden).then(|| InputEdited { id: id.recorded(), text: text.clone(), hidden: None })
        };
        SteeringMessage(MessagePayload): Kind::SteeringMessage { id, role, text, hidden } => {
            let shown = || (id.recorded(), role.recorded(), text.clone());
            let of = |(id, role, text)| MessagePayload { id, role, text, ..MessagePayload::default() };
            (!hidden).then(|| of(shown()))
        };
        InputQueued(InputQueued): Kind::InputQueued { id, way, message } => {
            (!message.hidden).then(|| queued(id, *way, message))
        };
        CognitionOut(ShownAnswer): Kind::CognitionOut {
            model, author, partial, retained, text: _, keep: _, shown: _, blocks: _, annotations: _, rewrites: _,
        } => answer(model, author, partial.as_ref(), *retained);
        ToolCallResult(ShownToolResult): Kind::ToolCallResult {
            call, tool, output, diff, is_error, duration_ms, waited_ms, reminder: _, original: _, annotations: _,
        } => {
            // The reason of a call that did not run is for the model: that of a rule quotes what it found.
            let output = duration_ms.map(|_| output.clone());
            recorded!(ShownToolResult { call_id: call, tool, output: &output, is_error, diff, duration_ms, waited_ms })
        };
        RuleFired(ShownMatch): Kind::RuleFired { found, action, first, again } => {
            let RuleMatch { rule, stream, evidence: _ } = found;
            let (call_id, tool) = named_call(stream);
            recorded!(ShownMatch { rule, stream, action, first, again, call_id, tool })
        };
        TtsrInjection(ShownInjection): Kind::TtsrInjection { rules, discarded_bytes, records: _ } => {
            recorded!(ShownInjection { rules, discarded_bytes })
        };
        HistoryReplaced(ShownReplacement): Kind::HistoryReplaced { messages } => {
            ShownReplacement { messages: messages.len() as u64 }
        };
        ContextCompactionEnd(ShownCompaction): Kind::ContextCompactionEnd {
            kept, used_tokens, error, summary: _, prune_before_turn: _, left_out: _, usage: _, spend: _, charged: _,
        } => recorded!(ShownCompaction { kept_messages: kept, used_tokens, error });
        ChildThreadFailed(ShownChildFailure): Kind::ChildThreadFailed { child, error: _ } => {
            recorded!(ShownChildFailure { child_thread_id: child })
        };
        ExtensionCallback(ShownCallback): Kind::ExtensionCallback(report) => callback(report);
        ExtensionTool(ShownTool): Kind::ExtensionTool(report) => tool(report);
        ExtensionBreaker(ShownBreaker): Kind::ExtensionBreaker {
            plugin, scope, state, retry_after_ms, called: _, reason: _,
        } => recorded!(ShownBreaker { extension_id: plugin, scope, state, retry_after_ms });
        ExtensionWithheld(ShownWithheld): Kind::ExtensionWithheld { plugin, callback, bytes, reason: _ } => {
            recorded!(ShownWithheld { extension_id: plugin, callback, bytes })
        };
        SchemaViolation(ShownViolation): Kind::SchemaViolation { event_type, problems: _ } => {
            recorded!(ShownViolation { event_type })
        };
    }
    nothing {
        // What the model reads: prompts, reminders, results of tools. What the user wrote is in `input_received`.
        Kind::CognitionIn { message: _ },
        Kind::CustomMessage { custom_type: _, text: _, hidden: _ },
        // The whole, as the model wrote it. What was shown of it is in its deltas.
        Kind::CognitionReasoning { text: _, keep: _, interrupted: _, retained: _ },
        // The words of extensions, which get an answer before it is shown.
        Kind::ExtensionLog { plugin: _, level: _, message: _ },
        Kind::ExtensionState { plugin: _, operation: _, key: _, size_bytes: _ },
        Kind::CustomEvent { event_type: _, plugin: _, payload: _ },
    }
}

/// Defines what is shown of a record of which no event is made: the named fields.
macro_rules! shown_fields {
    ($($name:ident($payload:ident) { $($field:ident)* })+) => {
        impl ShownBody {
            fn fields(body: &Body) -> Option<Self> {
                match body.clone() {
                    $(Body::$name(of) => Some(Self::$name(payload::$payload { $($field: of.$field),* })),)+
                    Body::ContextCompactionEnd(of) => {
                        // The specification of thread events does not require it.
                        let used_tokens = of.used_tokens.unwrap_or_default();
                        let (kept_messages, error) = (of.kept_messages, of.error);
                        Some(Self::ContextCompactionEnd(payload::ShownCompaction { kept_messages, used_tokens, error }))
                    }
                    _ => None,
                }
            }
        }
    };
}

shown_fields! {
    RuleFired(ShownMatch) { rule stream action first again call_id tool }
    TtsrInjection(ShownInjection) { rules discarded_bytes }
    ChildThreadFailed(ShownChildFailure) { child_thread_id }
    ExtensionCallback(ShownCallback) { extension_id callback duration_us outcome cause }
    ExtensionTool(ShownTool) { extension_id tool call_id duration_us outcome cause }
    ExtensionBreaker(ShownBreaker) { extension_id scope state retry_after_ms }
    ExtensionWithheld(ShownWithheld) { extension_id callback bytes }
    SchemaViolation(ShownViolation) { event_type }
}

fn answer(model: &Option<String>, author: &Origin, partial: Option<&Partial>, retained: Retained) -> ShownAnswer {
    recorded!(ShownAnswer {
        model,
        author,
        is_partial: partial.is_some(),
        error: partial.map(|partial| &partial.error),
        shown_bytes: partial.map(|partial| partial.shown_bytes),
        kept_bytes: partial.map(|partial| partial.kept_bytes),
        retained: partial.map(|_| crate::convert::retained(retained).0),
    })
}

// Reasons, messages and frames are words of the extension: a panic can quote what the callback was given.

fn callback(report: &CallbackReport) -> ShownCallback {
    let CallbackReport { plugin, callback, outcome, nanos, .. } = report;
    recorded!(ShownCallback {
        extension_id: plugin,
        callback,
        duration_us: *nanos as f64 / 1000.0,
        outcome: outcome.as_str(),
        cause: outcome.failure().map(|failure| failure.cause.as_str()),
    })
}

fn tool(report: &ToolReport) -> ShownTool {
    let ToolReport { plugin, tool, call, outcome, nanos, .. } = report;
    recorded!(ShownTool {
        extension_id: plugin,
        tool,
        call_id: call,
        duration_us: *nanos as f64 / 1000.0,
        outcome: outcome.as_str(),
        cause: outcome.failure().map(|failure| failure.cause.as_str()),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use flow::{InputId, InputWay, Message, Role};

    use super::*;

    #[test]
    fn a_line_that_is_read_has_nothing_that_was_not_shown() {
        let line = serde_json::json!({
            "seq": 1, "ts": 2, "thread_id": "t", "turn": 1, "step": 1, "attempt": 1, "type": "cognition_out",
            "payload": {"text": "held back", "author": "model", "is_partial": true, "kept_bytes": 3},
        });
        let shown: Shown = serde_json::from_value(line).unwrap();
        assert!(matches!(&shown.body, ShownBody::CognitionOut(answer) if answer.kept_bytes == Some(3)));
        assert!(!shown.json().to_string().contains("held back"));
        assert_eq!(serde_json::from_value::<Shown>(shown.json()).unwrap(), shown);
    }

    #[test]
    fn a_hidden_input_is_not_shown_whichever_way_it_comes() {
        let id = || InputId::new("input-1");
        let message = |hidden| std::sync::Arc::new(Message { hidden, ..Message::user("words") });
        for hidden in [true, false] {
            for kind in [
                EventKind::InputReceived { id: None, message: message(hidden) },
                EventKind::InputQueued { id: id(), way: InputWay::Steer, message: message(hidden) },
                EventKind::InputEdited { id: id(), text: "words".into(), hidden },
                EventKind::SteeringMessage { id: Some(id()), role: Role::User, text: "words".into(), hidden },
            ] {
                let shown = ShownBody::of(&kind).map(|shown| serde_json::json!(shown).to_string());
                assert_eq!(shown.is_some_and(|shown| shown.contains("words")), !hidden, "{}", kind.name());
            }
        }
    }
}
