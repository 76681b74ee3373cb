//! Ends an attempt and the client's message: with the answer, with another attempt, or with a text of the gateway.

use flow::{Action, CallId, ModelError, RuleMatch};
use guard::attempt::{CallNotes, Stopped};

use super::{Calls, Ended, Exchange, MAX_ATTEMPTS, Next, Then};
use crate::attempt::{Input, Now};

/// The suffix of a reminder if the client has the start of the answer.
const KEPT: &str = "\n\nYour answer up to the violation has been kept. Continue from there without repeating it.";

/// The maximum number of characters of a provider's error that the client gets.
const MOST_SAID: usize = 500;

pub(crate) const TOO_MUCH: &str =
    "too much of it waits to be checked; `held_mib` and `held_frames` under `[gateway.limits]` say how much may";

pub(crate) fn ended_because(cause: &str) -> String {
    format!("[Tidegate: this answer ends here, because {cause}.]")
}

impl Exchange {
    /// The answer is complete, and nothing that follows it counts. Calls that are refused are taken back with all that follows them.
    pub(super) fn passed(&mut self) -> Next {
        let CallNotes { refusals, mut reminders } = self.notes();
        reminders.extend(self.now.core.noted.take_prose());
        if refusals.is_empty() {
            self.remind(&reminders);
            if self.calls == Calls::Checked && !self.now.core.answer.calls().is_empty() {
                self.calls = Calls::Waiting(Vec::new());
                return Next { send: self.send(), then: Then::More };
            }
            self.accept();
            return Next { send: self.send(), then: Then::End };
        }
        let send = self.send();
        let reminder = self.rules.reminder(&[refusals.clone(), reminders.clone()].concat());
        // A call that cannot be read is not a violation: its rules keep their state.
        let (unread, mut violations): (Vec<RuleMatch>, _) =
            refusals.into_iter().partition(|found| found.evidence.unread);
        self.rules.release(&unread.into_iter().map(|found| found.rule).collect::<Vec<_>>());
        violations.extend(reminders);
        self.again(&violations, reminder, send)
    }

    pub(super) fn accept(&mut self) {
        self.events.accepted(&self.now.core.answer);
        self.now.queue.complete();
        self.ended = Some(Ended::Accepted);
    }

    /// Returns the notes about the calls of the answer.
    pub(super) fn notes(&mut self) -> CallNotes {
        let calls: Vec<CallId> = self.now.core.answer.calls().into_iter().map(|call| call.id).collect();
        let mut all = CallNotes::default();
        for call in calls {
            let CallNotes { refusals, reminders } = self.now.core.noted.take_call(&call);
            all.refusals.extend(refusals);
            all.reminders.extend(reminders);
        }
        all
    }

    /// Reminds the model in the next request.
    pub(super) fn remind(&mut self, matches: &[RuleMatch]) {
        if matches.is_empty() {
            return;
        }
        self.due = Some(self.rules.tool_reminder(matches));
        let names: Vec<String> = matches.iter().map(|found| found.rule.clone()).collect();
        self.rules.injected(&names);
    }

    pub(super) fn stopped(&mut self, stopped: &Stopped, send: Vec<u8>) -> Next {
        if stopped.judgement.action == Action::Stop {
            let rule = stopped.stopping().next().map_or("", |found| &found.rule);
            let why = format!("the rule `{rule}` stopped it");
            return self.end_with(&format!("[Tidegate: the rule `{rule}` stopped this answer.]"), &why, send);
        }
        self.rules.release(&stopped.unread());
        let matches: Vec<RuleMatch> = stopped.reminders().into_iter().map(|(found, _)| found).collect();
        let reminder = self.rules.reminder(&matches);
        let injected: Vec<RuleMatch> = stopped.injected().into_iter().map(|(found, _)| found).collect();
        self.again(&injected, reminder, send)
    }

    /// The model is reminded, and answers once more.
    pub(super) fn again(&mut self, injected: &[RuleMatch], mut reminder: String, mut send: Vec<u8>) -> Next {
        if self.number >= MAX_ATTEMPTS {
            let words = match injected.first() {
                Some(found) => {
                    format!("[Tidegate: the rule `{}` stopped this answer {MAX_ATTEMPTS} times.]", found.rule)
                }
                None => ended_because("a call in it must not run, and the model goes on making it"),
            };
            return self.end_with(&words, &format!("it was stopped {MAX_ATTEMPTS} times"), send);
        }
        let names: Vec<String> = injected.iter().map(|found| found.rule.clone()).collect();
        let records = self.rules.injected(&names);
        let kept = self.now.queue.sent().to_owned();
        self.events.stopped(&self.now.core.answer, &kept, (injected, records), self.number);
        if !kept.trim().is_empty() {
            reminder.push_str(KEPT);
        }
        self.request.stopped(&kept, reminder);
        if self.request.body().is_none() {
            return self.close_with(&ended_because("the request has no messages that could be continued"), send);
        }
        self.message.go_on(self.now.core.answer.usage(), &mut send);
        self.passed_before = self.passed_bytes();
        self.number += 1;
        self.said.push_str(&kept);
        self.now = Now::new(&self.rules, &self.said);
        Next { send, then: Then::Ask }
    }

    pub(super) fn close(&mut self, cause: &str) -> Next {
        self.notices.push(format!("an answer was ended, because {cause}"));
        self.end_with(&ended_because(cause), cause, Vec::new())
    }

    /// The provider has reported an error in an answer that continues the message. Its text is for the client alone.
    pub(super) fn failed(&mut self, error: &ModelError) -> Next {
        const CAUSE: &str = "the model's server reported an error";
        let code = error.code.as_ref().map(|code| format!(" (`{code}`)")).unwrap_or_default();
        let said = error.facts.said.as_deref().unwrap_or_default();
        let said: String = said.trim_end_matches('.').chars().take(MOST_SAID).collect();
        let words = ended_because(&format!("{CAUSE}{code}{}{said}", if said.is_empty() { "" } else { ": " }));
        self.notices.push(format!("an answer was ended, because {CAUSE}{code}"));
        self.end_with(&words, CAUSE, Vec::new())
    }

    /// Ends an answer of the model. `why`: for the records.
    pub(super) fn end_with(&mut self, words: &str, why: &str, send: Vec<u8>) -> Next {
        self.events.ended(&self.now.core.answer, self.now.queue.sent(), why);
        self.close_with(words, send)
    }

    pub(super) fn close_with(&mut self, words: &str, mut send: Vec<u8>) -> Next {
        let before = if self.is_whole { 0 } else { send.len() };
        match self.is_whole {
            true => send = self.message.whole(words).to_string().into_bytes(),
            false => self.message.close(words, &mut send),
        }
        self.ended = Some(Ended::Closed(send.len() - before));
        self.now.input = Input::None;
        Next { send, then: Then::End }
    }
}
