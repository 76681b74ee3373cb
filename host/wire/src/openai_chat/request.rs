//! A prompt as the body of `POST /chat/completions`.

use std::borrow::Cow;

use flow::Prompt;
use serde::Serialize;
use serde_json::Value;

use crate::conversation::{Called, Exchange, Said, Word, data_url, exchanges, is_blank, tool_name};
use crate::schema::parameters;
use crate::wires::takes;
use crate::{RequestOptions, Wire};

/// The request's body.
pub(crate) fn encode(prompt: &Prompt, model: &str, options: &RequestOptions) -> serde_json::Result<Vec<u8>> {
    let mut messages = Vec::new();
    let system: Vec<&str> =
        prompt.system.iter().map(|block| block.text.as_str()).filter(|text| !is_blank(text)).collect();
    if !system.is_empty() {
        // One message: chat templates take no second one.
        messages.push(WireMessage::words("system", system.join("\n\n")));
    }
    let exchanges = exchanges(&prompt.messages, takes(Wire::OpenAiChat), false);
    for turn in &exchanges {
        push(turn, &mut messages);
    }
    let max_tokens = prompt.max_tokens.or(options.max_tokens);
    serde_json::to_vec(&Request {
        model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        messages,
        tools: prompt.tools.iter().map(tool).collect(),
        // OpenAI's newer models refuse the old name, most other servers know no other.
        max_completion_tokens: max_tokens.filter(|_| options.vendor),
        max_tokens: max_tokens.filter(|_| !options.vendor),
        reasoning_effort: options.effort.as_deref(),
    })
}

fn push<'a>(turn: &'a Exchange<'_>, messages: &mut Vec<WireMessage<'a>>) {
    match turn {
        Exchange::User { results, words } => {
            for result in results {
                messages
                    .push(WireMessage { tool_call_id: Some(&result.id), ..WireMessage::words("tool", result.text()) });
            }
            if !words.is_empty() {
                messages.push(WireMessage {
                    content: Some(user_content(words)),
                    ..WireMessage::words("user", String::new())
                });
            }
        }
        Exchange::Assistant { parts } => {
            let (mut text, mut tool_calls) = (String::new(), Vec::new());
            for part in parts {
                match part {
                    Said::Text(words) => text.push_str(words),
                    Said::Call(called) => tool_calls.push(call(called)),
                    // The format has no place for reasoning in a request; servers that send it refuse it back.
                    Said::Thinking { .. } => {}
                }
            }
            let content = Some(text).filter(|text| !is_blank(text)).map(Content::Text);
            messages.push(WireMessage { role: "assistant", content, tool_calls, tool_call_id: None });
        }
    }
}

fn call<'a>(called: &'a Called<'_>) -> WireCall<'a> {
    WireCall {
        id: &called.id,
        kind: "function",
        function: WireFunction { name: &called.name, arguments: called.arguments_text() },
    }
}

fn user_content<'a>(words: &'a [Word<'_>]) -> Content<'a> {
    let text = |word: &'a Word<'_>| match word {
        Word::Text(text) => Some(&**text),
        Word::Image(_) => None,
    };
    if let Some(texts) = words.iter().map(text).collect::<Option<Vec<_>>>() {
        return Content::Text(texts.join("\n\n"));
    }
    let part = |word: &'a Word<'_>| match word {
        Word::Text(text) => ContentPart::Text { text },
        Word::Image(image) => ContentPart::ImageUrl { image_url: ImageUrl { url: data_url(image) } },
    };
    Content::Parts(words.iter().map(part).collect())
}

fn tool(spec: &flow::ToolSpec) -> Tool<'_> {
    Tool {
        kind: "function",
        function: ToolFunction {
            name: tool_name(&spec.name, takes(Wire::OpenAiChat)),
            description: &spec.description,
            parameters: parameters(&spec.parameters),
        },
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    /// `null` where the assistant only called tools.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// Servers for local models take parts only where there is an image.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(String),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

impl WireMessage<'_> {
    fn words(role: &'static str, text: String) -> Self {
        Self { role, content: Some(Content::Text(text)), tool_calls: Vec::new(), tool_call_id: None }
    }
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
}
