//! The values that callbacks get: messages, text and tags with their places, the model's output, news of stream rules.
//!
//! Plain data. Structs may grow fields, so they are made by their constructors; every enum has an `Other` case for what
//! a newer host may send.

/// A named value. Names of the host's own begin with `tidegate.`; ignore those you do not know.
pub type Attribute = (String, String);

/// Who speaks in a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The person or program that gives input.
    User,
    /// The model.
    Assistant,
    /// Results of tools.
    Tool,
    /// A role this version does not know.
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
    /// Room for more.
    pub attributes: Vec<Attribute>,
}

impl ToolCall {
    /// A call of `name` with `arguments` (JSON text).
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), attributes: Vec::new() }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call it answers.
    pub id: String,
    /// Its text blocks, in order.
    pub content: Vec<String>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Room for more.
    pub attributes: Vec<Attribute>,
}

impl ToolResult {
    /// A result of one text block.
    pub fn new(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { id: id.into(), content: vec![content.into()], is_error: false, attributes: Vec::new() }
    }
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words.
    Text(String),
    /// The model's reasoning.
    Thinking(String),
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// A tool answered.
    ToolResult(ToolResult),
    /// A piece this version does not know; the text names its kind. Give it back unchanged and it stays what it was.
    Other(String),
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// Room for more; see [`Message::written_by`].
    pub attributes: Vec<Attribute>,
}

impl Message {
    /// A message of one text part.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text(text.into())], attributes: Vec::new() }
    }

    /// Words of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, text)
    }

    /// Instructions to the model.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text)
    }

    /// Words of the model.
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

/// Where a unit of text stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextPlace {
    /// Its number among the units of this message, from 0.
    pub unit: u32,
    /// Names of the handled tags around it, outermost first; empty outside of all.
    pub inside: Vec<String>,
    /// Room for more.
    pub attributes: Vec<Attribute>,
}

impl TextPlace {
    /// The place of unit number `unit` inside these tags.
    pub fn new(unit: u32, inside: &[&str]) -> Self {
        Self { unit, inside: inside.iter().map(ToString::to_string).collect(), attributes: Vec::new() }
    }
}

/// A tag section. Innermost sections are handled first; what is inside has been processed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tag {
    /// The tag's name as written.
    pub name: String,
    /// The tag's own attributes in order, values decoded; a bare attribute has an empty value.
    pub attributes: Vec<Attribute>,
    /// What is inside, at most 1 MiB.
    pub content: String,
}

impl Tag {
    /// A section without attributes.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { name: name.into(), attributes: Vec::new(), content: content.into() }
    }

    /// The same with one more attribute.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// The value of the first attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Where a section stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagPlace {
    /// How many handled tags are around it.
    pub depth: u32,
    /// Their names, outermost first.
    pub inside: Vec<String>,
    /// Room for more.
    pub attributes: Vec<Attribute>,
}

impl TagPlace {
    /// The place inside these tags.
    pub fn new(inside: &[&str]) -> Self {
        let inside: Vec<String> = inside.iter().map(ToString::to_string).collect();
        Self { depth: u32::try_from(inside.len()).unwrap_or(u32::MAX), inside, attributes: Vec::new() }
    }
}

/// Why the model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It was done.
    #[default]
    EndTurn,
    /// It wants results of tools.
    ToolUse,
    /// It reached the most tokens it may write.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// It, or a filter of its provider, refused.
    Refusal,
    /// A reason this version does not know, as the host names it.
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
    /// Room for more.
    pub attributes: Vec<Attribute>,
}

/// The model's accepted answer, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LlmOutput {
    /// Its text: the text blocks of the message joined.
    pub text: String,
    /// The tool calls that come with it. They cannot be changed.
    pub tool_calls: Vec<ToolCall>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// Tokens of the accepted attempt.
    pub usage: Usage,
    /// Room for more.
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
pub enum RuleStream {
    /// The words for the user.
    Text,
    /// The reasoning.
    Thinking,
    /// The arguments of a tool call; its tool's name.
    Tool(String),
    /// A stream this version does not know.
    Other(String),
}

/// What is done about a match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleAction {
    /// It is noted and nothing else: the budget for interrupts is spent.
    Pass,
    /// The model is told afterwards.
    Remind,
    /// The answer was stopped and is tried again with the reminder.
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

/// One rule that fired, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleMatch {
    /// The rule's name.
    pub rule: String,
    /// The condition that matched, as written.
    pub pattern: String,
    /// The stream.
    pub stream: RuleStream,
    /// The matched text, at most 200 bytes.
    pub text: String,
    /// First byte of the match within its block.
    pub start: u32,
    /// The byte after its last.
    pub end: u32,
    /// The line it begins on, from 1.
    pub line: u32,
    /// The file the call is about, relative to the workspace.
    pub path: Option<String>,
    /// The argument it was found in.
    pub field: Option<String>,
    /// Room for more.
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

/// News of stream rules: what matched at one delta.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TtsrEvent {
    /// The rules that matched.
    pub matches: Vec<RuleMatch>,
    /// What is done about them.
    pub action: RuleAction,
    /// The attempt within the step, from 1.
    pub attempt: u32,
    /// Room for more.
    pub attributes: Vec<Attribute>,
}

impl TtsrEvent {
    /// An event of the first attempt.
    pub fn new(matches: Vec<RuleMatch>, action: RuleAction) -> Self {
        Self { matches, action, attempt: 1, attributes: Vec::new() }
    }
}
