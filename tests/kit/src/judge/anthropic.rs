//! The Messages format.

use std::collections::HashSet;

use serde_json::Value;

use super::images::{self, Shown};
use super::{Found, list, schema, word};

pub(super) fn judge(body: &Value, found: &mut Found<'_>) {
    let messages = list(&body["messages"]);
    if messages.is_empty() {
        found.add("messages", "at least one message is required");
    }
    if messages.first().is_some_and(|first| first["role"] != "user") {
        found.add("messages.0.role", "first message must use the \"user\" role");
    }
    let mut shown = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        content(&format!("messages.{at}.content"), message, found, &mut shown);
        if message["role"] == "assistant" {
            answer(at, messages, found);
        } else {
            results(at, messages, found);
        }
        if at > 0 && messages[at - 1]["role"] == message["role"] {
            found.add(format!("messages.{at}.role"), "roles must alternate");
        }
    }
    images::judge(&shown, found);
    let all = messages.iter().flat_map(|message| list(&message["content"]));
    let uses: Vec<&Value> = all.filter(|block| block["type"] == "tool_use").collect();
    found.distinct("`tool_use` ids", uses.iter().map(|block| word(&block["id"])));
    tools(body, !uses.is_empty(), found);
    thinking(body, found);
    let marks = body.to_string().matches("\"cache_control\":").count();
    if found.most("cache_breakpoints").is_some_and(|most| marks > most) {
        found.add("cache_control", format!("A maximum of 4 blocks may be provided. Found {marks}."));
    }
}

fn content<'v>(path: &str, message: &'v Value, found: &mut Found<'_>, shown: &mut Vec<Shown<'v>>) {
    let blocks = list(&message["content"]);
    if blocks.is_empty() {
        found.add(path, "all messages must have non-empty content");
    }
    for (at, block) in blocks.iter().enumerate() {
        let path = format!("{path}.{at}");
        match word(&block["type"]) {
            "text" => found.text(&path, word(&block["text"])),
            "image" => shown.push(Shown {
                path,
                media_type: word(&block["source"]["media_type"]),
                base64: word(&block["source"]["data"]),
            }),
            "tool_use" => {
                found.identifier(&format!("{path}.tool_use.id"), "call_id", &block["id"]);
                found.identifier(&format!("{path}.tool_use.name"), "tool_name", &block["name"]);
                if !block["input"].is_object() {
                    found.add(&path, "tool_use.input: Input should be a valid dictionary");
                }
            }
            "tool_result" => {
                for inner in list(&block["content"]).iter().filter(|inner| inner["type"] == "text") {
                    found.text(&path, word(&inner["text"]));
                }
            }
            "thinking" if word(&block["signature"]).is_empty() => {
                found.add(&path, "Invalid `signature` in `thinking` block");
            }
            "thinking" | "redacted_thinking" if !block["cache_control"].is_null() => {
                found.add(&path, "cache_control is not allowed here");
            }
            "thinking" | "redacted_thinking" => {}
            other => found.add(&path, format!("unknown type {other:?}")),
        }
    }
}

fn answer(at: usize, messages: &[Value], found: &mut Found<'_>) {
    let blocks = list(&messages[at]["content"]);
    let is_reasoning = |block: &Value| ["thinking", "redacted_thinking"].contains(&word(&block["type"]));
    if blocks.last().is_some_and(is_reasoning) {
        found.add(format!("messages.{at}"), "The final block in an assistant message cannot be `thinking`");
    }
    let is_last = at + 1 == messages.len();
    if is_last && blocks.last().is_some_and(|block| word(&block["text"]).ends_with(char::is_whitespace)) {
        found.add(format!("messages.{at}"), "final assistant content cannot end with trailing whitespace");
    }
    let next = messages.get(at + 1).map(|next| list(&next["content"])).unwrap_or_default();
    let answered: HashSet<&str> = next.iter().map(|block| word(&block["tool_use_id"])).collect();
    for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
        if !answered.contains(word(&block["id"])) {
            found.add(
                format!("messages.{at}"),
                format!("`tool_use` ids were found without `tool_result` blocks immediately after: {}", block["id"]),
            );
        }
    }
}

fn results(at: usize, messages: &[Value], found: &mut Found<'_>) {
    let before = at.checked_sub(1).map(|at| list(&messages[at]["content"])).unwrap_or_default();
    let called: HashSet<&str> =
        before.iter().filter(|block| block["type"] == "tool_use").map(|block| word(&block["id"])).collect();
    let blocks = list(&messages[at]["content"]);
    let is_result = |block: &Value| block["type"] == "tool_result";
    for block in blocks.iter().filter(|block| is_result(block)) {
        if !called.contains(word(&block["tool_use_id"])) {
            let path = format!("messages.{at}.content");
            found
                .add(path, format!("unexpected `tool_use_id` found in `tool_result` blocks: {}", block["tool_use_id"]));
        }
    }
    let given = blocks.iter().filter(|block| is_result(block)).map(|block| word(&block["tool_use_id"]));
    found.distinct(&format!("messages.{at}: each tool_use must have a single result"), given);
    if !blocks.is_sorted_by_key(|block| !is_result(block)) {
        found.add(format!("messages.{at}"), "tool_result blocks must come first");
    }
}

fn tools(body: &Value, are_used: bool, found: &mut Found<'_>) {
    let tools = list(&body["tools"]);
    if are_used && tools.is_empty() {
        found.add("tools", "Requests which include `tool_use` or `tool_result` blocks must define tools");
    }
    for (at, tool) in tools.iter().enumerate() {
        found.identifier(&format!("tools.{at}.custom.name"), "tool_name", &tool["name"]);
        schema::judge(&format!("tools.{at}.custom.input_schema"), &tool["input_schema"], found);
    }
    found.distinct("tools: Tool names", tools.iter().map(|tool| word(&tool["name"])));
}

fn thinking(body: &Value, found: &mut Found<'_>) {
    if body["thinking"]["type"] != "enabled" {
        return;
    }
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or_default();
    let least = found.limit("thinking_budget")["min"].as_u64().unwrap();
    if budget < least || Some(budget) >= body["max_tokens"].as_u64() {
        found.add("thinking.enabled.budget_tokens", "Input should be at least 1024, and less than max_tokens");
    }
    // The answer whose calls were answered last, or that is to be continued.
    let messages = list(&body["messages"]);
    let answer = messages.iter().rposition(|message| message["role"] == "assistant");
    let Some(at) = answer else { return };
    let blocks = list(&messages[at]["content"]);
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    let starts = ["thinking", "redacted_thinking"].contains(&blocks.first().map_or("", |block| word(&block["type"])));
    if (calls || at + 1 == messages.len()) && !starts {
        let path = format!("messages.{at}.content.0.type");
        found.add(path, "Expected `thinking` or `redacted_thinking`, but found another type");
    }
}
