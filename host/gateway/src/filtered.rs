//! An exchange with the callbacks of extensions behind it: the client gets the output of the gate after it has passed through them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flow::ports::TtsrEvent;
use flow::{CallFailure, EventKind, Message, RunPosition};
use guard::Caller;
use guard::attempt::Answer;
use guard::input::{self, Input};

use crate::answer_notes;
use crate::exchange::ending::TOO_MUCH;
use crate::memory::Memory;
use crate::stage::{Decided, Stage, Whole, check};
use crate::{Exchange, Fired, Next, Then};

/// An exchange with the callbacks of its conversation and with its memory. Without extensions it behaves like the exchange, and waits for
/// nothing.
#[derive(Debug)]
pub struct Filtered {
    exchange: Exchange,
    stage: Option<Stage>,
    caller: Option<Arc<Caller>>,
    memory: Arc<Mutex<Memory>>,
    is_whole: bool,
    /// Matches of which extensions were notified.
    notified: usize,
    /// The answer that an extension gave in the model's place.
    reply: Option<Answer>,
}

impl Filtered {
    /// Returns an exchange that has not begun. `model`: as the request names it.
    pub fn new(mut exchange: Exchange, model: &str, caller: Option<Arc<Caller>>, memory: Arc<Mutex<Memory>>) -> Self {
        let stage = caller.as_ref().and_then(|caller| Stage::new(exchange.wire(), model, caller));
        if caller.as_ref().is_some_and(|caller| caller.gets_calls()) {
            exchange.check_calls();
        }
        Self { exchange, stage, caller, memory, is_whole: false, notified: 0, reply: None }
    }

    /// Adds notices for the user about the request.
    #[must_use]
    pub fn noting(mut self, notices: Vec<String>) -> Self {
        self.exchange.note(notices);
        self
    }

    /// Returns the body that goes upstream, as [`Exchange::request`] does.
    pub fn request(&self) -> Option<Bytes> {
        self.exchange.request()
    }

    /// Begins the answer, as a stream of events or as one body.
    pub fn begin(&mut self, is_stream: bool) {
        self.is_whole = !is_stream;
        self.exchange.begin(is_stream);
    }

    /// Takes more bytes of the answer, as [`Exchange::receive`] does.
    pub async fn receive(&mut self, bytes: &[u8], now: Duration) -> Next {
        let next = self.exchange.receive(bytes, now);
        self.pass(next).await
    }

    /// Ends the answer of the server, as [`Exchange::end`] does.
    pub async fn end(&mut self, now: Duration) -> Next {
        let next = self.exchange.end(now);
        self.pass(next).await
    }

    /// Releases bytes whose time limit for waiting is over.
    pub async fn release(&mut self, now: Duration) -> Next {
        let next = Next { send: self.exchange.release(now), then: Then::More };
        self.pass(next).await
    }

    /// Gives up because the request after a stop was refused, as [`Exchange::give_up`] does.
    pub async fn give_up(&mut self, cause: &str) -> Next {
        let next = self.exchange.give_up(cause);
        self.pass(next).await
    }

    /// Answers with the text of an extension in the model's place: it goes through the callbacks like a model's.
    pub async fn reply(&mut self, words: &str, is_stream: bool) -> Next {
        self.begin(is_stream);
        let keeping = self.caller.as_ref().map(|caller| caller.keeping()).unwrap_or_default();
        self.reply = Some(Answer::of_text(words, keeping));
        let next = self.exchange.say(words);
        self.pass(next).await
    }

    /// Ends the message because the request is not sent: the client gets this text. `notice`: the text for the log, without words of
    /// extensions.
    pub fn refuse(&mut self, words: &str, notice: String, is_stream: bool) -> Next {
        self.begin(is_stream);
        self.exchange.refuse(words, notice)
    }

    /// Returns the time limit for bytes that are held back, as [`Exchange::deadline`] does.
    pub fn deadline(&self) -> Option<Duration> {
        self.exchange.deadline()
    }

    /// Returns the bytes that keep the client's connection alive while nothing is sent.
    pub fn keep_alive(&self) -> &'static [u8] {
        self.stage.as_ref().map_or_else(|| self.exchange.keep_alive(), Stage::keep_alive)
    }

    /// Returns the number of bytes that are held back now, for rules and for callbacks.
    pub fn held_bytes(&self) -> usize {
        self.exchange.held_bytes() + self.stage.as_ref().map_or(0, |stage| stage.held().0)
    }

    /// Returns the exchange itself: its matches and notices.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Takes the events of the conversation since the last call: actions of rules, and the answers of the model as they are kept. The
    /// caller itself emits the events of extensions.
    pub fn take_events(&mut self) -> Vec<EventKind> {
        let keeping = self.caller.as_ref().map(|caller| caller.keeping()).unwrap_or_default();
        self.exchange.take_events(keeping)
    }

    /// Returns the caller of the extensions.
    pub fn caller(&self) -> Option<&Arc<Caller>> {
        self.caller.as_ref()
    }

    /// Takes the matches of which extensions are to be notified now with `Caller::notify`, without waiting.
    pub fn take_notices(&mut self) -> Vec<TtsrEvent> {
        let fired = self.exchange.fired();
        let Some(caller) = self.caller.as_ref().filter(|caller| caller.gives_notices()) else { return Vec::new() };
        let new = fired.get(self.notified..).unwrap_or_default();
        self.notified = fired.len();
        let event = |one: &Fired| TtsrEvent {
            matches: caller.keeping().evidence_of(vec![one.found.clone()]),
            action: one.action,
            place: RunPosition { attempt: one.attempt, ..caller.events().place() },
        };
        new.iter().map(event).collect()
    }

    /// Ends the exchange, however it went, and updates the memory of its conversation.
    pub fn finish(&self) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.stage {
            None => self.exchange.remember(&mut memory),
            Some(stage) => {
                self.exchange.remember_shown(&mut memory, &stage.both().shown);
                if self.exchange.is_accepted() {
                    answer_notes::add(stage, self.exchange.answer_number(), &mut memory);
                }
            }
        }
    }

    /// Passes the output of the exchange through the callbacks.
    async fn pass(&mut self, mut next: Next) -> Next {
        if self.stage.is_none() {
            return next;
        }
        let mut out = Vec::new();
        loop {
            match self.step(next, &mut out).await {
                Ok(Step::Done(then)) => return Next { send: out, then },
                Ok(Step::Again(more)) => next = more,
                Ok(Step::Failed(cause)) => return self.fail(&cause, out),
                Err(failure) => {
                    let CallFailure { plugin, called, cause, .. } = failure;
                    let cause =
                        format!("the extension `{plugin}` is required and failed in `{called}` ({})", cause.as_str());
                    return self.fail(&cause, out);
                }
            }
        }
    }

    async fn step(&mut self, next: Next, out: &mut Vec<u8>) -> Result<Step, CallFailure> {
        let Some(stage) = &mut self.stage else { return Ok(Step::Done(next.then)) };
        let Next { send, then } = next;
        if let Some(calls) = self.exchange.waiting_calls() {
            if !self.is_whole && !take(stage, &send, false, out).await? {
                return Ok(Step::Failed(UNGIVEN.to_owned()));
            }
            let (decided, refusals) = check(stage.caller(), calls).await?;
            let refusals = leaving(stage.caller(), refusals).await?;
            // Nothing is sent of calls that the model is asked to make again.
            stage.decide(if refusals.is_empty() { decided } else { Decided::default() });
            return Ok(Step::Again(self.exchange.checked(&refusals)));
        }
        let closing = self.exchange.closing().unwrap_or_default();
        let is_accepted = then == Then::End && self.exchange.is_accepted();
        if self.is_whole {
            if !is_accepted {
                out.extend(send);
                return Ok(Step::Done(then));
            }
            let answer = self.reply.as_mut().unwrap_or_else(|| self.exchange.answer());
            let body = match stage.whole(&send, answer).await? {
                Whole::Body(body) => body,
                Whole::Ungiven => return Ok(Step::Failed(UNGIVEN.to_owned())),
                Whole::Unwritten => return Ok(Step::Failed(UNWRITTEN.to_owned())),
            };
            self.exchange.client_has(stage.both(), stage.caller().keeping());
            out.extend(body);
            return Ok(Step::Done(then));
        }
        let (before, words) = send.split_at(send.len().saturating_sub(closing));
        let is_given = take(stage, before, then != Then::More, out).await?;
        if !is_given || !stage.has_all(self.exchange.passed_bytes()) {
            return Ok(Step::Failed(UNGIVEN.to_owned()));
        }
        match then {
            Then::End if is_accepted => {
                let answer = self.reply.as_mut().unwrap_or_else(|| self.exchange.answer());
                if !stage.finish(Some(answer), out).await? {
                    return Ok(Step::Failed(UNWRITTEN.to_owned()));
                }
                self.exchange.client_has(stage.both(), stage.caller().keeping());
            }
            Then::End => {
                stage.finish(None, out).await?;
                self.exchange.client_has(stage.both(), stage.caller().keeping());
                stage.pass(words, out);
            }
            Then::Ask if stage.caller().keeping().answer => {
                stage.send(false, out);
                let shown = stage.keep_shown(out);
                self.exchange.keeps(&shown);
            }
            Then::Ask | Then::More | Then::Break => {
                stage.send(false, out);
                if then == Then::Ask {
                    self.exchange.client_has(stage.both(), stage.caller().keeping());
                }
                let (bytes, frames) = stage.held();
                if !self.exchange.may_hold(bytes, frames) {
                    return Ok(Step::Failed(TOO_MUCH.to_owned()));
                }
            }
        }
        Ok(Step::Done(then))
    }

    fn fail(&mut self, cause: &str, mut out: Vec<u8>) -> Next {
        let Next { send, then } = self.exchange.fail(cause);
        if let Some(stage) = self.stage.as_ref().filter(|stage| !stage.caller().keeping().answer) {
            self.exchange.failed_as(stage.both());
        }
        match &mut self.stage {
            Some(stage) if !self.is_whole => stage.close(&crate::exchange::ending::ended_because(cause), &mut out),
            _ => out = send,
        }
        Next { send: out, then }
    }
}

/// Passes the reasons of refused calls through the callbacks that get everything that leaves: the reasons go to the model, and can repeat
/// what an earlier callback put into the calls.
async fn leaving(caller: &Caller, refusals: Vec<String>) -> Result<Vec<String>, CallFailure> {
    if refusals.is_empty() {
        return Ok(refusals);
    }
    let number = refusals.len();
    Ok(match input::beyond(caller, refusals.into_iter().map(Message::user).collect()).await? {
        Input::Ask(made) if made.len() == number => made.iter().map(Message::plain_text).collect(),
        _ => vec!["A call of yours was not run: an extension refused it.".to_owned()],
    })
}

/// Passes frames to the stage, as [`Stage::take`] does. If that fails, the frames before the failure are sent.
async fn take(stage: &mut Stage, bytes: &[u8], is_last: bool, out: &mut Vec<u8>) -> Result<bool, CallFailure> {
    let taken = stage.take(bytes, is_last).await;
    if taken.is_err() {
        stage.send(false, out);
    }
    taken
}

const UNGIVEN: &str = "a part of its text is written in a way that extensions cannot be given";

const UNWRITTEN: &str = "a call in it is written in a way in which extensions cannot change it";

/// The action after a step.
enum Step {
    Done(Then),
    Again(Next),
    Failed(String),
}
