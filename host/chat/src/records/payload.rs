//! The payloads of records, as far as the primitives use them.

mod answer;
mod message;
mod tool;
mod turn;

use flow::{EventKind, PluginId};
use serde::de::DeserializeOwned;
use serde_json::Value;

type Read<T> = Result<T, String>;

/// The event of a record; none where no primitive uses its type.
pub(super) fn kind(name: &str, payload: Value) -> Read<Option<EventKind>> {
    let read: fn(Value) -> Read<EventKind> = match name {
        "turn_start" => |_| Ok(EventKind::TurnStart),
        "turn_finish" => turn::finish,
        "step_start" => turn::step_start,
        "step_finish" => turn::step_finish,
        "thread_resumed" => turn::thread_resumed,
        "thread_completed" => turn::thread_completed,
        "thread_error" => turn::thread_error,
        "thread_cancelled" => turn::thread_cancelled,
        "input_received" => message::input_received,
        "input_queued" => message::input_queued,
        "input_edited" => message::input_edited,
        "input_withdrawn" => message::input_withdrawn,
        "steering_message" => message::steering,
        "custom_message" => message::custom,
        "history_replaced" => message::history_replaced,
        "cognition_out" => answer::out,
        "cognition_out_delta" => answer::delta,
        "cognition_reasoning_delta" => answer::reasoning_delta,
        "tool_call_start" => tool::start,
        "tool_call_progress" => tool::progress,
        "tool_call_result" => tool::result,
        "tool_confirmation_requested" => tool::requested,
        "tool_confirmation_resolved" => tool::resolved,
        _ => return Ok(None),
    };
    read(payload).map(Some)
}

fn read<T: DeserializeOwned>(payload: Value) -> Read<T> {
    T::deserialize(payload).map_err(|error| error.to_string())
}

/// Reads these fields of a payload into variables of their names.
macro_rules! fields {
    ($payload:ident { $($(#[$attribute:meta])? $field:ident: $type:ty),+ }) => {
        #[derive(serde::Deserialize)]
        struct Payload { $($(#[$attribute])? $field: $type,)+ }
        let Payload { $($field),+ } = super::read($payload)?;
    };
}
use fields;

fn plugin(id: &str) -> Read<PluginId> {
    id.parse().map_err(|error| format!("`{id}`: {error}"))
}
