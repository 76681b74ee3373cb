//! Drives the rules of one thread through its recorded attempts with the attempt core of a turn, whose effects are
//! only inspected.

use std::sync::Arc;
use std::time::Duration;

use flow::{Action, RuleMatch, StreamKind};
use guard::attempt::{Answer, Attempt as Core, Context, Effect, Ending, Noted, Prefix, Stopped};
use rules::RuleSession;

use super::Trial;
use super::attempt::{Attempt, Outcome, Past, PastFire, Step};
use super::hidden::Hidden;
use super::report::{Agreement, Fire, Replay, Then, Tokens};
use crate::catalogue::session;
use crate::input::stream_words;

/// The rules of one thread.
pub(super) struct Driver<'a> {
    trial: &'a Trial,
    agent: String,
    session: RuleSession,
    /// A rule ended the turn, which continued in the recorded session.
    over: bool,
    /// A rule stopped the last attempt, and the retry was not seen yet.
    interrupted: Option<Interrupted>,
    turn: u64,
}

/// An interrupt with a reminder that waits for the retry.
struct Interrupted {
    /// Rules that are used up when the reminder goes out.
    injected: Vec<String>,
    /// Rules that it names only because a call could not be read.
    unread: Vec<String>,
    /// The attempt was stopped in the recorded session, too.
    stopped_then: bool,
}

/// What one attempt became.
struct Verdict {
    fires: Vec<(RuleMatch, Action)>,
    /// Matches of rules that were used up. They did nothing, now as then.
    again: Vec<RuleMatch>,
    stopped: Option<Stopped>,
    answer: Answer,
    noted: Noted,
}

impl<'a> Driver<'a> {
    pub(super) fn new(trial: &'a Trial) -> Self {
        let agent = trial.agent.clone().unwrap_or_else(|| config::agents::MAIN.to_owned());
        let session = session(&trial.set, &trial.specs, &agent);
        Self { trial, agent, session, over: false, interrupted: None, turn: 0 }
    }

    pub(super) fn take(&mut self, step: Step, report: &mut Replay) {
        match step {
            Step::Agent(name) => {
                // A thread that was started again is the same agent's, with what its rules did before.
                if self.trial.agent.is_none() && self.agent != name {
                    self.session = session(&self.trial.set, &self.trial.specs, &name);
                    self.agent = name;
                }
            }
            Step::TurnStart => {
                report.turns += 1;
                self.over = false;
                self.turn += 1;
                if let Some((_, set)) = self.trial.edited.iter().find(|(turn, _)| *turn == self.turn) {
                    self.session.replace_rules(Arc::clone(set));
                }
                self.session.begin_turn();
            }
            Step::Attempt(attempt) => {
                report.attempts += 1;
                report.unknown += u64::from(matches!(attempt.past, Past::Unknown));
                self.retry();
                self.attempt(&attempt, report);
            }
            Step::TurnEnd => self.end_turn(),
        }
    }

    fn attempt(&mut self, attempt: &Attempt, report: &mut Replay) {
        if self.over {
            return self.unreached(attempt, report);
        }
        if self.trial.every {
            self.session = session(&self.trial.set, &self.trial.specs, &self.agent);
            self.session.begin_turn();
        }
        let mut verdict = self.judge(attempt);
        let tokens = self.settle(&mut verdict, attempt);
        if self.trial.every {
            return every(attempt, verdict, report);
        }
        self.compare(attempt, verdict, tokens, report);
    }

    /// Gives the deltas to the core. Recorded time is not known, so none passes.
    fn judge(&mut self, attempt: &Attempt) -> Verdict {
        let mut effects = Vec::new();
        let prefix = Prefix { text: attempt.prefix.clone(), released: 0 };
        let mut core = Core::new(&self.session, prefix, &mut effects);
        let (mut fires, mut again, mut hidden) = (Vec::new(), Vec::new(), Hidden::of(attempt));
        for delta in attempt.deltas.iter().map(Some).chain([None]) {
            let mut context = Context { rules: &mut self.session, now: &|| Duration::ZERO, effects: &mut effects };
            let mut over = delta.is_some_and(|delta| core.delta(delta.clone(), &mut context));
            note(&mut effects, &mut fires, &mut again);
            for group in hidden.due(delta) {
                let is_new = |found: &&RuleMatch| !over && self.is_unseen(found, &fires);
                let group: Vec<RuleMatch> = group.into_iter().filter(is_new).cloned().collect();
                if !group.is_empty() {
                    let mut context =
                        Context { rules: &mut self.session, now: &|| Duration::ZERO, effects: &mut effects };
                    over = core.found(group, &mut context);
                    note(&mut effects, &mut fires, &mut again);
                }
            }
            if over {
                break;
            }
        }
        let stopped = match core.take_ending() {
            Some(Ending::Stopped(stopped)) => Some(stopped),
            Some(Ending::Complete) | None => None,
        };
        Verdict { fires, again, stopped, answer: core.answer, noted: core.noted }
    }

    /// Whether a match that is recorded without its text is of a rule that is used, and was not found again: older transcripts have the
    /// text.
    fn is_unseen(&self, found: &RuleMatch, fires: &[(RuleMatch, Action)]) -> bool {
        let rule = self.session.rules().active(&found.rule);
        let is_used = rule.is_some_and(|rule| rule.watches_agent(self.session.agent()));
        is_used && !fires.iter().any(|(seen, _)| seen.rule == found.rule && seen.stream == found.stream)
    }

    /// What follows the attempt's end: reminders are delivered, or those that wait are dropped. Returns what was discarded
    /// by a rule that stopped it.
    fn settle(&mut self, verdict: &mut Verdict, attempt: &Attempt) -> Option<Tokens> {
        if let Some(stopped) = &verdict.stopped {
            let tokens = discarded(&verdict.answer, stopped, attempt);
            if stopped.judgement.action == Action::Stop {
                self.over = true;
            } else {
                let injected = stopped.injected().into_iter().map(|(found, _)| found.rule).collect();
                let stopped_then = attempt.outcome == Outcome::Stopped;
                self.interrupted = Some(Interrupted { injected, unread: stopped.unread(), stopped_then });
            }
            return Some(tokens);
        }
        if attempt.outcome == Outcome::Complete {
            self.deliver(verdict);
        } else {
            verdict.noted.roll_back(&mut self.session);
        }
        None
    }

    /// The answer was accepted: the notes of each call go with its result, those on prose follow the answer.
    fn deliver(&mut self, verdict: &mut Verdict) {
        for call in verdict.answer.calls() {
            let notes = verdict.noted.take_call(&call.id);
            self.session.release(&notes.unread());
            self.session.injected(&names(&notes.violations()));
            self.session.injected(&names(&notes.reminders));
        }
        self.session.injected(&names(&verdict.noted.take_prose()));
    }

    /// The reminder of an interrupt goes with the retry.
    fn retry(&mut self) {
        if let Some(Interrupted { injected, unread, .. }) = self.interrupted.take() {
            self.session.release(&unread);
            self.session.injected(&injected);
        }
    }

    /// The turn is over. An interrupt without a retry was cancelled before its reminder went out, unless it only happens now:
    /// then nothing can be known of its retry, and it counts.
    fn end_turn(&mut self) {
        if self.interrupted.as_ref().is_some_and(|interrupted| !interrupted.stopped_then) {
            self.retry();
        }
        self.interrupted = None;
        self.session.end_turn();
    }

    /// Tells what fires now and what fired then.
    fn compare(&mut self, attempt: &Attempt, verdict: Verdict, tokens: Option<Tokens>, report: &mut Replay) {
        let Verdict { fires, again, stopped, answer, .. } = verdict;
        let mut past: Vec<PastFire> = if let Past::Fired(fires) = &attempt.past { fires.clone() } else { Vec::new() };
        for found in again {
            let (agreement, _) = same_then(&mut past, &found, Action::Pass);
            report.again.push(Fire {
                place: attempt.place.clone(),
                found,
                action: Action::Pass,
                tokens: None,
                agreement,
            });
        }
        let thrower = stopped.as_ref().and_then(|stopped| stopped.judgement.rules.first().cloned());
        let mut tokens = tokens;
        for (found, action) in fires {
            let (agreement, told) = match &attempt.past {
                Past::Fired(_) => same_then(&mut past, &found, action),
                Past::Unknown => (Agreement::Unknown, None),
            };
            let own = if thrower.as_deref() == Some(&found.rule) { tokens.take() } else { None };
            let tokens = own.map(|own| told.unwrap_or(own));
            report.fire(Fire { place: attempt.place.clone(), found, action, tokens, agreement });
        }
        let unreached = stopped.is_some();
        for fire in past {
            self.missed(attempt, fire, Some(&answer), unreached, report);
        }
    }

    /// A rule that fired then and does not now.
    fn missed(&self, attempt: &Attempt, fire: PastFire, answer: Option<&Answer>, unreached: bool, report: &mut Replay) {
        if self.trial.partial && self.trial.set.rule(&fire.rule).is_none() {
            return;
        }
        let written = answer.is_some_and(|answer| answer.streams().any(|stream| same_stream(stream, &fire.stream)));
        let agreement = match (unreached, written) {
            (true, _) => Agreement::Unreached,
            (false, false) => Agreement::NotRecorded,
            (false, true) => Agreement::OnlyThen,
        };
        report.missed(Then {
            place: attempt.place.clone(),
            rule: Some(fire.rule),
            stream: Some(stream_words(&fire.stream)),
            action: fire.action,
            agreement,
        });
    }

    /// The turn would have been over.
    fn unreached(&self, attempt: &Attempt, report: &mut Replay) {
        if let Past::Fired(fires) = &attempt.past {
            for fire in fires {
                self.missed(attempt, fire.clone(), None, true, report);
            }
        }
    }
}

/// Takes what fired out of the effects of a step.
fn note(effects: &mut Vec<Effect>, fires: &mut Vec<(RuleMatch, Action)>, again: &mut Vec<RuleMatch>) {
    for effect in effects.drain(..) {
        if let Effect::Fired { matches, judgement } = effect {
            for ((found, action), used_up) in matches.into_iter().zip(judgement.actions).zip(judgement.again) {
                if used_up { again.push(found) } else { fires.push((found, action)) }
            }
        }
    }
}

/// Every match counts, and then is not asked for.
fn every(attempt: &Attempt, verdict: Verdict, report: &mut Replay) {
    for (found, action) in verdict.fires {
        let (place, agreement) = (attempt.place.clone(), Agreement::Unknown);
        report.fire(Fire { place, found, action, tokens: None, agreement });
    }
}

/// Takes the same match out of what fired then.
fn same_then(past: &mut Vec<PastFire>, found: &RuleMatch, action: Action) -> (Agreement, Option<Tokens>) {
    let same = |fire: &PastFire| {
        fire.rule == found.rule
            && same_stream(&fire.stream, &found.stream)
            && fire.end.is_none_or(|end| end == found.evidence.end)
    };
    let Some(at) = past.iter().position(same) else { return (Agreement::OnlyNow, None) };
    let fire = past.remove(at);
    if fire.action == action.as_str() { (Agreement::Same, fire.tokens) } else { (Agreement::OtherAction, None) }
}

fn same_stream(one: &StreamKind, other: &StreamKind) -> bool {
    match (one, other) {
        (StreamKind::Tool { call, .. }, StreamKind::Tool { call: other, .. }) => call == other,
        (one, other) => one == other,
    }
}

fn names(matches: &[RuleMatch]) -> Vec<String> {
    matches.iter().map(|found| found.rule.clone()).collect()
}

/// What leaves the context with a stopped answer.
fn discarded(answer: &Answer, stopped: &Stopped, attempt: &Attempt) -> Tokens {
    let kept = if stopped.judgement.action == Action::Stop { 0 } else { answer.kept(stopped).text.len() as u64 };
    let bytes = answer.bytes().saturating_sub(kept);
    let received =
        |delta: &flow::Delta| if let flow::Delta::Piece { text, .. } = delta { text.len() as u64 } else { 0 };
    let all: u64 = attempt.prefix.len() as u64 + attempt.deltas.iter().map(received).sum::<u64>();
    match attempt.output_tokens {
        Some(count) if bytes == all => Tokens { count, estimated: false },
        Some(output) if all > 0 => {
            Tokens { count: (u128::from(output) * u128::from(bytes)).div_ceil(u128::from(all)) as u64, estimated: true }
        }
        _ => Tokens { count: bytes.div_ceil(4), estimated: true },
    }
}
