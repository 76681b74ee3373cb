//! The Responses format.

use serde_json::Value;

use super::images::{self, Shown};
use super::{Found, list, schema, word};

pub(super) fn judge(body: &Value, found: &mut Found<'_>) {
    let input = list(&body["input"]);
    if input.is_empty() {
        found.add("input", "One of \"input\" or \"previous_response_id\" must be provided.");
    }
    let mut shown = Vec::new();
    for (at, item) in input.iter().enumerate() {
        let path = format!("input[{at}]");
        match word(&item["type"]) {
            "message" => message(&path, item, found, &mut shown),
            "function_call" => {
                found.identifier(&format!("{path}.call_id"), "call_id", &item["call_id"]);
                found.identifier(&format!("{path}.name"), "tool_name", &item["name"]);
                found.arguments(&format!("{path}.arguments"), &item["arguments"]);
            }
            "function_call_output" => output(&path, input, at, found),
            "reasoning" => reasoning(&path, item, input.get(at + 1), found),
            other => found.add(path, format!("Invalid value: {other:?}")),
        }
    }
    let ids = |kind: &'static str, key: &'static str| {
        input.iter().filter(move |item| item["type"] == kind).map(move |item| word(&item[key]))
    };
    found.distinct("function_call.call_id", ids("function_call", "call_id"));
    found.distinct("function_call_output.call_id", ids("function_call_output", "call_id"));
    found.distinct("Duplicate item found with id", ids("reasoning", "id"));
    for id in ids("function_call", "call_id") {
        if !ids("function_call_output", "call_id").any(|given| given == id) {
            found.add("input", format!("No tool output found for function call {id}."));
        }
    }
    images::judge(&shown, found);
    let least = found.limit("max_output_tokens")["min"].as_u64().unwrap();
    if body["max_output_tokens"].as_u64().is_some_and(|most| most < least) {
        found.add("max_output_tokens", format!("integer below minimum value. Expected a value >= {least}"));
    }
    found.count("tools", "tools", list(&body["tools"]).len());
    for (at, tool) in list(&body["tools"]).iter().enumerate() {
        found.identifier(&format!("tools[{at}].name"), "tool_name", &tool["name"]);
        schema::judge(&format!("tools[{at}].parameters"), &tool["parameters"], found);
    }
    found.distinct("tools", list(&body["tools"]).iter().map(|tool| word(&tool["name"])));
}

fn message<'v>(path: &str, item: &'v Value, found: &mut Found<'_>, shown: &mut Vec<Shown<'v>>) {
    let path = format!("{path}.content");
    if let Value::String(text) = &item["content"] {
        return found.text(&path, text);
    }
    if list(&item["content"]).is_empty() {
        found.add(&path, "empty array");
    }
    for (at, part) in list(&item["content"]).iter().enumerate() {
        let path = format!("{path}[{at}]");
        match word(&part["type"]) {
            "input_text" => found.text(&path, word(&part["text"])),
            "input_image" => {
                if part["detail"].as_str().is_none() {
                    found.add(format!("{path}.detail"), "Missing required parameter");
                }
                shown.push(Shown::of_url(path, word(&part["image_url"])));
            }
            other => found.add(path, format!("Invalid value: {other:?}")),
        }
    }
}

fn output(path: &str, input: &[Value], at: usize, found: &mut Found<'_>) {
    let id = &input[at]["call_id"];
    let called = input[..at].iter().any(|item| item["type"] == "function_call" && item["call_id"] == *id);
    if !called {
        found.add(path, format!("No tool call found for function call output with call_id {id}."));
    }
    if !input[at]["output"].is_string() {
        found.add(path, "output must be a string");
    }
}

fn reasoning(path: &str, item: &Value, next: Option<&Value>, found: &mut Found<'_>) {
    if !word(&item["id"]).starts_with("rs_") {
        found.add(format!("{path}.id"), "Expected an ID that begins with 'rs'.");
    }
    if word(&item["encrypted_content"]).is_empty() {
        found.add(path, "encrypted_content is missing, and nothing was stored");
    }
    let follows = next.is_some_and(|next| match word(&next["type"]) {
        "message" => next["role"] == "assistant",
        kind => ["function_call", "reasoning"].contains(&kind),
    });
    if !follows {
        found.add(path, "Item of type 'reasoning' was provided without its required following item.");
    }
}
