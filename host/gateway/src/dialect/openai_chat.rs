//! OpenAI Chat Completions: chunks of one choice.

use flow::{StreamKind, Usage};
use serde_json::{Value, json};

use std::collections::{BTreeMap, BTreeSet};

use super::{INPUT, Message, add, arguments, as_arguments, call, escaped, may_contain, texts};
use crate::frame::Frame;

/// A message of Chat Completions.
#[derive(Debug, Default)]
pub(crate) struct OpenAiChat {
    model: String,
    /// The first chunk, without its choices: what all chunks of a message have in common.
    first: Option<Value>,
    is_again: bool,
    /// Calls of the attempt whose input is not JSON.
    custom: BTreeSet<u64>,
    streamed: Streamed,
    lost: Usage,
}

/// What rules have read of the attempt.
#[derive(Debug, Default)]
struct Streamed {
    text: String,
    /// The arguments of its calls, by the index of the call.
    calls: BTreeMap<u64, String>,
}

impl Streamed {
    /// Notes a chunk. Returns whether its message, which some servers add to the end, says something else than what was streamed: rules do
    /// not read it then.
    fn contradicts(&mut self, choice: &Value) -> bool {
        self.note(&choice["delta"]);
        let (message, has_begun) = (&choice["message"], !self.text.is_empty() || !self.calls.is_empty());
        let (whole, calls) = (said(message), arguments_of(message));
        let is_other = !whole.trim().is_empty() && whole.trim() != self.text.trim();
        let has_other = calls.iter().any(|(_, given)| !self.calls.values().any(|known| known == given));
        if !has_begun {
            self.note(message);
        }
        has_begun && (is_other || has_other)
    }

    fn note(&mut self, part: &Value) {
        self.text.push_str(&said(part));
        for (index, given) in arguments_of(part) {
            self.calls.entry(index).or_default().push_str(&given);
        }
    }
}

fn said(part: &Value) -> String {
    texts(&part["content"]) + &texts(&part["refusal"])
}

/// Returns the arguments of the calls of a delta or a message, each with its index.
fn arguments_of(part: &Value) -> Vec<(u64, String)> {
    let calls = part["tool_calls"].as_array().into_iter().flatten().zip(0..);
    let given = |(call, number): (&Value, u64)| {
        let given = custom(call).map_or(&call["function"]["arguments"], |custom| &custom["input"]);
        (call["index"].as_u64().unwrap_or(number), arguments(given))
    };
    let old = &part["function_call"];
    calls.map(given).chain(old.is_object().then(|| (u64::MAX, arguments(&old["arguments"])))).collect()
}

/// The keys of a chunk that are the same in all chunks of a message.
const COMMON: [&str; 4] = ["id", "object", "created", "model"];

impl OpenAiChat {
    pub(super) fn new(model: String) -> Self {
        Self { model, ..Self::default() }
    }

    fn chunk(&self, choices: Value) -> Value {
        let mut chunk = self.first.clone().unwrap_or_else(
            || json!({"id": "chatcmpl-tidegate", "object": "chat.completion.chunk", "created": 0, "model": self.model}),
        );
        chunk["choices"] = choices;
        chunk
    }

    /// Makes a chunk one of the message that has begun. Returns whether anything is left of it.
    fn adapt(&self, chunk: &mut Value) -> bool {
        for key in COMMON {
            if let Some(value) = self.first.as_ref().and_then(|first| first.get(key)) {
                chunk[key] = value.clone();
            }
        }
        add(chunk, "prompt_tokens", self.lost.input);
        add(chunk, "completion_tokens", self.lost.output);
        let total = self.lost.input.unwrap_or(0).saturating_add(self.lost.output.unwrap_or(0));
        add(chunk, "total_tokens", Some(total));
        if chunk["usage"].is_null() {
            chunk.as_object_mut().map(|chunk| chunk.remove("usage"));
        }
        let Some(choice) = chunk.get_mut("choices").and_then(|choices| choices.get_mut(0)) else { return true };
        let ends = choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) else { return true };
        // Clients join what they receive, the role too.
        let had_role = delta.remove("role").is_some();
        let is_empty = delta.values().all(|value| value.is_null() || value == "");
        !(had_role && is_empty && !ends && chunk["usage"].is_null())
    }
}

impl Message for OpenAiChat {
    fn text(&self, frame: &Frame) -> Option<String> {
        let data = frame.data.as_ref()?;
        let choices = data["choices"].as_array().filter(|choices| choices.len() == 1)?;
        let (choice, delta) = (choices.first()?, choices.first()?["delta"].as_object()?);
        let is_alone = delta.iter().all(|(key, value)| key == "content" || key == "role" || value.is_null());
        // Log probabilities repeat the text.
        let ends = ["finish_reason", "logprobs"].iter().any(|key| !choice[*key].is_null()) || !data["usage"].is_null();
        (is_alone && !ends).then(|| delta.get("content")?.as_str().map(str::to_owned)).flatten()
    }

    fn set_text(&self, frame: &mut Frame, text: &str) {
        if let Some(data) = &mut frame.data {
            data["choices"][0]["delta"]["content"] = Value::from(text);
            frame.write();
        }
    }

    fn unreadable(&mut self, data: &Value) -> Option<&'static str> {
        data["choices"].as_array().into_iter().flatten().find_map(|choice| {
            let is_first = match &choice["index"] {
                Value::String(index) => index == "0",
                index => index.as_u64().unwrap_or(0) == 0,
            };
            if !is_first {
                return Some("it has several choices, of which one can be checked");
            }
            if self.streamed.contradicts(choice) {
                return Some("its end says something else than it has streamed");
            }
            [&choice["delta"], &choice["message"]].into_iter().find_map(unreadable_part)
        })
    }

    fn opens(&self, _: &Frame) -> bool {
        false
    }

    fn begins_call(&self, frame: &Frame) -> bool {
        let Some(data) = &frame.data else { return false };
        let delta = &data["choices"][0]["delta"];
        ["tool_calls", "function_call"].iter().any(|key| !delta[*key].is_null())
    }

    fn is_failure(&self, frame: &Frame) -> bool {
        frame.name == "error" || frame.data.as_ref().is_some_and(|data| !data["error"].is_null())
    }

    fn reads_raw(&self, raw: &[u8]) -> bool {
        self.custom.is_empty() && !may_contain(raw, "custom")
    }

    fn for_rules(&mut self, frame: &Frame) -> Option<Vec<u8>> {
        let choice = frame.data.as_ref()?.get("choices")?.get(0)?.as_object()?;
        let calls = choice.get("delta").and_then(|delta| delta["tool_calls"].as_array());
        let has_custom = calls.is_some_and(|calls| calls.iter().any(|call| custom(call).is_some()));
        let ends = choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        if !has_custom && (!ends || self.custom.is_empty()) {
            return None;
        }
        let mut data = frame.data.clone()?;
        let choice = data.get_mut("choices")?.get_mut(0)?.as_object_mut()?;
        let calls = choice.get_mut("delta").and_then(|delta| delta.get_mut("tool_calls")).and_then(Value::as_array_mut);
        for one in calls.into_iter().flatten() {
            let Some(custom) = custom(one).cloned() else { continue };
            let is_new = self.custom.insert(one["index"].as_u64().unwrap_or(0));
            let given =
                format!("{}{}", if is_new { INPUT } else { "" }, escaped(custom["input"].as_str().unwrap_or("")));
            one["function"] = json!({"name": custom["name"], "arguments": given});
        }
        if ends && !self.custom.is_empty() {
            let end = |index| json!({"index": index, "function": {"arguments": "\"}"}});
            let ends: Value = std::mem::take(&mut self.custom).into_iter().map(end).collect();
            choice.insert("delta".to_owned(), json!({"tool_calls": ends}));
        }
        Some(Frame::of("", data).raw)
    }

    fn send(&mut self, mut frame: Frame, out: &mut Vec<u8>) {
        if let Some(data) = &mut frame.data {
            match &self.first {
                None => {
                    let first = COMMON.iter().filter_map(|key| Some(((*key).to_owned(), data.get(*key)?.clone())));
                    self.first = Some(Value::Object(first.collect()));
                }
                Some(_) if self.is_again => {
                    if !self.adapt(data) {
                        return;
                    }
                    frame.write();
                }
                Some(_) => {}
            }
        }
        out.extend_from_slice(&frame.raw);
    }

    fn go_on(&mut self, usage: Usage, _: &mut Vec<u8>) {
        self.lost.add(usage);
        self.custom.clear();
        self.streamed = Streamed::default();
        self.is_again = true;
    }

    fn close(&mut self, words: &str, out: &mut Vec<u8>) {
        let words = if self.first.is_some() { format!("\n\n{words}") } else { words.to_owned() };
        let delta = json!([{"index": 0, "delta": {"role": "assistant", "content": words}, "finish_reason": null}]);
        let mut said = self.chunk(delta);
        if self.first.is_some() {
            said["choices"][0]["delta"].as_object_mut().map(|delta| delta.remove("role"));
        }
        let end = self.chunk(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]));
        for chunk in [said, end] {
            out.extend_from_slice(&Frame::of("", chunk).raw);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn blocks(&self, body: &Value) -> Vec<(StreamKind, String)> {
        let choice = &body["choices"][0];
        // Some servers name it as in a stream.
        let message = &choice[if choice["message"].is_null() { "delta" } else { "message" }];
        let thinking = ["reasoning_content", "reasoning"].iter().map(|key| texts(&message[*key]));
        let thinking = thinking.map(|text| (StreamKind::Thinking, text));
        let said = [&message["content"], &message["refusal"], &body["choices"][0]["text"]];
        let said = said.into_iter().map(|said| (StreamKind::Text, texts(said)));
        let old = &message["function_call"];
        let old = old.is_object().then(|| (call(&Value::Null, &old["name"]), arguments(&old["arguments"])));
        let calls = message["tool_calls"].as_array().into_iter().flatten().map(|one| match custom(one) {
            Some(custom) => (call(&one["id"], &custom["name"]), as_arguments(&custom["input"])),
            None => (call(&one["id"], &one["function"]["name"]), arguments(&one["function"]["arguments"])),
        });
        thinking.chain(said).chain(calls).chain(old).filter(|(kind, text)| kind.is_tool() || !text.is_empty()).collect()
    }

    fn whole(&self, words: &str) -> Value {
        let message = json!({"role": "assistant", "content": words});
        let mut body = self.chunk(json!([{"index": 0, "message": message, "finish_reason": "stop"}]));
        body["object"] = Value::from("chat.completion");
        body
    }
}

/// A call whose input is not JSON; servers may write the other kind out as null.
fn custom(call: &Value) -> Option<&Value> {
    call.get("custom").filter(|custom| custom.is_object())
}

/// What of a delta or a message rules cannot read.
fn unreadable_part(part: &Value) -> Option<&'static str> {
    if !part["audio"].is_null() {
        return Some("it is spoken, and what is spoken cannot be checked");
    }
    let is_odd = |call: &Value| {
        let given = &call["function"]["arguments"];
        !(given.is_null() || given.is_string()) || (custom(call).is_some() && call["function"].is_object())
    };
    let is_odd = part["tool_calls"].as_array().is_some_and(|calls| calls.iter().any(is_odd));
    is_odd.then_some("a call in it is not written as the format says, and cannot be checked")
}
