//! The calls of an accepted answer: run, answered and put into the conversation; and the reminders that wait for them.
//!
//! No call runs before its answer is accepted. An answer that is stopped therefore leaves no results behind, and none of
//! its calls stays in the conversation; a call that matched beside others is named by the reminder, and the others are
//! not blamed.

use flow::{Action, Message, Origin, Part, Role, RuleMatch, ToolCall};

use super::interrupt::Injection;
use super::{Turn, checkpoint};
use crate::tools::{self, Beside, Runner};

impl Turn<'_> {
    pub(super) async fn run_calls(&mut self, calls: &[ToolCall]) {
        for call in calls {
            checkpoint(self.cancel).await;
            let blocked = tools::blocks_of(call, &self.attempt.noted.block);
            let reminders = tools::take_reminders(call, &mut self.attempt.noted.remind);
            let session = &*self.session;
            let runner = Runner {
                hub: &session.hub,
                tools: &*session.parts.tools,
                confirm: &*session.parts.confirm,
                session: &session.parts.id,
                place: self.place,
            };
            let beside = Beside {
                refusal: (!blocked.is_empty()).then(|| session.rules.reminder(&blocked)),
                reminder: (!reminders.is_empty()).then(|| session.rules.tool_reminder(&reminders)),
            };
            let result = runner.run(call, beside).await;
            // That a call could not be read is no violation: its rules stay as they were.
            let (unread, blocked): (Vec<_>, Vec<_>) = blocked.into_iter().partition(|found| found.evidence.unread);
            let unread: Vec<String> = unread.into_iter().map(|found| found.rule).collect();
            self.session.rules.release(&unread);
            if !blocked.is_empty() {
                self.mark_injected(Injection::beside(blocked, Action::Block));
            }
            if !reminders.is_empty() {
                self.mark_injected(Injection::beside(reminders, Action::Remind));
            }
            if let Some((_, results)) = &mut self.running {
                results.push(result);
            }
        }
        self.settle_calls();
    }

    /// Puts the accepted answer and its results into the conversation. A call without a result is left out: a provider
    /// refuses a history with open calls.
    pub(super) fn settle_calls(&mut self) {
        let Some((mut message, results)) = self.running.take() else { return };
        let answered = |call: &ToolCall| results.iter().any(|result| result.call == call.id);
        message.parts.retain(|part| if let Part::ToolCall(call) = part { answered(call) } else { true });
        if message.parts.iter().all(|part| matches!(part, Part::Thinking { .. })) {
            return;
        }
        self.session.remember(message);
        if !results.is_empty() {
            let parts = results.into_iter().map(Part::ToolResult).collect();
            self.session.remember(Message { role: Role::Tool, origin: Origin::Host, parts, hidden: false });
        }
    }

    /// Delivers reminders of rules that did not interrupt the text. Tells whether there were any.
    pub(super) async fn remind(&mut self) -> bool {
        let is_prose = |found: &RuleMatch| !found.stream.is_tool();
        let matches: Vec<RuleMatch> =
            std::mem::take(&mut self.attempt.noted.remind).into_iter().filter(is_prose).collect();
        if matches.is_empty() {
            return false;
        }
        checkpoint(self.cancel).await;
        let reminder = self.session.rules.tool_reminder(&matches);
        self.inject(reminder, Injection::beside(matches, Action::Remind));
        true
    }
}
