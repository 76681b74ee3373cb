//! The calls of a turn, and what it waits for.

use std::collections::BTreeMap;

use record::{
    LimitEscalationRequested, Shown, ShownToolResult, ToolCallStart, ToolConfirmationRequested,
    ToolConfirmationResolved,
};
use serde_json::Value;

use super::act::{Act, Answered, Asked, Called, Ended, Ending};

/// What a turn waits for: a person.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Open {
    /// An answer about a call.
    Question(Asked),
    /// A decision about a limit.
    Limit(LimitEscalationRequested),
}

impl Open {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Question(asked) => &asked.question,
            Self::Limit(limit) => &limit.approval_request_id,
        }
    }
}

/// The calls that are not over.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: BTreeMap<String, Call>,
    open: Vec<Open>,
    /// Calls of an earlier turn that this one runs before its first step, because the process of that turn has ended: by the ids of the model,
    /// the ids that front ends have.
    reopened: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Call {
    /// What was shown as its arguments; `None`: in another stream, or nothing.
    input: Option<Value>,
    is_running: bool,
    is_denied: bool,
}

impl Calls {
    /// Returns the id of a call as front ends get it.
    pub(super) fn id(&self, (turn, step): (u32, u32), call: &str) -> String {
        let reopened = self.reopened.get(call).filter(|_| step == 0);
        reopened.cloned().unwrap_or_else(|| format!("{turn}.{step}.{call}"))
    }

    fn of_line(&self, line: &Shown, call: &str) -> String {
        self.id((line.turn, line.step), call)
    }

    /// A later turn can run this call.
    pub(super) fn can_reopen(&mut self, call: &str, id: String) {
        self.reopened.insert(call.to_owned(), id);
    }

    /// What the turn waits for, while nothing else of it runs.
    pub(super) fn waits_for(&self) -> &[Open] {
        if self.calls.values().any(|call| call.is_running) { &[] } else { &self.open }
    }

    /// Shows a call, unless it was shown with these arguments.
    pub(super) fn show(&mut self, call: &str, tool: &str, input: &Value, acts: &mut Vec<Act>) {
        let known = self.calls.entry(call.to_owned()).or_default();
        if known.input.as_ref() == Some(input) {
            return;
        }
        known.input = Some(input.clone());
        let (call, tool, input) = (call.to_owned(), tool.to_owned(), Some(input.clone()));
        acts.push(Act::Called(Called { call, tool, input }));
    }

    pub(super) fn asked(&mut self, line: &Shown, asked: &ToolConfirmationRequested, acts: &mut Vec<Act>) {
        let call = self.of_line(line, &asked.call_id);
        self.show(&call, &asked.tool, &asked.input, acts);
        let Some(question) = asked.question_id.clone() else { return };
        self.ask(
            Asked {
                question,
                call,
                tool: asked.tool.clone(),
                reason: asked.reason.clone(),
                preview: asked.preview.clone(),
                always: asked.always.clone(),
                expires_ms: asked.timeout_ms.map(|timeout| line.ts.saturating_add(timeout)),
            },
            acts,
        );
    }

    pub(super) fn ask(&mut self, asked: Asked, acts: &mut Vec<Act>) {
        self.wait(Open::Question(asked.clone()));
        acts.push(Act::Asked(asked));
    }

    /// The turn waits for this. The same one again is the same one.
    pub(super) fn wait(&mut self, open: Open) {
        self.done(open.id());
        self.open.push(open);
    }

    /// It was decided.
    pub(super) fn done(&mut self, id: &str) {
        self.open.retain(|open| open.id() != id);
    }

    pub(super) fn answered(&mut self, line: &Shown, resolved: &ToolConfirmationResolved, acts: &mut Vec<Act>) {
        let Some(question) = resolved.question_id.clone() else { return };
        self.done(&question);
        let call = self.of_line(line, &resolved.call_id);
        self.calls.entry(call.clone()).or_default().is_denied = !resolved.approved;
        acts.push(Act::Answered(Answered {
            question,
            call,
            is_approved: resolved.approved,
            decision: resolved.decision.clone(),
            reason: resolved.reason.clone(),
            by: resolved.decided_by.clone(),
        }));
    }

    pub(super) fn started(&mut self, line: &Shown, start: &ToolCallStart, acts: &mut Vec<Act>) {
        let call = self.of_line(line, &start.call_id);
        self.show(&call, &start.tool, &start.input, acts);
        self.run(&call);
    }

    pub(super) fn run(&mut self, call: &str) {
        self.calls.entry(call.to_owned()).or_default().is_running = true;
    }

    pub(super) fn result(&mut self, line: &Shown, result: &ShownToolResult, acts: &mut Vec<Act>) {
        let call = self.of_line(line, &result.call_id);
        let known = self.calls.remove(&call);
        // Of an earlier turn, whose calls do not run because this one has an input.
        if known.is_none() && line.step == 0 && !self.reopened.contains_key(&result.call_id) {
            return;
        }
        if known.is_none() {
            acts.push(Act::Called(Called { call: call.clone(), tool: result.tool.clone(), input: None }));
        }
        let output = || result.output.clone().unwrap_or_default();
        let ending = match (result.duration_ms, known) {
            (Some(_), _) if result.is_error => Ending::Failed(output()),
            (Some(_), _) => Ending::Done(output()),
            (None, Some(call)) if call.is_denied => Ending::Denied,
            (None, _) => Ending::NotRun,
        };
        acts.push(Act::Ended(Ended {
            call,
            result: ending,
            diff: result.diff.clone(),
            duration_ms: result.duration_ms,
            waited_ms: result.waited_ms,
        }));
    }

    /// The call is over, and is not shown again.
    pub(super) fn end(&mut self, ended: Ended, acts: &mut Vec<Act>) {
        self.calls.remove(&ended.call);
        acts.push(Act::Ended(ended));
    }

    /// The turn is over: nobody is asked any more, and calls without a result are cancelled.
    pub(super) fn cancel(&mut self, acts: &mut Vec<Act>) {
        self.open.clear();
        let cancelled = std::mem::take(&mut self.calls).into_keys().map(|call| {
            Act::Ended(Ended { call, result: Ending::Cancelled, diff: None, duration_ms: None, waited_ms: None })
        });
        acts.extend(cancelled);
    }
}
