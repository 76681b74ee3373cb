//! One turn, as its lines show it.

use chat::{Author, BlockKind, ChatMessage, MessageLog, Shared};
use record::{MessagePayload, Shown, ShownAnswer, ShownBody, StepFinish, TurnFinish};

use super::act::{Act, Finished, Part, Said};
use super::asides::aside;
use super::calls::{Calls, Open};

/// What a turn shows, from its lines. Which text is void is decided by the message log of the chat primitives.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(super) number: u32,
    /// The turn whose lines it takes: a later one where that runs the calls that the end of a process has left in this one. For front ends
    /// both are one turn.
    pub(super) runs: u32,
    /// The number of the first event that counts: those before it are in what was restored.
    pub(super) first: u64,
    pub(super) log: MessageLog,
    /// The step that is open, with its turn.
    step: Option<(u32, u32)>,
    /// The part that is open.
    part: Option<Part>,
    /// Parts of this step so far.
    parts: u32,
    pub(super) calls: Calls,
    pub(super) finished: Finished,
    is_over: bool,
}

impl Turn {
    /// The turn with this number, of which nothing was seen yet.
    pub(crate) fn new(number: u32) -> Self {
        Self { number, runs: number, ..Self::default() }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether a line is of a turn after it.
    pub(crate) fn is_before(&self, line: &Shown) -> bool {
        self.runs < line.turn
    }

    /// Whether it has ended: nothing of it follows.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What it waits for, while nothing else of it runs.
    pub(crate) fn waits_for(&self) -> &[Open] {
        if self.part.is_some() { &[] } else { self.calls.waits_for() }
    }

    /// Takes the next line of the session, and adds what the turn shows of it.
    pub(crate) fn take(&mut self, line: &Shown, acts: &mut Vec<Act>) {
        if line.turn != self.runs || line.seq < self.first || self.is_over {
            return;
        }
        match &line.body {
            ShownBody::InputReceived(message) => acts.push(Act::Said(said(line, message))),
            ShownBody::SteeringMessage(message) => {
                self.end_part(acts);
                acts.push(Act::Steered(said(line, message)));
            }
            ShownBody::StepStart(_) => {
                self.log(line);
                self.enter(line.step, acts);
            }
            ShownBody::CognitionOutDelta(delta) => self.grow(line, BlockKind::Text, &delta.text, acts),
            ShownBody::CognitionReasoningDelta(delta) => self.grow(line, BlockKind::Reasoning, &delta.text, acts),
            ShownBody::CognitionOut(answer) => self.answer(line, answer, acts),
            ShownBody::ToolConfirmationRequested(asked) => self.calls.asked(line, asked, acts),
            ShownBody::ToolConfirmationResolved(resolved) => self.calls.answered(line, resolved, acts),
            ShownBody::ToolCallStart(start) => self.calls.started(line, start, acts),
            ShownBody::ToolCallResult(result) => self.calls.result(line, result, acts),
            ShownBody::StepFinish(finish) => {
                self.log(line);
                self.count(finish);
                self.end_step(acts);
            }
            ShownBody::TurnFinish(finish) => self.end(finish.status.clone(), error_of(finish), acts),
            _ => self.other(line, acts),
        }
    }

    fn other(&mut self, line: &Shown, acts: &mut Vec<Act>) {
        match &line.body {
            ShownBody::LimitEscalationRequested(limit) => self.calls.wait(Open::Limit(limit.clone())),
            ShownBody::LimitEscalationResolved(limit) => self.calls.done(&limit.approval_request_id),
            _ => {}
        }
        acts.extend(aside(line, &self.calls).map(Act::Aside));
    }

    /// The turn ends without a line that says so, such as with its process.
    pub(crate) fn abandon(&mut self, why: &str, acts: &mut Vec<Act>) {
        if !self.is_over {
            self.end("failed".to_owned(), Some(why.to_owned()), acts);
        }
    }

    pub(super) fn end(&mut self, status: String, error: Option<String>, acts: &mut Vec<Act>) {
        self.end_part(acts);
        self.calls.cancel(acts);
        self.end_step(acts);
        self.is_over = true;
        let seen = std::mem::take(&mut self.finished);
        acts.push(Act::Finished(Box::new(Finished { turn: self.number, status, error, ..seen })));
    }

    /// An answer of this step follows.
    pub(super) fn enter(&mut self, step: u32, acts: &mut Vec<Act>) {
        let step = Some((self.runs, step));
        if self.step == step {
            return;
        }
        self.end_part(acts);
        self.end_step(acts);
        (self.step, self.parts) = (step, 0);
        acts.push(Act::StepStarted);
    }

    fn end_step(&mut self, acts: &mut Vec<Act>) {
        self.end_part(acts);
        if self.step.take().is_some() {
            acts.push(Act::StepFinished);
        }
    }

    fn grow(&mut self, line: &Shown, kind: BlockKind, text: &str, acts: &mut Vec<Act>) {
        self.log(line);
        if !text.is_empty() {
            self.enter(line.step, acts);
            self.add(kind, text.to_owned(), acts);
        }
    }

    /// Adds to the part of this kind, which begins if none is open.
    pub(super) fn add(&mut self, kind: BlockKind, text: String, acts: &mut Vec<Act>) {
        if self.part.as_ref().is_some_and(|part| part.kind != kind) {
            self.end_part(acts);
        }
        let ((turn, step), number) = (self.step.unwrap_or((self.runs, 0)), self.parts + 1);
        let part = self.part.get_or_insert_with(|| {
            self.parts = number;
            let part = Part { id: format!("{turn}.{step}.{number}"), kind };
            acts.push(Act::PartStarted(part.clone()));
            part
        });
        acts.push(Act::PartGrew(part.clone(), text));
    }

    pub(super) fn end_part(&mut self, acts: &mut Vec<Act>) {
        acts.extend(self.part.take().map(Act::PartEnded));
    }

    /// An answer has ended: it is accepted, or stays as it is, or is void after what the next attempt continues.
    fn answer(&mut self, line: &Shown, answer: &ShownAnswer, acts: &mut Vec<Act>) {
        self.finished.model = answer.model.clone().or(self.finished.model.take());
        let before = self.message(line).map_or(0, |message| void_bytes(&message));
        self.log(line);
        self.end_part(acts);
        let Some(message) = self.message(line).filter(|_| answer.is_partial) else { return };
        if void_bytes(&message) > before {
            acts.push(Act::Voided);
            for block in message.blocks.iter().filter(|block| block.void.is_none()) {
                self.add(block.kind, block.text.to_string(), acts);
            }
            // The next attempt continues the text.
            if self.part.as_ref().is_some_and(|part| part.kind == BlockKind::Reasoning) {
                self.end_part(acts);
            }
        } else if message.complete {
            acts.push(Act::Left);
        }
    }

    /// The message of the step's answer.
    fn message(&self, line: &Shown) -> Option<Shared<ChatMessage>> {
        let snapshot = self.log.snapshot();
        let is_answer = |message: &Shared<ChatMessage>| {
            message.author == Author::Assistant && (message.turn, message.step) == (line.turn, line.step)
        };
        snapshot.messages().rev().find(is_answer)
    }

    fn log(&mut self, line: &Shown) {
        match record::read_event(line.json()) {
            Ok(Some(event)) => drop(self.log.process(&event)),
            Ok(None) => {}
            // Lines are made by this program; one that is not read is missing in the log alone.
            Err(error) => tracing::error!("a line of the shown stream cannot be read: {error}"),
        }
    }

    fn count(&mut self, finish: &StepFinish) {
        self.finished.add(&finish.tokens, finish.cost);
        self.finished.is_cut_off = finish.finish_reason == "limit_exceeded";
    }
}

fn void_bytes(message: &ChatMessage) -> usize {
    message.blocks.iter().filter(|block| block.void.is_some()).map(|block| block.text.len()).sum()
}

fn said(line: &Shown, message: &MessagePayload) -> Said {
    let id = message.id.clone().unwrap_or_else(|| format!("in-{}", line.seq));
    Said { id, text: message.text.clone() }
}

/// Why a turn did not complete, for the person.
fn error_of(finish: &TurnFinish) -> Option<String> {
    let given = finish.error.clone().or_else(|| finish.reason.clone());
    Some(match finish.status.as_str() {
        "completed" | "cancelled" => return None,
        "stopped_by_rule" => format!("rule `{}` stopped the turn", finish.rule.as_deref().unwrap_or_default()),
        "rejected" => {
            let extension = finish.extension_id.as_deref().unwrap_or_default();
            format!("extension `{extension}` rejected the input: {}", given.unwrap_or_default())
        }
        "step_limit" => format!("the turn reached its limit of {} steps", finish.steps.unwrap_or(0)),
        other => given.unwrap_or_else(|| other.to_owned()),
    })
}
