//! Drives the rules of one thread through its recorded attempts, as a turn does.

use flow::{Action, BlockId, BlockKind, Delta, RuleMatch, StreamKind};
use rules::{ContextMode, Fed, Gate, Judgement, Session};

use super::Trial;
use super::attempt::{Attempt, Outcome, Past, PastFire, Step, stream_of};
use super::report::{Agreement, Fire, Replay, Then, Tokens};
use crate::trial::catalogue::session;
use crate::trial::input::stream_words;

/// The rules of one thread.
pub(super) struct Driver<'a> {
    trial: &'a Trial,
    agent: &'a str,
    session: Session,
    /// A rule ended the turn, which went on then.
    over: bool,
}

/// What came of one attempt so far.
#[derive(Default)]
struct Answer {
    blocks: Vec<Block>,
    remind: Vec<RuleMatch>,
    block: Vec<RuleMatch>,
    fires: Vec<(RuleMatch, Action)>,
    stopped: Option<Stopped>,
}

struct Block {
    id: BlockId,
    kind: BlockKind,
    text: String,
    ended: bool,
}

/// A rule stopped the answer.
struct Stopped {
    matches: Vec<RuleMatch>,
    judgement: Judgement,
}

impl<'a> Driver<'a> {
    pub(super) fn new(trial: &'a Trial, agent: &'a str) -> Self {
        let session = session(&trial.set, &trial.specs, agent);
        Self { trial, agent, session, over: false }
    }

    pub(super) fn take(&mut self, step: Step, report: &mut Replay) {
        match step {
            Step::TurnStart => {
                report.turns += 1;
                self.over = false;
                self.session.begin_turn();
            }
            Step::Attempt(attempt) => {
                report.attempts += 1;
                report.unknown += u64::from(matches!(attempt.past, Past::Unknown));
                self.attempt(&attempt, report);
            }
            Step::TurnEnd => self.session.end_turn(),
        }
    }

    fn attempt(&mut self, attempt: &Attempt, report: &mut Replay) {
        if self.over {
            return self.unreached(attempt, report);
        }
        if self.trial.every {
            self.session = session(&self.trial.set, &self.trial.specs, self.agent);
            self.session.begin_turn();
        }
        let mut answer = Answer::default();
        let mut gate = self.session.gate();
        for (index, delta) in attempt.deltas.iter().enumerate() {
            let fed = self.feed(&mut gate, &mut answer, delta);
            if attempt.stood == Some(index) {
                answer.remind.extend(self.session.due_again(fed.matches));
                continue;
            }
            self.judge(&mut answer, fed);
            if answer.stopped.is_some() {
                break;
            }
        }
        let tokens = self.settle(&mut answer, attempt);
        if self.trial.every {
            return every(attempt, answer, report);
        }
        self.compare(attempt, answer, tokens, report);
    }

    fn feed(&mut self, gate: &mut Gate, answer: &mut Answer, delta: &Delta) -> Fed {
        match delta {
            Delta::Start { .. } if !answer.blocks.is_empty() => {
                // The provider begins anew: what came is void.
                answer.blocks.clear();
                self.roll_back(answer);
                *gate = self.session.gate();
            }
            Delta::BlockStart { block, kind } => {
                gate.block_start(*block, kind);
                answer.blocks.push(Block { id: *block, kind: kind.clone(), text: String::new(), ended: false });
            }
            Delta::Piece { block, text } => {
                if let Some(known) = answer.blocks.iter_mut().rfind(|known| known.id == *block) {
                    known.text.push_str(text);
                    return gate.piece(*block, text);
                }
            }
            Delta::BlockEnd { block } => {
                if let Some(known) = answer.blocks.iter_mut().rfind(|known| known.id == *block) {
                    known.ended = true;
                    return gate.block_end(*block);
                }
            }
            Delta::Start { .. } | Delta::Signature { .. } | Delta::Usage(_) | Delta::Stop { .. } => {}
        }
        Fed::default()
    }

    fn judge(&mut self, answer: &mut Answer, fed: Fed) {
        let matches = fed.matches;
        if matches.is_empty() {
            return;
        }
        let judgement = self.session.judge(&matches);
        answer.fires.extend(matches.iter().cloned().zip(judgement.actions.iter().copied()));
        if matches!(judgement.action, Action::Interrupt | Action::Stop) {
            answer.stopped = Some(Stopped { matches, judgement });
            return;
        }
        for (found, action) in matches.into_iter().zip(&judgement.actions) {
            match action {
                Action::Remind => answer.remind.push(found),
                Action::Block => answer.block.push(found),
                Action::Pass | Action::Interrupt | Action::Stop => {}
            }
        }
    }

    fn roll_back(&mut self, answer: &mut Answer) {
        let noted = std::mem::take(&mut answer.remind).into_iter().chain(std::mem::take(&mut answer.block));
        let names: Vec<String> = noted.map(|found| found.rule).collect();
        self.session.release(&names);
    }

    /// What follows the attempt's end: reminders are delivered, or what waited is dropped. Gives what a rule that
    /// stopped it threw away.
    fn settle(&mut self, answer: &mut Answer, attempt: &Attempt) -> Option<Tokens> {
        if let Some(stopped) = &answer.stopped {
            let tokens = discarded(answer, stopped, attempt);
            let (action, rules) = (stopped.judgement.action, stopped.judgement.rules.clone());
            self.roll_back(answer);
            if action == Action::Stop {
                self.over = true;
            } else {
                self.session.injected(&rules);
            }
            return Some(tokens);
        }
        if attempt.outcome == Outcome::Complete {
            self.deliver(answer);
        } else {
            self.roll_back(answer);
        }
        None
    }

    /// The answer was accepted: each call has its reminders, and prose its own after it.
    fn deliver(&mut self, answer: &mut Answer) {
        for block in answer.blocks.iter().filter(|block| block.ended) {
            let BlockKind::Tool { call, .. } = &block.kind else { continue };
            let is_mine = |found: &RuleMatch| matches!(&found.stream, StreamKind::Tool { call: id, .. } if id == call);
            let blocked = names(answer.block.iter().filter(|found| is_mine(found)));
            let reminded = names(answer.remind.iter().filter(|found| is_mine(found)));
            answer.block.retain(|found| !is_mine(found));
            // Each rule is told with one call of the batch only.
            answer.remind.retain(|found| {
                let of_a_call = matches!(found.stream, StreamKind::Tool { .. });
                !(is_mine(found) || of_a_call && reminded.contains(&found.rule))
            });
            self.session.injected(&blocked);
            self.session.injected(&reminded);
        }
        let prose = |found: &&RuleMatch| !matches!(found.stream, StreamKind::Tool { .. });
        self.session.injected(&names(answer.remind.iter().filter(prose)));
    }

    /// Tells what fires now and what fired then.
    fn compare(&mut self, attempt: &Attempt, answer: Answer, tokens: Option<Tokens>, report: &mut Replay) {
        let mut past: Vec<PastFire> = if let Past::Fired(fires) = &attempt.past { fires.clone() } else { Vec::new() };
        let stopped = answer.stopped.as_ref();
        let thrower = stopped.and_then(|stopped| stopped.judgement.rules.first().cloned());
        let mut tokens = tokens;
        for (found, action) in answer.fires {
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
            self.missed(attempt, fire, &answer.blocks, unreached, report);
        }
    }

    /// A rule that fired then and does not now.
    fn missed(&self, attempt: &Attempt, fire: PastFire, blocks: &[Block], unreached: bool, report: &mut Replay) {
        if self.trial.partial && self.trial.set.rule(&fire.rule).is_none() {
            return;
        }
        let written = blocks.iter().any(|block| same_stream(&stream_of(&block.kind), &fire.stream));
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
                self.missed(attempt, fire.clone(), &[], true, report);
            }
        }
    }
}

/// Every match counts, and then is not asked for.
fn every(attempt: &Attempt, answer: Answer, report: &mut Replay) {
    for (found, action) in answer.fires {
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

/// Names of the rules, each once.
fn names<'a>(matches: impl Iterator<Item = &'a RuleMatch>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for found in matches {
        if !names.contains(&found.rule) {
            names.push(found.rule.clone());
        }
    }
    names
}

/// What leaves the context with a stopped answer.
fn discarded(answer: &Answer, stopped: &Stopped, attempt: &Attempt) -> Tokens {
    let came: u64 = answer.blocks.iter().map(|block| block.text.len() as u64).sum();
    let bytes = came.saturating_sub(kept(answer, stopped));
    let all: u64 = attempt
        .deltas
        .iter()
        .map(|delta| if let Delta::Piece { text, .. } = delta { text.len() as u64 } else { 0 })
        .sum();
    match attempt.output_tokens {
        Some(count) if bytes == all => Tokens { count, estimated: false },
        Some(output) if all > 0 => {
            Tokens { count: (u128::from(output) * u128::from(bytes)).div_ceil(u128::from(all)) as u64, estimated: true }
        }
        _ => Tokens { count: bytes.div_ceil(4), estimated: true },
    }
}

/// Bytes that stay in the conversation.
fn kept(answer: &Answer, stopped: &Stopped) -> u64 {
    let texts = || answer.blocks.iter().filter(|block| block.kind == BlockKind::Text);
    let all = || texts().map(|block| block.text.len() as u64).sum();
    if stopped.judgement.action == Action::Stop {
        return 0;
    }
    match stopped.judgement.context {
        ContextMode::Discard => 0,
        ContextMode::Keep => all(),
        ContextMode::Rewind => {
            let in_text = stopped.matches.iter().filter(|found| found.stream == StreamKind::Text);
            let Some(start) = in_text.map(|found| found.evidence.start).min() else { return all() };
            // All blocks of text before the one that was being written, and its lines before the match.
            let open = texts().next_back().map_or("", |block| block.text.as_str());
            let start = usize::try_from(start).unwrap_or(usize::MAX).min(open.len());
            let line = open[..open.floor_char_boundary(start)].rfind('\n').map_or(0, |end| end + 1);
            all() - open.len() as u64 + line as u64
        }
    }
}
