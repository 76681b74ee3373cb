//! Texts of an answer in shapes that no format has: rules do not read them, and a client can.

use serde_json::Value;
use wire::Wire;

const TEXT: &str = "a text in it is not written as the format says, and cannot be checked";
const BLOCK: &str = "a block of it is not written as the format says, and cannot be checked";
const END: &str = "it ends with an event that the format does not have, and cannot be checked";

/// Returns why an event or a whole answer cannot be checked, in words that follow "because"; `None`: its shapes are those of the format.
pub(crate) fn unreadable(wire: Wire, data: &Value) -> Option<&'static str> {
    match wire {
        Wire::Anthropic => anthropic(data),
        Wire::OpenAiChat => data["choices"].as_array().into_iter().flatten().find_map(chat),
        Wire::OpenAiResponses => responses(data),
    }
}

fn is_string(value: &Value) -> bool {
    value.is_null() || value.is_string()
}

/// Returns whether a content is neither a string nor a list of parts with strings.
fn is_odd(content: &Value) -> bool {
    match content {
        Value::Null | Value::String(_) => false,
        Value::Array(parts) => parts.iter().any(is_odd),
        Value::Object(part) => {
            let is_known = part.is_empty() || ["type", "text", "thinking"].iter().any(|key| part.contains_key(*key));
            !is_known || ["text", "thinking", "refusal"].iter().filter_map(|key| part.get(*key)).any(is_odd)
        }
        Value::Bool(_) | Value::Number(_) => true,
    }
}

fn chat(choice: &Value) -> Option<&'static str> {
    let is_odd_part = |part: &Value| {
        let texts = ["refusal", "reasoning_content", "reasoning"];
        is_odd(&part["content"]) || texts.iter().any(|key| !is_string(&part[*key]))
    };
    let is_odd = is_odd_part(&choice["delta"]) || is_odd_part(&choice["message"]) || !is_string(&choice["text"]);
    is_odd.then_some(TEXT)
}

fn anthropic(data: &Value) -> Option<&'static str> {
    // Blocks and deltas of other types have texts in other shapes.
    const TEXTS: [(&str, &str); 5] = [
        ("text", "text"),
        ("thinking", "thinking"),
        ("text_delta", "text"),
        ("thinking_delta", "thinking"),
        ("input_json_delta", "partial_json"),
    ];
    let text = |holder: &Value| {
        let key = TEXTS.iter().find(|(kind, _)| holder["type"] == *kind);
        key.is_some_and(|(_, key)| !is_string(&holder[*key])).then_some(TEXT)
    };
    let block = |block: &Value| if block["type"].is_string() { text(block) } else { Some(BLOCK) };
    match data["type"].as_str().unwrap_or_default() {
        "content_block_start" => block(&data["content_block"]),
        "content_block_delta" => text(&data["delta"]),
        _ => data["content"].as_array().into_iter().flatten().find_map(block),
    }
}

/// The events of the Responses API whose deltas rules read.
const DELTAS: [&str; 6] = [
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
];

/// The events that have a response, of which rules read its items or know that it has none.
const STATES: [&str; 6] = ["created", "queued", "in_progress", "completed", "incomplete", "failed"];

fn responses(data: &Value) -> Option<&'static str> {
    let Some(kind) = data["type"].as_str() else { return items(data).iter().find_map(|item| item_of(item, false)) };
    if DELTAS.contains(&kind) && !is_string(&data["delta"]) {
        return Some(TEXT);
    }
    let output = items(&data["response"]);
    let is_state = kind.strip_prefix("response.").is_some_and(|state| STATES.contains(&state));
    if !is_state && !output.is_empty() {
        return Some(END);
    }
    let item = data["item"].is_object().then(|| item_of(&data["item"], true)).flatten();
    item.or_else(|| output.iter().find_map(|item| item_of(item, false)))
}

fn items(response: &Value) -> &[Value] {
    response["output"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns why an item cannot be checked. `is_event`: whether it is that of an event about it, where rules read a list of parts alone.
fn item_of(item: &Value, is_event: bool) -> Option<&'static str> {
    if !item.is_object() {
        return Some(BLOCK);
    }
    let content = &item["content"];
    let is_list = content.is_null() || content.as_array().is_some_and(|parts| parts.iter().all(Value::is_object));
    let is_message = item["type"] == "message" || item["type"].is_null();
    (is_message && (is_odd(content) || (is_event && !is_list))).then_some(TEXT)
}
