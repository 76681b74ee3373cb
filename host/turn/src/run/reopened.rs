//! The calls of an answer whose process ended, or whose session was closed, before they had their results.

use flow::{CallId, ToolCall};

use super::{Phase, Stop, Turn};
use crate::rebuild::OpenCalls;
use crate::tools::{CallResult, edit_note, refused};
use guard::attempt::Noted;
use guard::found;

/// The result of a call that was running when its process ended.
const UNKNOWN: &str =
    "the session ended while this call ran: its outcome is not known. Check what it has done before you call it again";

/// The result of a call that was not running then, where the conversation continues with another input.
const NOT_RUN: &str =
    "not run: the session ended before this call ran, and the user has continued with another message";

/// The result of a call that extensions or rules can have refused, in words that are not recorded.
const CHANGED: &str = "not run: the session ended before this call ran. Call it again if you still want it to run";

impl Turn<'_> {
    /// Takes over the calls that have no result yet. Where the turn has an input, they do not run.
    pub(crate) fn take_open_calls(&mut self, has_input: bool) {
        self.reopened = self.session.open_calls.take();
        if !has_input {
            return;
        }
        self.session.handles.questions.expect_no_more();
        let Some(open) = self.begin_open_calls() else { return };
        open.iter().for_each(|call| self.settle_open_call(call, CallResult::none(NOT_RUN)));
        self.settle_calls();
    }

    /// The calls are those of this turn from now on. Those that had begun get their results; the others are returned.
    fn begin_open_calls(&mut self) -> Option<Vec<ToolCall>> {
        let OpenCalls { answer, results, begun, edited, .. } = self.reopened.clone()?;
        let unanswered = |call: &&ToolCall| !results.iter().any(|result| result.call == call.id);
        let (unknown, rest): (Vec<ToolCall>, Vec<ToolCall>) =
            answer.tool_calls().filter(unanswered).cloned().partition(|call| begun.contains(&call.id));
        self.phase = Phase::Calling { answer, calls: Vec::new(), results };
        let edit = |id: &CallId| edited.iter().rev().find(|(known, _)| known == id).map(|(_, to)| edit_note(to));
        for call in &unknown {
            self.settle_open_call(call, CallResult::none(UNKNOWN).after(edit(&call.id)));
        }
        Some(rest)
    }

    fn settle_open_call(&mut self, call: &ToolCall, result: CallResult) {
        self.keep_open_calls();
        let result = result.emit(call, &self.session.handles.hub);
        if let Phase::Calling { results, .. } = &mut self.phase {
            results.push(result);
        }
    }

    /// Something becomes of the calls, which the records say: they stay those of this turn, however it ends.
    pub(super) fn keep_open_calls(&mut self) {
        self.reopened = None;
    }

    /// The turn ends. Calls of which nothing has become in it are left to the next one.
    pub(super) fn leave_open_calls(&mut self) {
        if let Some(open) = self.reopened.take() {
            self.session.open_calls = Some(open);
            self.phase = Phase::Between;
        }
    }

    /// Runs the calls that had not begun, as if their answer had just been accepted: rules and extensions get them again, and persons are
    /// asked again, each question under the id that it had. Returns whether there were any calls without a result.
    pub(super) async fn reopen(&mut self) -> Result<bool, Stop> {
        let Some(OpenCalls { mut questions, denied, changed, .. }) = self.reopened.clone() else { return Ok(false) };
        self.barrier().await?;
        let Some(mut calls) = self.begin_open_calls() else { return Ok(false) };
        // What a person has denied stays denied.
        for (id, decision) in denied {
            if let Some(at) = calls.iter().position(|call| call.id == id) {
                self.settle_open_call(&calls.remove(at), CallResult::none(refused(decision)));
                questions.retain(|(known, _)| *known != id);
            }
        }
        // What extensions and rules have made of the arguments that the model wrote cannot be repeated with others. Where a person was
        // asked, nothing forbade the call.
        let is_unknown =
            |call: &ToolCall| changed.contains(&call.id) && !questions.iter().any(|(id, _)| *id == call.id);
        for call in calls.extract_if(.., |call| is_unknown(call)).collect::<Vec<_>>() {
            self.settle_open_call(&call, CallResult::none(CHANGED));
        }
        for call in &calls {
            let mut effects = Vec::new();
            let keeping = self.session.caller.keeping();
            let noted = Noted::of_call(&mut self.session.rules, keeping, call, &mut effects);
            found::emit(&*self.session.handles.hub, &effects);
            self.count_found(&effects);
            self.attempt.noted.absorb(noted);
        }
        let calls = self.check_calls(&calls).await?;
        self.run_calls(&calls, questions).await?;
        self.attempt.answer = guard::attempt::Answer::default();
        Ok(true)
    }
}
