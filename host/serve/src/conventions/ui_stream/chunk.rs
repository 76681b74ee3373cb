//! The chunks of a UI message stream, as `ai` 7 reads them.

use record::{Preview, Tokens};
use serde::Serialize;
use serde_json::Value;

/// A chunk: the data of one server-sent event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum Chunk {
    Start {
        message_id: String,
    },
    StartStep,
    TextStart {
        id: String,
    },
    TextDelta {
        id: String,
        delta: String,
    },
    TextEnd {
        id: String,
    },
    ReasoningStart {
        id: String,
    },
    ReasoningDelta {
        id: String,
        delta: String,
    },
    ReasoningEnd {
        id: String,
    },
    ToolInputAvailable {
        tool_call_id: String,
        tool_name: String,
        input: Value,
        #[serde(flatten)]
        tool: Tool,
    },
    /// A call that was refused, whose arguments are not shown.
    ToolInputError {
        tool_call_id: String,
        tool_name: String,
        input: Value,
        error_text: String,
        #[serde(flatten)]
        tool: Tool,
    },
    ToolApprovalRequest {
        approval_id: String,
        tool_call_id: String,
        reason: String,
        approval_descriptor: Descriptor,
    },
    ToolApprovalResponse {
        approval_id: String,
        approved: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    ToolOutputAvailable {
        tool_call_id: String,
        output: String,
        tool_metadata: ToolMetadata,
        #[serde(flatten)]
        tool: Tool,
    },
    ToolOutputError {
        tool_call_id: String,
        error_text: String,
        tool_metadata: ToolMetadata,
        #[serde(flatten)]
        tool: Tool,
    },
    ToolOutputDenied {
        tool_call_id: String,
    },
    SteeringMessage {
        id: String,
        parts: Vec<TextPart>,
    },
    ResetStep,
    FinishStep,
    MessageMetadata {
        message_metadata: Metadata,
    },
    Finish {
        finish_reason: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Metadata>,
    },
    Error {
        error_text: String,
    },
    Abort {
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A part of the application's own: its type begins with `data-`.
    #[serde(untagged)]
    Data {
        r#type: String,
        id: String,
        data: Value,
    },
}

/// What is the same for all tools: no client knows them when it is built, and none runs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tool {
    pub(super) dynamic: bool,
    pub(super) provider_executed: bool,
}

impl Tool {
    pub(super) const OURS: Self = Self { dynamic: true, provider_executed: true };
}

/// What a person is shown with a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(super) preview: Preview,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) always: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_ms: Option<u64>,
}

/// What is known of a call that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waited_ms: Option<u64>,
}

/// The text of a steering message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TextPart {
    pub(super) r#type: &'static str,
    pub(super) text: String,
}

/// The metadata of a message at its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(super) turn: u32,
    /// As in `turn_finish`.
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    pub(super) usage: Usage,
    /// In US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<f64>,
}

/// Tokens, as the AI SDK names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_input_tokens: Option<u64>,
}

impl From<&Tokens> for Usage {
    fn from(tokens: &Tokens) -> Self {
        Self {
            input_tokens: tokens.input_tokens,
            output_tokens: tokens.output_tokens,
            cached_input_tokens: tokens.cache_read_tokens,
        }
    }
}
