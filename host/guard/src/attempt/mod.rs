//! The attempt core: what one request to the model becomes, delta by delta, and what is to be done about it.
//!
//! [`Attempt`] is a state machine without I/O, clock and runtime. It owns the gate, the answer, the bytes that are held
//! back and the matches that were noted so far. [`Attempt::delta`], [`Attempt::tick`] and [`Attempt::close`] write what
//! is to be done into a list that the caller lends, as [`Effect`]s in order: a turn performs them, a replay only inspects
//! them, so what happens on a match is decided in one place. [`Attempt::take_ending`] returns how the attempt ended.
//!
//! Text blocks are one stream and thinking blocks another. Each keeps its own order; thinking may overtake text that is
//! held back, so that nothing else waits while a match is undecided.

mod answer;
mod cut;
mod hidden;
mod hold;
mod noted;
mod prose;
mod seen;

use std::time::Duration;

use flow::{Action, BlockId, Delta, EventKind, HoldOutcome, RuleMatch, StopReason, StreamKind};
use rules::{Fed, Gate, Hold, Judgement};

pub use answer::{Answer, Cut, Kept};
pub use cut::Unfinished;
use hidden::SecretCalls;
pub use noted::{CallNotes, Noted};
use prose::Prose;

/// What a turn does about a step of an attempt.
#[derive(Debug)]
pub enum Effect {
    /// The next part of the answer's text is allowed to be shown.
    ShowText(String),
    /// The next part of its reasoning is allowed to be shown.
    ShowThinking(String),
    /// Rules fired at one byte, and what was decided.
    Fired {
        /// The matches of one byte, in the order of the rules.
        matches: Vec<RuleMatch>,
        /// The decision on them.
        judgement: Judgement,
    },
    /// An event that reports how bytes were held back or what could not be watched.
    Report(Box<EventKind>),
    /// The report of a stream in which bytes were held back for these rules; once per stream and attempt.
    Held {
        /// The rules, as far as they are known.
        rules: Vec<String>,
        /// The event `rule_held` of the stream.
        report: Box<EventKind>,
    },
    /// The provider restarted its answer: this is what it had sent before, which is void.
    Restarted(Box<Answer>),
}

/// How an attempt that received its last delta ended.
#[derive(Debug)]
pub enum Ending {
    /// The answer is complete and passed the gate.
    Complete,
    /// Rules stopped it.
    Stopped(Stopped),
}

/// What stopped an answer.
#[derive(Debug)]
pub struct Stopped {
    /// The rules that fired at the byte of the verdict.
    pub matches: Vec<RuleMatch>,
    /// The decision on them.
    pub judgement: Judgement,
    /// Matches noted before it, which would have been reported to the model later: their reminders go with the interrupt.
    pub noted: Vec<(RuleMatch, Action)>,
    /// Bytes of the answer's text up to the verdict: what was received behind it does not count, however it was chunked.
    pub text_bytes: usize,
    /// Bytes of the answer's text that no match, found or in progress, can include.
    pub decided: u64,
}

/// One attempt. It keeps its answer when it is over; one that never began has an empty answer.
#[derive(Debug, Default)]
pub struct Attempt {
    /// `None` where no rule watches anything.
    gate: Option<Gate>,
    /// The answer so far.
    pub answer: Answer,
    /// What was noted so far.
    pub noted: Noted,
    secret_calls: SecretCalls,
    text: Prose,
    thinking: Prose,
    /// How long bytes may be held back for conditions without a bounded length; `None`: the time is not limited.
    hold_max: Option<Duration>,
    prefix: Prefix,
    ending: Option<Ending>,
}

/// Text that the model is given to continue from.
#[derive(Clone, Debug, Default)]
pub struct Prefix {
    /// The text, with which the answer's text begins. Empty where the answer starts from nothing.
    pub text: String,
    /// Bytes of it that have been shown.
    pub released: usize,
}

/// What a step of an attempt works with.
#[expect(missing_debug_implementations, reason = "it lends a function")]
pub struct Context<'a> {
    /// What the session remembers of its rules.
    pub rules: &'a mut rules::RuleSession,
    /// The time since some fixed point. Called only when bytes are held back.
    pub now: &'a (dyn Fn() -> Duration + Send + Sync),
    /// Gets what is to be done, in order.
    pub effects: &'a mut Vec<Effect>,
}

impl Stopped {
    /// The matches whose reminders go with the interrupt: those noted before the verdict, then those of its byte, without
    /// those of rules that are used up.
    pub fn reminders(&self) -> Vec<(RuleMatch, Action)> {
        let Self { matches, judgement, noted, .. } = self;
        let now = matches.iter().cloned().zip(judgement.actions.iter().copied()).zip(&judgement.again);
        noted.iter().cloned().chain(now.filter(|(_, again)| !**again).map(|(found, _)| found)).collect()
    }

    /// Those reminders that use their rules up. A call that could not be read is not a violation: its rules remain
    /// armed.
    pub fn injected(&self) -> Vec<(RuleMatch, Action)> {
        self.reminders().into_iter().filter(|(found, _)| !found.evidence.unread).collect()
    }

    /// The rules that were reminded of only because a call could not be read.
    pub fn unread(&self) -> Vec<String> {
        let reminders = self.reminders().into_iter().filter(|(found, _)| found.evidence.unread);
        reminders.map(|(found, _)| found.rule).collect()
    }

    /// The matches that stopped the answer.
    pub fn stopping(&self) -> impl Iterator<Item = &RuleMatch> {
        let strongest = self.judgement.action;
        let pairs = self.matches.iter().zip(&self.judgement.actions);
        pairs.filter(move |(_, action)| **action == strongest).map(|(found, _)| found)
    }
}

impl Attempt {
    /// An attempt that continues from `prefix` and is watched by `rules`. Bytes of the prefix that were not shown yet are
    /// shown as far as the gate allows.
    pub fn new(rules: &rules::RuleSession, prefix: Prefix, effects: &mut Vec<Effect>) -> Self {
        let settings = rules.rules().settings();
        let hold_max = (settings.hold == Hold::Match).then(|| Duration::from_millis(settings.hold_max_ms));
        let mut own = Self { hold_max, prefix, ..Self::default() };
        own.begin(rules, effects);
        own
    }

    /// Takes the next delta. Returns whether the attempt is over: then the stream is to be dropped before anything else.
    pub fn delta(&mut self, delta: Delta, cx: &mut Context<'_>) -> bool {
        match delta {
            Delta::Piece { block, text } => self.piece(block, text, cx),
            Delta::BlockStart { block, kind } => {
                if let Some(gate) = &mut self.gate {
                    gate.block_start(block, &kind);
                }
                self.answer.begin(block, kind);
            }
            Delta::BlockEnd { block } => self.block_end(block, cx),
            Delta::Start { model } => {
                if !self.answer.blocks.is_empty() {
                    self.restart(cx);
                }
                self.answer.model = model.or_else(|| self.answer.model.take());
            }
            Delta::Signature { block, data, redacted } => {
                if let Some(block) = self.answer.block(block) {
                    block.signature.get_or_insert_default().push_str(&data);
                    block.redacted |= redacted;
                }
            }
            Delta::Usage(usage) => self.answer.count(usage),
            Delta::Stop { reason } => {
                self.answer.stop = Some(reason);
                self.finish(cx);
            }
        }
        self.ending.is_some()
    }

    /// Takes matches of one byte that are known from elsewhere: a transcript has those of rules about secrets, and not what they matched.
    /// Returns whether the attempt is over.
    pub fn found(&mut self, matches: Vec<RuleMatch>, cx: &mut Context<'_>) -> bool {
        if let Some(found) = matches.first() {
            let (surface, start) = (Surface::of(&found.stream), found.evidence.start);
            self.judge(matches, surface, (self.answer.text.len(), start), cx);
        }
        self.ending.is_some()
    }

    /// When bytes that are held back for conditions without a bounded length have waited for as long as they may.
    pub fn deadline(&self) -> Option<Duration> {
        let oldest = [&self.text, &self.thinking].into_iter().filter_map(Prose::oldest).min()?;
        Some(oldest.saturating_add(self.hold_max?))
    }

    /// The time is `now`: releases bytes that have waited for as long as they may.
    pub fn tick(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        let (Some(max), Some(gate)) = (self.hold_max, &mut self.gate) else { return };
        for (prose, surface) in [(&mut self.text, Surface::Text), (&mut self.thinking, Surface::Thinking)] {
            if prose.oldest().is_none_or(|oldest| oldest.saturating_add(max) > now) {
                continue;
            }
            prose.forget_arrivals();
            let (safe, bytes) = gate.release_held(surface.stream());
            if bytes > 0 {
                prose.hold_ended(HoldOutcome::Released);
                effects.push(released(surface, bytes, "hold_max_ms"));
            }
            effects.extend(prose.release(safe).map(|text| surface.show(text)));
            prose.note_hold(&|| now, || gate.holding(surface.stream()));
        }
        self.answer.released = self.text.released();
    }

    /// Nothing more is received: reports what was held back, and hides what may have become a secret.
    pub fn close(&mut self, cx: &mut Context<'_>) {
        self.hide_rest(cx.rules);
        for (prose, surface) in [(&mut self.text, Surface::Text), (&mut self.thinking, Surface::Thinking)] {
            if let Some((rules, report)) = prose.report(surface.stream(), cx.now) {
                cx.effects.push(Effect::Held { rules, report: Box::new(report) });
            }
        }
    }

    /// How the attempt ended, once; `None` while it is under way.
    pub fn take_ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    /// The prefix had its verdict in an earlier attempt and is watched again without being judged: a match may begin in
    /// it and end in what follows.
    fn begin(&mut self, rules: &rules::RuleSession, effects: &mut Vec<Effect>) {
        self.gate = Some(rules.gate()).filter(|gate| !gate.is_idle());
        (self.text, self.thinking) = (Prose::default(), Prose::default());
        let Prefix { text, released } = &self.prefix;
        self.answer.text.clone_from(text);
        self.answer.prefix = text.len();
        if !text.is_empty() {
            let safe = self.gate.as_mut().map_or(u64::MAX, |gate| gate.prefix(text));
            self.text.start_at(text, *released);
            effects.extend(self.text.release(safe).map(Effect::ShowText));
        }
        self.answer.released = self.text.released();
    }

    /// The provider restarts its answer: what it sent is void, for rules and extensions too. What was shown of it stays
    /// shown, as for any attempt that is repeated.
    fn restart(&mut self, cx: &mut Context<'_>) {
        self.close(cx);
        self.secret_calls = SecretCalls::default();
        self.noted.roll_back(cx.rules);
        let void = std::mem::take(&mut self.answer);
        self.answer.follow(&void);
        cx.effects.push(Effect::Restarted(Box::new(void)));
        self.begin(cx.rules, cx.effects);
    }

    fn piece(&mut self, id: BlockId, text: String, cx: &mut Context<'_>) {
        let text_bytes = self.answer.text.len();
        let Some(surface) = self.answer.receive(id, &text) else { return };
        let Some(gate) = &mut self.gate else {
            if surface == Surface::Text {
                self.text.skip(text.len());
            }
            cx.effects
                .extend(Some(surface).filter(|surface| *surface != Surface::None).map(|surface| surface.show(text)));
            self.answer.released = self.text.released();
            return;
        };
        let fed = gate.piece(id, &text);
        let Some(prose) = prose_of(surface, &mut self.text, &mut self.thinking) else {
            self.verdicts(id, surface, text_bytes, fed, cx);
            return;
        };
        // Most deltas: nothing fired, nothing is held back, and the text is passed on as it is.
        if fed.matches.is_empty() && fed.released == 0 && prose.passes(&text, fed.safe) {
            cx.effects.push(surface.show(text));
        } else {
            prose.push(&text);
            self.verdicts(id, surface, text_bytes, fed, cx);
        }
        self.answer.released = self.text.released();
    }

    /// Releases what is safe in a chunk and judges what fired in it, byte by byte: what may be shown comes before the report of what stopped
    /// the rest. `text_bytes` of the answer's text were received before the chunk.
    fn verdicts(&mut self, id: BlockId, surface: Surface, text_bytes: usize, first: Fed, cx: &mut Context<'_>) {
        let mut next = Some(first);
        while let Some(Fed { matches, safe, decided, released: bytes }) = next {
            self.release(surface, safe, bytes, cx);
            let stopped = !matches.is_empty() && self.judge(matches, surface, (text_bytes, decided), cx);
            self.note_hold(surface, stopped, cx);
            if stopped {
                return;
            }
            next = self.gate.as_mut().and_then(|gate| gate.more(id));
        }
    }

    /// Releases the bytes of a stream of prose that are safe, of which `bytes` are safe because a limit was reached.
    fn release(&mut self, surface: Surface, safe: u64, bytes: u64, cx: &mut Context<'_>) {
        let Some(prose) = prose_of(surface, &mut self.text, &mut self.thinking) else { return };
        if bytes > 0 {
            prose.hold_ended(HoldOutcome::Released);
            cx.effects.push(released(surface, bytes, "hold_max_bytes"));
        }
        cx.effects.extend(prose.release(safe).map(|text| surface.show(text)));
        self.answer.released = self.text.released();
    }

    /// What a stream of prose holds back after a verdict; nothing more where the verdict stopped it.
    fn note_hold(&mut self, surface: Surface, stopped: bool, cx: &Context<'_>) {
        let (Some(gate), Some(prose)) = (&self.gate, prose_of(surface, &mut self.text, &mut self.thinking)) else {
            return;
        };
        if stopped {
            return prose.hold_ended(HoldOutcome::Matched);
        }
        if self.hold_max.is_some() && gate.has_limit(surface.stream()) {
            prose.note_arrival(cx.now);
        }
        prose.note_hold(cx.now, || gate.holding(surface.stream()));
    }

    fn block_end(&mut self, id: BlockId, cx: &mut Context<'_>) {
        let surface = self.answer.end(id);
        let (Some(gate), Some(surface)) = (&mut self.gate, surface) else { return };
        if let Some(error) = gate.decode_error(id) {
            let message = format!("stream rules could not read all arguments of a tool call: {error}");
            cx.effects.push(Effect::Report(Box::new(EventKind::Notice { message })));
        }
        let fed = gate.block_end(id);
        self.verdicts(id, surface, self.answer.text.len(), fed, cx);
        self.hide_call(id, cx.rules);
    }

    /// The answer is complete, and with it its text and its thinking.
    fn finish(&mut self, cx: &mut Context<'_>) {
        if matches!(self.answer.stop, Some(StopReason::MaxTokens | StopReason::ContextFull)) {
            self.hide_undecided(cx.rules);
        }
        let text_bytes = self.answer.text.len();
        for surface in [Surface::Text, Surface::Thinking] {
            let Some(gate) = &mut self.gate else { break };
            let Fed { matches, safe, decided, .. } = gate.finish(surface.stream());
            self.release(surface, safe, 0, cx);
            let stopped = !matches.is_empty() && self.judge(matches, surface, (text_bytes, decided), cx);
            self.note_hold(surface, stopped, cx);
            if stopped {
                return;
            }
        }
        self.ending = Some(Ending::Complete);
    }

    /// Decides what is done about the matches of one byte. Returns whether they stop the answer. `at`: the bytes of the
    /// answer's text before the chunk, and the bytes of the matches' own stream that are decided.
    fn judge(&mut self, mut matches: Vec<RuleMatch>, surface: Surface, at: (usize, u64), cx: &mut Context<'_>) -> bool {
        let (text_bytes, decided) = at;
        let is_secret = self.secret_calls.note(&mut matches, cx.rules.rules());
        let judgement = cx.rules.judge(&matches);
        let matches = self.answer.keeping.evidence_of(matches);
        cx.effects.push(Effect::Fired { matches: matches.clone(), judgement: judgement.clone() });
        if !matches!(judgement.action, Action::Interrupt | Action::Stop) {
            for (found, action) in matches.into_iter().zip(&judgement.actions) {
                self.noted.note(found, *action);
            }
            return false;
        }
        let end = matches.iter().map(|found| found.evidence.end).max().and_then(|end| usize::try_from(end).ok());
        let text_bytes = match surface {
            // Nothing of a secret is kept with the start of the answer.
            Surface::Text if is_secret => usize::try_from(decided).unwrap_or(usize::MAX),
            Surface::Text => end.unwrap_or(text_bytes),
            Surface::Thinking | Surface::None => text_bytes,
        };
        if is_secret {
            self.hide_from(surface, decided);
        }
        let text_bytes = self.answer.text.floor_char_boundary(text_bytes.min(self.answer.text.len()));
        let noted = std::mem::take(&mut self.noted).into_matches();
        let text_decided = || self.gate.as_ref().map_or(u64::MAX, |gate| gate.decided(&StreamKind::Text));
        let decided = if surface == Surface::Text { decided } else { text_decided() };
        self.ending = Some(Ending::Stopped(Stopped { matches, judgement, noted, text_bytes, decided }));
        true
    }
}

/// Where a stream is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    Text,
    Thinking,
    /// Arguments of a tool call are used when they are complete.
    None,
}

impl Surface {
    pub(crate) fn of(kind: &StreamKind) -> Self {
        match kind {
            StreamKind::Text => Self::Text,
            StreamKind::Thinking => Self::Thinking,
            StreamKind::Tool { .. } => Self::None,
        }
    }

    fn stream(self) -> &'static StreamKind {
        match self {
            Self::Text | Self::None => &StreamKind::Text,
            Self::Thinking => &StreamKind::Thinking,
        }
    }

    fn show(self, text: String) -> Effect {
        if self == Self::Thinking { Effect::ShowThinking(text) } else { Effect::ShowText(text) }
    }
}

fn prose_of<'p>(surface: Surface, text: &'p mut Prose, thinking: &'p mut Prose) -> Option<&'p mut Prose> {
    match surface {
        Surface::Text => Some(text),
        Surface::Thinking => Some(thinking),
        Surface::None => None,
    }
}

fn released(surface: Surface, bytes: u64, bound: &str) -> Effect {
    let stream = surface.stream().clone();
    Effect::Report(Box::new(EventKind::RuleHoldReleased { stream, bytes, bound: bound.to_owned() }))
}
