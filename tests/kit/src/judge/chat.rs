//! The Chat Completions format: what its vendor refuses, and what chat templates of local models refuse.

use serde_json::Value;

use super::images::{self, Shown};
use super::{Found, list, schema, word};

pub(super) fn judge(body: &Value, found: &mut Found<'_>) {
    let messages = list(&body["messages"]);
    found.count("messages", "messages", messages.len());
    roles(messages, found);
    let (mut shown, mut open) = (Vec::new(), Vec::new());
    for (at, message) in messages.iter().enumerate() {
        let path = format!("messages[{at}]");
        if message["role"] == "tool" {
            result(&path, message, &mut open, found);
            continue;
        }
        unanswered(&path, &mut open, found);
        content(&path, message, found, &mut shown);
        for (number, call) in list(&message["tool_calls"]).iter().enumerate() {
            let path = format!("{path}.tool_calls[{number}]");
            found.identifier(&format!("{path}.id"), "call_id", &call["id"]);
            found.identifier(&format!("{path}.function.name"), "tool_name", &call["function"]["name"]);
            found.arguments(&format!("{path}.function.arguments"), &call["function"]["arguments"]);
            open.push(word(&call["id"]));
        }
    }
    unanswered("messages", &mut open, found);
    images::judge(&shown, found);
    let calls = messages.iter().flat_map(|message| list(&message["tool_calls"]));
    found.distinct("tool_calls ids", calls.map(|call| word(&call["id"])));
    tools(list(&body["tools"]), found);
}

fn unanswered(path: &str, open: &mut Vec<&str>, found: &mut Found<'_>) {
    for id in open.drain(..) {
        found.add(path, format!("An assistant message with 'tool_calls' must be followed by tool messages: {id}"));
    }
}

fn result(path: &str, message: &Value, open: &mut Vec<&str>, found: &mut Found<'_>) {
    let id = word(&message["tool_call_id"]);
    match open.iter().position(|open| *open == id) {
        Some(at) => drop(open.remove(at)),
        None => {
            found.add(path, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'");
        }
    }
    if !message["content"].is_string() {
        found.add(path, "expected a string for content");
    }
}

/// The system's message first, then the user's, then in turns.
fn roles(messages: &[Value], found: &mut Found<'_>) {
    let roles: Vec<&str> = messages.iter().map(|message| word(&message["role"])).collect();
    let talk: Vec<&str> = roles.iter().copied().skip_while(|role| *role == "system").collect();
    if roles.len() - talk.len() > 1 || talk.contains(&"system") {
        found.add("messages", "System message must be at the beginning.");
    }
    if talk.first() != Some(&"user") {
        found.add("messages", "the first message must be the user's");
    }
    for pair in talk.windows(2) {
        if pair[0] == pair[1] && pair[0] != "tool" {
            found.add("messages", "Conversation roles must alternate user/assistant");
        }
    }
}

fn content<'v>(path: &str, message: &'v Value, found: &mut Found<'_>, shown: &mut Vec<Shown<'v>>) {
    let path = format!("{path}.content");
    match &message["content"] {
        Value::String(text) => found.text(&path, text),
        Value::Array(parts) if !parts.is_empty() => {
            for (at, part) in parts.iter().enumerate() {
                let path = format!("{path}[{at}]");
                match word(&part["type"]) {
                    "text" => found.text(&path, word(&part["text"])),
                    "image_url" => shown.push(Shown::of_url(path, word(&part["image_url"]["url"]))),
                    other => found.add(path, format!("unknown type {other:?}")),
                }
            }
        }
        Value::Null if !list(&message["tool_calls"]).is_empty() => {}
        _ => found.add(path, "expected a string, got null"),
    }
}

fn tools(tools: &[Value], found: &mut Found<'_>) {
    found.count("tools", "tools", tools.len());
    for (at, tool) in tools.iter().enumerate() {
        found.identifier(&format!("tools[{at}].function.name"), "tool_name", &tool["function"]["name"]);
        schema::judge(&format!("tools[{at}].function.parameters"), &tool["function"]["parameters"], found);
    }
    found.distinct("tools", tools.iter().map(|tool| word(&tool["function"]["name"])));
}
