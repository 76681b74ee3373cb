//! How a server watches the conversations of a route.

use crate::HeldLimits;

/// How conversations are told apart and watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watching {
    /// The agent that clients are, for rules with `agents`; `None`: `main`.
    pub agent: Option<String>,
    /// A header, in lower case, in which clients name their conversation. It counts before all others.
    pub header: Option<String>,
    /// What is held back of one answer.
    pub held: HeldLimits,
}
