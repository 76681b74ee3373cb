//! Calls that do not run, and what the model reads about calls that a person has decided about.

use flow::{CallFailure, Confirmation, PluginId, ToolCall, ToolOutput, ToolSpec};

use guard::calls::{Refused, not_an_object};

/// Bytes of edited arguments that the model reads; the rest is left out.
const MAX_EDIT: usize = 16 << 10;

/// A call that does not run.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The kind of error, for the span of the call.
    kind: &'static str,
    /// For the model.
    reason: String,
    /// The failure of a `required` extension, which ends the turn.
    pub(super) failure: Option<CallFailure>,
}

impl Refusal {
    fn new(kind: &'static str, reason: String) -> Self {
        Self { kind, reason, failure: None }
    }

    /// An extension that is `required` has failed.
    pub(super) fn failed(failure: CallFailure) -> Self {
        let reason = format!("not run: the extension `{}` failed", failure.plugin);
        Self { failure: Some(failure), ..Self::new("extension_failed", reason) }
    }

    /// Rules forbid it.
    pub(super) fn blocked(reason: String) -> Self {
        Self::new("blocked", reason)
    }

    /// Permissions or a person forbid it.
    pub(super) fn denied(reason: String) -> Self {
        Self::new("denied", reason)
    }

    /// Its arguments cannot be used.
    pub(super) fn invalid(reason: String) -> Self {
        Self::new("invalid_arguments", reason)
    }

    /// The transcript cannot be written.
    pub(super) fn not_recorded(reason: String) -> Self {
        Self::new("not_recorded", reason)
    }

    /// What was decided about it is no approval.
    pub(super) fn of(decision: Confirmation) -> Self {
        Self::denied(match decision {
            Confirmation::Denied { reason } if reason.trim().is_empty() => "not run: the user denied this call".to_owned(),
            Confirmation::Denied { reason } => format!("not run: the user denied this call: {reason}"),
            Confirmation::Unavailable { reason } => reason,
            Confirmation::TimedOut { .. } => {
                "not run: nobody has answered the question about this call in time. Continue without it, or ask the user".to_owned()
            }
            Confirmation::Cancelled | Confirmation::Approved | Confirmation::Always { .. } | Confirmation::Edited { .. } => {
                "not run: the turn was cancelled".to_owned()
            }
        })
    }

    /// What the model reads.
    pub(super) fn reason(&self) -> String {
        self.reason.clone()
    }

    /// The result of the call, and of what kind its error is.
    pub(super) fn into_output(self) -> (ToolOutput, Option<&'static str>) {
        (ToolOutput { content: self.reason, diff: None, is_error: true }, Some(self.kind))
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Denied(reason) => Self::denied(reason),
            Refused::Invalid(reason) => Self::invalid(reason),
        }
    }
}

/// What the model reads before the result of a call whose arguments a person has edited: the history has those that it wrote.
pub(crate) fn edit_note(arguments: &str) -> String {
    format!("The user edited the arguments of this call before it ran. It ran with: {}", shortened(arguments))
}

/// What the model reads before the result of a call whose arguments extensions have replaced. `arguments`: those that ran, where the
/// history has those that the model wrote.
pub(super) fn changed_note(by: &[PluginId], arguments: Option<&str>) -> String {
    let names = by.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    let whose = if by.len() == 1 { "The extension" } else { "The extensions" };
    let ran = arguments.map(|arguments| format!(". It ran with: {}", shortened(arguments))).unwrap_or_default();
    format!("{whose} {names} changed the arguments of this call before it ran{ran}")
}

fn shortened(arguments: &str) -> String {
    let end = arguments.floor_char_boundary(MAX_EDIT);
    let rest = arguments.len() - end;
    let cut = if rest == 0 { String::new() } else { format!("… ({rest} more bytes)") };
    format!("{}{cut}", &arguments[..end])
}

/// What the model reads of a call that was stopped because the user interrupted, or of one that had not begun.
pub(super) fn interrupted(was_running: bool) -> &'static str {
    if was_running {
        "the user interrupted this call while it was running: its effects can be incomplete. Check them before you repeat it"
    } else {
        "not run: the user interrupted before this call began"
    }
}

/// What the model reads of a call that names no tool.
pub(super) fn nameless(tools: &[ToolSpec]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    format!("not run: the call has no name. Make it again with the name of a tool: {}", names.join(", "))
}

/// Why a call does not run whose arguments no tool should read: for the model, with the place in them.
pub(super) fn unread(call: &ToolCall) -> Option<String> {
    match serde_json::from_str::<serde_json::Value>(&call.arguments) {
        Ok(value) if value.is_object() => None,
        Ok(_) => Some(not_an_object(call)),
        Err(error) => Some(format!("{} They cannot be read as JSON: {error}.", not_an_object(call))),
    }
}

#[cfg(test)]
mod tests {
    use flow::{CallId, ToolCall};

    use super::unread;

    #[test]
    fn json_that_is_nested_too_deeply_is_not_called_something_else() {
        let arguments = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        let call = ToolCall { id: CallId::new("1"), name: "write".into(), arguments };
        let why = unread(&call).unwrap_or_default();
        assert!(why.contains("They cannot be read as JSON: recursion limit exceeded at line 1 column"), "{why}");
    }
}
