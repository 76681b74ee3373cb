//! A prompt as the body of `POST /v1/messages`.

use flow::{Image, Part, Prompt, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::Value;

use crate::Options;
use crate::conversation::{Exchange, Word, arguments, exchanges, is_blank};

/// The default, since the format requires a number.
const DEFAULT_MAX_TOKENS: u32 = 8192;
/// The least the provider accepts for thinking.
pub(super) const MIN_THINKING: u32 = 1024;

/// The request's body.
pub(crate) fn encode(prompt: &Prompt, model: &str, options: &Options) -> serde_json::Result<Vec<u8>> {
    let max_tokens = prompt.max_tokens.or(options.max_tokens).unwrap_or(DEFAULT_MAX_TOKENS);
    // The budget must be less than the whole.
    let budget = options.thinking_budget.map(|budget| budget.min(max_tokens.saturating_sub(1)));
    let thinking = budget.filter(|budget| *budget >= MIN_THINKING);
    let texts = prompt.system.iter().map(|block| block.text.as_str());
    let mut system: Vec<Block<'_>> = texts.filter(|text| !is_blank(text)).map(text_block).collect();
    mark(&mut system);
    let exchanges = exchanges(&prompt.messages);
    let last = exchanges.len().saturating_sub(1);
    let mut messages: Vec<WireMessage<'_>> =
        exchanges.iter().enumerate().filter_map(|(at, turn)| message(turn, at == last)).collect();
    // A beginning of the answer comes after what the next request has too.
    if let Some(last) = messages.iter_mut().rfind(|message| message.role == "user") {
        mark(&mut last.content);
    }
    serde_json::to_vec(&Request {
        model,
        max_tokens,
        stream: true,
        system,
        messages,
        tools: prompt.tools.iter().map(tool).collect(),
        thinking: thinking.map(|budget_tokens| Thinking { kind: "enabled", budget_tokens }),
    })
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

fn message<'a>(turn: &Exchange<'a>, last: bool) -> Option<WireMessage<'a>> {
    let (role, content) = match turn {
        Exchange::User { results, words } => {
            let results = results.iter().map(|result| tool_result(result));
            ("user", results.chain(words.iter().map(user_block)).collect::<Vec<_>>())
        }
        Exchange::Assistant { parts } => {
            let mut content: Vec<_> = parts.iter().filter_map(|part| assistant_block(part)).collect();
            if let Some(Block::Text { text, .. }) = content.last_mut().filter(|_| last) {
                *text = text.trim_end(); // the beginning of an answer may not end in white space
            }
            ("assistant", content)
        }
    };
    (!content.is_empty()).then_some(WireMessage { role, content })
}

fn user_block<'a>(word: &Word<'a>) -> Block<'a> {
    match word {
        Word::Text(text) => text_block(text),
        Word::Image(image) => image_block(image),
    }
}

fn image_block(image: &Image) -> Block<'_> {
    let source = ImageSource { kind: "base64", media_type: image.media_type(), data: image.base64() };
    Block::Image { source, cache_control: None }
}

fn assistant_block(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Text(text) => (!is_blank(text)).then(|| text_block(text)),
        // Signed thinking goes back byte for byte; without a signature (cut off) or with another provider's it is
        // refused, so it stays at home.
        Part::Thinking { text, signature, redacted } => match signature.as_deref() {
            Some(seal) if is_foreign(seal) => None,
            Some(data) if *redacted => Some(Block::RedactedThinking { data }),
            Some(signature) => Some(Block::Thinking { thinking: text, signature }),
            None => None,
        },
        Part::ToolCall(call) => {
            Some(Block::ToolUse { id: call_id(call.id.as_str()), name: &call.name, input: arguments(call) })
        }
        // Images are of the user's input.
        Part::Image(_) | Part::ToolResult(_) => None,
    }
}

/// Ours are base64; the seal of the Responses format is a JSON object.
fn is_foreign(signature: &str) -> bool {
    signature.is_empty() || signature.starts_with('{')
}

fn tool_result(result: &ToolResult) -> Block<'_> {
    Block::ToolResult {
        tool_use_id: call_id(result.call.as_str()),
        content: result.content.iter().filter(|text| !is_blank(text)).map(|text| text_block(text)).collect(),
        is_error: result.is_error,
        cache_control: None,
    }
}

/// Ids of calls of another provider can contain characters that this one refuses.
fn call_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

fn text_block(text: &str) -> Block<'_> {
    Block::Text { text, cache_control: None }
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool { name: &spec.name, description: &spec.description, input_schema: &spec.parameters }
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
        id: String,
        name: &'a str,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
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
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

#[derive(Serialize)]
struct Thinking {
    #[serde(rename = "type")]
    kind: &'static str,
    budget_tokens: u32,
}
