//! A recording as attempts. Turns and steps are not written in it: they follow from what was answered.

use std::path::Path;

use flow::{Action, Delta, StopReason};
use providers::{RecordedAnswer, RecordedEnd, RecordedFire, RecordingError, RecordingReader};

use super::attempt::{Attempt, Outcome, Past, PastFire, Step};
use super::report::{Replay, Where};

/// Reads a recording and gives its steps. All of it is one thread.
pub(super) fn read(
    file: &Path,
    report: &mut Replay,
    take: &mut dyn FnMut(&str, Step, &mut Replay),
) -> Result<(), RecordingError> {
    let shown = file.display().to_string();
    let reader = RecordingReader::open(file)?;
    if let Some(line) = reader.torn_line() {
        report.notes.push(format!("{shown}, line {line}: is truncated and was not read"));
    }
    let mut at = At::default();
    let (mut answers, mut unknown) = (0, 0);
    for answer in reader {
        let answer = answer?;
        answers += 1;
        unknown += usize::from(answer.rules.is_none());
        let continues = answer.rules.as_ref().is_some_and(|rules| !rules.prefix.is_empty());
        let reminded = continues || answer.last_texts.iter().any(|text| is_reminder(text));
        // An interrupt that no reminder follows was cancelled, and its turn with it.
        if !reminded && (at.interrupted || at.step_over && !at.calls_wait) {
            if at.turn > 0 {
                take("", Step::TurnEnd, report);
            }
            (at.turn, at.step, at.attempt, at.step_over) = (at.turn + 1, 0, 0, true);
            take("", Step::TurnStart, report);
        }
        if at.step_over {
            (at.step, at.attempt) = (at.step + 1, 0);
        }
        at.attempt += 1;
        let place = Where {
            file: shown.clone(),
            line: answer.line,
            thread: None,
            turn: at.turn,
            step: at.step,
            attempt: at.attempt,
        };
        let over = ends_turn(&answer);
        let attempt = attempt(place, answer);
        at.after(&attempt, over);
        take("", Step::Attempt(Box::new(attempt)), report);
    }
    if at.turn > 0 {
        take("", Step::TurnEnd, report);
    }
    if unknown > 0 {
        report.notes.push(format!(
            "{shown}: which rules fired is not recorded for {unknown} of {answers} answers (an earlier version recorded \
             them, or they were written by hand); what fires now is not compared there"
        ));
    }
    Ok(())
}

/// The position in the recorded session.
#[derive(Debug)]
struct At {
    turn: u32,
    step: u32,
    attempt: u32,
    /// The last answer was accepted.
    step_over: bool,
    /// It asked for tools, or paused.
    calls_wait: bool,
    /// A rule is known to have interrupted it.
    interrupted: bool,
}

impl Default for At {
    fn default() -> Self {
        Self { turn: 0, step: 0, attempt: 0, step_over: true, calls_wait: false, interrupted: false }
    }
}

impl At {
    /// `over`: the turn ended with this attempt.
    fn after(&mut self, attempt: &Attempt, over: bool) {
        self.step_over = over || attempt.outcome == Outcome::Complete;
        self.interrupted = attempt.outcome == Outcome::Stopped && matches!(attempt.past, Past::Fired(_));
        self.calls_wait = !over
            && attempt.deltas.iter().any(|delta| match delta {
                Delta::BlockStart { kind, .. } => kind.is_tool(),
                Delta::Stop { reason } => *reason == StopReason::Pause,
                _ => false,
            });
    }
}

/// The host's own message at the end of a request: the turn continues.
fn is_reminder(text: &str) -> bool {
    ["<system-interrupt reason=", "<system-reminder reason="].iter().any(|element| text.contains(element))
}

/// Whether a turn is known to have ended without an accepted answer: a rule ended it, or our side dropped the answer and no
/// rule was the reason.
fn ends_turn(answer: &RecordedAnswer) -> bool {
    let Some(rules) = &answer.rules else { return false };
    let did = |action: Action| rules.fired.iter().any(|fire| fire.action == action);
    let whole = matches!(answer.deltas.last(), Some(Delta::Stop { .. }));
    did(Action::Stop) || (answer.end == RecordedEnd::Cut && answer.error.is_none() && !whole && !did(Action::Interrupt))
}

fn attempt(place: Where, answer: RecordedAnswer) -> Attempt {
    let complete = matches!(answer.deltas.last(), Some(Delta::Stop { .. })) && answer.error.is_none();
    let cut = answer.end == RecordedEnd::Cut && answer.error.is_none() && !complete;
    let tokens = answer.deltas.iter().rev().find_map(|delta| match delta {
        Delta::Usage(usage) => usage.output,
        _ => None,
    });
    let (past, prefix) = match answer.rules {
        Some(rules) => (Past::Fired(rules.fired.into_iter().map(fired).collect()), rules.prefix),
        None => (Past::Unknown, String::new()),
    };
    let outcome = match &past {
        // The match may have come with the last bytes: what was received does not say how it ended.
        Past::Fired(fires) if fires.iter().any(PastFire::stops) => Outcome::Stopped,
        Past::Fired(_) | Past::Unknown if complete => Outcome::Complete,
        Past::Unknown if cut => Outcome::Stopped,
        Past::Fired(_) | Past::Unknown => Outcome::Broken,
    };
    // What a provider reports before the end does not count everything that was received.
    let output_tokens = tokens.filter(|_| complete);
    Attempt { place, outcome, prefix, output_tokens, past, deltas: answer.deltas }
}

fn fired(fire: RecordedFire) -> PastFire {
    let RecordedFire { rule, stream, action, end, .. } = fire;
    PastFire { rule, stream, action: action.as_str().to_owned(), end: Some(end), tokens: None, hidden: None }
}
