//! What the state machine has to know about kinds of events: the only place that looks into them.

use flow::{
    CallId, CallbackOutcome, Event, EventCatalogue, EventKind, EventType, StepEnd, SuspendReason, ToolOutcome,
    TurnStatus,
};

/// The type of an event in the catalogue. A custom event whose type is declared elsewhere, by a plugin, is recorded as its kind is.
pub(super) fn event_type<'c>(catalogue: &'c EventCatalogue, kind: &EventKind) -> Option<&'c EventType> {
    catalogue.get(kind.type_name()).or_else(|| catalogue.get(kind.name()))
}

/// Whether an event reports an error. The end of a thread does where its last turn has failed.
pub(super) fn reports_error(kind: &EventKind, has_failed: bool) -> bool {
    match kind {
        EventKind::ThreadCompleted { .. } => has_failed,
        EventKind::ThreadSuspended { reason, .. } => *reason == SuspendReason::Error,
        EventKind::TurnFinish { status } => matches!(status, TurnStatus::Failed { .. }),
        EventKind::CognitionOut { partial, .. } => partial.is_some(),
        EventKind::CognitionReasoning { interrupted, .. } => *interrupted,
        EventKind::ToolCallResult { is_error, .. } => *is_error,
        EventKind::ExtensionCallback(report) => matches!(report.outcome, CallbackOutcome::Failed(_)),
        EventKind::ExtensionTool(report) => matches!(report.outcome, ToolOutcome::Failed(_)),
        EventKind::ThreadError { .. }
        | EventKind::ErrorClassified { .. }
        | EventKind::ExtensionWithheld { .. }
        | EventKind::ChildThreadFailed { .. }
        | EventKind::StateLost { .. }
        | EventKind::SchemaViolation { .. }
        | EventKind::JournalFailed { .. } => true,
        EventKind::StepFinish { end, .. } => *end == StepEnd::Failed,
        EventKind::ContextCompactionEnd { error, .. } => error.is_some(),
        _ => false,
    }
}

/// Whether the conversation cannot be rebuilt without an event, whatever its type's level is: reasoning that a provider requires back.
pub(super) fn is_needed(kind: &EventKind) -> bool {
    matches!(kind, EventKind::CognitionReasoning { retained: true, .. })
}

/// Whether an event contains what was accumulated until an interruption.
pub(super) fn is_accumulated(kind: &EventKind) -> bool {
    matches!(kind, EventKind::CognitionReasoning { interrupted: true, .. })
}

/// Whether a turn has failed; `None` for events that do not end one.
pub(super) fn has_failed(kind: &EventKind) -> Option<bool> {
    match kind {
        EventKind::TurnFinish { status } => Some(matches!(status, TurnStatus::Failed { .. })),
        _ => None,
    }
}

/// How far a call is, from 0 to 100, where its tool knows.
pub(super) fn progress(kind: &EventKind) -> Option<f64> {
    if let EventKind::ToolCallProgress { percent, .. } = kind { *percent } else { None }
}

/// The call that an event reports the progress of.
pub(super) fn call(kind: &EventKind) -> Option<&CallId> {
    match kind {
        EventKind::ToolCallProgress { call, .. } => Some(call),
        _ => None,
    }
}

/// Whether an event can be one of several in a record: a callback that worked or had nothing to do. What an operator has to look
/// into keeps its own record.
pub(super) fn can_be_counted(kind: &EventKind) -> bool {
    match kind {
        EventKind::ExtensionCallback(report) => match report.outcome {
            CallbackOutcome::Passed | CallbackOutcome::Changed | CallbackOutcome::Skipped(_) => true,
            CallbackOutcome::NotPermitted(_) | CallbackOutcome::Failed(_) | CallbackOutcome::Ignored(_) => false,
        },
        _ => false,
    }
}

/// Whether an event is a chunk of a text.
pub(super) fn is_text(kind: &EventKind) -> bool {
    matches!(kind, EventKind::CognitionOutDelta { .. } | EventKind::CognitionReasoningDelta { .. })
}

/// Whether a later event can take the place of an earlier one of the same type: text of one attempt, the progress of one call, and
/// any other value of the type.
pub(super) fn is_followed_by(earlier: &Event, later: &Event) -> bool {
    match (&earlier.kind, &later.kind) {
        (EventKind::CustomEvent { plugin, .. }, EventKind::CustomEvent { plugin: other, .. }) => plugin == other,
        _ if is_text(&earlier.kind) => earlier.place == later.place,
        (earlier, later) => call(earlier) == call(later),
    }
}

/// Puts an earlier event in front of a later one that takes its place. Text is joined under the earlier index; of other events the
/// later one remains.
pub(super) fn join(earlier: Event, mut later: Event) -> Event {
    match (&mut later.kind, earlier.kind) {
        (
            EventKind::CognitionOutDelta { text, index, .. },
            EventKind::CognitionOutDelta { text: before, index: first, .. },
        ) => {
            append(before, text);
            *index = first;
        }
        (EventKind::CognitionReasoningDelta { text }, EventKind::CognitionReasoningDelta { text: before }) => {
            append(before, text);
        }
        _ => {}
    }
    later
}

/// Puts `before` in front of `text`. The longer string grows, so that joining many chunks is linear.
fn append(mut before: String, text: &mut String) {
    before.push_str(text);
    *text = before;
}
