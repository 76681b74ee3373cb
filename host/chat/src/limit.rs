//! A limit that a thread has reached, and about which a person has to decide.

use flow::{Event, EventKind, LimitRequest, RunPosition};
use serde::{Deserialize, Serialize};

use crate::message::Changed;
use crate::text::Str;

/// A request for a higher limit, about which nobody has decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PendingLimit {
    /// Its id, to decide about it.
    pub id: Str,
    /// `turns_exceeded`, `steps_exceeded` and so on.
    pub code: Str,
    /// What is spent: a count, US dollars or seconds.
    pub current: f64,
    /// The limit so far.
    pub max: f64,
    /// The limit that an approval sets, unless it sets another one.
    pub proposed: f64,
    /// All of it in one sentence.
    pub message: Str,
    /// The turn that waits.
    pub turn: u32,
    /// Its last step; 0: it has none.
    pub step: u32,
}

impl PendingLimit {
    fn of(request: &LimitRequest, place: RunPosition) -> Self {
        let LimitRequest { id, limit, current, max, proposed, message, .. } = request;
        let (id, code, message) = (id.into(), limit.code().into(), message.into());
        let RunPosition { turn, step, .. } = place;
        Self { id, code, current: *current, max: *max, proposed: *proposed, message, turn, step }
    }

    /// Takes the next event of the thread.
    pub(crate) fn process(pending: &mut Option<Self>, event: &Event) -> Changed {
        let next = match &event.kind {
            EventKind::LimitEscalationRequested(request) => Some(Self::of(request, event.place)),
            EventKind::LimitEscalationResolved { request, .. } => {
                pending.clone().filter(|known| *known.id != **request)
            }
            EventKind::TurnStart
            | EventKind::TurnFinish { .. }
            | EventKind::ThreadResumed { .. }
            | EventKind::StepStart { .. } => None,
            _ => return Changed::No,
        };
        let changed = *pending != next;
        *pending = next;
        changed.into()
    }
}
