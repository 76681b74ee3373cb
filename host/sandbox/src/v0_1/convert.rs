//! Between the host's values and those of contract 0.1.0. What a guest returns is checked in `answers`.

use std::sync::Arc;

use flow::ports::SessionInfo;
use flow::{AdditionId, Message, Origin, Part, Role, RunPosition, StopReason};

use super::bindings::tidegate::extension as imports;
use crate::limits;
use crate::setting::Setting;
use imports::types::{
    AttributeParam, ContentParam, ContentResult, MessageParam, MessageResult, Moment, PartParam, PartResult, RoleParam,
    RoleResult, SettingParam, SettingResult, ToolCallParam, ToolCallResult, ToolResultParam, ToolResultResult,
};

/// Names the extension that wrote a message.
const PLUGIN_ATTRIBUTE: &str = "tidegate.plugin";
/// The number of bytes of a message with cut text.
const CUT_ATTRIBUTE: &str = "tidegate.cut";
/// The kind of a part of reasoning that the provider encrypted.
pub(super) const REDACTED: &str = "redacted-thinking";
/// The kind of an image.
const IMAGE: &str = "image";
/// The agent while registering, when there is no session.
const AGENT: &str = "main";

/// The kind of a part that the contract has no case for.
pub(super) fn unknown_kind(part: &Part) -> Option<&'static str> {
    match part {
        Part::Thinking { redacted: true, .. } => Some(REDACTED),
        Part::Image(_) => Some(IMAGE),
        Part::Text(_) | Part::Thinking { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
    }
}

/// A position in the run.
pub(super) fn moment(at: RunPosition) -> Moment {
    Moment { turn: at.turn, step: at.step, attempt: at.attempt }
}

/// Numbers of the contract are 32 bits wide; what is larger is shown as the largest.
pub(super) fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// All that must live as long as a borrowed list of messages.
pub(super) struct Borrowed<'a> {
    contents: Vec<Vec<Vec<ContentParam<'a>>>>,
    messages: &'a [Message],
}

impl<'a> Borrowed<'a> {
    pub(super) fn new(messages: &'a [Message]) -> Self {
        let contents = messages.iter().map(|message| message.parts.iter().map(content).collect()).collect();
        Self { contents, messages }
    }

    /// The parts of each message.
    pub(super) fn parts(&self) -> Vec<Vec<PartParam<'_>>> {
        let each = self.messages.iter().zip(&self.contents);
        each.map(|(message, contents)| message.parts.iter().zip(contents).map(|(p, c)| part(p, c)).collect()).collect()
    }

    /// The attributes of each message.
    pub(super) fn attributes(&self) -> Vec<Vec<AttributeParam<'_>>> {
        self.messages
            .iter()
            .map(|message| match &message.origin {
                Origin::Plugin(plugin) | Origin::Addition(AdditionId { plugin, .. }) => {
                    vec![(PLUGIN_ATTRIBUTE, plugin.as_str())]
                }
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
    // Input is not part of the conversation yet: it has no id.
    let message = |((message, parts), attributes): ((&'a Message, &'a Vec<_>), &'a Vec<_>)| MessageParam {
        id: "",
        role: role(message.role),
        parts,
        attributes,
    };
    each.map(message).collect()
}

fn content(part: &Part) -> Vec<ContentParam<'_>> {
    match part {
        Part::ToolResult(result) => result.content.iter().map(|text| ContentParam::Text(text)).collect(),
        Part::Text(_) | Part::Image(_) | Part::Thinking { .. } | Part::ToolCall(_) => Vec::new(),
    }
}

fn part<'a>(part: &'a Part, content: &'a [ContentParam<'a>]) -> PartParam<'a> {
    if let Some(kind) = unknown_kind(part) {
        return PartParam::Other(kind);
    }
    match part {
        Part::Image(_) => PartParam::Other(IMAGE),
        Part::Text(text) => PartParam::Text(text),
        Part::Thinking { text, shown, .. } => PartParam::Thinking(shown.as_deref().unwrap_or(text)),
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
        StopReason::Pause => Theirs::Pause,
        StopReason::ContextFull => Theirs::ContextFull,
        StopReason::Other(_) => Theirs::Other(stop.as_str()),
    }
}

/// Messages of the history, owned: as many from the first on as have at most `bytes` of text together. The first is always
/// among them, with its text cut where it alone has more.
pub(super) fn history(messages: &[(u64, Arc<Message>)], bytes: usize) -> Vec<MessageResult> {
    let mut left = bytes;
    let mut done = Vec::new();
    for (number, message) in messages {
        let size = text_bytes(message);
        if size > left && !done.is_empty() {
            break;
        }
        let mut one = message_cut(message, &mut left);
        one.id = number.to_string();
        if size > bytes {
            one.attributes.push((CUT_ATTRIBUTE.to_owned(), size.to_string()));
        }
        done.push(one);
    }
    done
}

/// Bytes of all strings of a message that can be long.
fn text_bytes(message: &Message) -> usize {
    let bytes = |part: &Part| match part {
        Part::Image(_) => 0,
        Part::Text(text) => text.len(),
        Part::Thinking { text, shown, .. } => shown.as_ref().unwrap_or(text).len(),
        Part::ToolCall(call) => call.arguments.len(),
        Part::ToolResult(result) => result.content.iter().map(String::len).sum(),
    };
    message.parts.iter().map(bytes).sum()
}

/// A message, owned, as a guest gets it in an input.
pub(super) fn message_out(message: &Message) -> MessageResult {
    message_cut(message, &mut { usize::MAX })
}

/// A message, owned, with at most `left` bytes of text, which are then used up.
fn message_cut(message: &Message, left: &mut usize) -> MessageResult {
    let attributes = match &message.origin {
        Origin::Plugin(plugin) | Origin::Addition(AdditionId { plugin, .. }) => {
            vec![(PLUGIN_ATTRIBUTE.to_owned(), plugin.to_string())]
        }
        Origin::User | Origin::Model | Origin::Host => Vec::new(),
    };
    let role = match message.role {
        Role::System => RoleResult::System,
        Role::User => RoleResult::User,
        Role::Assistant => RoleResult::Assistant,
        Role::Tool => RoleResult::Tool,
    };
    let parts = message.parts.iter().map(|part| part_out(part, left)).collect();
    MessageResult { id: String::new(), role, parts, attributes }
}

fn part_out(part: &Part, left: &mut usize) -> PartResult {
    let mut take = |text: &str| {
        let taken = limits::cut(text, *left);
        *left -= taken.len();
        taken.to_owned()
    };
    if let Some(kind) = unknown_kind(part) {
        return PartResult::Other(kind.to_owned());
    }
    match part {
        Part::Image(_) => PartResult::Other(IMAGE.to_owned()),
        Part::Text(text) => PartResult::Text(take(text)),
        Part::Thinking { text, shown, .. } => PartResult::Thinking(take(shown.as_deref().unwrap_or(text))),
        Part::ToolCall(call) => PartResult::ToolCall(ToolCallResult {
            id: call.id.to_string(),
            name: call.name.clone(),
            arguments: take(&call.arguments),
            attributes: Vec::new(),
        }),
        Part::ToolResult(result) => PartResult::ToolResult(ToolResultResult {
            id: result.call.to_string(),
            content: result.content.iter().map(|text| ContentResult::Text(take(text))).collect(),
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
        at: moment(info.place),
        agent: info.agent,
        provider: info.provider,
        model: info.model,
        workspace: info.workspace,
        attributes: Vec::new(),
    }
}

/// The result of `session.info` while registering.
pub(super) fn no_session(extension: String) -> imports::session::SessionInfo {
    let none = String::new;
    imports::session::SessionInfo {
        extension,
        id: none(),
        at: moment(RunPosition::default()),
        agent: AGENT.to_owned(),
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
