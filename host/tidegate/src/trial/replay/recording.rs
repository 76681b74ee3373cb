//! A recording as attempts. Turns and steps are not written in it: they follow from what was answered.

use std::path::Path;

use flow::{Delta, StopReason};
use providers::{End, RecordedAnswer, RecordingError, RecordingReader};

use super::attempt::{Attempt, Outcome, Past, Step};
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
        report.notes.push(format!("{shown}, line {line}: is cut off and was not read"));
    }
    let mut at = At::default();
    for answer in reader {
        let answer = answer?;
        let reminded = answer.last_texts.iter().any(|text| is_reminder(text));
        if at.step_over && !at.calls_wait && !reminded {
            if at.turn > 0 {
                take("", Step::TurnEnd, report);
            }
            (at.turn, at.step, at.attempt) = (at.turn + 1, 0, 0);
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
        let attempt = attempt(place, answer);
        at.after(&attempt);
        take("", Step::Attempt(Box::new(attempt)), report);
    }
    if at.turn > 0 {
        take("", Step::TurnEnd, report);
    }
    Ok(())
}

/// Where the recorded session stands.
#[derive(Debug)]
struct At {
    turn: u32,
    step: u32,
    attempt: u32,
    /// The last answer was accepted.
    step_over: bool,
    /// It asked for tools, or paused.
    calls_wait: bool,
}

impl Default for At {
    fn default() -> Self {
        Self { turn: 0, step: 0, attempt: 0, step_over: true, calls_wait: false }
    }
}

impl At {
    fn after(&mut self, attempt: &Attempt) {
        self.step_over = attempt.outcome == Outcome::Complete;
        self.calls_wait = attempt.deltas.iter().any(|delta| match delta {
            Delta::BlockStart { kind, .. } => kind.is_tool(),
            Delta::Stop { reason } => *reason == StopReason::Pause,
            _ => false,
        });
    }
}

/// The host's own words at the end of a request: the turn goes on.
fn is_reminder(text: &str) -> bool {
    ["<system-interrupt reason=", "<system-reminder reason="].iter().any(|element| text.contains(element))
}

fn attempt(place: Where, answer: RecordedAnswer) -> Attempt {
    let complete = matches!(answer.deltas.last(), Some(Delta::Stop { .. })) && answer.error.is_none();
    let cut = answer.end == End::Cut && answer.error.is_none() && !complete;
    let outcome = match (complete, cut) {
        (true, _) => Outcome::Complete,
        (false, true) => Outcome::Stopped,
        (false, false) => Outcome::Broken,
    };
    let tokens = answer.deltas.iter().rev().find_map(|delta| match delta {
        Delta::Usage(usage) => usage.output,
        _ => None,
    });
    Attempt {
        place,
        outcome,
        stood: None,
        // What a provider says before the end is no count of what came.
        output_tokens: tokens.filter(|_| complete),
        past: Past::Cut { cut, last_chunk: answer.last_chunk },
        deltas: answer.deltas,
    }
}
