//! A prompt as the body of `POST /v1/messages`.

use std::borrow::Cow;

use flow::{Image, Prompt, ToolSpec};
use serde::Serialize;
use serde_json::{Value, json};

use super::goes_on;
use crate::conversation::{Answered, Called, Exchange, Said, Word, exchanges, is_blank, tool_name};
use crate::schema::parameters;
use crate::wires::takes;
use crate::{RequestOptions, Wire};

/// The default, since the format requires a number.
pub const DEFAULT_MAX_TOKENS: u32 = 8192;
/// The least the provider accepts for thinking.
pub(super) const MIN_THINKING: u32 = 1024;

/// The request's body.
pub(crate) fn encode(prompt: &Prompt, model: &str, options: &RequestOptions) -> serde_json::Result<Vec<u8>> {
    let max_tokens = prompt.max_tokens.or(options.max_tokens).unwrap_or(DEFAULT_MAX_TOKENS);
    // The budget must be less than the whole.
    let budget = options.thinking_budget.map(|budget| budget.min(max_tokens.saturating_sub(1)));
    let thinking = budget.filter(|budget| *budget >= MIN_THINKING);
    let texts = prompt.system.iter().map(|block| block.text.as_str());
    let mut system: Vec<Block<'_>> = texts.filter(|text| !is_blank(text)).map(text_block).collect();
    if !options.unmarked {
        mark(&mut system);
    }
    let exchanges = exchanges(&prompt.messages, takes(Wire::Anthropic), goes_on(model, options));
    let (tools, tool_choice) = tools(&prompt.tools, &exchanges);
    let last = exchanges.len().saturating_sub(1);
    let mut messages: Vec<WireMessage<'_>> =
        exchanges.iter().enumerate().filter_map(|(at, turn)| message(turn, at == last)).collect();
    let thinking = thinking.filter(|_| may_think(&messages));
    // A beginning of the answer comes after what the next request has too.
    if let Some(last) = messages.iter_mut().rfind(|message| message.role == "user").filter(|_| !options.unmarked) {
        mark(&mut last.content);
    }
    serde_json::to_vec(&Request {
        model,
        max_tokens,
        stream: true,
        system,
        messages,
        tools,
        tool_choice,
        thinking: thinking.map(|budget_tokens| Thinking { kind: "enabled", budget_tokens }),
    })
}

/// Whether the answer may be reasoned about. An answer that is continued, or whose calls are answered, has to begin with its own reasoning,
/// which is not there if it was cut off or another model's.
fn may_think(messages: &[WireMessage<'_>]) -> bool {
    let answer = messages.iter().rfind(|message| message.role == "assistant");
    let calls = answer.is_some_and(|answer| answer.content.iter().any(|block| matches!(block, Block::ToolUse { .. })));
    let is_last = messages.last().is_some_and(|message| message.role == "assistant");
    !(calls || is_last) || answer.and_then(|answer| answer.content.first()).is_some_and(Block::is_reasoning)
}

/// Marks the end of a prefix that the provider should keep: the system prompt, and the conversation so far. The next
/// request of the turn begins with both.
fn mark(blocks: &mut [Block<'_>]) {
    if let Some(
        Block::Text { cache_control, .. }
        | Block::Image { cache_control, .. }
        | Block::ToolResult { cache_control, .. },
    ) = blocks.last_mut()
    {
        *cache_control = Some(CacheControl { kind: "ephemeral" });
    }
}

fn message<'a>(turn: &'a Exchange<'_>, last: bool) -> Option<WireMessage<'a>> {
    let (role, content) = match turn {
        Exchange::User { results, words } => {
            ("user", results.iter().map(tool_result).chain(words.iter().map(user_block)).collect::<Vec<_>>())
        }
        Exchange::Assistant { parts } => {
            let mut content: Vec<_> = parts.iter().filter_map(assistant_block).collect();
            // An answer does not end with reasoning.
            while content.last().is_some_and(Block::is_reasoning) {
                content.pop();
            }
            if let Some(Block::Text { text, .. }) = content.last_mut().filter(|_| last) {
                *text = text.trim_end(); // the beginning of an answer may not end in white space
            }
            ("assistant", content)
        }
    };
    (!content.is_empty()).then_some(WireMessage { role, content })
}

fn user_block<'a>(word: &'a Word<'_>) -> Block<'a> {
    match word {
        Word::Text(text) => text_block(text),
        Word::Image(image) => image_block(image),
    }
}

fn image_block(image: &Image) -> Block<'_> {
    let source = ImageSource { kind: "base64", media_type: image.media_type(), data: image.base64() };
    Block::Image { source, cache_control: None }
}

fn assistant_block<'a>(part: &'a Said<'_>) -> Option<Block<'a>> {
    match part {
        Said::Text(text) => (!is_blank(text)).then(|| text_block(text)),
        // Signed thinking goes back byte for byte; without a signature (cut off) or with another provider's it is
        // refused, so it stays at home.
        Said::Thinking { text, signature, redacted } => match signature {
            Some(seal) if is_foreign(seal) => None,
            Some(data) if *redacted => Some(Block::RedactedThinking { data }),
            Some(signature) => Some(Block::Thinking { thinking: text, signature }),
            None => None,
        },
        Said::Call(called) => Some(tool_use(called)),
    }
}

/// Ours are base64; the seal of the Responses format is a JSON object.
fn is_foreign(signature: &str) -> bool {
    signature.is_empty() || signature.starts_with('{')
}

fn tool_use<'a>(called: &'a Called<'_>) -> Block<'a> {
    Block::ToolUse { id: &called.id, name: &called.name, input: called.arguments() }
}

fn tool_result<'a>(result: &'a Answered<'_>) -> Block<'a> {
    Block::ToolResult {
        tool_use_id: &result.id,
        content: result.texts().map(text_block).collect(),
        is_error: result.is_error(),
        cache_control: None,
    }
}

fn text_block(text: &str) -> Block<'_> {
    Block::Text { text, cache_control: None }
}

/// The tools, and whether the model may call them. A conversation with calls is refused without any tool, so those that were called are
/// named then.
fn tools<'a>(specs: &'a [ToolSpec], exchanges: &'a [Exchange<'_>]) -> (Vec<Tool<'a>>, Option<ToolChoice>) {
    if !specs.is_empty() {
        return (specs.iter().map(tool).collect(), None);
    }
    let mut called: Vec<&str> = Vec::new();
    for turn in exchanges {
        let Exchange::Assistant { parts } = turn else { continue };
        for part in parts {
            if let Said::Call(call) = part
                && !called.contains(&&*call.name)
            {
                called.push(&call.name);
            }
        }
    }
    let absent = |name| Tool {
        name: Cow::Borrowed(name),
        description: "This tool is not available any more.",
        input_schema: Cow::Owned(json!({"type": "object", "properties": {}})),
    };
    let choice = (!called.is_empty()).then_some(ToolChoice { kind: "none" });
    (called.into_iter().map(absent).collect(), choice)
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool {
        name: tool_name(&spec.name, takes(Wire::Anthropic)),
        description: &spec.description,
        input_schema: parameters(&spec.parameters),
    }
}

impl Block<'_> {
    fn is_reasoning(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
}

#[derive(Serialize)]
struct ImageSource<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'static str,
    data: &'a str,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Image {
        source: ImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    input_schema: Cow<'a, Value>,
}

#[derive(Serialize)]
struct ToolChoice {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Thinking {
    #[serde(rename = "type")]
    kind: &'static str,
    budget_tokens: u32,
}
