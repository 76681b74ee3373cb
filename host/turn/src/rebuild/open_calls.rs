//! What the records have of the calls of an answer, and of the questions about them.

use std::collections::BTreeSet;

use flow::{CallId, Confirmation, Message, QuestionId, ToolResult};

use record::{Block, Body, Record};

use super::Resumed;

/// The calls of an accepted answer that had no result when their process ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OpenCalls {
    /// The answer, which joins the conversation with the results of its calls.
    pub answer: Message,
    /// The results that there are.
    pub results: Vec<ToolResult>,
    /// The calls that had begun to run.
    pub begun: Vec<CallId>,
    /// The last question about each call that was asked about before a person has edited its arguments.
    pub questions: Vec<(CallId, QuestionId)>,
    /// The calls that a person has denied.
    pub denied: Vec<(CallId, Confirmation)>,
    /// The calls whose arguments are not those that the model wrote, which are not recorded.
    pub changed: Vec<CallId>,
    /// The arguments that a person has written for calls, oldest first.
    pub edited: Vec<(CallId, String)>,
}

/// An answer whose calls run.
#[derive(Clone, Debug)]
pub(super) struct Calling(OpenCalls);

impl Calling {
    pub(super) fn new(answer: Message, blocks: &[Block]) -> Self {
        let changed = blocks.iter().filter(|block| block.changed == Some(true));
        let changed = changed.filter_map(|block| block.call_id.as_deref().map(CallId::new)).collect();
        let (results, begun, questions) = (Vec::new(), Vec::new(), Vec::new());
        Self(OpenCalls { answer, results, begun, questions, denied: Vec::new(), changed, edited: Vec::new() })
    }

    /// Takes the next record after that of the answer.
    pub(super) fn take(&mut self, record: &Record) {
        let own = &mut self.0;
        match &record.body {
            Body::ToolCallStart(start) => own.begun.push(CallId::new(start.call_id.as_str())),
            Body::ToolCallResult(result) => own.results.push(ToolResult {
                call: CallId::new(result.call_id.as_str()),
                content: result.reminder.iter().chain([&result.output]).cloned().collect(),
                is_error: result.error.is_some(),
            }),
            Body::ToolConfirmationRequested(asked) => {
                let call = CallId::new(asked.call_id.as_str());
                own.questions.retain(|(known, _)| *known != call);
                // A question after an edit is about other arguments than the next process asks about.
                let is_edited = own.edited.iter().any(|(known, _)| *known == call);
                let is_own = !is_edited && own.answer.tool_calls().any(|own| own.id == call);
                if let Some(id) = asked.question_id.as_deref().filter(|_| is_own) {
                    own.questions.push((call, QuestionId::new(id)));
                }
            }
            Body::ToolConfirmationResolved(resolved) => {
                let call = CallId::new(resolved.call_id.as_str());
                if resolved.decision.as_deref() == Some("denied") {
                    let reason = resolved.reason.clone().unwrap_or_default();
                    own.denied.push((call, Confirmation::Denied { reason }));
                } else if let Some(arguments) = &resolved.arguments {
                    own.edited.push((call, arguments.clone()));
                }
            }
            _ => {}
        }
    }

    /// Whether a call has no result.
    pub(super) fn is_open(&self) -> bool {
        let OpenCalls { answer, results, .. } = &self.0;
        answer.tool_calls().any(|call| !results.iter().any(|result| result.call == call.id))
    }

    pub(super) fn into_parts(self) -> (Message, Vec<ToolResult>) {
        (self.0.answer, self.0.results)
    }

    pub(super) fn into_open(self) -> OpenCalls {
        self.0
    }
}

/// Counts over the questions of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Questions {
    asked: u64,
    always: BTreeSet<String>,
}

impl Questions {
    pub(super) fn take(&mut self, record: &Record) {
        match &record.body {
            Body::ToolConfirmationRequested(asked) => {
                let number = asked.question_id.as_deref().and_then(|id| id.strip_prefix("question-")?.parse().ok());
                self.asked = self.asked.max(number.unwrap_or(0));
            }
            Body::ToolConfirmationResolved(resolved) if resolved.approved => {
                self.always.extend(resolved.pattern.clone());
            }
            _ => {}
        }
    }

    /// What was allowed for the rest of the session was so in another one.
    pub(super) fn forget_always(&mut self) {
        self.always.clear();
    }

    /// The thread continues from here.
    pub(super) fn finish(self, resumed: &mut Resumed) {
        (resumed.questions, resumed.always) = (self.asked, self.always);
    }
}
