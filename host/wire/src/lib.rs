//! The wire formats of model vendors, in both directions and without I/O: what comes over the network as frames, frames as the deltas of an
//! answer, prompts as the bodies of requests.
//!
//! Bytes become frames ([`SseDecoder`]), frames become deltas ([`AnswerDecoder`]) by the module of the format (`anthropic`, `openai_chat`,
//! `openai_responses`), which writes requests as well ([`encode`]). `providers` is a client of it; a server in front of a client speaks it, too.
#![forbid(unsafe_code)]

mod anthropic;
mod conversation;
mod decode;
pub mod failure;
pub mod head;
mod limits;
mod loose;
mod nul;
mod openai_chat;
mod openai_responses;
mod schema;
mod sse;
mod surrogates;
mod wires;

use flow::{Prompt, ProviderKind};

pub use self::anthropic::{DEFAULT_MAX_TOKENS, goes_on};
pub use self::conversation::Renamed;
pub use self::decode::AnswerDecoder;
pub use self::limits::AnswerLimits;
pub use self::sse::{Frame, MAX_EVENT_BYTES, SseDecoder, SseEvent, TooLarge};
pub use self::surrogates::json;

/// The wire formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// The Messages API of Anthropic.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAiChat,
    /// The Responses API of OpenAI.
    OpenAiResponses,
}

impl Wire {
    /// The wire format of a kind of provider; `None` for recordings.
    pub fn of(kind: ProviderKind) -> Option<Self> {
        match kind {
            ProviderKind::Anthropic => Some(Self::Anthropic),
            ProviderKind::OpenaiChat => Some(Self::OpenAiChat),
            ProviderKind::OpenaiResponses => Some(Self::OpenAiResponses),
            ProviderKind::Recording => None,
        }
    }

    /// The format's word on every surface: `anthropic`, `openai-chat`, `openai-responses`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => ProviderKind::Anthropic.as_str(),
            Self::OpenAiChat => ProviderKind::OpenaiChat.as_str(),
            Self::OpenAiResponses => ProviderKind::OpenaiResponses.as_str(),
        }
    }

    /// The vendor's own address.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAiChat | Self::OpenAiResponses => "https://api.openai.com/v1",
        }
    }

    /// The vendor's usual environment variable for the key.
    pub fn default_key_env(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAiChat | Self::OpenAiResponses => "OPENAI_API_KEY",
        }
    }

    /// Where requests go, below the version.
    pub fn endpoint(self) -> &'static str {
        match self {
            Self::Anthropic => "messages",
            Self::OpenAiChat => "chat/completions",
            Self::OpenAiResponses => "responses",
        }
    }
}

/// What a request needs in addition to its prompt.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    /// The most tokens of an answer, where the prompt does not say.
    pub max_tokens: Option<u32>,
    /// Tokens for thinking (Anthropic only; fewer than 1024 = none).
    pub thinking_budget: Option<u32>,
    /// How hard to reason (OpenAI formats only).
    pub effort: Option<String>,
    /// The server is the vendor's own, not one that imitates it.
    pub vendor: bool,
    /// Overrides what is known of the model; `None` = by its name.
    pub prefill: Option<bool>,
    /// Nothing is marked for the provider's prompt cache.
    pub unmarked: bool,
}

/// The body of the request that a prompt becomes: JSON, as it is sent.
///
/// # Errors
/// A tool's parameters cannot be written as JSON.
pub fn encode(wire: Wire, prompt: &Prompt, model: &str, options: &RequestOptions) -> serde_json::Result<Vec<u8>> {
    let body = match wire {
        Wire::Anthropic => anthropic::encode(prompt, model, options),
        Wire::OpenAiChat => openai_chat::encode(prompt, model, options),
        Wire::OpenAiResponses => openai_responses::encode(prompt, model, options),
    };
    body.map(nul::replaced)
}
