//! Questions about tool calls: those that are open, and the answers to them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flow::{Event, EventKind, SessionId};
use serde::{Deserialize, Serialize};

use crate::command::{Answer, Command};
use crate::message::{Changed, ChildThread};
use crate::question::{PreviewState, Question, QuestionId};
use crate::text::Str;

/// What a front end does with a question before the person sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Ask the person.
    #[default]
    Prompt,
    /// Answer for the person.
    Answer(Answer),
}

impl Policy {
    /// Approve the call.
    pub const APPROVE: Self = Self::Answer(Answer::Approve);

    /// Deny the call, with a reason that the model reads.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Answer(Answer::deny(reason))
    }
}

/// Decides about questions before they are shown.
pub type ConfirmationPolicy = Arc<dyn Fn(&Question) -> Policy + Send + Sync>;

/// Why an answer was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// No such question is open: it was answered elsewhere, or its turn has ended.
    #[error("the question {} is not open: it was answered elsewhere, or its turn has ended", .0.as_str())]
    NotOpen(QuestionId),
    /// This front end has answered it already.
    #[error("the question {} is answered already", .0.as_str())]
    Answered(QuestionId),
}

/// The questions of a session and of its children, oldest first.
#[derive(Clone, Default)]
pub struct ToolConfirmations {
    state: ConfirmationsState,
    policy: Option<ConfirmationPolicy>,
    commands: Vec<Command>,
}

/// The questions at one moment. A clone takes constant time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfirmationsState {
    questions: Few<Question>,
    next_seq: u64,
    /// The next event of each child.
    children: Few<(ChildThread, u64)>,
}

/// A short list that clones share.
type Few<T> = crate::list::Shared<Vec<T>>;

impl ConfirmationsState {
    /// The questions that wait for the person, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.answer.is_none())
    }

    /// All questions that are not resolved, those included that this front end has answered.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The same where the thread is at another event.
    pub(crate) fn at(self, next_seq: u64) -> Self {
        Self { next_seq, ..self }
    }
}

impl fmt::Debug for ToolConfirmations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolConfirmations").field("state", &self.state).finish_non_exhaustive()
    }
}

impl ToolConfirmations {
    /// No questions, and a policy that decides about those that come. A policy that panics prompts, and the question says so; where a
    /// panic ends the program, as in WebAssembly, it does so here.
    pub fn with_policy(policy: impl Fn(&Question) -> Policy + Send + Sync + 'static) -> Self {
        Self { policy: Some(Arc::new(policy)), ..Self::default() }
    }

    /// Takes a snapshot, in constant time.
    pub fn snapshot(&self) -> ConfirmationsState {
        self.state.clone()
    }

    /// The questions as they are.
    pub fn state(&self) -> &ConfirmationsState {
        &self.state
    }

    /// What the driver is to do, in order. It is given once.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Continues from the questions of another front end's state. The policy decides about each that this one has not answered. Questions
    /// of children that the other front end has had no event of stay.
    pub fn restore(&mut self, state: &ConfirmationsState) -> Changed {
        self.restore_while(state, true)
    }

    /// As [`ToolConfirmations::restore`]. Where no turn runs, no child has a question.
    pub(crate) fn restore_while(&mut self, state: &ConfirmationsState, is_running: bool) -> Changed {
        let before =
            std::mem::replace(&mut self.state, ConfirmationsState { questions: Few::default(), ..state.clone() });
        let is_other = |child: &ChildThread| !state.children.iter().any(|(known, _)| known.id == child.id);
        let others = before.children.iter().filter(|(child, _)| is_other(child));
        self.state.children.make_mut().extend(others.cloned());
        let own =
            before.questions.iter().filter(|question| is_running && question.child.as_ref().is_some_and(is_other));
        self.state.questions.make_mut().extend(own.cloned());
        for question in state.questions.iter() {
            let known = before.questions.iter().find(|one| one.id == question.id);
            let new = Question { answer: None, policy_error: None, ..question.clone() };
            match known {
                Some(known) => self.state.questions.make_mut().push(Question { answer: known.answer.clone(), ..new }),
                None => self.ask(new),
            }
        }
        Changed::from(before.questions != self.state.questions)
    }

    /// Takes the next event of the session's thread.
    pub fn process(&mut self, event: &Event) -> Changed {
        if event.seq < self.state.next_seq {
            return Changed::No;
        }
        self.state.next_seq = event.seq.saturating_add(1);
        self.take(None, event)
    }

    /// Takes the next event of a child. Its questions are those of the session; what ends the child's turn ends only these.
    pub fn process_child(&mut self, child: &ChildThread, event: &Event) -> Changed {
        let children = self.state.children.make_mut();
        let known = children.iter_mut().find(|(one, _)| one.id == child.id);
        match known {
            Some((_, next)) if event.seq < *next => return Changed::No,
            Some((_, next)) => *next = event.seq.saturating_add(1),
            None => children.push((child.clone(), event.seq.saturating_add(1))),
        }
        self.take(Some(child), event)
    }

    /// Continues the questions of a child from those that a front end of the child has. Where this one has had as many of its events, nothing
    /// changes.
    pub fn restore_child(&mut self, child: &ChildThread, state: &ConfirmationsState) -> Changed {
        let children = self.state.children.make_mut();
        match children.iter_mut().find(|(one, _)| one.id == child.id) {
            Some((_, next)) if *next >= state.next_seq => return Changed::No,
            Some((_, next)) => *next = state.next_seq,
            None => children.push((child.clone(), state.next_seq)),
        }
        let before = self.state.questions.clone();
        let _removed = self.remove(|question| question.child.as_ref().is_some_and(|one| one.id == child.id));
        // Those of its children have events of their own.
        for own in state.questions.iter().filter(|question| question.child.is_none()) {
            let id = question_id(Some(child), &(&own.id).into());
            match before.iter().find(|known| known.id == id) {
                Some(known) => self.state.questions.make_mut().push(known.clone()),
                None => {
                    let child = Some(child.clone());
                    self.ask(Question { id, child, answer: None, policy_error: None, ..own.clone() });
                }
            }
        }
        Changed::from(before != self.state.questions)
    }

    /// Answers a question. It is open no more, and goes when the session reports that it is resolved.
    ///
    /// # Errors
    /// The question is not open, or this front end has answered it.
    pub fn respond(&mut self, id: &QuestionId, answer: Answer) -> Result<(), AnswerError> {
        let found = self.state.questions.make_mut().iter_mut().find(|question| question.id == *id);
        let question = found.ok_or_else(|| AnswerError::NotOpen(id.clone()))?;
        if question.answer.is_some() {
            return Err(AnswerError::Answered(id.clone()));
        }
        (question.answer, question.error) = (Some(answer.clone()), None);
        self.commands.push(question.command(answer));
        Ok(())
    }

    /// The driver could not deliver an answer, or the session refused it, as edited arguments that a rule forbids: the question is open
    /// again, with the reason. No effect where it was resolved meanwhile.
    pub fn answer_failed(&mut self, id: &QuestionId, why: &str) -> Changed {
        let found = self.state.questions.iter().position(|question| question.id == *id);
        let Some(question) = found.and_then(|index| self.state.questions.make_mut().get_mut(index)) else {
            return Changed::No;
        };
        (question.answer, question.error) = (None, Some(why.into()));
        Changed::Yes
    }

    /// A policy outside this one, such as one in another language, has failed to decide about a question: the person is asked, and the question
    /// says why.
    pub fn policy_failed(&mut self, id: &QuestionId, why: &str) -> Changed {
        let found = self.state.questions.iter().position(|question| question.id == *id);
        let question = found.and_then(|index| self.state.questions.make_mut().get_mut(index));
        let Some(question) = question else { return Changed::No };
        question.policy_error = Some(panicked(why));
        Changed::Yes
    }

    fn take(&mut self, child: Option<&ChildThread>, event: &Event) -> Changed {
        match &event.kind {
            EventKind::ToolConfirmationRequested {
                question,
                call,
                tool,
                arguments,
                reason,
                preview,
                always,
                timeout_ms,
            } => {
                let id = question_id(child, question);
                self.ask(Question {
                    id,
                    call: call.as_str().into(),
                    tool: tool.into(),
                    arguments: arguments.into(),
                    reason: reason.into(),
                    always: always.as_ref().map(Into::into),
                    expires_ms: timeout_ms.map(|ms| event.at_ms.saturating_add(ms)),
                    preview: PreviewState::of(preview),
                    turn: event.place.turn,
                    step: event.place.step,
                    at_ms: event.at_ms,
                    child: child.cloned(),
                    answer: None,
                    error: None,
                    policy_error: None,
                });
                Changed::Yes
            }
            EventKind::ToolConfirmationResolved { question, .. } => {
                let id = question_id(child, question);
                self.remove(|question| question.id == id)
            }
            // A call that runs or is over has its answer, also where the event about that was lost. Ids of calls are unique within an
            // answer, and the calls of one answer at a time are asked about.
            EventKind::ToolCallStart { call, .. } | EventKind::ToolCallResult { call, .. } => {
                let child = child.map(|child| &child.id);
                self.remove(|one| *one.call == *call.as_str() && one.child.as_ref().map(|one| &one.id) == child)
            }
            // What a child asks is asked in a turn of the session: that turn ends it too. The turn of a child ends nothing else.
            EventKind::TurnStart
            | EventKind::TurnFinish { .. }
            | EventKind::ThreadResumed { .. }
            | EventKind::ThreadCompleted { .. }
            | EventKind::ThreadError { .. }
            | EventKind::ThreadCancelled { .. } => {
                let ended = child.map(|child| &child.id);
                self.remove(|question| ended.is_none() || question.child.as_ref().map(|one| &one.id) == ended)
            }
            _ => Changed::No,
        }
    }

    /// Adds a question, in the place of the same one if it is asked again.
    fn ask(&mut self, mut question: Question) {
        let decision = self.policy.as_ref().map(|policy| catch_unwind(AssertUnwindSafe(|| policy(&question))));
        match decision {
            None | Some(Ok(Policy::Prompt)) => {}
            Some(Ok(Policy::Answer(answer))) => {
                question.answer = Some(answer.clone());
                self.commands.push(question.command(answer));
            }
            Some(Err(panic)) => {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                question.policy_error = Some(panicked(&text));
            }
        }
        let questions = self.state.questions.make_mut();
        match questions.iter_mut().find(|one| one.id == question.id) {
            Some(same) => *same = question,
            None => questions.push(question),
        }
    }

    fn remove(&mut self, gone: impl Fn(&Question) -> bool) -> Changed {
        if !self.state.questions.iter().any(&gone) {
            return Changed::No;
        }
        self.state.questions.make_mut().retain(|question| !gone(question));
        Changed::Yes
    }
}

fn panicked(why: &str) -> Str {
    format!("the confirmation policy panicked: {why}").into()
}

/// The id by which the session of the front end knows a question.
fn question_id(child: Option<&ChildThread>, own: &flow::QuestionId) -> QuestionId {
    let id = child.map_or_else(|| own.clone(), |child| own.of_child(&SessionId::new(&*child.id)));
    QuestionId::new(id.as_str().to_owned())
}
