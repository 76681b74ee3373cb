//! The plan of a session: what the model says that it is going to do.

use std::fmt;

/// One entry of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanEntry {
    /// What is to be done, in the words of the model.
    pub content: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far an entry of a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlanStatus {
    /// Nothing of it is done.
    Pending,
    /// The model is working on it.
    InProgress,
    /// All of it is done.
    Completed,
}

impl PlanStatus {
    /// All of them, in the order in which an entry has them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::InProgress, Self::Completed];

    /// The word on every surface: `pending`, `in_progress` or `completed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }

    /// The status with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl fmt::Display for PlanStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
