//! The turns of a thread without their messages: the usage and the outcome of each turn.

use flow::{Event, EventKind, Spend, StepEnd, StopReason, TurnStatus, Usage};
use serde::{Deserialize, Serialize};

use crate::list::List;
use crate::message::TurnError;
use crate::text::Str;

/// The usage of a turn so far, and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TurnSummary {
    /// The turn, from 1.
    pub number: u32,
    /// The turn that it continues without an input, because the process of that turn ended before its calls had results, or before somebody had
    /// decided about its limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<u32>,
    /// It has an input of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_input: bool,
    /// It waits for a decision about a limit, or its process ended or its session was closed while it did.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_undecided: bool,
    /// Steps that began.
    pub steps: u32,
    /// The model that answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Str>,
    /// The tokens of its steps.
    #[serde(skip_serializing_if = "TurnTokens::is_empty")]
    pub tokens: TurnTokens,
    /// The cost of its steps in US dollars; `None`: no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The last answer ended at the most tokens that it can have.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut_off: bool,
    /// As in `turn_finish`; `None`: it runs, or its process ended before the turn did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Str>,
    /// Why it did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Str>,
}

/// Tokens, as far as the provider has counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TurnTokens {
    /// Of prompts, those from a cache included where the provider includes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Of answers, those that rules have stopped included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Of prompts, read from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Of prompts, written to the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}

/// All turns of a thread, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Turns(List<TurnSummary>);

impl TurnTokens {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, more: Usage) {
        let Self { input, output, cache_read, cache_write } = *self;
        let mut sum = Usage { input, output, cache_read, cache_write };
        sum.add(more);
        let Usage { input, output, cache_read, cache_write } = sum;
        *self = Self { input, output, cache_read, cache_write };
    }
}

impl TurnSummary {
    /// The first of the turns of which it is one, where it continues an earlier one.
    pub fn first(&self) -> u32 {
        self.continues.unwrap_or(self.number)
    }

    fn count(&mut self, usage: Usage, spend: Option<Spend>, end: &StepEnd) {
        self.tokens.add(usage);
        if let Some(spend) = spend {
            *self.cost.get_or_insert(0.0) += spend.dollars();
        }
        self.is_cut_off = matches!(end, StepEnd::Answered(StopReason::MaxTokens | StopReason::ContextFull));
    }
}

impl Turns {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn all(&self) -> &List<TurnSummary> {
        &self.0
    }

    /// Whether the last turn has none: it runs, or its process ended before it did.
    pub(crate) fn has_no_end(&self) -> bool {
        self.0.last().is_some_and(|turn| turn.status.is_none())
    }

    /// Takes the next event of the thread.
    pub(crate) fn process(&mut self, event: &Event) {
        match &event.kind {
            EventKind::TurnStart => self.begin(event.place.turn),
            EventKind::InputReceived { .. } => {
                self.change(event, |turn| (turn.continues, turn.has_input) = (None, true));
            }
            EventKind::ToolConfirmationRequested { .. }
            | EventKind::ToolCallStart { .. }
            | EventKind::ToolCallResult { .. }
                if event.place.step == 0 =>
            {
                let first = self.answered_before(event.place.turn);
                self.change(event, |turn| turn.continues = first);
            }
            EventKind::LimitEscalationRequested(_) if event.place.step == 0 => {
                let first = self.undecided_before(event.place.turn);
                self.change(event, |turn| {
                    turn.continues = first.filter(|_| !turn.has_input).or(turn.continues);
                    turn.is_undecided = true;
                });
            }
            EventKind::LimitEscalationRequested(_) => self.change(event, |turn| turn.is_undecided = true),
            EventKind::LimitEscalationResolved { .. } => self.change(event, |turn| turn.is_undecided = false),
            EventKind::StepStart { .. } => self.change(event, |turn| {
                turn.steps += 1;
                turn.is_undecided = false;
            }),
            EventKind::CognitionOut { model: Some(model), .. } => {
                self.change(event, |turn| turn.model = Some(model.into()));
            }
            EventKind::StepFinish { usage, spend, end, .. } => {
                self.change(event, |turn| turn.count(*usage, *spend, end));
            }
            EventKind::TurnFinish { status } => self.change(event, |turn| {
                // Where the session was closed, the next process asks.
                turn.is_undecided &= matches!(status, TurnStatus::Suspended { .. });
                turn.status = Some(status.as_str().into());
                turn.error = TurnError::of(status).map(|error| error.message);
            }),
            _ => {}
        }
    }

    fn begin(&mut self, number: u32) {
        self.0.push(TurnSummary { number, ..TurnSummary::default() });
    }

    /// Changes the turn of an event.
    fn change(&mut self, event: &Event, change: impl FnOnce(&mut TurnSummary)) {
        if let Some(turn) = self.0.last_mut().filter(|turn| turn.number == event.place.turn) {
            change(turn);
        }
    }

    /// The turn with the last answer before a turn. Turns that ended before anything became of its calls are passed over.
    fn answered_before(&self, number: u32) -> Option<u32> {
        let before = self.0.iter().rev().filter(|turn| turn.number < number);
        before.into_iter().find(|turn| turn.continues.is_some() || turn.steps > 0).map(TurnSummary::first)
    }

    /// The last turn before a turn in which something has happened, where it has left a decision about a limit to the next.
    fn undecided_before(&self, number: u32) -> Option<u32> {
        let before = self.0.iter().rev().filter(|turn| turn.number < number);
        let last = before.into_iter().find(|turn| turn.continues.is_some() || turn.steps > 0 || turn.has_input)?;
        last.is_undecided.then_some(last.first())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flow::{Limit, LimitRequest, Message, Origin, Role, RunPosition, SuspendReason};

    use super::*;

    /// A turn that asks about a limit before its first step continues the one that was killed while it asked, unless it has an input.
    #[test]
    fn a_turn_continues_the_one_that_waited_for_a_decision() {
        let input = || EventKind::InputReceived {
            id: None,
            message: Arc::new(Message::text(Role::User, Origin::User, "Look")),
        };
        let limit = || EventKind::LimitEscalationRequested(LimitRequest::new(1, Limit::Turns, 1.0, 1.0, 2.0));
        let finish = |status| EventKind::TurnFinish { status };
        let suspended = || finish(TurnStatus::Suspended { reason: SuspendReason::Approval, message: String::new() });
        let cancelled = || finish(TurnStatus::Cancelled);
        let step = || EventKind::StepStart { number: 1 };
        for (killed, next, expected) in [
            (vec![input(), step(), limit()], vec![limit()], Some(1)),
            (vec![input(), limit()], vec![limit()], Some(1)),
            (vec![input(), limit(), suspended()], vec![limit()], Some(1)),
            (vec![input(), limit(), cancelled()], vec![limit()], None),
            (vec![input(), limit()], vec![input(), limit()], None),
            (vec![input(), limit(), step()], vec![limit()], None),
            (vec![input(), limit()], vec![step()], None),
        ] {
            let mut turns = Turns::default();
            // Nothing has happened in the second one.
            let all = [killed, Vec::new(), next];
            for (turn, kinds) in (1..).zip(all) {
                for kind in [EventKind::TurnStart].into_iter().chain(kinds) {
                    let step = turns.all().last().filter(|last| last.number == turn).map_or(0, |last| last.steps);
                    turns.process(&Event::new(0, 0, RunPosition { turn, step, attempt: 0 }, kind));
                }
            }
            assert_eq!(turns.all().last().and_then(|turn| turn.continues), expected, "{turns:?}");
        }
    }
}
