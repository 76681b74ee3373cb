//! What an instance gives back.

use chat::{
    Attachment, Command, LastSubmitted, LogChange, Outgoing, OutgoingId, PendingLimit, PlanItem, Question, QuestionId,
    Receipt, SavedChat, Sent, SteeringMode, TurnError, Waiting,
};
use serde::Serialize;

/// What an event or an action has changed, and what the driver is to do.
#[derive(Debug, Default, Serialize)]
pub struct Output {
    /// Whether the primitive reports a change. A transform can make nothing of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// The parts of the state that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ViewChange>,
    /// Questions that were just asked, for a policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<QuestionId>,
    /// To be carried out, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Command>,
    /// What an action returns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Returned>,
    /// Why the line is not valid, or the action was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Output {
    /// There is nothing to report.
    pub(crate) fn is_empty(&self) -> bool {
        !self.changed
            && self.change.is_none()
            && self.commands.is_empty()
            && self.asked.is_empty()
            && self.result.is_none()
            && self.error.is_none()
    }
}

/// The parts of a state that changed; of messages and streaming text, what changed of them.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct ViewChange {
    /// What changed of the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<LogChange>,
    /// All questions that are not resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<Vec<Question>>,
    /// The messages of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steering: Option<Steering>,
    /// The streaming text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streaming: Option<Streamed>,
    /// The message that was sent last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_submitted: Option<Option<LastSubmitted>>,
    /// The error of the last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Option<TurnError>>,
    /// The limit that waits for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Option<PendingLimit>>,
    /// Whether the last turn has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<bool>,
    /// The plan of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<PlanItem>>,
    /// The attachments of the next message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Attachment>>,
}

/// The messages of the user that wait or are on their way.
#[derive(Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each is the accessor of `SteeringState` that has its name")]
pub struct Steering {
    pub executing: bool,
    pub mode: SteeringMode,
    pub queued: Vec<Outgoing>,
    pub sent: Vec<Sent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
}

/// What changed of the streaming text.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Streamed {
    /// Whether more is to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// The text of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Grown>,
    /// The reasoning of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Grown>,
}

/// How a text changed.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grown {
    /// This was added at its end.
    Added(String),
    /// It is this one.
    Whole(String),
}

/// What an action returns.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "each is named as its type")]
pub enum Returned {
    Id(OutgoingId),
    Message(Outgoing),
    Receipt(Receipt),
    Saved(Box<SavedChat>),
}
