//! A whole answer of a model, as a test writes it, and what an extension made of it.

use crate::{LlmOutput, OutputAnswer, StopReason, ToolCall};

/// A model's answer for [`Harness::answer`](super::Harness::answer): its blocks in order, and the attempts that were discarded
/// before it.
///
/// ```
/// use tidegate_sdk::testing::Answer;
///
/// let answer = Answer::new().thinking("Look first.").text("It is in <file>a.rs</file>.\n");
/// let retried = answer.clone().after_discarding(Answer::from("It is in <fi"));
/// assert_ne!(answer, retried);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub(super) blocks: Vec<Block>,
    pub(super) discarded: Vec<Vec<Block>>,
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) stop: StopReason,
}

/// A contiguous part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Text(String),
    Thinking(String),
}

impl Block {
    pub(super) fn content(&self) -> &str {
        match self {
            Self::Text(text) | Self::Thinking(text) => text,
        }
    }

    /// The same kind of block with another content.
    pub(super) fn with(&self, content: &str) -> Self {
        match self {
            Self::Text(_) => Self::Text(content.to_owned()),
            Self::Thinking(_) => Self::Thinking(content.to_owned()),
        }
    }
}

impl Answer {
    /// An empty answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more block of text. The text blocks of an answer are one text to `on_plain_text` and `on_tag`.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Text(text.into()));
        self
    }

    /// The same with one more block of reasoning. A unit of reasoning ends where its block ends.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Thinking(text.into()));
        self
    }

    /// The same with one more tool call, which `on_llm_output` gets.
    #[must_use]
    pub fn tool_call(mut self, call: ToolCall) -> Self {
        self.tool_calls.push(call);
        self.stop = StopReason::ToolUse;
        self
    }

    /// The same, stopped for another reason.
    #[must_use]
    pub fn stopped(mut self, reason: StopReason) -> Self {
        self.stop = reason;
        self
    }

    /// The same, after an attempt of which the model wrote only `partial`: a stream rule stopped it, or the connection broke.
    /// Its last unit and open tags never become complete, `on_llm_output` is not called for it, and what its callbacks wrote to
    /// state is undone.
    #[must_use]
    pub fn after_discarding(mut self, partial: impl Into<Self>) -> Self {
        self.discarded.push(partial.into().blocks);
        self
    }

    /// The accepted answer as `on_llm_output` gets it, without its position.
    pub(super) fn output(&self) -> LlmOutput {
        let text = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Thinking(_) => None,
        });
        let mut output = LlmOutput::new(text.collect::<String>());
        output.tool_calls.clone_from(&self.tool_calls);
        output.stop = self.stop.clone();
        output
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}

/// What became of an [`Answer`], the same at every chunking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown {
    /// The text of the accepted answer that the user sees.
    pub text: String,
    /// The reasoning of the accepted answer that the user sees.
    pub thinking: String,
    /// The text that the user saw of each discarded attempt before it was stopped.
    pub discarded: Vec<String>,
    /// What `on_llm_output` returned, as far as the host uses it.
    pub output: OutputAnswer,
    /// Each call of a callback in order, such as `on_plain_text answer 0: "a line\n"`.
    pub calls: Vec<String>,
    /// Calls that failed, answers that the host does not use, and what was withheld or shown unhandled, with the reason.
    pub failures: Vec<String>,
}
