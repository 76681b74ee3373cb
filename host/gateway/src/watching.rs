//! Settings for watching the conversations of a route.

use crate::HeldLimits;

/// How conversations are distinguished and watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watching {
    /// The agent that clients are, for rules with `agents`; `None` means `main`.
    pub agent: Option<String>,
    /// A header, in lower case, in which clients name their conversation. It counts before all others.
    pub header: Option<String>,
    /// The limits of what is held back of one answer.
    pub held: HeldLimits,
}
