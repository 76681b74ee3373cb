//! The Responses API of OpenAI: numbered events about output items, and an end that repeats all of them.

mod reasoning;
mod streamed;

use std::collections::BTreeMap;

use flow::{StreamKind, Usage};
use serde_json::{Value, json};

use self::streamed::Streamed;
use super::{INPUT, Message, add, arguments, as_arguments, call, escaped, may_contain, text, texts};
use crate::calls::{self, CALLS};
use crate::frame::Frame;

/// A message of the Responses API.
#[derive(Debug, Default)]
pub(crate) struct OpenAiResponses {
    model: String,
    /// The response as the first event has it.
    first: Option<Value>,
    /// The id of the response of the last attempt, if it differs.
    accepted: Option<String>,
    /// The number of the next event.
    number: u64,
    /// Events have numbers of our own, because some of them are not those that came.
    renumbers: bool,
    streamed: Streamed,
    /// The index of the next item.
    next: u64,
    /// Items of earlier attempts; `None` in the first.
    earlier: Option<u64>,
    /// The items that have ended, for the end of the response.
    ended: Vec<Value>,
    open: Vec<Item>,
    lost: Usage,
}

/// An item that is open.
#[derive(Debug)]
struct Item {
    index: u64,
    item: Value,
    /// Its parts by their indexes, as far as they were sent.
    parts: BTreeMap<u64, Part>,
}

#[derive(Debug, Default)]
struct Part {
    text: String,
    is_refusal: bool,
    has_ended: bool,
}

impl OpenAiResponses {
    pub(super) fn new(model: String) -> Self {
        Self { model, ..Self::default() }
    }

    fn push(&mut self, kind: &str, mut fields: Value, out: &mut Vec<u8>) {
        self.renumbers = true;
        let mut data = json!({"type": kind, "sequence_number": self.number});
        self.number += 1;
        if let (Some(data), Some(fields)) = (data.as_object_mut(), fields.as_object_mut()) {
            data.append(fields);
        }
        out.extend_from_slice(&Frame::of(kind, data).raw);
    }

    /// Keeps what an event says about items.
    fn note(&mut self, kind: &str, data: &Value) {
        let index = data["output_index"].as_u64().unwrap_or(0);
        let open = self.open.iter().position(|item| item.index == index);
        let part = data["content_index"].as_u64().unwrap_or(0);
        match kind {
            // It may restart its answer.
            "response.created" => {
                self.open.clear();
                self.ended.clear();
                self.next = 0;
            }
            "response.output_item.added" => {
                self.open.push(Item { index, item: data["item"].clone(), parts: BTreeMap::new() });
                self.next = self.next.max(index.saturating_add(1));
            }
            "response.output_item.done" => {
                if let Some(at) = open {
                    self.open.remove(at);
                }
                self.next = self.next.max(index.saturating_add(1));
                self.ended.push(data["item"].clone());
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                if let Some(at) = open {
                    let part = self.open[at].parts.entry(part).or_default();
                    part.text.push_str(data["delta"].as_str().unwrap_or_default());
                    part.is_refusal = kind == "response.refusal.delta";
                }
            }
            "response.content_part.done" => {
                if let Some(at) = open {
                    self.open[at].parts.entry(part).or_default().has_ended = true;
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, Item { index, mut item, parts }: Item, out: &mut Vec<u8>) {
        let mut content = Vec::new();
        for (number, Part { text, is_refusal, has_ended }) in parts {
            let (kind, key) = if is_refusal { ("refusal", "refusal") } else { ("output_text", "text") };
            let mut whole = json!({"type": kind, key: text});
            if !is_refusal {
                whole["annotations"] = json!([]);
            }
            if !has_ended {
                let mut done = json!({"item_id": item["id"], "output_index": index, "content_index": number});
                let mut part = done.clone();
                (done[key], part["part"]) = (Value::from(text), whole.clone());
                if !is_refusal {
                    done["logprobs"] = json!([]);
                }
                self.push(&format!("response.{kind}.done"), done, out);
                self.push("response.content_part.done", part, out);
            }
            content.push(whole);
        }
        if !content.is_empty() {
            item["content"] = Value::from(content);
        }
        item["status"] = Value::from("completed");
        self.push("response.output_item.done", json!({"output_index": index, "item": item}), out);
        self.ended.push(item);
    }

    fn response(&self, status: &str) -> Value {
        let mut response = self.first.clone().unwrap_or_else(|| {
            json!({
                "id": "resp_tidegate", "object": "response", "created_at": 0, "model": self.model, "error": null,
                "incomplete_details": null, "instructions": null, "metadata": {}, "parallel_tool_calls": true,
                "temperature": null, "tool_choice": "auto", "tools": [], "top_p": null,
            })
        });
        (response["status"], response["output"]) = (Value::from(status), Value::from(self.ended.clone()));
        if status == "completed" && response["usage"].is_null() {
            // Clients take an end without it for a broken answer, and send the request again.
            let (input, output) = (self.lost.input.unwrap_or(0), self.lost.output.unwrap_or(0));
            response["usage"] = json!({
                "input_tokens": input, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input.saturating_add(output),
            });
        }
        response
    }

    /// A whole item with these words.
    fn item(&self, words: &str) -> Value {
        let content = json!([{"type": "output_text", "text": words, "annotations": []}]);
        json!({"id": "msg_tidegate", "type": "message", "role": "assistant", "status": "completed", "content": content})
    }

    /// The end of the response has the items of all attempts.
    fn finish(&self, response: &mut Value) {
        if self.first.is_some() && self.earlier.is_some() && response.is_object() {
            // Clients refuse another id than that of the beginning.
            if let Some(id) = self.first.as_ref().and_then(|first| first.get("id")) {
                response["id"] = id.clone();
            }
            response["output"] = Value::from(self.ended.clone());
            add(response, "input_tokens", self.lost.input);
            add(response, "output_tokens", self.lost.output);
            let total = self.lost.input.unwrap_or(0).saturating_add(self.lost.output.unwrap_or(0));
            add(response, "total_tokens", Some(total));
        }
    }
}

impl Message for OpenAiResponses {
    fn text(&self, frame: &Frame) -> Option<String> {
        let data = frame.data.as_ref()?;
        let is_text = ["response.output_text.delta", "response.refusal.delta"].contains(&frame.kind());
        // Log probabilities repeat the text.
        let is_alone = data["logprobs"].as_array().is_none_or(Vec::is_empty);
        (is_text && is_alone).then(|| text(&data["delta"]))
    }

    fn set_text(&self, frame: &mut Frame, text: &str) {
        if let Some(data) = &mut frame.data {
            data["delta"] = Value::from(text);
            frame.write();
        }
    }

    fn unreadable(&mut self, data: &Value) -> Option<&'static str> {
        self.streamed.contradicts(data).then_some("its end says something else than it has streamed")
    }

    fn opens(&self, frame: &Frame) -> bool {
        let is_message = |data: &Value| data["item"]["type"] == "message";
        match frame.kind() {
            "response.output_item.added" => frame.data.as_ref().is_some_and(is_message),
            kind => kind == "response.content_part.added",
        }
    }

    fn begins_call(&self, frame: &Frame) -> bool {
        let Some(data) = &frame.data else { return false };
        let is_call = |item: &Value| CALLS.iter().any(|kind| item["type"] == *kind);
        match frame.kind() {
            "response.output_item.added" | "response.output_item.done" => is_call(&data["item"]),
            // They can come before the event that says which item they belong to.
            kind if kind.starts_with("response.function_call") || kind.starts_with("response.custom_tool_call") => true,
            _ => data["response"]["output"].as_array().is_some_and(|output| output.iter().any(is_call)),
        }
    }

    fn is_failure(&self, frame: &Frame) -> bool {
        ["response.failed", "error"].contains(&frame.kind())
    }

    fn reads_raw(&self, raw: &[u8]) -> bool {
        // Each item that is rewritten, and each event about its input, has it in its type.
        !may_contain(raw, "_call")
    }

    fn for_rules(&mut self, frame: &Frame) -> Option<Vec<u8>> {
        if self.reads_raw(&frame.raw) {
            return None;
        }
        let (kind, mut data) = (frame.kind(), frame.data.clone()?);
        let bytes = |kind: &str, mut data: Value| {
            data["type"] = Value::from(kind);
            Frame::of(kind, data).raw
        };
        match kind {
            "response.custom_tool_call_input.delta" => {
                data["delta"] = Value::from(escaped(data["delta"].as_str()?));
                Some(bytes("response.function_call_arguments.delta", data))
            }
            "response.custom_tool_call_input.done" => {
                data["arguments"] = Value::from(as_arguments(&data["input"]));
                Some(bytes("response.function_call_arguments.done", data))
            }
            "response.output_item.added" if data["item"]["type"] == "custom_tool_call" => {
                let begun =
                    json!({"item_id": data["item"]["id"], "output_index": data["output_index"], "delta": INPUT});
                data["item"] = as_function(&data["item"], "");
                Some([bytes(kind, data), bytes("response.function_call_arguments.delta", begun)].concat())
            }
            "response.completed" | "response.incomplete" => {
                let output = data.get_mut("response")?.get_mut("output")?.as_array_mut()?;
                for item in output.iter_mut() {
                    if let Some(given) = given(item) {
                        *item = as_function(item, &given);
                    }
                }
                Some(bytes(kind, data))
            }
            "response.output_item.added" | "response.output_item.done" => {
                let given = given(&data["item"])?;
                data["item"] = as_function(&data["item"], &given);
                Some(bytes(kind, data))
            }
            _ => None,
        }
    }

    fn send(&mut self, mut frame: Frame, out: &mut Vec<u8>) {
        let kind = frame.kind().to_owned();
        let Some(data) = &mut frame.data else { return out.extend_from_slice(&frame.raw) };
        let before = data.clone();
        match kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" if self.earlier.is_some() => {
                // The provider may also restart its answer: open items of the void start are closed.
                if kind == "response.created" {
                    self.accepted = data["response"]["id"].as_str().map(str::to_owned);
                    std::mem::take(&mut self.open).into_iter().for_each(|item| self.end(item, out));
                    self.earlier = Some(self.next);
                }
                return;
            }
            "response.created" => self.first = Some(data["response"].clone()),
            "response.completed" | "response.incomplete" => {
                if let Some(response) = data.get_mut("response") {
                    self.finish(response);
                }
            }
            _ => {}
        }
        if let (Some(index), Some(earlier)) = (data["output_index"].as_u64(), self.earlier) {
            data["output_index"] = Value::from(earlier.saturating_add(index));
        }
        // Numbers of our own, from the first frame on that is one.
        self.renumbers |= frame.is_changed || self.earlier.is_some();
        let number = data["sequence_number"].as_u64();
        if number.is_some() && self.renumbers {
            data["sequence_number"] = Value::from(self.number);
        }
        self.number = if self.renumbers { self.number } else { number.unwrap_or(self.number) }.saturating_add(1);
        if *data != before {
            frame.write();
        }
        if let Some(data) = &frame.data {
            self.note(&kind, data);
        }
        out.extend_from_slice(&frame.raw);
    }

    fn go_on(&mut self, usage: Usage, out: &mut Vec<u8>) {
        for item in std::mem::take(&mut self.open) {
            self.end(item, out);
        }
        self.lost.add(usage);
        self.streamed = Streamed::default();
        self.earlier = self.first.is_some().then_some(self.next);
    }

    fn close(&mut self, words: &str, out: &mut Vec<u8>) {
        if self.first.is_none() {
            let response = self.response("in_progress");
            self.push("response.created", json!({"response": response}), out);
            self.first = Some(response);
        }
        for item in std::mem::take(&mut self.open) {
            self.end(item, out);
        }
        let index = self.next;
        let mut item = self.item(words);
        (item["status"], item["content"]) = (Value::from("in_progress"), json!([]));
        self.push("response.output_item.added", json!({"output_index": index, "item": item}), out);
        let at = json!({"item_id": item["id"], "output_index": index, "content_index": 0});
        let (mut part, mut delta) = (at.clone(), at);
        part["part"] = json!({"type": "output_text", "text": "", "annotations": []});
        (delta["delta"], delta["logprobs"]) = (Value::from(words), json!([]));
        self.push("response.content_part.added", part, out);
        self.push("response.output_text.delta", delta, out);
        let part = Part { text: words.to_owned(), ..Part::default() };
        self.end(Item { index, item, parts: BTreeMap::from([(0, part)]) }, out);
        let response = self.response("completed");
        self.push("response.completed", json!({"response": response}), out);
    }

    fn id(&self) -> Option<String> {
        self.first.as_ref().and_then(|first| first["id"].as_str()).map(str::to_owned)
    }

    fn accepted_id(&self) -> Option<String> {
        self.accepted.clone()
    }

    fn blocks(&self, body: &Value) -> Vec<(StreamKind, String)> {
        let items = body["output"].as_array().into_iter().flatten();
        items.flat_map(blocks_of).filter(|(kind, text)| kind.is_tool() || !text.is_empty()).collect()
    }

    fn whole(&self, words: &str) -> Value {
        let mut response = self.response("completed");
        response["output"] = json!([self.item(words)]);
        response
    }
}

/// The blocks of one item.
fn blocks_of(item: &Value) -> Vec<(StreamKind, String)> {
    let is_message = item["type"] == "message" || (item["type"].is_null() && !item["content"].is_null());
    match item["type"].as_str() {
        _ if is_message => vec![(StreamKind::Text, texts(&item["content"]))],
        Some("reasoning") => vec![(StreamKind::Thinking, texts(&item["summary"]) + &texts(&item["content"]))],
        Some("function_call") => vec![(call(&item["call_id"], &item["name"]), arguments(&item["arguments"]))],
        Some(kind) if CALLS.contains(&kind) => {
            let name = if item["name"].is_null() { &item["type"] } else { &item["name"] };
            vec![(call(&item["call_id"], name), given(item).unwrap_or_default())]
        }
        _ => Vec::new(),
    }
}

/// What a call that is no function is given, as arguments; `None`: it is another item.
fn given(item: &Value) -> Option<String> {
    let kind = item["type"].as_str().filter(|kind| *kind != "function_call" && CALLS.contains(kind))?;
    Some(match kind {
        "custom_tool_call" => as_arguments(&item["input"]),
        _ => {
            let keys = calls::members(item);
            match keys.as_slice() {
                [] => String::new(),
                [key] if !item[*key].is_array() => arguments(&item[*key]),
                // Rules read one object.
                keys => keys.iter().map(|key| (*key, item[*key].clone())).collect::<Value>().to_string(),
            }
        }
    })
}

/// The same call as one of a function.
fn as_function(item: &Value, arguments: &str) -> Value {
    let name = if item["name"].is_null() { &item["type"] } else { &item["name"] };
    json!({"id": item["id"], "type": "function_call", "call_id": item["call_id"], "name": name, "arguments": arguments})
}
