//! The calls of an accepted answer: run, answered and put into the conversation; and the reminders that wait for them.
//!
//! No call runs before its answer is accepted. An answer that is stopped therefore leaves no results behind, and none of
//! its calls stays in the conversation; the reminder names the call that matched, and not the other calls.

use flow::{Action, EventKind, ToolCall};

use super::interrupt::Injection;
use super::{Phase, Stop, Turn, checkpoint};
use crate::history::settled;
use crate::ports::EventSink;
use crate::tools::{CallEffects, Runner};

impl Turn<'_> {
    /// Runs the calls in the order that the tools suggest, each to its end. Their results stay in the order of the calls.
    ///
    /// # Errors
    /// The transcript cannot be written: no further call runs.
    pub(super) async fn run_calls(&mut self, calls: &[ToolCall]) -> Result<(), Stop> {
        for call in self.run_order(calls) {
            checkpoint(self.cancel).await;
            let notes = self.attempt.noted.take_call(&call.id);
            let session = &*self.session;
            let runner = Runner {
                hub: &session.hub,
                tools: &*session.parts.tools,
                confirm: &*session.parts.confirm,
                journal: session.journal.as_deref(),
                session: &session.parts.id,
                agent: session.rules.agent(),
                place: self.place,
            };
            let effects = CallEffects {
                refusal: (!notes.refusals.is_empty()).then(|| session.rules.reminder(&notes.refusals)),
                reminder: (!notes.reminders.is_empty()).then(|| session.rules.tool_reminder(&notes.reminders)),
            };
            let result = runner.run(call, effects).await;
            self.session.rules.release(&notes.unread());
            for (found, action) in [(notes.violations(), Action::Block), (notes.reminders, Action::Remind)] {
                if !found.is_empty() {
                    self.mark_injected(Injection::of_call(found, action));
                }
            }
            if let Phase::Calling { results, .. } = &mut self.phase {
                results.push(result);
            }
            self.recorded().await?;
        }
        self.settle_calls();
        Ok(())
    }

    /// The calls in the order in which to run them. An order that omits or repeats a call is
    /// reported and not used.
    fn run_order<'c>(&self, calls: &'c [ToolCall]) -> Vec<&'c ToolCall> {
        if calls.len() < 2 {
            return calls.iter().collect();
        }
        let order = self.session.parts.tools.order(calls);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..calls.len()) {
            let message = format!(
                "the tools gave an order of {} calls that omits or repeats one, so they run in their own order: {order:?}",
                calls.len()
            );
            self.session.hub.emit(EventKind::Notice { message });
            return calls.iter().collect();
        }
        order.into_iter().filter_map(|at| calls.get(at)).collect()
    }

    /// Puts the accepted answer and its results into the conversation.
    pub(super) fn settle_calls(&mut self) {
        if !matches!(self.phase, Phase::Calling { .. }) {
            return;
        }
        let Phase::Calling { answer, results } = std::mem::take(&mut self.phase) else { return };
        settled(answer, results).into_iter().for_each(|message| self.session.remember(message));
    }

    /// Delivers reminders of rules that did not interrupt the text. Returns whether there were any.
    pub(super) async fn remind(&mut self) -> bool {
        let matches = self.attempt.noted.take_prose();
        if matches.is_empty() {
            return false;
        }
        checkpoint(self.cancel).await;
        let reminder = self.session.rules.tool_reminder(&matches);
        self.inject(reminder, Injection::of_call(matches, Action::Remind));
        true
    }
}
