//! From a record back to its event, as far as front ends use it: one arm for each type, so that a new type does not compile without its own.

mod answer;
mod limit;
mod shown;
mod status;
mod tool;

use std::sync::Arc;

use flow::{Charged, Event, EventKind, InputId, InputWay, RunPosition, Spend, SuspendReason, Usage, Withdrawal};

use super::{Body, MessagePayload, MessageRecord, Record, RecordError, Tokens};

pub use self::shown::read_event;

/// A value of a record, or the key that is wrong.
type Read<T> = Result<T, &'static str>;

impl Record {
    /// The event of the record, for a front end that shows a session; `None`: no front end shows its type, or this version does not know it. What
    /// only the host uses of an event, such as what counts for its limits, is not in it.
    ///
    /// # Errors
    /// A value of the payload is not one that this version knows.
    pub fn event(&self) -> Result<Option<Event>, RecordError> {
        let place = RunPosition { turn: self.turn, step: self.step, attempt: self.attempt };
        let invalid = |key| RecordError::Value { seq: self.seq, kind: self.body.name().to_owned(), key };
        let kind = self.body.kind().map_err(invalid)?;
        Ok(kind.map(|kind| Event::new(self.event.unwrap_or(self.seq), self.ts, place, kind)))
    }
}

impl MessagePayload {
    /// The message as it joins the conversation.
    fn input(&self) -> Read<(Option<InputId>, flow::Message)> {
        Ok((self.id.as_deref().map(InputId::new), self.message()?))
    }
}

impl Tokens {
    /// The tokens as they were counted.
    fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
        }
    }
}

impl Body {
    fn kind(&self) -> Read<Option<EventKind>> {
        Ok(Some(match self {
            Self::ThreadResumed(resumed) => EventKind::ThreadResumed {
                by: resumed.resumed_by.clone(),
                suspended: resumed.previous_suspend_reason.as_deref().and_then(SuspendReason::from_word),
                provider: resumed.provider.clone(),
                model: resumed.model.clone(),
            },
            Self::ThreadCompleted(completed) => {
                let (turns, usage) = (completed.cost.turns, Usage::default());
                EventKind::ThreadCompleted { turns, usage, spend: None, duration_ms: 0 }
            }
            Self::ThreadError(failed) => {
                EventKind::ThreadError { class: status::class(&failed.category), message: failed.error.clone() }
            }
            Self::ThreadCancelled(cancelled) => {
                EventKind::ThreadCancelled { by: cancelled.cancelled_by.clone(), reason: cancelled.reason.clone() }
            }
            Self::TurnStart(_) => EventKind::TurnStart,
            Self::InputReceived(message) => {
                let (id, message) = message.input()?;
                EventKind::InputReceived { id, message: Arc::new(message) }
            }
            Self::InputQueued(queued) => EventKind::InputQueued {
                id: InputId::new(queued.id.as_str()),
                way: InputWay::from_word(&queued.way).ok_or("way")?,
                message: Arc::new(queued.message().message()?),
            },
            Self::InputEdited(edited) => {
                let hidden = edited.hidden == Some(true);
                EventKind::InputEdited { id: InputId::new(edited.id.as_str()), text: edited.text.clone(), hidden }
            }
            Self::InputWithdrawn(withdrawn) => EventKind::InputWithdrawn {
                id: InputId::new(withdrawn.id.as_str()),
                receipt: Withdrawal::from_word(&withdrawn.receipt).ok_or("receipt")?,
            },
            Self::TurnFinish(finish) => EventKind::TurnFinish { status: finish.turn_status()? },
            Self::StepStart(start) => EventKind::StepStart { number: start.turn_number },
            Self::StepFinish(finish) => {
                let (usage, spend) = (finish.tokens.usage(), finish.cost.map(Spend::of_dollars));
                let (charged, end) = (Charged::default(), finish.end());
                EventKind::StepFinish { usage, spend, charged, end, context_tokens: finish.context_tokens }
            }
            Self::CognitionOut(out) => out.kind()?,
            Self::CognitionOutDelta(delta) => EventKind::CognitionOutDelta {
                text: delta.text.clone(),
                index: delta.chunk_index,
                is_final: delta.is_final.unwrap_or(false),
            },
            Self::CognitionReasoningDelta(delta) => EventKind::CognitionReasoningDelta { text: delta.text.clone() },
            Self::ToolCallStart(start) => start.kind(),
            Self::ToolCallProgress(progress) => progress.kind(),
            Self::ToolCallResult(result) => result.kind(),
            Self::ToolConfirmationRequested(asked) => asked.kind(),
            Self::ToolConfirmationResolved(resolved) => resolved.kind()?,
            Self::PlanUpdated(plan) => plan.kind()?,
            Self::LimitEscalationRequested(asked) => return Ok(asked.kind()),
            Self::LimitEscalationResolved(resolved) => return Ok(resolved.kind()),
            Self::SteeringMessage(message) => {
                let (id, message) = message.input()?;
                let (role, text, hidden) = (message.role, message.plain_text(), message.hidden);
                EventKind::SteeringMessage { id, role, text, hidden }
            }
            Self::CustomMessage(custom) => EventKind::CustomMessage {
                custom_type: custom.custom_type.clone(),
                text: custom.text.clone(),
                hidden: custom.hidden,
            },
            Self::HistoryReplaced(replaced) => {
                let messages = replaced.messages.iter().map(MessageRecord::message);
                EventKind::HistoryReplaced { messages: messages.map(|one| one.map(Arc::new)).collect::<Read<_>>()? }
            }
            Self::ThreadStarted(_)
            | Self::ThreadSuspended(_)
            | Self::CognitionIn(_)
            | Self::CognitionReasoning(_)
            | Self::ErrorClassified(_)
            | Self::RetryScheduled(_)
            | Self::RetrySucceeded(_)
            | Self::RuleFired(_)
            | Self::RuleHoldReleased(_)
            | Self::RuleHeld(_)
            | Self::TtsrInjection(_)
            | Self::TtsrRearmed(_)
            | Self::RulesReloaded(_)
            | Self::ContextCompactionStart(_)
            | Self::ContextCompactionEnd(_)
            | Self::ChildThreadStarted(_)
            | Self::ChildThreadFailed(_)
            | Self::ExtensionRegistered(_)
            | Self::ExtensionUnregistered(_)
            | Self::ExtensionPrompt(_)
            | Self::ExtensionCallback(_)
            | Self::ExtensionTool(_)
            | Self::ExtensionBreaker(_)
            | Self::ExtensionWithheld(_)
            | Self::ExtensionState(_)
            | Self::StateLost(_)
            | Self::SchemaViolation(_)
            | Self::JournalFailed(_)
            | Self::ExtensionLog(_)
            | Self::CustomEvent(_)
            | Self::Notice(_)
            | Self::Unknown { .. } => return Ok(None),
        }))
    }
}
