//! The result of a call, whatever became of it: its event, and what the model reads.

use std::time::Duration;

use flow::{Annotation, EventKind, PluginId, ToolCall, ToolOutput, ToolResult};

use crate::events::Hub;
use flow::ports::EventSink;

/// The result of a call before it is reported.
#[derive(Debug)]
pub(crate) struct CallResult {
    /// What the tool gave, or why there is nothing of it.
    pub(super) output: ToolOutput,
    /// What the model reads before the output.
    pub(super) before: Option<String>,
    /// How long the call ran; `None`: it did not run, or was stopped.
    pub(super) ran: Option<Duration>,
    /// How long persons were waited for; `None`: nobody was asked.
    pub(super) waited: Option<Duration>,
    /// What the tool gave, where extensions have changed it and that is kept.
    pub(super) original: Option<String>,
    /// What extensions noted about it.
    pub(super) annotations: Vec<(PluginId, Annotation)>,
}

impl CallResult {
    /// The result of a call whose tool has given none. `why`: for the model.
    pub(crate) fn none(why: impl Into<String>) -> Self {
        Self::of(ToolOutput { content: why.into(), diff: None, is_error: true })
    }

    /// This result, with nothing else known of the call.
    pub(super) fn of(output: ToolOutput) -> Self {
        Self { output, before: None, ran: None, waited: None, original: None, annotations: Vec::new() }
    }

    /// The model reads these notes before the output, each as a paragraph.
    #[must_use]
    pub(crate) fn after(self, notes: impl IntoIterator<Item = String>) -> Self {
        let before = notes.into_iter().collect::<Vec<_>>().join("\n\n");
        Self { before: (!before.is_empty()).then_some(before), ..self }
    }

    /// Reports the result of `call`. Returns what joins the conversation.
    pub(crate) fn emit(self, call: &ToolCall, hub: &Hub) -> ToolResult {
        let Self { output: ToolOutput { content, diff, is_error }, before, ran, waited, original, annotations } = self;
        hub.emit(EventKind::ToolCallResult {
            call: call.id.clone(),
            tool: call.name.clone(),
            output: content.clone(),
            reminder: before.clone(),
            diff,
            is_error,
            duration_ms: ran.map(millis),
            waited_ms: waited.map(millis),
            original,
            annotations,
        });
        ToolResult { call: call.id.clone(), content: before.into_iter().chain([content]).collect(), is_error }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
