//! What a person reads about a record, in the terminal as it happens, in `session show`, in a report and in an editor: one sentence for all of
//! them, where they have no form of their own. One arm for each type, so that a new type does not compile without a decision.

mod extension;
mod model;
mod plan;
mod rule;
mod thread;

use std::borrow::Cow;
use std::fmt;

use super::Body;

/// What a person reads about a record. It contains names and texts of others: who shows it escapes all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sentence<'r> {
    /// What happened, in one line.
    pub text: String,
    /// The words of a model, a tool, a plugin or a server about it, such as the cause of an error; it can have several lines. `None`: there are none.
    pub detail: Option<Cow<'r, str>>,
}

impl<'r> Sentence<'r> {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), detail: None }
    }

    /// With the words of others, unless they are empty.
    fn with(mut self, detail: impl Into<Cow<'r, str>>) -> Self {
        self.detail = Some(detail.into()).filter(|detail| !detail.is_empty());
        self
    }
}

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) if detail.contains('\n') => write!(f, "{}:\n{detail}", self.text),
            Some(detail) => write!(f, "{}: {detail}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl Body {
    /// What a person reads about the record; `None`: it is shown in a form of its own, as messages, answers, calls, questions, matches of rules and
    /// the ends of turns are, or not at all.
    pub fn sentence(&self) -> Option<Sentence<'_>> {
        Some(match self {
            Self::ThreadResumed(resumed) => resumed.sentence(),
            Self::ThreadSuspended(suspended) => suspended.sentence(),
            Self::ThreadError(failed) => failed.sentence(),
            Self::ThreadCancelled(cancelled) => cancelled.sentence(),
            Self::InputEdited(edited) => edited.sentence(),
            Self::InputWithdrawn(withdrawn) => withdrawn.sentence(),
            Self::LimitEscalationRequested(request) => Sentence::new(request.message.as_str()),
            Self::LimitEscalationResolved(resolved) => resolved.sentence(),
            Self::ChildThreadStarted(child) => child.sentence(),
            Self::ChildThreadFailed(child) => child.sentence(),
            Self::HistoryReplaced(replaced) => replaced.sentence(),
            Self::PlanUpdated(plan) => plan.sentence(),
            Self::ErrorClassified(error) => error.sentence(),
            Self::RetryScheduled(retry) => retry.sentence(),
            Self::RetrySucceeded(retried) => retried.sentence(),
            Self::CustomMessage(message) => message.sentence(),
            Self::ContextCompactionStart(start) => start.sentence(),
            Self::ContextCompactionEnd(end) => end.sentence(),
            Self::RuleHeld(held) => held.sentence(),
            Self::RuleHoldReleased(released) => released.sentence(),
            Self::TtsrInjection(injection) => injection.sentence(),
            Self::TtsrRearmed(rearmed) => rearmed.sentence(),
            Self::RulesReloaded(reloaded) => reloaded.sentence(),
            Self::ExtensionUnregistered(one) => one.sentence(),
            Self::ExtensionPrompt(prompt) => prompt.sentence(),
            Self::ExtensionCallback(report) => report.sentence(),
            Self::ExtensionTool(report) => report.sentence(),
            Self::ExtensionBreaker(breaker) => breaker.sentence(),
            Self::ExtensionWithheld(withheld) => withheld.sentence(),
            Self::ExtensionLog(line) => line.sentence(),
            Self::CustomEvent(event) => event.sentence(),
            Self::SchemaViolation(violation) => violation.sentence(),
            Self::StateLost(notice) | Self::Notice(notice) => Sentence::new(notice.message.as_str()),
            Self::JournalFailed(failed) => Sentence::new(failed.message.as_str()),
            Self::Unknown { r#type, .. } => {
                Sentence::new(format!("A record of the type `{}`, which this version does not know", r#type))
            }
            Self::ThreadStarted(_)
            | Self::ThreadCompleted(_)
            | Self::TurnStart(_)
            | Self::TurnFinish(_)
            | Self::InputReceived(_)
            | Self::InputQueued(_)
            | Self::SteeringMessage(_)
            | Self::StepStart(_)
            | Self::StepFinish(_)
            | Self::CognitionIn(_)
            | Self::CognitionOut(_)
            | Self::CognitionOutDelta(_)
            | Self::CognitionReasoning(_)
            | Self::CognitionReasoningDelta(_)
            | Self::ToolCallStart(_)
            | Self::ToolCallProgress(_)
            | Self::ToolCallResult(_)
            | Self::ToolConfirmationRequested(_)
            | Self::ToolConfirmationResolved(_)
            | Self::RuleFired(_)
            | Self::ExtensionRegistered(_)
            | Self::ExtensionState(_) => return None,
        })
    }
}
