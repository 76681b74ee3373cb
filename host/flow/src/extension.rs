//! Callbacks of extensions: what they are, what they answer, how they fail.

use crate::{Called, PluginId, ProvidedTool, Registered, RunPosition, StopReason, TagPattern, ToolCall, Usage};

/// Priority of a callback that names none. Range 0 to 100, higher first; equal = order of registration.
pub const DEFAULT_PRIORITY: u8 = 50;

/// The callbacks that an extension can register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallbackKind {
    /// `on_input_messages`: rewrites or rejects the messages of one input.
    InputMessages,
    /// `on_plain_text`: rewrites units of shown text.
    PlainText,
    /// `on_tag`: handles sections between registered tags.
    Tag,
    /// `on_llm_output`: observes or rewrites the whole accepted answer.
    LlmOutput,
    /// `ttsr_triggered`: is notified of matches of stream rules.
    TtsrTriggered,
    /// `on_tool_call`: replaces the arguments of calls, or denies them.
    ToolCall,
    /// `on_tool_result`: replaces results of tools.
    ToolResult,
}

impl CallbackKind {
    /// All of them, in the order of a turn.
    pub const ALL: [Self; 7] = [
        Self::InputMessages,
        Self::PlainText,
        Self::Tag,
        Self::LlmOutput,
        Self::TtsrTriggered,
        Self::ToolCall,
        Self::ToolResult,
    ];

    /// The callback's name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InputMessages => "on_input_messages",
            Self::PlainText => "on_plain_text",
            Self::Tag => "on_tag",
            Self::LlmOutput => "on_llm_output",
            Self::TtsrTriggered => "ttsr_triggered",
            Self::ToolCall => "on_tool_call",
            Self::ToolResult => "on_tool_result",
        }
    }
}

/// The units that `on_plain_text` is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextUnit {
    /// A line, its line end included.
    Line,
    /// A paragraph, the blank line after it included.
    Paragraph,
    /// All text up to the next handled tag or the end of the message; of reasoning, up to the end of its block.
    Whole,
}

/// A stream of text that `on_plain_text` is called for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextStream {
    /// The text of the answer.
    #[default]
    Answer,
    /// The reasoning that is shown.
    Thinking,
}

/// How `on_plain_text` is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextOptions {
    /// The units that it is called with.
    pub unit: TextUnit,
    /// Whether it is called for the text of the answer.
    pub answer: bool,
    /// Whether it is called for the reasoning that is shown.
    pub thinking: bool,
}

impl TextOptions {
    /// Whether it is called for this stream.
    pub fn reads(&self, stream: TextStream) -> bool {
        match stream {
            TextStream::Answer => self.answer,
            TextStream::Thinking => self.thinking,
        }
    }
}

impl From<TextUnit> for TextOptions {
    /// These units of the answer.
    fn from(unit: TextUnit) -> Self {
        Self { unit, answer: true, thinking: false }
    }
}

/// Whether `on_llm_output` may change the output. A rewriter makes the host hold the answer back until it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputMode {
    /// It only looks; the answer streams live.
    Observe,
    /// It may replace the output.
    Rewrite,
}

/// One registered callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callback {
    /// `on_input_messages`: rewrites or rejects the messages of one input.
    InputMessages,
    /// `on_plain_text`: rewrites units of shown text.
    PlainText(TextOptions),
    /// `on_tag`: handles sections between registered tags.
    Tag(Vec<TagPattern>),
    /// `on_llm_output`: observes or rewrites the whole accepted answer.
    LlmOutput(OutputMode),
    /// `ttsr_triggered`: is notified of matches of stream rules.
    TtsrTriggered,
    /// `on_tool_call`: replaces the arguments of calls, or denies them.
    ToolCall,
    /// `on_tool_result`: replaces results of tools.
    ToolResult,
}

impl Callback {
    /// Which of them.
    pub fn kind(&self) -> CallbackKind {
        match self {
            Self::InputMessages => CallbackKind::InputMessages,
            Self::PlainText(_) => CallbackKind::PlainText,
            Self::Tag(_) => CallbackKind::Tag,
            Self::LlmOutput(_) => CallbackKind::LlmOutput,
            Self::TtsrTriggered => CallbackKind::TtsrTriggered,
            Self::ToolCall => CallbackKind::ToolCall,
            Self::ToolResult => CallbackKind::ToolResult,
        }
    }

    /// Returns the reason why it would never be called, or is ambiguous.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Self::PlainText(TextOptions { answer: false, thinking: false, .. }) => {
                Some("on_plain_text is registered for no stream; give `answer`, `thinking`, or both".to_owned())
            }
            Self::Tag(patterns) => crate::tag_pattern::fault(patterns),
            _ => None,
        }
    }
}

/// What an extension registered: its callbacks, each at most once, with their priorities, and the tools that it provides.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// The extension that registered them.
    pub plugin: PluginId,
    /// Its version, from its manifest.
    pub version: String,
    /// The callbacks, in the order in which they were registered.
    pub callbacks: Vec<Registered>,
    /// The tools that it provides to the model, in its order.
    pub tools: Vec<ProvidedTool>,
    /// Its failure refuses the turn (the operator's choice).
    pub required: bool,
}

/// The position of a unit of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextPlace {
    /// The position in the run.
    pub at: RunPosition,
    /// The stream that it belongs to.
    pub stream: TextStream,
    /// Its number among the units of this stream in this attempt, from 0.
    pub unit: u32,
    /// Names of the handled tags around it, outermost first.
    pub inside: Vec<String>,
}

/// The position of a tag section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagPlace {
    /// The position in the run.
    pub at: RunPosition,
    /// Names of the handled tags around it, outermost first.
    pub inside: Vec<String>,
}

/// A model's accepted output, as `on_llm_output` gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOutput {
    /// The position in the run.
    pub at: RunPosition,
    /// The text of the message: its text blocks joined.
    pub text: String,
    /// The tool calls that come with it; they cannot be changed.
    pub tool_calls: Vec<ToolCall>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// Tokens of the attempt that was accepted.
    pub usage: Usage,
}

/// Something an extension notes about an output; stored with the message under the extension's id.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The annotation's name, chosen by the extension.
    pub key: String,
    /// The annotation's value.
    pub value: serde_json::Value,
}

/// Answer to `on_input_messages`.
#[derive(Clone, Debug, PartialEq)]
pub enum InputAnswer {
    /// Keeps the value as it was given.
    Pass,
    /// These messages instead.
    Replace(Vec<crate::Message>),
    /// These messages replace the input, or none: it stays as it is. Later extensions are called only if they fail closed.
    Finish(Option<Vec<crate::Message>>),
    /// Answer with this; the model is not asked.
    Reply(String),
    /// The turn ends; the reason reaches the user.
    Reject(String),
    /// Its answer is not valid (the reason); its input is passed on.
    Ignored(String),
}

/// Answer to `on_plain_text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextAnswer {
    /// Keeps the value as it was given.
    Pass,
    /// This instead of the unit.
    Replace(String),
    /// Its answer is not valid (the reason); its input is passed on.
    Ignored(String),
}

/// Answer to `on_tag`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagAnswer {
    /// Keeps the tag and its content as they were given.
    Keep,
    /// New inside, tag kept; the next extension sees it.
    Content(String),
    /// This instead of the whole section; no further extension is asked.
    Replace(String),
    /// Its answer is not valid (the reason); its input is passed on.
    Ignored(String),
}

/// Answer to `on_llm_output`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputAnswer {
    /// The output from here on; `None` = no change.
    pub replace: Option<String>,
    /// What the extension notes about it.
    pub annotations: Vec<Annotation>,
    /// Why what it returned for the text cannot be used; `replace` is `None` then.
    pub unusable: Option<String>,
    /// Other invalid parts of its answer, each with its reason: a `replace` of an observer, an annotation that is not
    /// JSON.
    pub ignored: Vec<String>,
}

/// How a call into an extension failed. Each has its own words; none is ever silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureCause {
    /// The extension returned an error.
    Returned,
    /// It panicked, with a message.
    Panic,
    /// It trapped: unreachable, out of bounds, stack overflow.
    Trap,
    /// It took longer than it may.
    Timeout,
    /// It wanted more memory than it may have.
    Memory,
    /// What it made the host allocate, or gave back, was larger than it may be.
    Size,
    /// What it gave back does not conform to the contract.
    Malformed,
    /// It could not be started.
    Start,
    /// A power it used failed on the host's side.
    Host,
    /// All instances of the host are in use: nothing is wrong with the extension.
    NoInstance,
}

impl FailureCause {
    /// The cause's word on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Returned => "returned_error",
            Self::Panic => "panic",
            Self::Trap => "trap",
            Self::Timeout => "timeout",
            Self::Memory => "memory_limit",
            Self::Size => "size_limit",
            Self::Malformed => "malformed",
            Self::Start => "start",
            Self::Host => "host",
            Self::NoInstance => "no_instance",
        }
    }
}

/// Why a call of a callback, or of a tool, gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// It was not called; the string gives the reason: a circuit breaker is open, the turn's budget is spent.
    NotPermitted(String),
    /// It was not called, because all instances of the host are in use; the string says so, and what to do. Nothing is wrong with the
    /// extension. What it was to check is not used unchecked, whatever its failure policy is.
    NoInstance(String),
    /// The call failed.
    Failed(CallFailure),
}

impl From<CallFailure> for NoAnswer {
    fn from(failure: CallFailure) -> Self {
        Self::Failed(failure)
    }
}

/// A call into an extension failed: plugin, callback or tool, cause, and where in the guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{plugin}: {called} failed ({}): {message}", .cause.as_str())]
pub struct CallFailure {
    /// The extension that registered them.
    pub plugin: PluginId,
    /// The callback or the tool that failed.
    pub called: Called,
    /// What kind of failure.
    pub cause: FailureCause,
    /// What happened, in one line.
    pub message: String,
    /// Guest frames, innermost first, as far as names are known.
    pub frames: Vec<String>,
}
