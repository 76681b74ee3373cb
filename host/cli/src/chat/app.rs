//! An open chat: events and keys go in, lines are printed, and rows are drawn. What the chat shows is that of `ChatSession`.

use tidegate::chat::{Answer, ChatMode, ChatOptions, ChatSession, ChildThread, QuestionId, SavedChat, SteeringOptions};
use tidegate::{Event, EventKind, LimitDecisionError, LimitRequest, Session};

use super::driver;
use super::history::History;
use super::input::{Input, Shown};
use super::slash::{Queue, Slash};
use super::status::Status;
use super::view::View;
use crate::ask;
use crate::ask::page::{self, Page};
use crate::exit::{Exit, Failure};
use crate::print::{Printer, shorten};
use crate::screen::keys::Key;
use crate::screen::live::Rows;
use crate::screen::{self, terminal};
use crate::style::{self, err};

/// Waiting messages that are shown.
const WAITING: usize = 3;

/// What the loop has to do after a key, because it takes time or ends the chat.
#[derive(Debug, PartialEq)]
pub(super) enum Act {
    /// The key is done with.
    Stay,
    /// A command that the loop runs.
    Run(Slash),
    /// The arguments of a call are to be edited, as JSON.
    Edit(QuestionId, String),
    /// Erase the screen.
    Redraw,
    End(Exit),
}

/// How the first question is being answered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// A key answers.
    Key,
    /// The input is the reason for a no.
    Reason,
}

pub(super) struct App {
    pub(super) session: Session,
    pub(super) chat: ChatSession,
    pub(super) input: Input,
    history: History,
    view: View,
    printer: Printer,
    pub(super) status: Status,
    /// The question that is on the screen.
    asked: Option<(QuestionId, Stage)>,
    /// It was shown since the last key.
    is_new: bool,
    limit: Option<LimitRequest>,
    /// The key before was Ctrl+C, which had nothing to do.
    is_leaving: bool,
}

impl App {
    pub(super) fn new(session: Session, is_recorded: bool) -> Self {
        let history = History::of_user();
        let id = session.id().as_str().to_owned();
        // A session takes an id once: another front end has another name, also one of a process that had this number before.
        let steering = SteeringOptions::default().name(format!("terminal-{}", tidegate::new_session_id()));
        Self {
            chat: ChatSession::new(ChatOptions::default().steering(steering)),
            input: Input::after(history.read()),
            history,
            printer: Printer::new(false, is_recorded.then_some(id)),
            view: View::new(),
            status: Status::default(),
            asked: None,
            is_new: false,
            limit: session.pending_limit(),
            is_leaving: false,
            session,
        }
    }

    /// Continues a conversation: its last messages are printed.
    pub(super) fn restore(&mut self, saved: SavedChat) -> Result<(), Failure> {
        let _changed = self.chat.restore(saved);
        self.view.earlier(&self.chat.snapshot().messages)?;
        Ok(())
    }

    /// Takes an event of the session.
    pub(super) fn event(&mut self, event: &Event) -> Result<(), Failure> {
        self.status.take(event);
        let is_chat = self.chat.process(event).is_yes();
        if is_chat {
            self.print()?;
        }
        if let EventKind::RuleFired { .. } | EventKind::CustomMessage { .. } | EventKind::TurnFinish { .. } = event.kind
        {
            self.view.finish()?;
        }
        match &event.kind {
            EventKind::TurnFinish { status } => self.printer.status(status)?,
            EventKind::LimitEscalationRequested(request) => {
                self.limit = Some(request.clone());
                self.printer.host(event)?;
            }
            EventKind::LimitEscalationResolved { request, .. } => {
                self.limit.take_if(|limit| limit.id == *request);
                self.printer.host(event)?;
            }
            _ => self.printer.host(event)?,
        }
        self.ask();
        Ok(())
    }

    /// Takes an event of a child of the session: its questions are asked here.
    pub(super) fn child(&mut self, child: &ChildThread, event: &Event) {
        let _changed = self.chat.process_child(child, event);
        self.ask();
    }

    /// The end of an event or a key: what the chat wants is done.
    pub(super) fn carry_out(&mut self) {
        driver::carry_out(&self.session, &mut self.chat);
        self.ask();
    }

    fn print(&mut self) -> Result<(), Failure> {
        let state = self.chat.snapshot();
        Ok(self.view.update(&state.messages, !state.steering.is_executing())?)
    }

    /// Shows the oldest question that waits, once.
    fn ask(&mut self) {
        let state = self.chat.snapshot();
        let first = state.questions.pending().next();
        let is_asked = |id: &QuestionId| self.asked.as_ref().is_some_and(|(asked, _)| asked == id);
        match first {
            None => {
                if let Some((_, Stage::Reason)) = self.asked.take() {
                    // What was written is the reason for an answer that nobody waits for.
                    self.input.take();
                }
            }
            Some(question) if is_asked(&question.id) => {}
            Some(question) => {
                // Where standard output is gone, the next event reports it.
                let _gone = self.view.finish();
                let agent = question
                    .child
                    .as_ref()
                    .map(|child| format!("agent {}, session {}, ", child.agent.as_str(), child.id.as_str()));
                let page = Page {
                    tool: &question.tool,
                    reason: &question.reason,
                    origin: format!("{}call {}", agent.unwrap_or_default(), question.call.as_str()),
                    notes: page::notes(
                        question.preview.notes.iter().map(|note| note.as_str().to_owned()),
                        question.always.as_deref(),
                        question.error.as_deref(),
                    ),
                    arguments: question
                        .preview
                        .arguments
                        .iter()
                        .map(|one| (one.name.as_str(), one.value.as_str()))
                        .collect(),
                    diff: question.preview.diff.as_deref(),
                };
                page::lines(&page, terminal::size().0).iter().for_each(screen::note);
                self.asked = Some((question.id.clone(), Stage::Key));
                self.is_new = true;
            }
        }
    }

    /// Whether a question was shown since the last call.
    pub(super) fn has_new_question(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// Answers a question with edited arguments; `None`: they were not edited.
    pub(super) fn edited(&mut self, question: &QuestionId, arguments: Option<String>) {
        match arguments {
            None => screen::note(err(style::DIM, "  the arguments are as they were; the question is still open")),
            Some(arguments) if serde_json::from_str::<serde_json::Value>(&arguments).is_err() => {
                screen::note(format!(
                    "{} the arguments are not JSON; the question is still open",
                    err(style::WARNING, "!")
                ));
            }
            Some(arguments) => self.respond(question, Answer::Edit { arguments: arguments.as_str().into() }),
        }
    }

    fn respond(&mut self, question: &QuestionId, answer: Answer) {
        self.asked = None;
        if let Err(error) = self.chat.respond(question, answer) {
            screen::note(format!("{} {error}", err(style::WARNING, "!")));
        }
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: &Key) -> Act {
        let was_leaving = std::mem::take(&mut self.is_leaving);
        if let Some(act) = self.question_key(key) {
            return act;
        }
        if self.input.key(key) {
            return Act::Stay;
        }
        let is_running = self.chat.snapshot().steering.is_executing();
        match key {
            Key::Enter => return self.enter(),
            Key::AltEnter => self.queue(),
            Key::Esc => self.interrupt(is_running),
            Key::Ctrl('c') if is_running => self.cancel(),
            Key::Ctrl('c') if !self.input.is_empty() => drop(self.input.take()),
            Key::Ctrl('c') if was_leaving => return Act::End(Exit::Cancelled),
            Key::Ctrl('c') => {
                self.is_leaving = true;
                screen::note(err(style::DIM, "  Ctrl+C again or Ctrl+D ends the chat"));
            }
            Key::Ctrl('d') if !self.input.is_empty() => drop(self.input.key(&Key::Delete)),
            Key::Ctrl('d') if is_running => {
                screen::note(err(style::DIM, "  a turn runs: Ctrl+C cancels it, then Ctrl+D ends the chat"));
            }
            Key::Ctrl('d') => return Act::End(Exit::Completed),
            Key::Ctrl('l') => return Act::Redraw,
            _ => {}
        }
        Act::Stay
    }

    /// A key that answers a question. `None`: it is none, or something else is being written.
    fn question_key(&mut self, key: &Key) -> Option<Act> {
        let (id, stage) = self.asked.clone()?;
        match (stage, key) {
            (Stage::Key, _) if !self.input.is_empty() => return None,
            (Stage::Key, Key::Char('y')) => self.respond(&id, Answer::Approve),
            (Stage::Key, Key::Char('a')) if self.offers_always(&id) => self.respond(&id, Answer::Always),
            (Stage::Key, Key::Char('n')) => self.asked = Some((id, Stage::Reason)),
            (Stage::Key, Key::Char('e')) => {
                let questions = self.chat.snapshot().questions;
                let question = questions.questions().iter().find(|question| question.id == id)?;
                return Some(Act::Edit(id, question.arguments.as_str().to_owned()));
            }
            (Stage::Reason, Key::Enter) => {
                let reason = self.input.take();
                let reason = reason.trim();
                self.respond(&id, if reason.is_empty() { Answer::Deny { reason: None } } else { Answer::deny(reason) });
            }
            (Stage::Reason, Key::Esc) => {
                self.input.take();
                self.asked = Some((id, Stage::Key));
            }
            (Stage::Key | Stage::Reason, _) => return None,
        }
        Some(Act::Stay)
    }

    fn enter(&mut self) -> Act {
        if self.input.text().trim().is_empty() {
            return Act::Stay;
        }
        let text = self.remembered();
        if let Some(limit) = self.limit.clone() {
            self.decide(&limit, &text);
            return Act::Stay;
        }
        if !text.starts_with('/') {
            self.chat.submit(&text);
            return Act::Stay;
        }
        match Slash::parse(&text) {
            Ok(command) => Act::Run(command),
            Err(why) => {
                screen::note(format!("{} {why}", err(style::WARNING, "!")));
                Act::Stay
            }
        }
    }

    /// Takes the input, and keeps it for later chats.
    fn remembered(&mut self) -> String {
        let text = self.input.submit();
        if let Err(error) = self.history.add(&text) {
            screen::note(format!("{} the input is not kept for later chats: {error}", err(style::WARNING, "!")));
            self.history = History::nowhere();
        }
        text
    }

    fn decide(&mut self, limit: &LimitRequest, answer: &str) {
        let Some(decision) = ask::decision(limit, Some(answer.trim().to_owned())) else {
            return screen::note("that is not a number");
        };
        match self.session.decide_limit(&limit.id, decision, driver::BY) {
            Ok(()) => self.limit = None,
            // A limit that is not above the present one is asked for again.
            Err(error @ LimitDecisionError::NotRaised { .. }) => screen::note(error),
            Err(error) => {
                self.limit = None;
                screen::note(error);
            }
        }
    }

    fn queue(&mut self) {
        if self.input.text().trim().is_empty() {
            return;
        }
        let text = self.remembered();
        let is_busy = self.chat.snapshot().steering.is_busy();
        let _id = if is_busy { self.chat.queue(&text) } else { self.chat.submit(&text) };
    }

    /// What is written goes to the model now; where nothing is, the turn is cancelled, and what waits stays.
    fn interrupt(&mut self, is_running: bool) {
        match (is_running, self.input.text().trim().is_empty()) {
            (true, false) => {
                let text = self.remembered();
                self.chat.interrupt(&text);
            }
            (true, true) => self.session.cancel_by(driver::BY),
            (false, _) => {}
        }
    }

    /// Cancels the turn; what waits returns to the input line.
    fn cancel(&mut self) {
        self.session.cancel_by(driver::BY);
        self.take_back_all();
    }

    fn take_back_all(&mut self) {
        let queued = self.chat.snapshot().steering;
        let ids: Vec<_> = queued.queued().iter().map(|message| message.id.clone()).collect();
        let texts: Vec<_> =
            ids.iter().filter_map(|id| self.chat.take_back(id)).map(|one| one.text.as_str().to_owned()).collect();
        if !texts.is_empty() {
            self.input.prepend(&texts.join("\n"));
        }
    }

    /// Shows or changes the queue.
    pub(super) fn queue_command(&mut self, command: &Queue) {
        let waiting = self.chat.snapshot().steering;
        let nth = |place: usize| waiting.queued().get(place - 1).map(|message| message.id.clone());
        let gone = |place: usize| screen::note(format!("no message {place} waits; `/queue` lists them"));
        match command {
            Queue::Show if waiting.queued().is_empty() => screen::note("no message waits"),
            Queue::Show => {
                for (place, message) in (1..).zip(waiting.queued()) {
                    screen::note(format!("{place}  {}", shorten(&message.text, 200)));
                }
            }
            Queue::Drop(place) => match nth(*place) {
                Some(id) => drop(self.chat.remove(&id)),
                None => gone(*place),
            },
            Queue::Edit(place) => match nth(*place).and_then(|id| self.chat.take_back(&id)) {
                Some(message) => self.input.prepend(&message.text),
                None => gone(*place),
            },
            Queue::Clear => drop(self.chat.clear_queue()),
        }
    }

    /// Whether a turn runs.
    pub(super) fn is_running(&self) -> bool {
        self.chat.snapshot().steering.is_busy()
    }

    /// The rows at the bottom of a terminal with so many columns.
    pub(super) fn rows(&self, columns: usize) -> Rows {
        let state = self.chat.snapshot();
        let mut rows = Vec::new();
        let sent = state.steering.sent().iter().map(|sent| ("sent", &sent.message));
        let queued = state.steering.queued().iter().map(|message| ("queued", message));
        let waiting: Vec<_> = sent.chain(queued).collect();
        for (what, message) in waiting.iter().take(WAITING) {
            rows.push(err(style::DIM, &format!("  {what}: {}", shorten(&message.text, columns))));
        }
        if waiting.len() > WAITING {
            rows.push(err(style::DIM, &format!("  and {} more", waiting.len() - WAITING)));
        }
        let prompt = match (&self.asked, &self.limit) {
            (Some((id, stage)), _) => {
                let asked = state.questions.questions().iter().find(|question| question.id == *id);
                let tool = asked.map_or("it", |question| question.tool.as_str());
                let always = if self.offers_always(id) { "  a: always" } else { "" };
                rows.push(self.question_row(tool, stage, always, state.questions.pending().count()));
                if *stage == Stage::Reason { "why not: " } else { "› " }
            }
            (None, Some(limit)) => {
                let keys = "y: yes, a number: to that, n: no, or the reason for no";
                rows.push(format!("{} {keys}", err(style::STRONG, &ask::limit_question(limit))));
                "limit: "
            }
            (None, None) => "› ",
        };
        let doing = match state.mode {
            ChatMode::ConfirmingTool => "waits for you",
            ChatMode::Streaming if self.status.is_thinking() => "thinking · Esc interrupts · Ctrl+C cancels",
            ChatMode::Streaming => "working · Esc interrupts · Ctrl+C cancels",
            _ if self.is_running() => "working",
            _ => "/help",
        };
        rows.push(err(style::DIM, &format!("{} · {doing}", self.status.line(&self.session))));
        let Shown { rows: input, cursor } = self.input.shown(prompt, columns);
        let above = rows.len();
        rows.extend(input);
        Rows { rows, cursor: (above + cursor.0, cursor.1) }
    }

    fn offers_always(&self, id: &QuestionId) -> bool {
        let questions = self.chat.snapshot().questions;
        questions.questions().iter().any(|question| question.id == *id && question.always.is_some())
    }

    fn question_row(&self, tool: &str, stage: &Stage, always: &str, pending: usize) -> String {
        let question = err(style::STRONG, &format!("Run {tool}?"));
        let more = if pending > 1 { format!(" ({} more)", pending - 1) } else { String::new() };
        match stage {
            Stage::Reason => format!("{question} No. The reason for the model; Enter: send, Esc: back"),
            Stage::Key if self.input.is_empty() => format!("{question} y: yes  n: no  e: edit{always}{more}"),
            Stage::Key => format!("{question} first send or clear what you have written{more}"),
        }
    }
}
