//! The values that callbacks get: messages, text and tags with their positions, the model's output, matches of stream rules.
//!
//! Plain data. Structs may grow fields, so they are made by their constructors; every enum has an `Other` case for what
//! a newer host may send.

use crate::TextStream;

/// A named value. Names of the host's own begin with `tidegate.`; ignore those you do not know.
pub type Attribute = (String, String);

/// The author role of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The person or program that gives input.
    User,
    /// An answer of the model.
    Assistant,
    /// Results of tools.
    Tool,
    /// A role that this version does not know.
    Other(String),
}

/// A call of a tool by the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// Pairs the call with its result.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them: JSON text.
    pub arguments: String,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl ToolCall {
    /// A call of `name` with `arguments` (JSON text).
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), attributes: Vec::new() }
    }
}

/// Content that is not text: an image, audio, a file. The bytes themselves are not passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blob {
    /// Identifies the content within the session.
    pub id: String,
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The number of bytes; `u32::MAX` also represents any larger number.
    pub size: u32,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

/// One part of a tool's result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// A text block.
    Text(String),
    /// Content that is not text.
    Blob(Blob),
    /// A kind that this version does not know; the string names it.
    Other(String),
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call it answers.
    pub id: String,
    /// Its parts, in order.
    pub content: Vec<Content>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl ToolResult {
    /// A result of one text block.
    pub fn new(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { id: id.into(), content: vec![Content::Text(content.into())], is_error: false, attributes: Vec::new() }
    }
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Text of the author.
    Text(String),
    /// The model's reasoning.
    Thinking(String),
    /// A call of a tool.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// Content that is not text.
    Blob(Blob),
    /// A kind that this version does not know; the string names it. Returned in the message it came with, it is the
    /// original part.
    Other(String),
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Identifies the message within the session; empty in an input and in a new message.
    pub id: String,
    /// The author role.
    pub role: Role,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// Reserved for additions; unknown keys must be ignored. See [`Message::written_by`].
    pub attributes: Vec<Attribute>,
}

impl Message {
    /// A message of one text part.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { id: String::new(), role, parts: vec![Part::Text(text.into())], attributes: Vec::new() }
    }

    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, text)
    }

    /// Instructions to the model.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text)
    }

    /// A message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, text)
    }

    /// Adds a text part at the end.
    pub fn push_text(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Text(text.into()));
    }

    /// All text parts, joined without anything between them. Thinking and tools are left out.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
            .collect()
    }

    /// The extension that wrote the message, where one did.
    pub fn written_by(&self) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| name == "tidegate.plugin").map(|(_, id)| id.as_str())
    }
}

/// A position in the run of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Moment {
    /// The turn, from 1; 0 before the first.
    pub turn: u32,
    /// The step of the turn, from 1. A step is one accepted message of the model.
    pub step: u32,
    /// The attempt of the step, from 1; 0 where the model was not asked. An attempt is one request to the model. It can be
    /// discarded, and its text can come again in the next.
    pub attempt: u32,
}

impl Moment {
    /// Creates a position for a test.
    pub fn new(turn: u32, step: u32, attempt: u32) -> Self {
        Self { turn, step, attempt }
    }
}

/// The position of a unit of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextPlace {
    /// The position in the run.
    pub at: Moment,
    /// The stream that the unit belongs to.
    pub stream: TextStream,
    /// Its number among the units of this stream in this attempt, from 0.
    pub unit: u32,
    /// Names of the handled tags around it, outermost first; empty outside of all tags.
    pub inside: Vec<String>,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl TextPlace {
    /// The position of unit number `unit` of the answer inside these tags.
    pub fn new(unit: u32, inside: &[&str]) -> Self {
        let inside = inside.iter().map(ToString::to_string).collect();
        Self { unit, inside, ..Self::default() }
    }

    /// The same in another stream.
    #[must_use]
    pub fn in_stream(mut self, stream: TextStream) -> Self {
        self.stream = stream;
        self
    }
}

/// A section with its tag. Innermost sections are handled first; the content has been processed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tag {
    /// The tag's name as written.
    pub name: String,
    /// The attributes that the model wrote in the tag, in order, values decoded; a bare attribute has an empty value.
    pub pairs: Vec<Attribute>,
    /// The content, at most 1 MiB.
    pub content: String,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl Tag {
    /// A section without attributes.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { name: name.into(), content: content.into(), ..Self::default() }
    }

    /// The same with one more attribute, as the model would write it.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.pairs.push((name.into(), value.into()));
        self
    }

    /// The value of the first attribute of this name that the model wrote.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// The position of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagPlace {
    /// The position in the run.
    pub at: Moment,
    /// Names of the handled tags around it, outermost first; empty outside of all tags.
    pub inside: Vec<String>,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl TagPlace {
    /// The position inside these tags.
    pub fn new(inside: &[&str]) -> Self {
        Self { inside: inside.iter().map(ToString::to_string).collect(), ..Self::default() }
    }
}

/// Why the model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The answer is complete.
    #[default]
    EndTurn,
    /// It waits for results of tools.
    ToolUse,
    /// It reached the limit of tokens for one answer.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// The model, or a filter of its provider, refused.
    Refusal,
    /// The provider paused the answer; the host asks again with the same conversation.
    Pause,
    /// The conversation is larger than the model's context.
    ContextFull,
    /// A reason that this version does not know, as the host names it.
    Other(String),
}

/// Tokens of one request, as the provider counted them; absent where it did not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: Option<u32>,
    /// Tokens of the answer.
    pub output: Option<u32>,
    /// Tokens of the prompt that were read from the provider's cache.
    pub cache_read: Option<u32>,
    /// Tokens of the prompt that were written to the provider's cache.
    pub cache_write: Option<u32>,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

/// The model's accepted answer as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LlmOutput {
    /// The position in the run.
    pub at: Moment,
    /// Its text: the text blocks of the message joined.
    pub text: String,
    /// The tool calls that come with it. They cannot be changed.
    pub tool_calls: Vec<ToolCall>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// Tokens of the accepted attempt.
    pub usage: Usage,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl LlmOutput {
    /// An answer of this text that ended by itself.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// The stream in which a rule matched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleStream {
    /// The text of the answer.
    Text,
    /// The joined reasoning of an answer.
    Thinking,
    /// The arguments of a tool call; its tool's name.
    Tool(String),
    /// A stream this version does not know.
    Other(String),
}

/// The action taken on a match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleAction {
    /// None: the budget for interrupts is used up.
    Pass,
    /// The model is reminded after its answer.
    Remind,
    /// The answer was stopped, and the model is asked again with the reminder.
    Interrupt,
    /// The tool call does not run.
    Block,
    /// The turn ends.
    Stop,
    /// An action this version does not know.
    Other(String),
}

impl RuleAction {
    /// The action's word: `pass`, `remind`, `interrupt`, `block`, `stop`, or the host's own.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pass => "pass",
            Self::Remind => "remind",
            Self::Interrupt => "interrupt",
            Self::Block => "block",
            Self::Stop => "stop",
            Self::Other(word) => word,
        }
    }
}

/// One rule that matched, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleMatch {
    /// The rule's name.
    pub rule: String,
    /// The condition that matched, as written.
    pub pattern: String,
    /// The stream in which the rule matched.
    pub stream: RuleStream,
    /// The matched text, at most 200 bytes.
    pub text: String,
    /// The offset of the match's first byte in its stream.
    pub start: u32,
    /// The offset of the byte after its last.
    pub end: u32,
    /// The line it begins on, from 1.
    pub line: u32,
    /// The file the call is about, relative to the workspace.
    pub path: Option<String>,
    /// The argument it was found in.
    pub field: Option<String>,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl RuleMatch {
    /// A match of `text` in a stream, at its beginning.
    pub fn new(rule: impl Into<String>, stream: RuleStream, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            rule: rule.into(),
            pattern: String::new(),
            stream,
            start: 0,
            end: u32::try_from(text.len()).unwrap_or(u32::MAX),
            text,
            line: 1,
            path: None,
            field: None,
            attributes: Vec::new(),
        }
    }
}

/// The matches of stream rules at one byte of the model's output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TtsrEvent {
    /// The rules that matched.
    pub matches: Vec<RuleMatch>,
    /// The action taken.
    pub action: RuleAction,
    /// The position in the run.
    pub at: Moment,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl TtsrEvent {
    /// An event of the first attempt.
    pub fn new(matches: Vec<RuleMatch>, action: RuleAction) -> Self {
        Self { matches, action, at: Moment::new(1, 1, 1), attributes: Vec::new() }
    }
}
