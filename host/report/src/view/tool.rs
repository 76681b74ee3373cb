//! What a report says about a tool call: arguments, the decision of a person, the result.

use record::ToolConfirmationResolved;

use super::{Block, Kind, View};
use crate::figures::took_ms;
use crate::report::ToolCall;

pub(super) fn view(call: &ToolCall) -> View<'_> {
    let result = call.result.as_ref();
    let took = match result {
        Some(result) => match result.duration_ms {
            Some(ms) => took_ms(ms),
            // In a conversation of a gateway the client makes the calls.
            None if call.started && result.error.is_none() => "run by the client".to_owned(),
            None => "not run".to_owned(),
        },
        None => "no result".to_owned(),
    };
    let waited = result.and_then(|result| result.waited_ms).map(|ms| format!(", waited {} for a person", took_ms(ms)));
    let failed = result.is_some_and(|result| result.error.is_some());
    let state = if failed { ", failed" } else { "" };
    let label = format!("Tool {}: {took}{}{state}", call.tool, waited.unwrap_or_default());
    let mut view = View::new(if failed { Kind::Failed } else { Kind::Tool }, label);
    if let Some(arguments) = &call.arguments {
        view = view.with(Block::new("arguments", arguments.as_str()));
    }
    if let Some(question) = &call.question {
        let decided = call.decision.as_ref().map(decided);
        let reason = call.decision.as_ref().and_then(|decision| decision.reason.as_deref());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        view = view.with(Block::new(
            "confirmation",
            format!("{question}\n{}{reason}", decided.as_deref().unwrap_or("not decided")),
        ));
    }
    if !call.progress.is_empty() {
        view = view.with(Block::new("progress", call.progress.join("\n")).folded());
    }
    let Some(result) = result else { return view };
    if let Some(reminder) = &result.reminder {
        view = view.text("reminder before the result", reminder);
    }
    view = view.text(if failed { "error" } else { "result" }, result.error.as_deref().unwrap_or(&result.output));
    if let Some(original) = &result.original {
        view = view.with(Block::new("what the tool gave, before extensions", original.as_str()).folded());
    }
    for note in result.annotations.iter().flatten() {
        let text = format!("{}: {} = {}", note.extension_id, note.key, note.value);
        view = view.with(Block::new("annotation", text).folded());
    }
    match &result.diff {
        Some(diff) => view.with(Block::new("change of the file", diff.as_str()).folded()),
        None => view,
    }
}

/// What was decided, and by whom. Records of early versions say only whether the call may run.
fn decided(decision: &ToolConfirmationResolved) -> String {
    let approved = if decision.approved { "approved" } else { "denied" };
    let mut text = match decision.decision.as_deref() {
        None => approved.to_owned(),
        Some("timed_out") => format!("{approved}: nobody answered in time"),
        Some("edited") => "approved with edited arguments".to_owned(),
        Some("always") => {
            format!("approved for the rest of the session: {}", decision.pattern.as_deref().unwrap_or_default())
        }
        Some("unavailable") => "denied: nobody could be asked".to_owned(),
        Some(word) => word.replace('_', " "),
    };
    if let Some(by) = &decision.decided_by {
        text.push_str(", by ");
        text.push_str(by);
    }
    text
}
