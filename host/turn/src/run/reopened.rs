//! The calls of an answer whose process ended before they had their results.

use flow::{EventKind, ToolCall, ToolResult};

use super::{Phase, Stop, Turn};
use crate::attempt::Noted;
use crate::ports::EventSink;
use crate::tools::refused;
use crate::transcript::OpenCalls;

/// The result of a call that was running when its process ended.
const UNKNOWN: &str = "the process of the host ended while this call ran: its outcome is not known. Check what it has done before you call it again";

/// The result of a call that was not running then, where the conversation continues with another input.
const NOT_RUN: &str =
    "not run: the process of the host ended before this call ran, and the user has continued with another message";

impl Turn<'_> {
    /// Takes over the calls that have no result yet. Where the turn has an input, they do not run.
    pub(crate) fn take_open_calls(&mut self, has_input: bool) {
        let Some(open) = self.session.open_calls.take() else { return };
        let OpenCalls { answer, results, begun, .. } = &open;
        let unanswered = |call: &&ToolCall| !results.iter().any(|result| result.call == call.id);
        let (unknown, rest): (Vec<ToolCall>, Vec<ToolCall>) =
            answer.tool_calls().filter(unanswered).cloned().partition(|call| begun.contains(&call.id));
        self.phase = Phase::Calling { answer: answer.clone(), results: results.clone() };
        unknown.iter().for_each(|call| self.settle_open_call(call, UNKNOWN));
        if has_input {
            rest.iter().for_each(|call| self.settle_open_call(call, NOT_RUN));
            self.settle_calls();
        } else {
            self.reopened = Some(open);
        }
    }

    fn settle_open_call(&mut self, call: &ToolCall, why: &str) {
        self.session.hub.emit(EventKind::ToolCallResult {
            call: call.id.clone(),
            tool: call.name.clone(),
            output: why.to_owned(),
            reminder: None,
            diff: None,
            is_error: true,
            duration_ms: None,
            waited_ms: None,
        });
        let result = ToolResult { call: call.id.clone(), content: vec![why.to_owned()], is_error: true };
        if let Phase::Calling { results, .. } = &mut self.phase {
            results.push(result);
        }
    }

    /// Runs the calls that had not begun, as if their answer had just been accepted: rules watch them again, and persons are asked
    /// again, each question under the id that it had. Returns whether there were any calls without a result.
    pub(super) async fn reopen(&mut self) -> Result<bool, Stop> {
        let Some(OpenCalls { answer, results, begun, mut questions, denied }) = self.reopened.take() else {
            return Ok(false);
        };
        self.barrier().await?;
        let is_open =
            |call: &&ToolCall| !begun.contains(&call.id) && !results.iter().any(|result| result.call == call.id);
        let mut calls: Vec<ToolCall> = answer.tool_calls().filter(is_open).cloned().collect();
        // What a person has denied stays denied.
        for (id, decision) in denied {
            if let Some(at) = calls.iter().position(|call| call.id == id) {
                self.settle_open_call(&calls.remove(at), &refused(decision));
                questions.retain(|(known, _)| *known != id);
            }
        }
        for call in &calls {
            let noted = Noted::of_call(&mut self.session.rules, call);
            self.attempt.noted.absorb(noted);
        }
        self.run_calls(&calls, questions).await?;
        self.attempt.answer = crate::attempt::Answer::default();
        Ok(true)
    }
}
