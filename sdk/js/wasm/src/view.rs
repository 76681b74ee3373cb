//! What JavaScript has of a state, to find out what it lacks.

use std::sync::Arc;

use chat::{
    Attachment, ChatState, ConfirmationsState, LastSubmitted, LogSnapshot, PendingLimit, PlanItem, SteeringState,
    StreamingText, Text, TurnError,
};

use crate::output::{Grown, Steering, Streamed, ViewChange};

/// The parts of a state that a primitive has. A clone shares everything.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) messages: Option<LogSnapshot>,
    pub(crate) questions: Option<ConfirmationsState>,
    pub(crate) steering: Option<SteeringState>,
    pub(crate) streaming: Option<StreamingText>,
    pub(crate) last_submitted: Option<LastSubmitted>,
    pub(crate) error: Option<TurnError>,
    pub(crate) limit: Option<PendingLimit>,
    pub(crate) interrupted: bool,
    pub(crate) plan: Arc<Vec<PlanItem>>,
    pub(crate) attachments: Arc<Vec<Attachment>>,
}

impl<M> From<ChatState<M>> for View {
    fn from(state: ChatState<M>) -> Self {
        Self {
            messages: Some(state.messages),
            questions: Some(state.questions),
            steering: Some(state.steering),
            streaming: Some(state.streaming),
            last_submitted: state.last_submitted,
            error: state.error,
            limit: state.limit,
            interrupted: state.interrupted,
            plan: state.plan,
            attachments: state.attachments,
        }
    }
}

impl View {
    /// What changed since a view of the same primitive; `None`: nothing.
    pub(crate) fn change_since(&self, before: &Self) -> Option<ViewChange> {
        let default = LogSnapshot::default();
        let messages = self.messages.as_ref().map(|now| now.change_since(before.messages.as_ref().unwrap_or(&default)));
        let change = ViewChange {
            messages: messages.filter(|change| !change.is_empty()),
            questions: self.questions_since(before),
            steering: self.steering_since(before),
            streaming: self.streaming.as_ref().and_then(|now| streamed(now, before.streaming.as_ref())),
            last_submitted: (self.last_submitted != before.last_submitted).then(|| self.last_submitted.clone()),
            error: (self.error != before.error).then(|| self.error.clone()),
            limit: (self.limit != before.limit).then(|| self.limit.clone()),
            interrupted: (self.interrupted != before.interrupted).then_some(self.interrupted),
            plan: (!is_same(&self.plan, &before.plan)).then(|| self.plan.to_vec()),
            attachments: (!is_same(&self.attachments, &before.attachments)).then(|| self.attachments.to_vec()),
        };
        (change != ViewChange::default()).then_some(change)
    }

    fn questions_since(&self, before: &Self) -> Option<Vec<chat::Question>> {
        let now = self.questions.as_ref()?.questions();
        let same = before.questions.as_ref().is_some_and(|before| before.questions() == now);
        (!same).then(|| now.to_vec())
    }

    fn steering_since(&self, before: &Self) -> Option<Steering> {
        let now = self.steering.as_ref()?;
        let parts = |one: &SteeringState| (one.is_executing(), one.mode());
        let same = before.steering.as_ref().is_some_and(|old| {
            parts(old) == parts(now)
                && old.queued() == now.queued()
                && old.sent() == now.sent()
                && old.waiting() == now.waiting()
        });
        (!same).then(|| Steering {
            executing: now.is_executing(),
            mode: now.mode(),
            queued: now.queued().to_vec(),
            sent: now.sent().to_vec(),
            waiting: now.waiting().to_vec(),
        })
    }
}

fn is_same<T: PartialEq>(one: &Arc<Vec<T>>, two: &Arc<Vec<T>>) -> bool {
    Arc::ptr_eq(one, two) || one == two
}

fn streamed(now: &StreamingText, before: Option<&StreamingText>) -> Option<Streamed> {
    let none = StreamingText::default();
    let old = before.unwrap_or(&none);
    let change = Streamed {
        active: (before.is_none() || old.is_active() != now.is_active()).then(|| now.is_active()),
        text: grown(now.text(), old.text()),
        reasoning: grown(now.reasoning(), old.reasoning()),
    };
    (change != Streamed::default()).then_some(change)
}

fn grown(now: &Text, before: &Text) -> Option<Grown> {
    match now.added_since(before) {
        Some(added) if added.is_empty() => None,
        Some(added) => Some(Grown::Added(added)),
        None => Some(Grown::Whole(now.to_string())),
    }
}
