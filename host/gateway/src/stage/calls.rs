//! Calls whose arguments extensions have replaced: the client gets the new ones in one part, and nothing of those that the model wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flow::{CallFailure, ToolCall};
use guard::Caller;
use guard::calls::{self, Refused};
use serde_json::{Value, json};
use wire::Wire;

use crate::frame::Frame;
use crate::requests::canonical;

/// What extensions have decided about the calls of an answer.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// The calls as the model made them, each with the arguments that it gets instead.
    pub(crate) calls: Vec<(ToolCall, Option<String>)>,
    /// The calls that are under way in the stream, by the index of their block.
    open: BTreeMap<u64, String>,
    /// Those whose arguments were sent.
    given: BTreeSet<u64>,
}

/// Has the extensions decide about calls. Returns why some must not run.
///
/// # Errors
/// The failure of a `required` extension.
pub(crate) async fn check(caller: &Arc<Caller>, made: Vec<ToolCall>) -> Result<(Decided, Vec<String>), CallFailure> {
    let (mut decided, mut refusals) = (Decided::default(), Vec::new());
    for call in made {
        let checked = calls::check(caller, &call, false).await?;
        match checked.refusal {
            Some(Refused::Denied(reason) | Refused::Invalid(reason)) => {
                refusals.push(format!("Your call of the tool `{}` was {reason}", call.name));
            }
            None if !checked.by.is_empty() && loses_input(&call, &checked.call) => refusals.push(format!(
                "Your call of the tool `{}` was not run: an extension has replaced its input by what is none",
                call.name
            )),
            None => {
                let is_new = canonical(&checked.call.arguments) != canonical(&call.arguments);
                let new = (!checked.by.is_empty() && is_new).then_some(checked.call.arguments);
                decided.calls.push((call, new));
            }
        }
    }
    Ok((decided, refusals))
}

/// Whether a call whose input can be one that is not JSON has no input any more.
fn loses_input(before: &ToolCall, after: &ToolCall) -> bool {
    let input = |call: &ToolCall| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        arguments.as_object().is_some_and(|all| all.len() == 1 && all.get("input").is_some_and(Value::is_string))
    };
    input(before) && !input(after)
}

impl Decided {
    /// The arguments that a call gets instead of its own.
    pub(crate) fn new_arguments(&self, id: &str) -> Option<&str> {
        let found = self.calls.iter().find(|(call, _)| call.id.as_str() == id);
        found.and_then(|(_, new)| new.as_deref())
    }

    /// Changes a frame of a call. One of which nothing is left has no bytes. Returns a frame that follows it.
    pub(super) fn edit(&mut self, wire: Wire, frame: &mut Frame) -> Option<Frame> {
        if self.calls.iter().all(|(_, new)| new.is_none()) {
            return None;
        }
        match wire {
            Wire::Anthropic => self.anthropic(frame),
            Wire::OpenAiChat => {
                self.chat(frame);
                None
            }
            Wire::OpenAiResponses => {
                self.responses(frame);
                None
            }
        }
    }

    fn anthropic(&mut self, frame: &mut Frame) -> Option<Frame> {
        let (kind, name) = (frame.kind().to_owned(), frame.name.clone());
        let data = frame.data.as_mut()?;
        let index = data["index"].as_u64().unwrap_or(0);
        match kind.as_str() {
            "content_block_start" => {
                let id = data["content_block"]["id"].as_str().unwrap_or_default();
                let new = self.new_arguments(id)?.to_owned();
                self.open.insert(index, id.to_owned());
                let delta = json!({"type": "input_json_delta", "partial_json": new});
                let added = json!({"type": "content_block_delta", "index": index, "delta": delta});
                if data["content_block"]["input"].as_object().is_some_and(|input| !input.is_empty()) {
                    data["content_block"]["input"] = json!({});
                    frame.write();
                }
                Some(Frame::of(if name.is_empty() { "" } else { "content_block_delta" }, added))
            }
            "content_block_delta" if self.open.contains_key(&index) => {
                frame.raw.clear();
                None
            }
            "content_block_stop" => {
                self.open.remove(&index);
                None
            }
            _ => None,
        }
    }

    fn chat(&mut self, frame: &mut Frame) {
        let Some(data) = &mut frame.data else { return };
        let Some(choice) = data.get_mut("choices").and_then(|choices| choices.get_mut(0)) else { return };
        let ends = choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) else { return };
        let Some(list) = delta.get_mut("tool_calls").and_then(Value::as_array_mut) else { return };
        let mut is_changed = false;
        list.retain_mut(|call| {
            let index = call["index"].as_u64().unwrap_or(0);
            if let Some(id) = call["id"].as_str().filter(|id| !id.is_empty()) {
                self.open.insert(index, id.to_owned());
            }
            let new = self.open.get(&index).and_then(|id| self.new_arguments(id)).map(str::to_owned);
            let Some(new) = new else { return true };
            is_changed = true;
            if !self.given.insert(index) {
                return false;
            }
            match call.get_mut("custom").filter(|custom| custom.is_object()) {
                Some(custom) => custom["input"] = input(&new),
                None => call["function"]["arguments"] = Value::from(new),
            }
            true
        });
        if !is_changed {
            return;
        }
        if list.is_empty() {
            delta.remove("tool_calls");
        }
        let says = delta.values().any(|value| !value.is_null() && value != "");
        if says || ends {
            frame.write();
        } else {
            frame.raw.clear();
        }
    }

    fn responses(&mut self, frame: &mut Frame) {
        let kind = frame.kind().to_owned();
        let Some(data) = &mut frame.data else { return };
        let index = data["output_index"].as_u64().unwrap_or(0);
        match kind.as_str() {
            "response.output_item.added" | "response.output_item.done" => {
                let id = data["item"]["call_id"].as_str().unwrap_or_default().to_owned();
                if self.new_arguments(&id).is_none() {
                    return;
                }
                self.open.insert(index, id);
                // An item begins without its arguments.
                let is_begun = kind.ends_with("added");
                let has_none = |key: &str| data["item"][key].as_str().is_none_or(str::is_empty);
                if !(is_begun && has_none("arguments") && has_none("input")) {
                    self.item(&mut data["item"]);
                }
            }
            "response.completed" | "response.incomplete" => {
                let output = data.get_mut("response").and_then(|response| response.get_mut("output"));
                output.and_then(Value::as_array_mut).into_iter().flatten().for_each(|item| self.item(item));
            }
            _ => {
                let Some(new) = self.open.get(&index).and_then(|id| self.new_arguments(id)).map(str::to_owned) else {
                    return;
                };
                match kind.as_str() {
                    "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                        if !self.given.insert(index) {
                            frame.raw.clear();
                            return;
                        }
                        data["delta"] = if kind.contains("custom") { input(&new) } else { Value::from(new) };
                    }
                    "response.function_call_arguments.done" => data["arguments"] = Value::from(new),
                    "response.custom_tool_call_input.done" => data["input"] = input(&new),
                    _ => return,
                }
            }
        }
        frame.write();
    }

    /// Gives a whole item its new arguments.
    fn item(&self, item: &mut Value) {
        let id = item["call_id"].as_str().unwrap_or_default();
        let Some(new) = self.new_arguments(id).map(str::to_owned) else { return };
        if item["type"] == "custom_tool_call" {
            item["input"] = input(&new);
        } else if let Some(key) = ["arguments", "action", "operation"].iter().find(|key| !item[**key].is_null()) {
            let is_text = item[*key].is_string();
            item[*key] = if is_text { Value::from(new) } else { serde_json::from_str(&new).unwrap_or_default() };
        }
    }
}

/// The input of a call that is not JSON.
fn input(arguments: &str) -> Value {
    let mut arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    arguments.get_mut("input").map_or_else(|| Value::from(""), Value::take)
}
