//! One exchange: a request of the client, the attempts at its answer, and the one message that the client gets.

pub(crate) mod ending;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flow::{Action, Delta, EventKind, FailureKind, Keeping, RuleMatch, ToolCall};
use guard::attempt::{Answer, Context, Effect, Ending};
use rules::{RuleSession, RuleSet};
use serde_json::Value;
use wire::{TooLarge, Wire};

use self::ending::TOO_MUCH;
use crate::attempt::{Input, Now};
use crate::body;
use crate::dialect::{self, Message, shapes};
use crate::events::ExchangeEvents;
use crate::frame::Frame;
use crate::json;
use crate::memory::{About, Memory, Note, Said};
use crate::request::Request;
use crate::stage::Both;

/// The limits of what is held back of one answer; beyond them the answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLimits {
    /// Bytes of an answer that arrives as one body, or of the waiting part of a stream.
    pub bytes: usize,
    /// Number of waiting events.
    pub frames: usize,
}

impl Default for HeldLimits {
    /// 32 MiB and 100,000 events.
    fn default() -> Self {
        Self { bytes: 32 << 20, frames: 100_000 }
    }
}

/// The maximum number of attempts of one answer: without it, a model that repeats a blocked call would be asked again indefinitely.
pub const MAX_ATTEMPTS: u32 = 8;

/// Returns whether any of these rules watches the answers that an agent gets.
pub fn watches(set: &Arc<RuleSet>, agent: &str) -> bool {
    !RuleSession::of_agent(Arc::clone(set), agent).gate().is_idle()
}

/// A request and what becomes of its answer.
#[derive(Debug)]
pub struct Exchange {
    wire: Wire,
    request: Request,
    rules: RuleSession,
    message: Box<dyn Message>,
    /// The text of the message that the client has from earlier attempts: a match may begin in it.
    said: String,
    /// The number of the attempt under way, from 1.
    number: u32,
    now: Now,
    /// The client gets one body.
    is_whole: bool,
    held: HeldLimits,
    fired: Vec<Fired>,
    /// The reminder for the next request of the conversation.
    due: Option<String>,
    /// The id of an answer that arrived as one body.
    id: Option<String>,
    calls: Calls,
    /// Bytes of text that earlier attempts passed on.
    passed_before: u64,
    ended: Option<Ended>,
    notices: Vec<String>,
    events: ExchangeEvents,
}

/// The deciders on the calls of an answer, after the rules.
#[derive(Debug, PartialEq)]
enum Calls {
    /// Only the rules.
    Free,
    /// Extensions, which have not got them yet.
    Checked,
    /// The answer is complete, and waits for their decision. Contains an answer that arrived as one body.
    Waiting(Vec<u8>),
}

/// How the client's message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// With the answer.
    Accepted,
    /// With a text of the gateway in place of an answer. Contains the length of that text, which is the end of the bytes that were returned
    /// last.
    Closed(usize),
}

/// A match in an exchange.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fired {
    /// What was found.
    pub found: RuleMatch,
    /// The action that was taken.
    pub action: Action,
    /// The attempt in which it was, from 1.
    pub attempt: u32,
}

/// What the server does next.
#[derive(Debug, Default, PartialEq)]
#[must_use]
pub struct Next {
    /// The bytes that the client gets now.
    pub send: Vec<u8>,
    /// What follows for the connections.
    pub then: Then,
}

/// What the server does with its connections after that.
#[derive(Debug, Default, PartialEq)]
pub enum Then {
    /// Read more of the answer.
    #[default]
    More,
    /// The answer is dropped, and [`Exchange::request`] goes upstream.
    Ask,
    /// The message is complete. Nothing more is read or sent.
    End,
    /// The answer broke off: the client's connection breaks off, too, as it would have without a guard.
    Break,
}

impl Exchange {
    /// An exchange that has not begun. `rules` are those of the conversation, with what it remembers. `model`: as the request names it.
    pub fn new(wire: Wire, body: Bytes, model: &str, rules: RuleSession) -> Self {
        let (message, now) = (dialect::message(wire, model), Now::new(&rules, ""));
        Self {
            wire,
            request: Request::new(wire, body),
            rules,
            message,
            said: String::new(),
            number: 1,
            now,
            is_whole: false,
            held: HeldLimits::default(),
            fired: Vec::new(),
            due: None,
            id: None,
            calls: Calls::Free,
            passed_before: 0,
            ended: None,
            notices: Vec::new(),
            events: ExchangeEvents::default(),
        }
    }

    /// Sets the limits of what is held back.
    #[must_use]
    pub fn holding(mut self, held: HeldLimits) -> Self {
        self.held = held;
        self
    }

    /// The body that goes upstream: the client's own bytes, and after a stop the same conversation with the reminder. `None`: it cannot be
    /// continued.
    pub fn request(&self) -> Option<Bytes> {
        self.request.body()
    }

    /// Starts the answer, as a stream of events or as one body.
    pub fn begin(&mut self, is_stream: bool) {
        self.is_whole = !is_stream;
        self.now.input = Input::new(self.wire, is_stream);
    }

    /// Processes more bytes of the answer. `now`: the time since some fixed point.
    pub fn receive(&mut self, bytes: &[u8], now: Duration) -> Next {
        let mut frames = Vec::new();
        match &mut self.now.input {
            Input::None => return Next::default(),
            Input::Whole(body) => {
                body.extend_from_slice(bytes);
                let too_large = body.len() > self.held.bytes;
                return if too_large {
                    self.close(
                        "it is too large to be checked; `held_mib` under `[gateway.limits]` says how large it may be",
                    )
                } else {
                    Next::default()
                };
            }
            Input::Stream { sse, .. } => {
                let read = sse.push_frames(bytes, |frame| -> Result<(), TooLarge> {
                    frames.push(Frame::new(frame.raw, frame.event.as_ref()));
                    Ok(())
                });
                if let Err(error) = read {
                    return self.close(&error.to_string());
                }
            }
        }
        let mut send = Vec::new();
        for frame in frames {
            let next = self.frame(frame, now);
            send.extend_from_slice(&next.send);
            if next.then != Then::More {
                if next.then == Then::End && send.ends_with(b"\r\n\r") {
                    // The rest of its line end is still to come, and nothing is read any more.
                    send.push(b'\n');
                }
                return Next { send, then: next.then };
            }
        }
        Next { send, then: Then::More }
    }

    /// Upstream has ended the answer.
    pub fn end(&mut self, now: Duration) -> Next {
        match std::mem::replace(&mut self.now.input, Input::None) {
            Input::None => Next { then: Then::Break, ..Next::default() },
            Input::Whole(body) => self.whole(body, now),
            Input::Stream { sse, mut decoder } => {
                let mut rest = Frame::default();
                let last = sse.finish_frames(|frame| -> Result<(), TooLarge> {
                    rest = Frame::new(frame.raw, frame.event.as_ref());
                    Ok(())
                });
                let is_whole = last.is_ok() && decoder.finish().is_ok();
                let deltas: Vec<Delta> = std::iter::from_fn(|| decoder.next_delta()).collect();
                if let Some(cause) = self.unreadable(&rest) {
                    return self.close(cause);
                }
                // What was cut off in the middle was not read.
                if is_whole && (rest.data.is_some() || rest.name.is_empty()) {
                    self.now.push(rest, &deltas, &*self.message);
                }
                match self.deltas(deltas, now) {
                    next if self.waits() => next,
                    Next { send, then: Then::More } => Next { send, then: Then::Break },
                    next => next,
                }
            }
        }
    }

    /// The request after a stop was refused, or did not reach anybody: the message ends with the cause.
    pub fn give_up(&mut self, cause: &str) -> Next {
        self.close(cause)
    }

    /// When held bytes have waited for as long as they may, as the time of [`Exchange::receive`].
    pub fn deadline(&self) -> Option<Duration> {
        self.now.core.deadline()
    }

    /// Releases bytes that have waited for as long as they may.
    pub fn release(&mut self, now: Duration) -> Vec<u8> {
        let mut effects = Vec::new();
        self.now.core.tick(now, &mut effects);
        self.perform(effects);
        self.send()
    }

    /// What keeps the client's connection alive while nothing is sent.
    pub fn keep_alive(&self) -> &'static [u8] {
        self.message.keep_alive()
    }

    /// Makes the calls of an answer wait for a decision in addition to that of the rules, until [`Exchange::checked`].
    pub(crate) fn check_calls(&mut self) {
        self.calls = Calls::Checked;
    }

    /// Returns the waiting calls of an answer that is complete.
    pub(crate) fn waiting_calls(&self) -> Option<Vec<ToolCall>> {
        self.waits().then(|| self.now.core.answer.calls())
    }

    fn waits(&self) -> bool {
        matches!(self.calls, Calls::Waiting(_))
    }

    /// Continues after the decision about the calls. `refusals`: the reasons why some of them must not run, as the model reads them.
    pub(crate) fn checked(&mut self, refusals: &[String]) -> Next {
        let Calls::Waiting(body) = std::mem::replace(&mut self.calls, Calls::Checked) else { return Next::default() };
        if !refusals.is_empty() {
            let send = self.send();
            let before = self.due.take().into_iter();
            let reminder = before.chain(refusals.iter().cloned()).collect::<Vec<_>>().join("\n\n");
            return self.again(&[], reminder, send);
        }
        self.accept();
        let send = if self.is_whole { body } else { self.send() };
        Next { send, then: Then::End }
    }

    /// Returns the wire format of both sides.
    pub(crate) fn wire(&self) -> Wire {
        self.wire
    }

    /// Ends the message with the answer of an extension.
    pub(crate) fn say(&mut self, words: &str) -> Next {
        let next = self.close_with(words, Vec::new());
        self.ended = Some(Ended::Accepted);
        self.passed_before += words.len() as u64;
        next
    }

    /// Ends the message because the request is not sent.
    pub(crate) fn refuse(&mut self, words: &str, notice: String) -> Next {
        self.notices.push(notice);
        self.close_with(words, Vec::new())
    }

    /// Ends the message because of a failure outside of it.
    pub(crate) fn fail(&mut self, cause: &str) -> Next {
        self.close(cause)
    }

    /// Returns the number of bytes, at the end of those that were returned last, of the text of the gateway that ends the message in place of an
    /// answer.
    pub(crate) fn closing(&self) -> Option<usize> {
        if let Some(Ended::Closed(bytes)) = self.ended { Some(bytes) } else { None }
    }

    /// Returns whether the message ended with the model's answer, or with that of an extension. An answer that broke off was not accepted.
    pub fn is_accepted(&self) -> bool {
        self.ended == Some(Ended::Accepted)
    }

    /// Returns the number of bytes of text that were passed on, in all attempts.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.passed_before + self.now.queue.passed_bytes()
    }

    /// Returns the answer of the attempt under way.
    pub(crate) fn answer(&mut self) -> &mut Answer {
        &mut self.now.core.answer
    }

    /// Notes that the client has another text of the last attempt than the one that was passed on.
    pub(crate) fn keeps(&mut self, shown: &str) {
        self.request.keeps(shown);
        self.events.was_shown(shown);
    }

    /// Takes the events since the last call. `keeping`: how much of the reader's text is kept, in place of the model's.
    pub(crate) fn take_events(&mut self, keeping: Keeping) -> Vec<EventKind> {
        self.events.take(keeping)
    }

    /// Notes what the client has of the last answer. `keeping`: whether that is kept in place of the model's text.
    pub(crate) fn client_has(&mut self, both: &Both, keeping: Keeping) {
        if keeping.answer {
            self.events.was_shown(&both.shown);
        } else if let Some(unchanged) = both.unchanged() {
            self.events.was_changed(unchanged);
        }
    }

    /// Notes what the client has of an answer that has ended because a callback failed: less than what was passed on to it.
    pub(crate) fn failed_as(&mut self, both: &Both) {
        self.events.was_changed(both.unchanged().unwrap_or_else(|| both.shown.clone()));
    }

    /// Returns whether all that waits is within the limits, including the given amount that waits elsewhere.
    pub(crate) fn may_hold(&self, bytes: usize, frames: usize) -> bool {
        let queue = &self.now.queue;
        queue.bytes() + bytes <= self.held.bytes && queue.frames() + frames <= self.held.frames
    }

    /// Returns the number of bytes that are held back now.
    pub fn held_bytes(&self) -> usize {
        self.now.held_bytes()
    }

    /// Returns whether the client's message was ended with a text of the gateway: by a rule, or because it could not be checked.
    pub fn is_closed(&self) -> bool {
        self.closing().is_some()
    }

    /// Returns the matches so far.
    pub fn fired(&self) -> &[Fired] {
        &self.fired
    }

    /// Returns notices for the user, one sentence each: parts that could not be checked, and parts that were shown before they were judged.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Adds notices about the request.
    pub(crate) fn note(&mut self, notices: Vec<String>) {
        self.notices.extend(notices);
    }

    /// Ends the exchange: records in the memory what its conversation needs later.
    pub fn remember(&self, memory: &mut Memory) {
        self.remember_shown(memory, self.now.core.answer.text());
    }

    /// Does the same as [`Self::remember`] for a client that has this text of the answer.
    pub(crate) fn remember_shown(&self, memory: &mut Memory, text: &str) {
        if let (Some(id), Some(accepted)) = (self.message.id(), self.message.accepted_id())
            && id != accepted
        {
            memory.note(About::Response, &[&id], Note::Text(accepted));
        }
        let Some(words) = &self.due else { return };
        let calls = self.now.core.answer.calls().into_iter().map(|call| call.id.as_str().to_owned()).collect();
        let id = self.message.id().or_else(|| self.id.clone());
        let (wire, body) = self.request.first();
        memory.note_reminder(wire, body, &Said { calls, text, id: id.as_deref() }, words);
    }

    /// Returns the number of the answer among those of its conversation.
    pub(crate) fn answer_number(&self) -> usize {
        let (wire, body) = self.request.first();
        crate::memory::next_answer(wire, body)
    }

    /// Returns the rules with their memory.
    pub fn rules(&self) -> &RuleSession {
        &self.rules
    }

    fn frame(&mut self, frame: Frame, now: Duration) -> Next {
        if let Some(cause) = self.unreadable(&frame) {
            return self.close(cause);
        }
        let Input::Stream { decoder, .. } = &mut self.now.input else { return Next::default() };
        let for_rules = self.message.for_rules(&frame);
        let decoded = decoder.push(for_rules.as_deref().unwrap_or(&frame.raw));
        let deltas: Vec<Delta> = std::iter::from_fn(|| decoder.next_delta()).collect();
        // The client knows what to do about a failure, and asks once more; of what goes on it has the start.
        let is_failure = self.message.is_failure(&frame);
        let is_passed_on = is_failure && self.number == 1;
        // Of an answer without anything that a client shows or runs there is nothing to check.
        let is_unsupported = matches!(&decoded, Err(error) if error.facts.kind == Some(FailureKind::Unsupported));
        let has_nothing = is_unsupported && !is_passed_on && !self.ends_with_text(&frame);
        if decoded.is_ok() || is_passed_on || has_nothing {
            self.now.push(frame, &deltas, &*self.message);
        }
        if has_nothing && self.now.is_blank() {
            return self.passed();
        }
        if !self.may_hold(0, 0) {
            return self.close(TOO_MUCH);
        }
        let Next { mut send, then } = self.deltas(deltas, now);
        match decoded {
            Err(error) if then == Then::More && !is_passed_on => {
                let end = match is_failure {
                    true => self.failed(&error),
                    // The error itself may repeat what was not checked.
                    false => self.close("a part of it could not be read, and so not be checked"),
                };
                send.extend_from_slice(&end.send);
                Next { send, then: end.then }
            }
            Err(_) if then == Then::More => {
                self.now.queue.complete();
                send.extend(self.send());
                Next { send, then: if self.now.queue.is_empty() { Then::End } else { Then::Break } }
            }
            _ => Next { send, then },
        }
    }

    /// Returns whether an end of the answer has text, which can be in a form that rules do not read.
    fn ends_with_text(&self, frame: &Frame) -> bool {
        let response = frame.data.as_ref().map(|data| &data["response"]);
        response.is_some_and(|response| self.message.blocks(response).iter().any(|(_, text)| !text.is_empty()))
    }

    /// Returns why a frame cannot be checked, if it cannot.
    fn unreadable(&mut self, frame: &Frame) -> Option<&'static str> {
        frame.ambiguous.or_else(|| self.unreadable_data(frame.data.as_ref()?))
    }

    fn unreadable_data(&mut self, data: &Value) -> Option<&'static str> {
        shapes::unreadable(self.wire, data).or_else(|| self.message.unreadable(data))
    }

    /// Takes what a frame has brought.
    fn deltas(&mut self, deltas: Vec<Delta>, now: Duration) -> Next {
        let (mut effects, clock) = (Vec::new(), || now);
        let mut is_over = false;
        for delta in deltas {
            let mut context = Context { rules: &mut self.rules, now: &clock, effects: &mut effects };
            if self.now.core.delta(delta, &mut context) {
                is_over = true;
                break;
            }
        }
        self.perform(effects);
        if !is_over {
            return Next { send: self.send(), then: Then::More };
        }
        match self.now.core.take_ending() {
            Some(Ending::Stopped(stopped)) => {
                let send = self.send();
                self.stopped(&stopped, send)
            }
            _ => self.passed(),
        }
    }

    /// An answer that came as one body.
    fn whole(&mut self, body: Vec<u8>, now: Duration) -> Next {
        let Ok(value) = serde_json::from_slice::<Value>(&body) else {
            return self.close("it is not JSON, so that it cannot be checked");
        };
        if !value.is_object() {
            return self.close("it is no JSON object, so that it cannot be checked");
        }
        if json::repeats_name(&body) {
            return self.close(json::REPEATS);
        }
        if let Some(cause) = self.unreadable_data(&value) {
            return self.close(cause);
        }
        self.id = value.get("id").and_then(Value::as_str).map(str::to_owned);
        let deltas = body::deltas(self.message.blocks(&value));
        // Nothing is sent before all of it has passed, and so nothing is kept of what was stopped.
        match self.deltas(deltas, now) {
            next if self.waits() => {
                self.calls = Calls::Waiting(body);
                next
            }
            next @ Next { then: Then::Ask, .. } => next,
            next if !next.send.is_empty() => next,
            _ => Next { send: body, then: Then::End },
        }
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::ShowText(text) => self.now.queue.release_text(&text),
                Effect::ShowThinking(text) => self.now.queue.release_thinking(&text),
                Effect::Fired { matches, judgement } => {
                    self.events.fired(&matches, &judgement);
                    let attempt = self.number;
                    let pairs = matches.into_iter().zip(judgement.actions);
                    self.fired.extend(pairs.map(|(found, action)| Fired { found, action, attempt }));
                }
                Effect::Report(event) => {
                    self.events.push(EventKind::clone(&event));
                    self.notices.extend(notice(*event));
                }
                Effect::Held { report, .. } => self.events.push(*report),
                Effect::Restarted(_) => {}
            }
        }
    }

    fn send(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.now.queue.send(&mut *self.message, &mut out);
        out
    }
}

/// Returns the notice for the user about a report of an attempt, if there is one.
fn notice(event: EventKind) -> Option<String> {
    match event {
        EventKind::Notice { message } => Some(message),
        EventKind::RuleHoldReleased { stream, bytes, bound } => {
            let stream = stream.as_str();
            Some(format!("{bytes} bytes of {stream} were sent before they were judged, because of `{bound}`"))
        }
        _ => None,
    }
}
