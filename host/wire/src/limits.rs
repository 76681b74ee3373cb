//! How large one answer may become: bounds against a server that sends without end, and the error that names the bound.

use flow::{FailureKind, ModelError};

/// The limits of one answer. Exceeding one ends the answer with a permanent error, which names the limit and the
/// measured value; everything before it was emitted.
///
/// The defaults are far above the answers of current models (128,000 tokens of four bytes are 0.5 MiB) and far below
/// what would hurt the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Bytes of one block: its text, its thinking, the arguments of its call, and signatures. Default 16 MiB.
    pub block_bytes: usize,
    /// Bytes of all blocks together, with the names and ids of calls. Default 32 MiB.
    pub answer_bytes: usize,
    /// Blocks of one answer. Default 4,096.
    pub blocks: usize,
    /// Calls of tools in one answer. Default 1,024.
    pub calls: usize,
    /// Bytes of the body as they come over the wire: events, comments and keep-alives included. Default 512 MiB, since
    /// the wrapping of a chunk of text can be a hundred times as long as the text.
    pub wire_bytes: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { block_bytes: 16 << 20, answer_bytes: 32 << 20, blocks: 4096, calls: 1024, wire_bytes: 512 << 20 }
    }
}

/// The error of an answer that went over a limit.
pub(crate) fn exceeded(limit: &str, what: &str, measured: usize, most: usize) -> ModelError {
    let message = format!(
        "the answer is too large: {measured} {what}, the limit is {most} (`{limit}` in the provider's `limits`); the \
         rest of it is not read"
    );
    ModelError::of_kind(FailureKind::Limit, message)
}
