//! How callbacks are registered: one value of options for each callback.

/// Priority of a callback that names none. 0 to 100, higher runs first, so the lowest has the final say.
pub const DEFAULT_PRIORITY: u8 = 50;

/// The units of text that [`OnPlainText`](crate::OnPlainText) is called with. Joined, the units are the text, byte for byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextUnit {
    /// A line with its line end (`\n`); the last may have none.
    #[default]
    Line,
    /// A paragraph with the blank line after it.
    Paragraph,
    /// All text up to the next handled tag or the end of the message; of reasoning, up to the end of its block. The user
    /// sees none of it before it is complete.
    Whole,
}

/// A stream of text that the model writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextStream {
    /// The text of the answer.
    #[default]
    Answer,
    /// The reasoning that is shown to the user.
    Thinking,
    /// A stream that this version does not know.
    Other(String),
}

/// Whether [`OnLlmOutput`](crate::OnLlmOutput) changes the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputMode {
    /// It reads the output: the answer streams live and the callback gets the whole at the end.
    #[default]
    Observe,
    /// It is allowed to replace the output: the host holds every answer back until it is complete.
    Rewrite,
}

/// What happens when a callback did not do its work: it failed, it was skipped (a circuit breaker is open, the turn's time is
/// used up), or its result cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFailure {
    /// The value of `on_failure` in `plugin.toml`, else [`OnFailure::Skip`].
    #[default]
    Unspecified,
    /// The chain continues with the value that the callback was given.
    Skip,
    /// [`OnPlainText`](crate::OnPlainText), [`OnTag`](crate::OnTag), [`OnToolResult`](crate::OnToolResult) and a rewriting
    /// [`OnLlmOutput`](crate::OnLlmOutput): nothing that was not checked is shown. The marker `[withheld: ID did not check this]` replaces
    /// it.
    Withhold,
    /// [`OnInputMessages`](crate::OnInputMessages): the turn ends before the model is asked. [`OnToolCall`](crate::OnToolCall): the call
    /// does not run.
    Reject,
}

/// Which text a session keeps of what a callback changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeptText {
    /// The value of `keep` in `plugin.toml`, else [`KeptText::Original`].
    #[default]
    Unspecified,
    /// The text that the callback was given: only what is shown is changed.
    Original,
    /// The text that the user saw: the conversation, events and transcripts have it, and the original is in no file.
    Shown,
}

/// The options that callbacks have in common.
macro_rules! common {
    ($options:ident) => {
        impl $options {
            /// The same with another priority, 0 to 100: higher runs first, so the lowest has the final say. The operator can
            /// override it.
            #[must_use]
            pub fn priority(mut self, priority: u8) -> Self {
                self.priority = priority;
                self
            }
        }
    };
    ($options:ident, $closed:literal) => {
        common!($options);

        impl $options {
            /// The same with this failure policy; to fail closed, use
            #[doc = concat!("[`OnFailure::", $closed, "`]. The operator can override it.")]
            #[must_use]
            pub fn on_failure(mut self, policy: OnFailure) -> Self {
                self.on_failure = policy;
                self
            }
        }
    };
}

/// The choice of callbacks of which a session can keep either text.
macro_rules! keeping {
    ($options:ident) => {
        impl $options {
            /// The same with this choice of the text that a session keeps. The operator can override it.
            #[must_use]
            pub fn keep(mut self, keep: KeptText) -> Self {
                self.keep = keep;
                self
            }
        }
    };
}

/// How [`OnInputMessages`](crate::OnInputMessages) is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputOptions {
    /// The place in the chain, 0 to 100.
    pub priority: u8,
    /// The failure policy.
    pub on_failure: OnFailure,
    /// Whether it is also called for whole requests; see [`InputOptions::whole_requests`].
    pub whole_requests: bool,
}

impl Default for InputOptions {
    fn default() -> Self {
        Self { priority: DEFAULT_PRIORITY, on_failure: OnFailure::Unspecified, whole_requests: false }
    }
}

common!(InputOptions, "Reject");

impl InputOptions {
    /// Makes the callback get whole requests. In front of an agent that is not Tidegate (`tidegate guard`), it also gets, in separate
    /// calls, each text that is not input and that the host has not sent before: instructions of the agent and descriptions of its tools
    /// ([`Role::System`](crate::Role::System)), and messages and calls from before the host knew the conversation. Each is a message with
    /// one text; the answer has to keep their number and their order. In Tidegate's own sessions it makes no difference: the callbacks
    /// there have already got every text.
    #[must_use]
    pub fn whole_requests(mut self) -> Self {
        self.whole_requests = true;
        self
    }
}

/// How [`OnPlainText`](crate::OnPlainText) is registered: by default for the lines of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextOptions {
    /// The units that it is called with.
    pub unit: TextUnit,
    /// The streams that it is called for.
    pub streams: Vec<TextStream>,
    /// The place in the chain, 0 to 100.
    pub priority: u8,
    /// The failure policy.
    pub on_failure: OnFailure,
    /// Which text a session keeps.
    pub keep: KeptText,
}

impl TextOptions {
    /// Called with these units of the answer.
    pub fn new(unit: TextUnit) -> Self {
        let (streams, on_failure, keep) = (vec![TextStream::Answer], OnFailure::Unspecified, KeptText::Unspecified);
        Self { unit, streams, priority: DEFAULT_PRIORITY, on_failure, keep }
    }

    /// The same for these streams instead of the answer alone.
    #[must_use]
    pub fn streams(mut self, streams: impl IntoIterator<Item = TextStream>) -> Self {
        self.streams = streams.into_iter().collect();
        self
    }
}

impl Default for TextOptions {
    fn default() -> Self {
        Self::new(TextUnit::Line)
    }
}

common!(TextOptions, "Withhold");
keeping!(TextOptions);

/// How [`OnTag`](crate::OnTag) is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagOptions {
    /// The tags that it is called for.
    pub patterns: Vec<String>,
    /// The place in the chain, 0 to 100.
    pub priority: u8,
    /// The failure policy.
    pub on_failure: OnFailure,
    /// Which text a session keeps.
    pub keep: KeptText,
}

impl TagOptions {
    /// Called for these tags: a name (`note`), or a prefix with a star at its end (`note-*`); 1 to 64 patterns.
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let patterns = patterns.into_iter().map(Into::into).collect();
        let (on_failure, keep) = (OnFailure::Unspecified, KeptText::Unspecified);
        Self { patterns, priority: DEFAULT_PRIORITY, on_failure, keep }
    }
}

common!(TagOptions, "Withhold");
keeping!(TagOptions);

/// How [`OnLlmOutput`](crate::OnLlmOutput) is registered: by default as an observer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputOptions {
    /// Whether it changes the output.
    pub mode: OutputMode,
    /// The place in the chain, 0 to 100.
    pub priority: u8,
    /// The failure policy; an observer cannot fail closed.
    pub on_failure: OnFailure,
}

impl OutputOptions {
    /// Called in this mode.
    pub fn new(mode: OutputMode) -> Self {
        Self { mode, priority: DEFAULT_PRIORITY, on_failure: OnFailure::Unspecified }
    }
}

impl Default for OutputOptions {
    fn default() -> Self {
        Self::new(OutputMode::Observe)
    }
}

common!(OutputOptions, "Withhold");

/// How a callback around calls of tools is registered.
macro_rules! tool_options {
    ($(#[$about:meta])* $options:ident, $closed:literal) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $options {
            /// The place in the chain, 0 to 100.
            pub priority: u8,
            /// The failure policy.
            pub on_failure: OnFailure,
            /// Which text a session keeps.
            pub keep: KeptText,
        }

        impl Default for $options {
            fn default() -> Self {
                let (on_failure, keep) = (OnFailure::Unspecified, KeptText::Unspecified);
                Self { priority: DEFAULT_PRIORITY, on_failure, keep }
            }
        }

        common!($options, $closed);
        keeping!($options);
    };
}

tool_options! {
    /// How [`OnToolCall`](crate::OnToolCall) is registered.
    CallOptions, "Reject"
}

tool_options! {
    /// How [`OnToolResult`](crate::OnToolResult) is registered.
    ResultOptions, "Withhold"
}

/// How [`TtsrTriggered`](crate::TtsrTriggered) is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TtsrOptions {
    /// The place in the order of notification, 0 to 100.
    pub priority: u8,
}

impl Default for TtsrOptions {
    fn default() -> Self {
        Self { priority: DEFAULT_PRIORITY }
    }
}

common!(TtsrOptions);
