//! Questions about tool calls: the answers to them, and what was decided.

/// The answer of a person, or of a front end for them, to a question about a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call runs as it was shown.
    Approve,
    /// The call runs, and so does each later call of the session that the pattern in the question covers, without another question.
    Always,
    /// The call runs with these arguments instead. The session checks them first, and refuses those that cannot be used.
    Edit {
        /// The arguments: a JSON object.
        arguments: String,
    },
    /// The call does not run.
    Deny {
        /// The person's reason, which the model reads; can be empty.
        reason: String,
    },
    /// No person can be asked: the call does not run.
    Unavailable {
        /// Why, in the host's words, for the model.
        reason: String,
    },
}

/// What was decided about a call that a person was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The call runs with the arguments that were shown.
    Approved,
    /// The call runs, and later calls that the pattern covers are not asked about.
    Always {
        /// The pattern that was shown: `TOOL`, or `TOOL(GLOB)`.
        pattern: String,
    },
    /// The call runs with other arguments, which were checked.
    Edited {
        /// The arguments that run, as JSON.
        arguments: String,
    },
    /// The call does not run.
    Denied {
        /// The person's reason, as it was given; can be empty. The model reads at most
        /// [`Confirmation::MAX_REASON`] characters of it.
        reason: String,
    },
    /// The call does not run, because no person could be asked.
    Unavailable {
        /// Why, in the host's words.
        reason: String,
    },
    /// Nobody has answered in time.
    TimedOut {
        /// Whether the call runs all the same, as the operator has decided.
        approved: bool,
    },
    /// The turn was cancelled before the question was answered.
    Cancelled,
}

impl Confirmation {
    /// The greatest length of a person's reason that the model reads, in characters.
    pub const MAX_REASON: usize = 2_000;

    /// Whether the call is allowed to run.
    pub fn is_approval(&self) -> bool {
        match self {
            Self::Approved | Self::Always { .. } | Self::Edited { .. } => true,
            Self::TimedOut { approved } => *approved,
            Self::Denied { .. } | Self::Unavailable { .. } | Self::Cancelled => false,
        }
    }

    /// The decision as one identifier, as records have it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Always { .. } => "always",
            Self::Edited { .. } => "edited",
            Self::Denied { .. } => "denied",
            Self::Unavailable { .. } => "unavailable",
            Self::TimedOut { .. } => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }
}
