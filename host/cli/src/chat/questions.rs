//! Asks the questions of a session and of its children, one after the other, and takes the answers.

use std::time::Instant;

use tidegate::chat::{Answer, Question, QuestionId};
use tidegate::limit::{LimitDecision, LimitDecisionError, LimitRequest};

use super::app::{Act, App, BY};
use super::asking::{Asking, Reply, Subject};
use crate::ask;
use crate::ask::page::{self, Page};
use crate::ask::summary;
use crate::screen::clean::flat;
use crate::screen::keys::Key;
use crate::screen::{self, live, terminal};
use crate::style::{self, err};

impl App {
    /// The question on the screen, if it is this one, was answered: by whom is printed where it was not here.
    pub(super) fn resolved(&self, question: &str, by: &str) {
        let is_asked = |asking: &Asking| matches!(&asking.subject, Subject::Call { id, .. } if id.as_str() == question);
        if by != BY && self.asking.as_ref().is_some_and(is_asked) {
            let who = if by.is_empty() { "is closed".to_owned() } else { format!("was answered by {}", flat(by)) };
            screen::note(err(style::DIM, &format!("  the question {who}")));
        }
    }

    /// Asks the oldest question, once. What is being answered stays until it is answered, here or elsewhere.
    pub(super) fn ask(&mut self) {
        self.is_put_off = false;
        let questions = self.chat.snapshot().questions;
        let is_open = |asking: &Asking| match &asking.subject {
            Subject::Call { id, .. } => questions.pending().any(|question| question.id == *id),
            Subject::Limit(limit) => self.limit.as_ref().is_some_and(|one| one.id == limit.id),
        };
        if self.asking.as_ref().is_some_and(is_open) {
            if let (Some(asking), Some(limit)) = (&mut self.asking, &self.limit) {
                asking.renew(limit);
            }
            return;
        }
        if self.asking.take().is_some_and(|asking| asking.has_input()) && !self.input.text().trim().is_empty() {
            self.is_left = true;
            screen::note(err(style::DIM, "  what you have written for the question stays in the input"));
        }
        let asking = match (questions.pending().next(), &self.limit) {
            (Some(question), _) => of_call(question),
            // The event of a limit is printed by itself.
            (None, Some(limit)) => Asking::new(Subject::Limit(limit.clone())),
            (None, None) => return,
        };
        // Its lines are made for the columns that the terminal has then.
        self.is_put_off = live::held_until().is_some();
        if self.is_put_off {
            return;
        }
        self.resized = None;
        self.asking = Some(asking);
        self.print_question();
    }

    /// Prints the question, or its summary where it does not fit.
    fn print_question(&mut self) {
        // Where standard output is gone, the next event reports it.
        let _gone = self.view.finish();
        let (columns, rows) = (terminal::size().0, self.free_rows());
        self.columns = columns;
        let questions = self.chat.snapshot().questions;
        let Some(asking) = &mut self.asking else { return };
        let question = asked(&asking.subject, questions.questions());
        let summary = question.map(|question| summary::of(&page(question), columns, rows)).unwrap_or_default();
        // Those on the screen can list the keys of the question before.
        live::forget_rows();
        summary.rows.iter().for_each(screen::note);
        live::count_rows();
        asking.print(summary);
    }

    /// Shows the whole question.
    pub(super) fn view_question(&mut self) {
        let columns = terminal::size().0;
        let questions = self.chat.snapshot().questions;
        let Some(asking) = &mut self.asking else { return };
        if let Some(question) = asked(&asking.subject, questions.questions()) {
            asking.view(page::lines(&page(question), columns), columns);
        }
    }

    /// Rows of the screen above those at the bottom, however many these are while the question is open.
    fn free_rows(&self) -> usize {
        let (size, now) = (terminal::size(), Instant::now());
        let (rows, question) = (self.rows(size, now).rows.len(), self.question_rows(size.0, now).len());
        let most = self.most_question_rows(size.0).max(question);
        size.1.saturating_sub(rows - question + most + 1)
    }

    /// What was printed after the question, rows at the bottom and another size of the terminal must not have moved it off the screen.
    pub(super) fn keep_visible(&mut self) {
        if live::held_until().is_some() || self.is_viewing() {
            return;
        }
        if self.resized.take_if(|at| at.elapsed() >= live::SETTLED).is_some() && terminal::size().0 < self.columns {
            // The terminal has broken its lines.
            return self.print_question();
        }
        let Some(asking) = &self.asking else { return };
        let needed = live::rows_since().saturating_add(asking.printed());
        // At least one row is printed, also where there is no place for it.
        if self.resized.is_none() && asking.printed() > 0 && needed > self.free_rows().max(1) {
            self.print_question();
        }
    }

    /// Whether the whole question is on the screen.
    pub(super) fn is_viewing(&self) -> bool {
        self.asking.as_ref().is_some_and(|asking| asking.pager.is_some())
    }

    /// The screen was erased: the question is printed again.
    pub(super) fn erased(&mut self) {
        self.print_question();
    }

    /// Answers a question with edited arguments; `None`: they were not edited.
    pub(super) fn edited(&mut self, question: &QuestionId, arguments: Option<String>) {
        match arguments {
            None => screen::note(err(style::DIM, "  the arguments are as they were; the question is still open")),
            Some(arguments) if let Err(error) = serde_json::from_str::<serde_json::Value>(&arguments) => {
                let text = format!(
                    "the arguments are not JSON: {error}; the question is still open, and `e` opens them as they are now"
                );
                screen::note(format!("{} {text}", err(style::WARNING, "!")));
                if let Some(asking) = &mut self.asking {
                    asking.draft = Some(arguments);
                }
            }
            Some(arguments) => self.respond(question, Answer::Edit { arguments: arguments.as_str().into() }),
        }
    }

    fn respond(&mut self, question: &QuestionId, answer: Answer) {
        self.asking = None;
        let questions = self.chat.snapshot().questions;
        let shown = questions.questions().iter().find(|one| one.id == *question && one.child.is_none());
        if let (Some(shown), Answer::Approve | Answer::Always) = (shown, &answer) {
            self.view.was_asked(&shown.call);
        }
        if let Err(error) = self.chat.respond(question, answer) {
            screen::note(format!("{} {error}", err(style::WARNING, "!")));
        }
    }

    /// A key that answers a question. `None`: it is none, or something else is being written.
    pub(super) fn question_key(&mut self, key: &Key, at: Instant) -> Option<Act> {
        let asking = self.asking.as_mut()?;
        let reply = asking.key(key, at, self.input.text())?;
        match (reply, asking.subject.clone()) {
            (Reply::Taken, _) => drop(self.input.take()),
            (Reply::View, _) => self.view_question(),
            (Reply::Moved, _) => {}
            (Reply::Approve, Subject::Call { id, .. }) => self.respond(&id, Answer::Approve),
            (Reply::Always, Subject::Call { id, .. }) => self.respond(&id, Answer::Always),
            (Reply::Edit, Subject::Call { id, .. }) => {
                let questions = self.chat.snapshot().questions;
                let question = questions.questions().iter().find(|question| question.id == id)?;
                let draft = self.asking.as_ref().and_then(|asking| asking.draft.clone());
                return Some(Act::Edit(id, draft.unwrap_or_else(|| question.arguments.as_str().to_owned())));
            }
            (Reply::Deny(reason), Subject::Call { id, .. }) => {
                self.input.take();
                self.respond(&id, if reason.is_empty() { Answer::Deny { reason: None } } else { Answer::deny(reason) });
            }
            (Reply::Approve, Subject::Limit(limit)) => {
                self.decide(&limit, LimitDecision::Approved { max: limit.proposed });
            }
            (Reply::Deny(reason), Subject::Limit(limit)) => {
                self.input.take();
                self.decide(&limit, LimitDecision::Denied { reason });
            }
            (Reply::Raise(amount), Subject::Limit(limit)) => match ask::amount(limit.limit, &amount) {
                Some(max) => {
                    self.input.take();
                    self.decide(&limit, LimitDecision::Approved { max });
                }
                None => screen::note(ask::no_amount(Some(limit.limit), &amount)),
            },
            (Reply::Always | Reply::Edit, Subject::Limit(_)) | (Reply::Raise(_), Subject::Call { .. }) => {}
        }
        Some(Act::Stay)
    }

    fn decide(&mut self, limit: &LimitRequest, decision: LimitDecision) {
        // It is asked again where it is still open.
        self.asking = None;
        match self.session.decide_limit(&limit.id, decision, BY) {
            Ok(()) => self.limit = None,
            // A limit that is not above the present one is asked for again.
            Err(error @ LimitDecisionError::NotRaised { .. }) => screen::note(error),
            Err(error) => {
                self.limit = None;
                screen::note(error);
            }
        }
    }
}

/// A question about a call.
fn of_call(question: &Question) -> Asking {
    let subject =
        Subject::Call { id: question.id.clone(), tool: flat(&question.tool), offers_always: question.always.is_some() };
    Asking::new(subject)
}

/// The question that is asked, if it is about a call.
fn asked<'q>(subject: &Subject, questions: &'q [Question]) -> Option<&'q Question> {
    let Subject::Call { id, .. } = subject else { return None };
    questions.iter().find(|question| question.id == *id)
}

/// What is shown of a question about a call.
fn page(question: &Question) -> Page<'_> {
    let agent = question.child.as_ref();
    let agent = agent.map(|child| format!("agent {}, session {}, ", child.agent.as_str(), child.id.as_str()));
    let notes = question.preview.notes.iter().map(|note| note.as_str().to_owned());
    let arguments = question.preview.arguments.iter().map(|one| (one.name.as_str(), one.value.as_str()));
    Page {
        tool: &question.tool,
        reason: &question.reason,
        origin: format!("{}call {}", agent.unwrap_or_default(), question.call.as_str()),
        notes: page::notes(notes, question.always.as_deref(), question.error.as_deref()),
        arguments: arguments.collect(),
        diff: question.preview.diff.as_deref(),
    }
}
