//! What a provider's decoder gives while the model speaks.

use crate::StreamKind;

/// Numbers a block within one attempt: 0, 1, 2, … in order of their start.
pub type BlockId = u32;

/// One increment of a model's answer. The chunks of one block, joined, are the block; a chunk is never empty.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// The answer begins (or restarts: everything received before in this attempt is void).
    Start {
        /// The model's name as the provider reports it.
        model: Option<String>,
    },
    /// A block begins.
    BlockStart {
        /// The block's id, unique within the attempt.
        block: BlockId,
        /// Of what kind.
        kind: StreamKind,
    },
    /// More of a block.
    Piece {
        /// The block's id, unique within the attempt.
        block: BlockId,
        /// The received bytes, decoded: never half a character.
        text: String,
    },
    /// Opaque data that must go back with a thinking block; chunks are appended.
    Signature {
        /// Which thinking block.
        block: BlockId,
        /// A chunk of the signature.
        data: String,
        /// The block has this instead of words.
        redacted: bool,
    },
    /// A block is complete.
    BlockEnd {
        /// The block's id, unique within the attempt.
        block: BlockId,
    },
    /// Tokens so far; later reports replace earlier ones, field by field.
    Usage(Usage),
    /// The answer is complete.
    Stop {
        /// Why the model stopped.
        reason: StopReason,
    },
}

/// Tokens of one attempt, as the provider counted them; `None` = it did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, those read from a cache included where the provider includes them.
    pub input: Option<u64>,
    /// Tokens of the answer.
    pub output: Option<u64>,
    /// Tokens of the prompt read from the provider's cache.
    pub cache_read: Option<u64>,
    /// Tokens of the prompt written to the provider's cache.
    pub cache_write: Option<u64>,
}

impl Usage {
    /// Takes over each number that `newer` has.
    pub fn update(&mut self, newer: Self) {
        self.input = newer.input.or(self.input);
        self.output = newer.output.or(self.output);
        self.cache_read = newer.cache_read.or(self.cache_read);
        self.cache_write = newer.cache_write.or(self.cache_write);
    }

    /// Adds another attempt's tokens; unknown stays unknown only where neither side knows.
    pub fn add(&mut self, other: Self) {
        fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
            }
        }
        self.input = sum(self.input, other.input);
        self.output = sum(self.output, other.output);
        self.cache_read = sum(self.cache_read, other.cache_read);
        self.cache_write = sum(self.cache_write, other.cache_write);
    }
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It wants results of tools.
    ToolUse,
    /// It reached the most tokens it may write.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// It (or a filter of its provider) refused.
    Refusal,
    /// It paused and wants to be asked again with the same conversation.
    Pause,
    /// The conversation exceeds the model's context window.
    ContextFull,
    /// A word of the provider's that we do not know.
    Other(String),
}

impl StopReason {
    /// The reason's word on every surface.
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::Refusal => "refusal",
            Self::Pause => "pause",
            Self::ContextFull => "context_full",
            Self::Other(word) => word,
        }
    }

    /// Returns the reason with this word.
    ///
    /// ```
    /// use tidegate_flow::StopReason;
    /// for reason in [StopReason::EndTurn, StopReason::ContextFull, StopReason::Other("paused".to_owned())] {
    ///     assert_eq!(StopReason::of_word(reason.as_str()), reason);
    /// }
    /// ```
    pub fn of_word(word: &str) -> Self {
        use StopReason::{ContextFull, EndTurn, MaxTokens, Pause, Refusal, StopSequence, ToolUse};
        let all = [EndTurn, ToolUse, MaxTokens, StopSequence, Refusal, Pause, ContextFull];
        all.into_iter().find(|reason| reason.as_str() == word).unwrap_or_else(|| Self::Other(word.to_owned()))
    }
}
