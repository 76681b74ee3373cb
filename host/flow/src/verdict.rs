//! What the gate found in a stream.

use crate::{Action, StreamKind};

/// What was found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The condition that matched, as written in the rule; empty where `unread` is set.
    pub pattern: String,
    /// The matched text, at most 200 bytes of it, cut at a character; [`Evidence::HIDDEN`] if the rule declares that its
    /// matches are secret, or what the user saw of the stream is kept and not what the model wrote. Where `unread` is set, why the arguments could not be read.
    pub text: String,
    /// First byte of the match in its stream: the text blocks of the answer joined, its thinking blocks joined, or for
    /// tools the decoded value.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// The line it begins on, counted from 1 within the stream.
    pub line: u32,
    /// For tools: the argument it was found in, such as `content` or `edits[].new_text`.
    pub field: Option<String>,
    /// For tools: the file the call is about, relative to the workspace.
    pub path: Option<String>,
    /// No condition matched: the rule guards this tool call and could not read its arguments.
    pub unread: bool,
}

impl Evidence {
    /// What stands in the place of a matched text that is not to be told.
    pub const HIDDEN: &str = "[hidden]";

    /// Leaves the matched text out. Why a call could not be read is no matched text.
    pub fn hide(&mut self) {
        if !self.unread {
            Self::HIDDEN.clone_into(&mut self.text);
        }
    }

    /// Whether the matched text is left out.
    pub fn is_hidden(&self) -> bool {
        !self.unread && self.text == Self::HIDDEN
    }
}

/// A rule fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleMatch {
    /// The rule's name.
    pub rule: String,
    /// On which stream.
    pub stream: StreamKind,
    /// What was found.
    pub evidence: Evidence,
}

/// The stored record of a reminder that went to the model, so that a resumed session continues where this one ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRecord {
    /// The rule's name.
    pub rule: String,
    /// A number for what the rule matched on then: the record of a rule that was edited since is void.
    pub hash: u64,
    /// Turns of the session that had been completed then.
    pub turn: u64,
    /// On which stream it fired.
    pub stream: StreamKind,
    /// What was found.
    pub evidence: Evidence,
    /// What was done.
    pub action: Action,
    /// Tokens of the answer that were discarded for this rule: of several that stopped one answer, the first has all.
    pub tokens_discarded: u64,
    /// The provider did not count them: they are a quarter of the bytes.
    pub tokens_estimated: bool,
}
