//! Sentences about threads, their inputs and their limits.

use flow::Limit;

use super::Sentence;
use crate::figures::of;
use crate::{
    ChildThreadFailed, ChildThreadStarted, HistoryReplaced, InputEdited, InputWithdrawn, LimitEscalationResolved,
    ThreadCancelled, ThreadError, ThreadResumed, ThreadSuspended,
};

impl ThreadResumed {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        if self.resumed_by == "model" {
            return Sentence::new(format!("The model is {} ({}) from here on", self.model, self.provider));
        }
        Sentence::new(format!("Resumed by {}, with {} ({})", self.resumed_by, self.model, self.provider))
    }
}

impl ThreadSuspended {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("Suspended ({})", self.suspend_reason)).with(&self.message)
    }
}

impl ThreadError {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("Failed ({})", self.category)).with(&self.error)
    }
}

impl ThreadCancelled {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("Cancelled by {}", self.cancelled_by)).with(self.reason.as_deref().unwrap_or_default())
    }
}

impl InputEdited {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("The input {} was edited before it was delivered", self.id))
    }
}

impl InputWithdrawn {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("The input {} was {} before it was delivered", self.id, self.receipt))
    }
}

impl LimitEscalationResolved {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let by = if self.decided_by.is_empty() { String::new() } else { format!(" by {}", self.decided_by) };
        let amount = |max: f64| Limit::from_code(&self.limit_code).map_or(max.to_string(), |limit| limit.amount(max));
        let max = self.new_max.map(|max| format!(": up to {}", amount(max))).unwrap_or_default();
        let decision = self.decision.replace('_', " ");
        let text = format!("A higher limit was {decision}{by}{max}");
        Sentence::new(text).with(self.reason.as_deref().unwrap_or_default())
    }
}

impl ChildThreadStarted {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("The agent {} started in the session {}", self.child_directive, self.child_thread_id))
    }
}

impl ChildThreadFailed {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("The agent in the session {} failed", self.child_thread_id)).with(&self.error)
    }
}

impl HistoryReplaced {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let messages = of(self.messages.len() as u64, "message", "messages");
        Sentence::new(format!("The conversation was replaced by {messages}"))
    }
}
