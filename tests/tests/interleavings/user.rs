//! A user at several front ends, who does anything at any moment, and knows what they were promised.

use std::collections::BTreeMap;

use flow::{LimitDecision, TurnStatus};
use tidegate::Session;
use tidegate::input::{InputId, NewInput, WhenBusy};
use tidegate::question::{Answer, AnswerError};
use tidegate_kit::Random;

use super::FrontEnds;

pub(crate) struct User {
    random: Random,
    /// Actions so far.
    pub(crate) done: usize,
    /// The text of each input, as it was last changed.
    pub(crate) inputs: BTreeMap<InputId, String>,
}

impl User {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed.wrapping_mul(31) + 7), done: 0, inputs: BTreeMap::new() }
    }

    pub(crate) fn begin(&mut self, session: &Session) {
        let input = self.input();
        session.prompt(input).detach();
    }

    /// A message with a text and an id that no other has.
    fn input(&mut self) -> NewInput {
        let text = format!("<input {}>", self.inputs.len());
        let id = InputId::new(format!("user-{}", self.inputs.len()));
        self.inputs.insert(id.clone(), text.clone());
        NewInput::from(text).id(id)
    }

    /// Does one thing.
    pub(crate) fn act(&mut self, session: &Session, ends: &mut FrontEnds) {
        self.done += 1;
        match self.random.below(14) {
            0 => {
                let input = self.input();
                session.prompt(input).detach();
            }
            1 | 2 => _ = session.send(self.input(), WhenBusy::Steer),
            3 | 4 => _ = session.inbox().queue(self.input()),
            5 => _ = session.send(self.input(), WhenBusy::Interrupt),
            6 => {
                let busy = self.random.pick(&[WhenBusy::Steer, WhenBusy::Queue]);
                _ = session.send(self.input(), busy);
            }
            7 => session.cancel(),
            8 => self.change(session),
            9 => _ = session.inbox().flush(),
            10 => ends.disconnect(),
            11 => ends.reconnect(session),
            12 if !session.is_running() => session.resume().detach(),
            _ => self.answer(session),
        }
    }

    /// Edits, removes or takes back something that waits. It may be too late for that.
    fn change(&mut self, session: &Session) {
        let ids: Vec<InputId> = session.inbox().waiting().into_iter().map(|input| input.id).collect();
        if ids.is_empty() {
            return self.answer(session);
        }
        let id = self.random.pick(&ids);
        match self.random.below(3) {
            0 => {
                let text = format!("{} edited", self.inputs[&id]);
                if session.inbox().edit(&id, &text).is_ok() {
                    self.inputs.insert(id, text);
                }
            }
            1 => _ = session.inbox().remove(&id),
            _ => _ = session.inbox().take_back(&id),
        }
    }

    /// Answers a question or decides about a limit, where there is one.
    fn answer(&mut self, session: &Session) {
        if let Some(request) = session.pending_limit() {
            let decision = match self.random.below(2) {
                0 => LimitDecision::Denied { reason: "enough".into() },
                _ => LimitDecision::Approved { max: request.proposed },
            };
            // Its turn may have ended.
            _ = session.decide_limit(&request.id, decision, "the user");
        }
        let questions = session.pending_questions();
        if questions.is_empty() {
            return;
        }
        let question = self.random.pick(&questions);
        let answer = match self.random.below(6) {
            0 => Answer::Deny { reason: "not this one".into() },
            1 => Answer::Edit { arguments: question.call.arguments.replace("content\": \"", "content\": \"edited ") },
            2 if question.always.is_some() => Answer::Always,
            _ => Answer::Approve,
        };
        match session.answer(&question.id, answer, "the user") {
            Ok(()) | Err(AnswerError::NotOpen { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// Lets the session come to rest: everything is answered, and the queue is sent.
    pub(crate) async fn finish(&mut self, session: &Session, ends: &mut FrontEnds) {
        let mut is_sent = false;
        loop {
            for question in session.pending_questions() {
                _ = session.answer(&question.id, Answer::Approve, "the user");
            }
            if let Some(request) = session.pending_limit() {
                let decision = LimitDecision::Approved { max: request.proposed };
                _ = session.decide_limit(&request.id, decision, "the user");
            }
            if ends.next(session).await || session.is_running() {
                continue;
            }
            if is_sent {
                return;
            }
            // A turn that fails, because the model is away now and then, leaves the rest in the queue.
            is_sent = true;
            session.prompt(self.input()).detach();
        }
    }
}

/// Whether a turn ended as a turn of this model can.
pub(crate) fn is_expected(status: &TurnStatus) -> bool {
    !matches!(status, TurnStatus::Failed { message, .. } if !message.contains("away") && !message.contains("nothing to continue"))
}
