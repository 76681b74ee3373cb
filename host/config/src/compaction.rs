//! `[compaction]` of the operator's file: when the older part of a conversation is summarised.

use crate::typed::CompactionFile;

/// When the older part of a conversation is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Whether it is.
    pub enabled: bool,
    /// Tokens that the model takes; `None`: derived from its name.
    pub context_tokens: Option<u64>,
    /// The share of them, in percent, at which it is summarised.
    pub at_percent: u32,
    /// How many of the last turns are not summarised.
    pub keep_turns: u32,
}

impl CompactionSettings {
    pub(crate) fn of(typed: &CompactionFile) -> Self {
        let CompactionFile { enabled, context_tokens, at_percent, keep_turns } = *typed;
        Self { enabled, context_tokens, at_percent, keep_turns }
    }
}
