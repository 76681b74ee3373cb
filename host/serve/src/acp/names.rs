//! Names of methods' extensions and of fields that are not of the protocol. All of them are in `_meta`.

use serde_json::Value;
use tidegate::event::RunPosition;
use tidegate::tool::CallId;

use super::sdk::v1::{MessageId, Meta, ToolCallId};

/// Text that was shown and does not count any more: `{messageId, keptBytes, rule?, reason}`. In the `_meta` of a client's capabilities, `true`: the
/// client acts on it.
pub(super) const RETRACTED: &str = "tidegate/retracted";

/// A rule that matched: `{rule, action, stream}`, with the notice about it.
pub(super) const RULE: &str = "tidegate/rule";

/// A notice, for clients that have no capability for it: `{severity, title, description?}`.
pub(super) const NOTICE: &str = "tidegate/notice";

/// How a turn ended, where the protocol has no stop reason for it.
pub(super) const STATUS: &str = "tidegate/status";

/// A question about a call: `{reason, notes}`.
pub(super) const QUESTION: &str = "tidegate/question";

/// Of `session/cancel`: why, for the record.
pub(super) const REASON: &str = "tidegate/reason";

/// An event of a declared type: `{type, extension?, payload}`.
pub(super) const EVENT: &str = "tidegate/event";

/// `_meta` with one field.
pub(super) fn meta(name: &str, value: Value) -> Meta {
    Meta::from_iter([(name.to_owned(), value)])
}

/// The id of a message: each attempt has its own, so that what a rule stopped and what replaces it are two.
pub(super) fn message(place: RunPosition) -> MessageId {
    MessageId::new(format!("{}.{}.{}", place.turn, place.step, place.attempt))
}

/// The id of a tool call: those of models are not unique in a session.
pub(super) fn call(place: RunPosition, call: &CallId) -> ToolCallId {
    ToolCallId::new(format!("{}.{}.{call}", place.turn, place.step))
}

/// How an agent says that it takes `_session/steering`: a convention of other agents.
pub(super) fn steering() -> Meta {
    meta("steering", serde_json::json!({"supported": true}))
}
