//! What a chat shows at one moment, and what of it can be sent to another front end.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::ChatMode;
use crate::attachments::Attachment;
use crate::command::{Outgoing, OutgoingId};
use crate::confirmations::ConfirmationsState;
use crate::limit::PendingLimit;
use crate::list::List;
use crate::log::{LogSnapshot, LogState};
use crate::message::{PlanItem, TurnError};
use crate::steering::{Sent, SteeringMode, SteeringProgress, SteeringState, Waiting};
use crate::streaming::StreamingText;
use crate::text::{Str, Text};
use crate::turns::{TurnSummary, Turns};

/// The message that was sent last, until it is in the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LastSubmitted {
    /// The id in receipts.
    pub id: OutgoingId,
    /// What the user wrote.
    pub text: Str,
}

/// What a front end shows at one moment. A clone shares everything.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ChatState<M = ChatMode> {
    /// The visible messages.
    pub messages: LogSnapshot,
    /// What the chat is doing.
    pub mode: M,
    /// The questions that are not resolved.
    #[serde(serialize_with = "questions")]
    pub questions: ConfirmationsState,
    /// The user's messages that wait or are on their way, and whether a turn runs.
    #[serde(serialize_with = "waiting")]
    pub steering: SteeringState,
    /// The text of the current answer.
    #[serde(serialize_with = "streamed")]
    pub streaming: StreamingText,
    /// The message that was sent last, until it is in the log. What waits in the queue is there.
    pub last_submitted: Option<LastSubmitted>,
    /// Why the last turn did not complete.
    pub error: Option<TurnError>,
    /// The limit that the turn has reached, and about which a person has to decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<PendingLimit>,
    /// No turn runs, and the last one has no end, because its process ended before: it can be continued without an input.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// What the model has shown that it is going to do.
    #[serde(serialize_with = "shared", skip_serializing_if = "is_empty")]
    pub plan: Arc<Vec<PlanItem>>,
    /// The attachments of the next message.
    #[serde(serialize_with = "shared")]
    pub attachments: Arc<Vec<Attachment>>,
}

/// What a chat has learnt from events, and nothing of its front end: what a front end that reconnects is sent if it has missed too much.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedChat {
    pub(super) log: LogState,
    pub(super) confirmations: ConfirmationsState,
    pub(super) progress: SteeringProgress,
    pub(super) streaming: StreamingText,
    pub(super) error: Option<TurnError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<PendingLimit>,
    #[serde(skip_serializing_if = "Turns::is_empty")]
    pub(super) turns: Turns,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) plan: Vec<PlanItem>,
    pub(super) next_seq: u64,
}

impl SavedChat {
    /// The number of the first event that is not in it.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// What a [`MessageLog`](crate::MessageLog) alone continues from.
    pub fn log(&self) -> &LogState {
        &self.log
    }

    /// What [`ToolConfirmations`](crate::ToolConfirmations) alone continue from.
    pub fn confirmations(&self) -> &ConfirmationsState {
        &self.confirmations
    }

    /// What a [`MessageSteering`](crate::MessageSteering) alone continues from.
    pub fn progress(&self) -> &SteeringProgress {
        &self.progress
    }

    /// What a [`StreamingText`] alone continues from.
    pub fn streaming(&self) -> &StreamingText {
        &self.streaming
    }

    /// The limit about which a person has to decide.
    pub fn limit(&self) -> Option<&PendingLimit> {
        self.limit.as_ref()
    }

    /// Returns the usage and the outcome of each turn, the oldest first.
    pub fn turns(&self) -> &List<TurnSummary> {
        self.turns.all()
    }

    /// The same state for whoever gets the shown stream: without messages that only the model reads, notes of extensions, calls that nothing
    /// has happened to yet, and why a call did not run. What follows in the shown stream continues it.
    #[must_use]
    pub fn shown(self) -> Self {
        Self { log: self.log.shown(), ..self }
    }

    /// The same state where the thread is at event `next_seq`, which is the next that each primitive takes: the events before it that are not in
    /// the state are of kinds that no primitive uses.
    #[must_use]
    pub fn at(self, next_seq: u64) -> Self {
        Self {
            log: self.log.at(next_seq),
            confirmations: self.confirmations.at(next_seq),
            progress: SteeringProgress { next_seq, ..self.progress },
            streaming: self.streaming.at(next_seq),
            next_seq,
            ..self
        }
    }
}

fn questions<S: Serializer>(state: &ConfirmationsState, to: S) -> Result<S::Ok, S::Error> {
    state.questions().serialize(to)
}

fn shared<T: Serialize, S: Serializer>(all: &Arc<Vec<T>>, to: S) -> Result<S::Ok, S::Error> {
    all.as_slice().serialize(to)
}

#[allow(clippy::ptr_arg, reason = "serde calls it with the field")]
fn is_empty<T>(all: &Arc<Vec<T>>) -> bool {
    all.is_empty()
}

fn waiting<S: Serializer>(state: &SteeringState, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Own<'s> {
        executing: bool,
        mode: SteeringMode,
        queued: &'s [Outgoing],
        sent: &'s [Sent],
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        waiting: &'s [Waiting],
    }
    let (queued, sent) = (state.queued(), state.sent());
    let waiting = state.waiting();
    Own { executing: state.is_executing(), mode: state.mode(), queued, sent, waiting }.serialize(to)
}

fn streamed<S: Serializer>(state: &StreamingText, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Streamed<'s> {
        active: bool,
        text: &'s Text,
        reasoning: &'s Text,
    }
    Streamed { active: state.is_active(), text: state.text(), reasoning: state.reasoning() }.serialize(to)
}
