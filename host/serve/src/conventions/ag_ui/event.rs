//! The events of AG-UI 1.0.

use record::Tokens;
use serde::Serialize;
use serde_json::Value;

/// An event: the data of one server-sent event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Event {
    #[serde(flatten)]
    pub(super) kind: Kind,
    /// In milliseconds since 1970-01-01 UTC.
    pub(super) timestamp: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(crate) enum Kind {
    RunStarted {
        thread_id: String,
        run_id: String,
        protocol_version: &'static str,
    },
    RunFinished {
        thread_id: String,
        run_id: String,
        outcome: Outcome,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<Usage>,
    },
    RunError {
        message: String,
        code: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<Usage>,
    },
    StepStarted {
        step_name: String,
    },
    StepFinished {
        step_name: String,
    },
    TextMessageStart {
        message_id: String,
        role: &'static str,
    },
    TextMessageContent {
        message_id: String,
        delta: String,
    },
    TextMessageEnd {
        message_id: String,
    },
    ReasoningStart {
        message_id: String,
    },
    ReasoningMessageStart {
        message_id: String,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: String,
    },
    ReasoningEnd {
        message_id: String,
    },
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<String>,
    },
    ToolCallArgs {
        tool_call_id: String,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: String,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: String,
        role: &'static str,
    },
    MessagesSnapshot {
        messages: Vec<Value>,
    },
    Custom {
        name: String,
        value: Value,
    },
}

/// Why a run has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Success,
    Cancelled,
    Interrupt { interrupts: Vec<Interrupt> },
}

/// Something that the session needs from a person.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Interrupt {
    pub(super) id: String,
    pub(super) reason: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
    pub(super) response_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<String>,
    pub(super) metadata: Value,
}

/// The tokens of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
}

impl Usage {
    /// The tokens, where any are known. Those of a cache are left out: whether the provider counts them as a part of the prompt is not.
    pub(super) fn of(model: Option<String>, tokens: &Tokens) -> Vec<Self> {
        let Tokens { input_tokens, output_tokens, .. } = tokens.clone();
        let is_known = input_tokens.is_some() || output_tokens.is_some();
        is_known.then_some(Self { model, input_tokens, output_tokens }).into_iter().collect()
    }
}
