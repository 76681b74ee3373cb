//! Between the host's values and those of contract 0.1.0. What a guest returns is checked in `answers`.

use flow::{Message, Origin, Part, Role, StopReason};
use turn::ports::SessionInfo;

use super::bindings::tidegate::extension as imports;
use crate::setting::Setting;
use imports::types::{
    AttributeParam, MessageParam, MessageResult, PartParam, PartResult, RoleParam, RoleResult, SettingParam,
    SettingResult, ToolCallParam, ToolCallResult, ToolResultParam, ToolResultResult,
};

/// Names the extension that wrote a message.
const PLUGIN_ATTRIBUTE: &str = "tidegate.plugin";
/// What a piece of reasoning is called that the provider gave no words for.
pub(super) const REDACTED: &str = "redacted-thinking";

/// Numbers of the contract are 32 bits wide; what is larger is shown as the largest.
pub(super) fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// All that must live as long as a borrowed list of messages.
pub(super) struct Borrowed<'a> {
    contents: Vec<Vec<Vec<&'a str>>>,
    messages: &'a [Message],
}

impl<'a> Borrowed<'a> {
    pub(super) fn new(messages: &'a [Message]) -> Self {
        let contents = messages.iter().map(|message| message.parts.iter().map(content).collect()).collect();
        Self { contents, messages }
    }

    /// The pieces of each message.
    pub(super) fn parts(&self) -> Vec<Vec<PartParam<'_>>> {
        let each = self.messages.iter().zip(&self.contents);
        each.map(|(message, contents)| message.parts.iter().zip(contents).map(|(p, c)| part(p, c)).collect()).collect()
    }

    /// The attributes of each message.
    pub(super) fn attributes(&self) -> Vec<Vec<AttributeParam<'_>>> {
        self.messages
            .iter()
            .map(|message| match &message.origin {
                Origin::Plugin(plugin) => vec![(PLUGIN_ATTRIBUTE, plugin.as_str())],
                Origin::User | Origin::Model | Origin::Host => Vec::new(),
            })
            .collect()
    }
}

/// The messages themselves.
pub(super) fn messages<'a>(
    messages: &'a [Message],
    parts: &'a [Vec<PartParam<'a>>],
    attributes: &'a [Vec<AttributeParam<'a>>],
) -> Vec<MessageParam<'a>> {
    let each = messages.iter().zip(parts).zip(attributes);
    each.map(|((message, parts), attributes)| MessageParam { role: role(message.role), parts, attributes }).collect()
}

fn content(part: &Part) -> Vec<&str> {
    match part {
        Part::ToolResult(result) => result.content.iter().map(String::as_str).collect(),
        Part::Text(_) | Part::Thinking { .. } | Part::ToolCall(_) => Vec::new(),
    }
}

fn part<'a>(part: &'a Part, content: &'a [&'a str]) -> PartParam<'a> {
    match part {
        Part::Text(text) => PartParam::Text(text),
        Part::Thinking { redacted: true, .. } => PartParam::Other(REDACTED),
        Part::Thinking { text, .. } => PartParam::Thinking(text),
        Part::ToolCall(call) => PartParam::ToolCall(tool_call(call)),
        Part::ToolResult(result) => PartParam::ToolResult(ToolResultParam {
            id: result.call.as_str(),
            content,
            is_error: result.is_error,
            attributes: &[],
        }),
    }
}

/// A tool call, borrowed.
pub(super) fn tool_call(call: &flow::ToolCall) -> ToolCallParam<'_> {
    ToolCallParam { id: call.id.as_str(), name: &call.name, arguments: &call.arguments, attributes: &[] }
}

fn role(role: Role) -> RoleParam<'static> {
    match role {
        Role::System => RoleParam::System,
        Role::User => RoleParam::User,
        Role::Assistant => RoleParam::Assistant,
        Role::Tool => RoleParam::Tool,
    }
}

/// Why the model stopped.
pub(super) fn stop(stop: &StopReason) -> imports::types::StopReason<'_> {
    use imports::types::StopReason as Theirs;
    match stop {
        StopReason::EndTurn => Theirs::EndTurn,
        StopReason::ToolUse => Theirs::ToolUse,
        StopReason::MaxTokens => Theirs::MaxTokens,
        StopReason::StopSequence => Theirs::StopSequence,
        StopReason::Refusal => Theirs::Refusal,
        StopReason::Pause | StopReason::ContextFull | StopReason::Other(_) => Theirs::Other(stop.as_str()),
    }
}

/// A message of the history, owned: what a power returns.
pub(super) fn message_out(message: &Message) -> MessageResult {
    let attributes = match &message.origin {
        Origin::Plugin(plugin) => vec![(PLUGIN_ATTRIBUTE.to_owned(), plugin.to_string())],
        Origin::User | Origin::Model | Origin::Host => Vec::new(),
    };
    let role = match message.role {
        Role::System => RoleResult::System,
        Role::User => RoleResult::User,
        Role::Assistant => RoleResult::Assistant,
        Role::Tool => RoleResult::Tool,
    };
    MessageResult { role, parts: message.parts.iter().map(part_out).collect(), attributes }
}

fn part_out(part: &Part) -> PartResult {
    match part {
        Part::Text(text) => PartResult::Text(text.clone()),
        Part::Thinking { redacted: true, .. } => PartResult::Other(REDACTED.to_owned()),
        Part::Thinking { text, .. } => PartResult::Thinking(text.clone()),
        Part::ToolCall(call) => PartResult::ToolCall(ToolCallResult {
            id: call.id.to_string(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            attributes: Vec::new(),
        }),
        Part::ToolResult(result) => PartResult::ToolResult(ToolResultResult {
            id: result.call.to_string(),
            content: result.content.clone(),
            is_error: result.is_error,
            attributes: Vec::new(),
        }),
    }
}

/// The facts about a session.
pub(super) fn session_info(extension: String, info: SessionInfo) -> imports::session::SessionInfo {
    imports::session::SessionInfo {
        extension,
        id: info.id.as_str().to_owned(),
        turn: info.place.turn,
        step: info.place.step,
        attempt: info.place.attempt,
        provider: info.provider,
        model: info.model,
        workspace: info.workspace,
        attributes: Vec::new(),
    }
}

/// What `session.info` says while registering.
pub(super) fn no_session(extension: String) -> imports::session::SessionInfo {
    let none = String::new;
    imports::session::SessionInfo {
        extension,
        id: none(),
        turn: 0,
        step: 0,
        attempt: 0,
        provider: none(),
        model: none(),
        workspace: none(),
        attributes: Vec::new(),
    }
}

/// A tool the model is offered.
pub(super) fn tool_out(tool: flow::ToolSpec) -> imports::tools::ToolInfo {
    imports::tools::ToolInfo {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters.to_string(),
        attributes: Vec::new(),
    }
}

/// A setting, owned: what a power returns.
pub(super) fn setting_out(setting: &Setting) -> SettingResult {
    match setting {
        Setting::Text(text) => SettingResult::Text(text.clone()),
        Setting::Number(number) => SettingResult::Number(*number),
        Setting::Boolean(yes) => SettingResult::Boolean(*yes),
        Setting::Texts(texts) => SettingResult::Texts(texts.clone()),
    }
}

/// A setting, borrowed: what `register` gets. `texts` is what a list of texts needs to be borrowed.
pub(super) fn setting<'a>(setting: &'a Setting, texts: &'a [&'a str]) -> SettingParam<'a> {
    match setting {
        Setting::Text(text) => SettingParam::Text(text),
        Setting::Number(number) => SettingParam::Number(*number),
        Setting::Boolean(yes) => SettingParam::Boolean(*yes),
        Setting::Texts(_) => SettingParam::Texts(texts),
    }
}
