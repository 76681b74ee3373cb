//! Tools that extensions provide to the model, and what became of their calls.

use std::fmt;

use crate::{CallFailure, CallId, CallbackKind, PluginId, ToolSpec};

/// A tool that an extension provides.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProvidedTool {
    /// Its definition for the model.
    pub spec: ToolSpec,
    /// The extension states that a call changes nothing. It is shown to the person who is asked about a call, and not verified.
    pub read_only: bool,
}

impl ProvidedTool {
    /// A tool with this definition.
    pub fn new(spec: ToolSpec, read_only: bool) -> Self {
        Self { spec, read_only }
    }
}

/// What of an extension is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Called {
    /// One of the five callbacks.
    Callback(CallbackKind),
    /// The tool of this name.
    Tool(String),
}

impl From<CallbackKind> for Called {
    fn from(callback: CallbackKind) -> Self {
        Self::Callback(callback)
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Callback(callback) => f.write_str(callback.as_str()),
            Self::Tool(name) => write!(f, "tool `{name}`"),
        }
    }
}

/// How a call of an extension's tool ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It is done, and the model gets its result.
    Done,
    /// The extension rejected the call as the model wrote it; the model gets the reason.
    Rejected(String),
    /// The extension was not called: the circuit breaker of its tools is open. The string gives the reason.
    NotPermitted(String),
    /// The extension failed; the model gets the cause as the result of its call.
    Failed(CallFailure),
    /// The turn was cancelled while the call ran: it was stopped, and its writes to state were undone.
    Stopped,
}

impl ToolOutcome {
    /// The outcome's word on every surface.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Rejected(_) => "rejected",
            Self::NotPermitted(_) => "not_permitted",
            Self::Failed(_) => "error",
            Self::Stopped => "stopped",
        }
    }

    /// Returns why the call is not done. That it was stopped needs no reason.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Done | Self::Stopped => None,
            Self::Rejected(why) | Self::NotPermitted(why) => Some(why),
            Self::Failed(failure) => Some(&failure.message),
        }
    }

    /// Returns the failure, if the extension failed.
    pub fn failure(&self) -> Option<&CallFailure> {
        if let Self::Failed(failure) = self { Some(failure) } else { None }
    }
}

/// One call of an extension's tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolReport {
    /// The extension that provides the tool.
    pub plugin: PluginId,
    /// The tool's name.
    pub tool: String,
    /// The call's id.
    pub call: CallId,
    /// How the call ended.
    pub outcome: ToolOutcome,
    /// How long it took, in nanoseconds; 0 where the extension was not called.
    pub nanos: u64,
    /// How many values of its state the extension has read since its last report, of a tool or a callback.
    pub state_reads: u64,
}

impl ToolReport {
    /// A report of a call that took `nanos` nanoseconds.
    pub fn new(plugin: PluginId, tool: String, call: CallId, outcome: ToolOutcome, nanos: u64) -> Self {
        Self { plugin, tool, call, outcome, nanos, state_reads: 0 }
    }

    /// The same report, of an extension that has read `reads` values of its state.
    #[must_use]
    pub fn with_state_reads(mut self, reads: u64) -> Self {
        self.state_reads = reads;
        self
    }
}
