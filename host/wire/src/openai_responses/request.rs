//! A prompt as the body of `POST /responses`, without anything kept at the provider.

use std::borrow::Cow;

use flow::{Prompt, ToolSpec};
use serde::Serialize;
use serde_json::Value;

use super::Sealed;
use crate::conversation::{Exchange, Said, Word, data_url, exchanges, is_blank, tool_name};
use crate::schema::parameters;
use crate::wires::takes;
use crate::{RequestOptions, Wire};

/// OpenAI refuses a request for fewer: "Expected a value >= 16".
const LEAST_OUTPUT_TOKENS: u32 = 16;

/// The request's body.
pub(crate) fn encode(prompt: &Prompt, model: &str, options: &RequestOptions) -> serde_json::Result<Vec<u8>> {
    let system: Vec<&str> =
        prompt.system.iter().map(|block| block.text.as_str()).filter(|text| !is_blank(text)).collect();
    let mut input = Vec::new();
    let exchanges = exchanges(&prompt.messages, takes(Wire::OpenAiResponses), false);
    for turn in &exchanges {
        push(turn, &mut input);
    }
    let effort = options.effort.as_deref();
    serde_json::to_vec(&Request {
        model,
        stream: true,
        store: false,
        include: if seals_reasoning(model) { &["reasoning.encrypted_content"] } else { &[] },
        instructions: Some(system.join("\n\n")).filter(|text| !text.is_empty()),
        input,
        tools: prompt.tools.iter().map(tool).collect(),
        max_output_tokens: prompt.max_tokens.or(options.max_tokens).map(|most| most.max(LEAST_OUTPUT_TOKENS)),
        reasoning: effort.map(|effort| Reasoning { effort, summary: "auto" }),
    })
}

/// OpenAI refuses a request for encrypted reasoning to a model that does not reason: the generations before the fifth,
/// apart from the `o` line.
fn seals_reasoning(model: &str) -> bool {
    !["gpt-3", "gpt-4", "chatgpt-4"].iter().any(|line| model.starts_with(line))
}

fn push<'a>(turn: &'a Exchange<'_>, input: &mut Vec<Item<'a>>) {
    match turn {
        Exchange::User { results, words } => {
            for result in results {
                input.push(Item::FunctionCallOutput { call_id: &result.id, output: result.text() });
            }
            if !words.is_empty() {
                let content = words.iter().map(user_content).collect();
                input.push(Item::Message { role: "user", content: MessageContent::Parts(content) });
            }
        }
        Exchange::Assistant { parts } => {
            for item in parts.iter().filter_map(assistant_item) {
                if !input.iter().any(|before| before.is_same_reasoning(&item)) {
                    input.push(item);
                }
            }
            // What was reasoned about has to follow.
            while matches!(input.last(), Some(Item::Reasoning { .. })) {
                input.pop();
            }
        }
    }
}

fn user_content<'a>(word: &'a Word<'_>) -> Content<'a> {
    match word {
        Word::Text(text) => Content::Input { text },
        Word::Image(image) => Content::Image { image_url: data_url(image), detail: "auto" },
    }
}

fn assistant_item<'a>(part: &'a Said<'_>) -> Option<Item<'a>> {
    match part {
        Said::Text(text) if is_blank(text) => None,
        Said::Text(text) => Some(Item::Message { role: "assistant", content: MessageContent::Text(text) }),
        // Reasoning goes back only with its signature; that of another provider is not JSON and is not sent.
        Said::Thinking { text, signature, .. } => {
            let sealed: Sealed = serde_json::from_str((*signature)?).ok()?;
            // "Expected an ID that begins with 'rs'."
            if !sealed.id.starts_with("rs") || sealed.encrypted_content.is_empty() {
                return None;
            }
            let summary = (!text.is_empty()).then_some(Content::Summary { text });
            Some(Item::Reasoning {
                id: sealed.id,
                summary: summary.into_iter().collect(),
                encrypted_content: sealed.encrypted_content,
            })
        }
        Said::Call(called) => {
            Some(Item::FunctionCall { call_id: &called.id, name: &called.name, arguments: called.arguments_text() })
        }
    }
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool {
        kind: "function",
        name: tool_name(&spec.name, takes(Wire::OpenAiResponses)),
        description: &spec.description,
        parameters: parameters(&spec.parameters),
        strict: false, // strict mode takes only a part of JSON Schema
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message { role: &'static str, content: MessageContent<'a> },
    Reasoning { id: String, summary: Vec<Content<'a>>, encrypted_content: String },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: String },
    FunctionCallOutput { call_id: &'a str, output: String },
}

impl Item<'_> {
    /// Whether both are reasoning with one id, which a request contains once.
    fn is_same_reasoning(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Reasoning { id, .. }, Self::Reasoning { id: other, .. }) if id == other)
    }
}

/// Parts of type `output_text` belong to messages with an id and a status, which nothing is kept under; a message of the assistant
/// without them is a string.
#[derive(Serialize)]
#[serde(untagged)]
enum MessageContent<'a> {
    Parts(Vec<Content<'a>>),
    Text(&'a str),
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Content<'a> {
    #[serde(rename = "input_text")]
    Input { text: &'a str },
    #[serde(rename = "input_image")]
    Image { image_url: String, detail: &'static str },
    #[serde(rename = "summary_text")]
    Summary { text: &'a str },
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
    strict: bool,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
    summary: &'static str,
}
