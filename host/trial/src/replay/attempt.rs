//! One recorded attempt, from a recording or a transcript: the model's answer, and the actions taken then.

use flow::{Delta, RuleMatch, StreamKind};

use super::report::{Tokens, Where};

/// The steps of a recorded session.
#[derive(Debug)]
pub(super) enum Step {
    /// The session is that of the agent with this name.
    Agent(String),
    TurnStart,
    Attempt(Box<Attempt>),
    TurnEnd,
}

/// One recorded attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) place: Where,
    pub(super) deltas: Vec<Delta>,
    /// The text that an earlier attempt left and the model continued from: it had its verdict then.
    pub(super) prefix: String,
    pub(super) outcome: Outcome,
    /// Tokens of the answer as the provider counted them in the end.
    pub(super) output_tokens: Option<u64>,
    pub(super) past: Past,
}

/// How an attempt ended then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The answer was accepted.
    Complete,
    /// Our side ended it.
    Stopped,
    /// It broke off, or is void.
    Broken,
}

/// What was done about an attempt then.
#[derive(Debug)]
pub(super) enum Past {
    /// All that fired.
    Fired(Vec<PastFire>),
    /// Which rules fired is not recorded, nor whether one of them cut the answer short.
    Unknown,
}

/// A rule that fired then.
#[derive(Clone, Debug)]
pub(super) struct PastFire {
    pub(super) rule: String,
    /// For tools with the call's id.
    pub(super) stream: StreamKind,
    pub(super) action: String,
    /// The end of the match in its block, where the blocks are known.
    pub(super) end: Option<u64>,
    /// The tokens discarded because of it, if recorded.
    pub(super) tokens: Option<Tokens>,
    /// The match as it is recorded, where its text is not.
    pub(super) hidden: Option<Box<RuleMatch>>,
}

impl PastFire {
    /// Whether it stopped the answer.
    pub(super) fn stops(&self) -> bool {
        matches!(self.action.as_str(), "interrupt" | "stop")
    }
}
