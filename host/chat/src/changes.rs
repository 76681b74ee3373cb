//! What of a state has changed since an earlier one: what crosses the border to a front end in another language, whatever the length of the
//! conversation is.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::attachments::Attachment;
use crate::confirmations::ConfirmationsState;
use crate::list::{List, Shared};
use crate::log::LogSnapshot;
use crate::message::{Block, ChatMessage, ChildThread, PlanItem, TurnError};
use crate::session::{ChatState, LastSubmitted};
use crate::steering::SteeringState;
use crate::streaming::StreamingText;
use crate::text::Text;

/// The changes of a [`ChatState`]. As JSON, each key is there only where its value has changed, with the name that it has in the state.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct StateChanges<'s, M> {
    /// The messages of the thread.
    #[serde(skip_serializing_if = "ListChanges::is_none")]
    pub messages: ListChanges,
    /// The messages of children, in the order of their first events. What is unchanged is there with its thread alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<ChildChanges<'s>>>,
    /// What the chat is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'s M>,
    /// The questions that are not resolved.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "questions")]
    pub questions: Option<&'s ConfirmationsState>,
    /// The user's messages.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "steering")]
    pub steering: Option<&'s SteeringState>,
    /// The text of the current answer.
    #[serde(skip_serializing_if = "StreamingChanges::is_none")]
    pub streaming: StreamingChanges<'s>,
    /// The message that was sent last; `null` where there is none any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_submitted: Option<Option<&'s LastSubmitted>>,
    /// Why the last turn did not complete; `null` where that is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Option<&'s TurnError>>,
    /// The plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<&'s [PlanItem]>,
    /// The attachments of the next message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<&'s [Attachment]>,
}

/// The changes of a list of messages. Each message has a place, from 0, which it keeps; one that the render mode does not show has an empty one.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ListChanges {
    /// The number of places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len: Option<usize>,
    /// Messages that are new or differ, each with its place; `null`: it is not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(usize, Option<Shared<ChatMessage>>)>,
    /// Messages of which only the last block has grown, each with its place and the text that follows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grown: Vec<(usize, String)>,
}

/// The changes of a child's messages.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ChildChanges<'s> {
    /// The child.
    pub thread: &'s ChildThread,
    /// Its messages.
    #[serde(flatten)]
    pub messages: ListChanges,
}

/// The changes of the text of the current answer.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct StreamingChanges<'s> {
    /// Whether more of it can follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// The whole text, where it was not only appended to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'s Text>,
    /// The whole reasoning, where it was not only appended to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<&'s Text>,
    /// What was appended to the text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text_more: String,
    /// What was appended to the reasoning.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning_more: String,
}

impl ListChanges {
    fn is_none(&self) -> bool {
        self.len.is_none() && self.set.is_empty() && self.grown.is_empty()
    }

    /// The changes between two versions of a thread's messages. `shown`: what is shown of a message, in each version, by its place.
    pub(crate) fn between(
        (before, after): (&List<Shared<ChatMessage>>, &List<Shared<ChatMessage>>),
        places: impl Iterator<Item = usize>,
        shown: [&dyn Fn(usize) -> Option<Shared<ChatMessage>>; 2],
    ) -> Self {
        let mut changes = Self { len: (before.len() != after.len()).then_some(after.len()), ..Self::default() };
        for at in places {
            match (shown[0](at), shown[1](at)) {
                (None, None) if at < before.len() => {}
                (Some(before), Some(after)) if before.is_same(&after) => {}
                (Some(before), Some(after)) => match growth(&before, &after) {
                    Some(text) if text.is_empty() => {}
                    Some(text) => changes.grown.push((at, text)),
                    None if before == after => {}
                    None => changes.set.push((at, Some(after))),
                },
                (_, after) => changes.set.push((at, after)),
            }
        }
        changes
    }
}

impl<'s> StreamingChanges<'s> {
    fn is_none(&self) -> bool {
        self.active.is_none()
            && self.text.is_none()
            && self.reasoning.is_none()
            && self.text_more.is_empty()
            && self.reasoning_more.is_empty()
    }

    fn between(before: &StreamingText, after: &'s StreamingText) -> Self {
        let (text, text_more) = appended(before.text(), after.text());
        let (reasoning, reasoning_more) = appended(before.reasoning(), after.reasoning());
        let active = (before.is_active() != after.is_active()).then_some(after.is_active());
        Self { active, text, reasoning, text_more, reasoning_more }
    }
}

impl<M: PartialEq> ChatState<M> {
    /// What has changed since an earlier state of the same chat. It takes time in the size of the change.
    pub fn changes_since(&self, before: &Self) -> StateChanges<'_, M> {
        let steering = |state: &SteeringState| (state.is_executing(), state.mode());
        let is_waiting_same = self.steering.queued() == before.steering.queued()
            && self.steering.sent() == before.steering.sent()
            && self.steering.waiting() == before.steering.waiting();
        let is_steering_same = steering(&self.steering) == steering(&before.steering) && is_waiting_same;
        StateChanges {
            messages: self.messages.changes_since(&before.messages),
            children: self.messages.children_since(&before.messages),
            mode: (self.mode != before.mode).then_some(&self.mode),
            questions: (self.questions.questions() != before.questions.questions()).then_some(&self.questions),
            steering: (!is_steering_same).then_some(&self.steering),
            streaming: StreamingChanges::between(&before.streaming, &self.streaming),
            last_submitted: (self.last_submitted != before.last_submitted).then_some(self.last_submitted.as_ref()),
            error: (self.error != before.error).then_some(self.error.as_ref()),
            plan: changed(&before.plan, &self.plan),
            attachments: changed(&before.attachments, &self.attachments),
        }
    }
}

impl<M> StateChanges<'_, M> {
    /// Whether nothing has changed.
    pub fn is_none(&self) -> bool {
        let Self { messages, children, mode, questions, steering, streaming, last_submitted, error, plan, attachments } =
            self;
        let lists = messages.is_none() && children.is_none() && streaming.is_none();
        let waiting = questions.is_none() && steering.is_none() && last_submitted.is_none();
        lists && waiting && mode.is_none() && error.is_none() && plan.is_none() && attachments.is_none()
    }
}

/// The text that follows, where the last block of a message has grown and nothing else has changed.
fn growth(before: &ChatMessage, after: &ChatMessage) -> Option<String> {
    let last = after.blocks.len().checked_sub(1).filter(|_| before.blocks.len() == after.blocks.len())?;
    let (old, new) = (before.blocks.get(last)?, after.blocks.get(last)?);
    let is_kept = |at: usize| match (before.blocks.get(at), after.blocks.get(at)) {
        (Some(old), Some(new)) => is_as(old, new) && old.text.is_same(&new.text),
        _ => false,
    };
    let without = |message: &ChatMessage| ChatMessage { blocks: List::default(), ..message.clone() };
    let is_grown = is_as(old, new) && new.text.continues(&old.text) && (0..last).all(is_kept);
    (is_grown && without(before) == without(after)).then(|| new.text.chunks_from(old.text.len()).collect())
}

/// Whether two blocks differ in nothing but their texts.
fn is_as(one: &Block, other: &Block) -> bool {
    one.kind == other.kind && one.complete == other.complete && one.void == other.void
}

/// The whole text where it is another one, and what follows where it was appended to.
fn appended<'s>(before: &Text, after: &'s Text) -> (Option<&'s Text>, String) {
    match after.continues(before) {
        true => (None, after.chunks_from(before.len()).collect()),
        false => (Some(after), String::new()),
    }
}

fn changed<'s, T: PartialEq>(before: &Arc<Vec<T>>, after: &'s Arc<Vec<T>>) -> Option<&'s [T]> {
    (!Arc::ptr_eq(before, after) && before != after).then_some(after.as_slice())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
fn questions<S: Serializer>(state: &Option<&ConfirmationsState>, to: S) -> Result<S::Ok, S::Error> {
    state.map(ConfirmationsState::questions).serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
fn steering<S: Serializer>(state: &Option<&SteeringState>, to: S) -> Result<S::Ok, S::Error> {
    match state {
        Some(state) => crate::session::waiting(state, to),
        None => to.serialize_none(),
    }
}

impl LogSnapshot {
    /// The changes of the thread's own messages.
    fn changes_since(&self, before: &Self) -> ListChanges {
        self.0.thread_changes(&before.0, None)
    }

    /// The changes of the messages of children; `None`: there are none.
    fn children_since(&self, before: &Self) -> Option<Vec<ChildChanges<'_>>> {
        if self.0.shares_children(&before.0) {
            return None;
        }
        let changes = |thread| ChildChanges { thread, messages: self.0.thread_changes(&before.0, Some(thread)) };
        let all: Vec<ChildChanges<'_>> = self.children().map(changes).collect();
        let is_same = all.iter().all(|child| child.messages.is_none()) && self.children().eq(before.children());
        (!is_same).then_some(all)
    }
}
