//! Matches that did not stop the answer: which of them concern which tool call, and which are reported after the answer.

use std::time::Duration;

use flow::{Action, CallId, Delta, Keeping, RuleMatch, StopReason, StreamKind, ToolCall};

use super::{Attempt, Context, Effect, Ending, Prefix};

/// Matches that did not stop the answer, in the order in which they were found.
#[derive(Debug, Default)]
pub struct Noted {
    matches: Vec<(RuleMatch, Action)>,
    /// Rules of which one call of the answer was reminded: the other calls are not.
    reminded: Vec<String>,
}

/// What was noted about one tool call of an accepted answer.
#[derive(Debug, Default)]
pub struct CallNotes {
    /// The matches for which the call must not run, one per rule.
    pub refusals: Vec<RuleMatch>,
    /// The matches that the model is reminded of together with the call's result, one per rule.
    pub reminders: Vec<RuleMatch>,
}

impl Noted {
    /// What rules find in a call whose arguments are complete, as in those that a model streams. A call for which an answer would
    /// have been stopped is refused. `effects` gets what is to be reported of it.
    pub fn of_call(
        rules: &mut rules::RuleSession,
        keeping: Keeping,
        call: &ToolCall,
        effects: &mut Vec<Effect>,
    ) -> Self {
        let mut attempt = Attempt::new(rules, Prefix::default(), effects);
        attempt.answer.keeping = keeping;
        let block = 0;
        let kind = StreamKind::Tool { call: call.id.clone(), name: call.name.clone() };
        let deltas = [
            Delta::BlockStart { block, kind },
            Delta::Piece { block, text: call.arguments.clone() },
            Delta::BlockEnd { block },
            Delta::Stop { reason: StopReason::ToolUse },
        ];
        let now = || Duration::ZERO;
        for delta in deltas {
            if attempt.delta(delta, &mut Context { rules: &mut *rules, now: &now, effects: &mut *effects }) {
                break;
            }
        }
        let mut noted = attempt.noted;
        if let Some(Ending::Stopped(stopped)) = attempt.ending {
            noted.matches.extend(stopped.stopping().cloned().map(|found| (found, Action::Block)));
            noted.matches.extend(stopped.noted);
        }
        noted
    }

    /// Adds what was noted elsewhere.
    pub fn absorb(&mut self, other: Self) {
        self.matches.extend(other.matches);
    }

    pub(super) fn note(&mut self, found: RuleMatch, action: Action) {
        match action {
            Action::Remind | Action::Block => self.matches.push((found, action)),
            Action::Pass | Action::Interrupt | Action::Stop => {}
        }
    }

    /// All matches, for the reminder of an interrupt.
    pub(super) fn into_matches(self) -> Vec<(RuleMatch, Action)> {
        self.matches
    }

    /// The answer ended early: nothing noted in it will be delivered, and its rules may fire again.
    pub fn roll_back(&mut self, rules: &mut rules::RuleSession) {
        let names: Vec<String> = std::mem::take(self).matches.into_iter().map(|(found, _)| found.rule).collect();
        rules.release(&names);
    }

    /// What was noted about a call. Refusals remain for another call with the same id; the reminder of a rule goes with one
    /// call of the answer only.
    pub fn take_call(&mut self, call: &CallId) -> CallNotes {
        let mut notes = CallNotes::default();
        for (found, action) in self.matches.iter().filter(|(found, _)| is_of_call(found, call)) {
            let list = if *action == Action::Block { &mut notes.refusals } else { &mut notes.reminders };
            if !list.iter().any(|known| known.rule == found.rule) {
                list.push(found.clone());
            }
        }
        notes.reminders.retain(|found| !self.reminded.contains(&found.rule));
        self.reminded.extend(notes.reminders.iter().map(|found| found.rule.clone()));
        notes
    }

    /// The matches in the text and the thinking, which are reported after the answer.
    pub fn take_prose(&mut self) -> Vec<RuleMatch> {
        let matches = std::mem::take(self).matches.into_iter();
        matches
            .filter(|(found, action)| *action == Action::Remind && !found.stream.is_tool())
            .map(|(found, _)| found)
            .collect()
    }
}

impl CallNotes {
    /// Adds what was noted about other arguments of the call: one match for each rule.
    pub fn absorb(&mut self, other: Self) {
        for (own, more) in [(&mut self.refusals, other.refusals), (&mut self.reminders, other.reminders)] {
            for found in more {
                if !own.iter().any(|known| known.rule == found.rule) {
                    own.push(found);
                }
            }
        }
    }

    /// The violations for which the call does not run, which use their rules up. That a call could not be read is none.
    pub fn violations(&self) -> Vec<RuleMatch> {
        self.refusals.iter().filter(|found| !found.evidence.unread).cloned().collect()
    }

    /// The rules that refuse the call only because it could not be read. They remain as they were.
    pub fn unread(&self) -> Vec<String> {
        let unread = self.refusals.iter().filter(|found| found.evidence.unread);
        unread.map(|found| found.rule.clone()).collect()
    }
}

fn is_of_call(found: &RuleMatch, call: &CallId) -> bool {
    matches!(&found.stream, StreamKind::Tool { call: id, .. } if id == call)
}
