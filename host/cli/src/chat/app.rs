//! An open chat: events and keys go in, lines are printed, and rows are drawn. What the chat shows is that of `ChatSession`.

use std::time::Instant;

use tidegate::agent::{ChildEvent, ChildEventKind};
use tidegate::chat::{ChatOptions, ChatSession, QuestionId, SavedChat, SteeringOptions, is_blank};
use tidegate::limit::LimitRequest;
use tidegate::{Event, EventKind, Session};

use super::asking::Asking;
use super::bindings::{self, Action};
use super::complete::Completion;
use super::history::History;
use super::input::Input;
use super::offers::Offers;
use super::running::Running;
use super::slash::Slash;
use super::status::Status;
use super::view::View;
use crate::exit::{Exit, Failure};
use crate::print::Printer;
use crate::say;
use crate::screen::keys::Key;
use crate::screen::{self, live};
use crate::style::{self, err};

/// Who acts, for records.
pub(super) const BY: &str = "the terminal";

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
    /// Stop the program until the shell continues it.
    Stop,
    End(Exit),
}

pub(super) struct App {
    pub(super) session: Session,
    pub(super) chat: ChatSession,
    pub(super) input: Input,
    history: History,
    pub(super) view: View,
    pub(super) running: Running,
    printer: Printer,
    pub(super) status: Status,
    /// The question that is on the screen.
    pub(super) asking: Option<Asking>,
    /// The columns that its lines were made for.
    pub(super) columns: usize,
    /// When the terminal got another size, until the question was looked at after that.
    pub(super) resized: Option<Instant>,
    /// A question is asked as soon as the size of the terminal does not change any more.
    pub(super) is_put_off: bool,
    /// The input was written for a question that is closed: it is not sent before the user has seen that.
    pub(super) is_left: bool,
    pub(super) limit: Option<LimitRequest>,
    /// The key before was Ctrl+C, which had nothing to do.
    is_leaving: bool,
    pub(super) offers: Offers,
    /// The list that is open.
    pub(super) completion: Option<Completion>,
    /// Where the word begins whose list was closed.
    pub(super) dismissed: Option<usize>,
    /// The images that the input names, and their sizes in bytes.
    pub(super) images: Vec<(String, u64)>,
    /// The paths of images that the input names, including missing files.
    pub(super) named: Vec<String>,
}

impl App {
    pub(super) fn new(session: Session, is_recorded: bool, offers: Offers) -> Self {
        let history = History::of_user();
        let id = session.id().as_str().to_owned();
        // A session takes an id once: another front end has another name, also one of a process that had this number before.
        let name = format!("terminal-{}", tidegate::new_session_id());
        let steering = SteeringOptions::default().name(name).session_queue();
        Self {
            chat: ChatSession::new(ChatOptions::default().steering(steering)),
            input: Input::after(history.read()),
            history,
            printer: Printer::of_chat(is_recorded.then_some(id)),
            view: View::new(),
            running: Running::default(),
            status: Status::default(),
            asking: None,
            columns: 0,
            resized: None,
            is_put_off: false,
            is_left: false,
            limit: session.pending_limit(),
            is_leaving: false,
            offers,
            completion: None,
            dismissed: None,
            images: Vec::new(),
            named: Vec::new(),
            session,
        }
    }

    /// Continues a conversation: its last messages are printed, unless they are on the screen.
    pub(super) fn restore(&mut self, saved: SavedChat, is_on_screen: bool) -> Result<(), Failure> {
        let _changed = self.chat.restore(saved);
        let messages = self.chat.snapshot().messages;
        if is_on_screen {
            self.view.known(&messages);
        } else {
            self.view.earlier(&messages, self.session.interrupted())?;
        }
        // The screen already shows this notice.
        if let Some(left) = self.session.interrupted().filter(|_| !is_on_screen) {
            let what = match left.questions {
                0 if left.limit => "a decision about a limit is open from before: `/continue` asks again".to_owned(),
                0 => "the last turn has no end, because its process ended before: `/continue` continues it".to_owned(),
                count => format!(
                    "{} open from before: `/continue` asks again; with a message, the calls do not run",
                    say::count(count as u64, "question is", "questions are")
                ),
            };
            screen::note(err(style::DIM, &format!("  {what}")));
        }
        if !self.waiting().is_empty() && !self.is_running() {
            screen::note(err(style::DIM, "  messages wait from before; `/queue send` sends the first"));
        }
        Ok(())
    }

    /// Takes an event of the session.
    pub(super) fn event(&mut self, event: &Event) -> Result<(), Failure> {
        self.printer.before(event)?;
        self.status.take(event);
        self.running.take(event, Instant::now());
        let is_chat = self.chat.process(event).is_yes();
        if is_chat {
            self.print()?;
        }
        if let EventKind::RuleFired { .. } | EventKind::CustomMessage { .. } | EventKind::TurnFinish { .. } = event.kind
        {
            self.view.finish()?;
        }
        match &event.kind {
            EventKind::TurnFinish { status } => {
                // A request that nobody has decided about is made again when the turn continues.
                self.limit = None;
                self.printer.status(status)?;
            }
            EventKind::LimitEscalationRequested(request) => {
                self.limit = Some(request.clone());
                self.printer.host(event)?;
            }
            EventKind::StepStart { .. } => {
                // A request for which there is no need any more.
                self.limit = None;
                self.printer.host(event)?;
            }
            EventKind::LimitEscalationResolved { request, .. } => {
                self.limit.take_if(|limit| limit.id == *request);
                self.printer.host(event)?;
            }
            EventKind::ToolConfirmationResolved { question, by, .. } => self.resolved(question.as_str(), by),
            _ => self.printer.host(event)?,
        }
        self.ask();
        Ok(())
    }

    /// Takes an event of a child of the session: its questions are asked here.
    pub(super) fn child(&mut self, event: &ChildEvent) {
        if let ChildEventKind::Event(Event { kind: EventKind::ToolConfirmationResolved { question, by, .. }, .. }) =
            &event.kind
        {
            let id = format!("{}/{}", event.child.id.as_str(), question.as_str());
            self.resolved(&id, by);
        }
        let _changed = event.apply(&mut self.chat);
        self.ask();
    }

    /// The end of an event or a key: what the chat wants is done.
    pub(super) fn carry_out(&mut self) {
        // What the session refuses is asked again.
        let _changed = tidegate::carry_out(&self.session, &mut self.chat, BY);
        self.take_given_back();
        self.ask();
        self.keep_visible();
    }

    /// The rows are drawn.
    pub(super) fn drawn(&mut self, now: Instant) {
        if let Some(asking) = &mut self.asking {
            asking.drawn(now);
        }
    }

    /// When the rows change by themselves.
    pub(super) fn wakes(&self, now: Instant) -> Option<Instant> {
        let running = self.running.wakes(now);
        let Some(asking) = &self.asking else {
            return self.is_put_off.then(|| live::held_until().unwrap_or(now)).into_iter().chain(running).min();
        };
        let settled = self.resized.map(|at| at + live::SETTLED);
        asking.wakes(now).into_iter().chain(settled).chain(running).min()
    }

    fn print(&mut self) -> Result<(), Failure> {
        let state = self.chat.snapshot();
        Ok(self.view.update(&state.messages, !state.steering.is_executing())?)
    }

    /// Takes a key that was pressed at a time.
    pub(super) fn key(&mut self, key: &Key, at: Instant) -> Act {
        let act = self.take_key(key, at);
        if self.input.is_empty() {
            self.replaced();
        }
        act
    }

    fn take_key(&mut self, key: &Key, at: Instant) -> Act {
        let was_leaving = std::mem::take(&mut self.is_leaving);
        // What was left is cleared: what is written next is something else.
        self.is_left &= !self.input.is_empty();
        if let (Key::Resize, Some(asking)) = (key, &mut self.asking) {
            asking.resized();
            self.resized = Some(at);
            if self.is_viewing() {
                self.view_question();
            }
        }
        if *key == Key::Resize {
            // Where standard output is gone, the next event reports it.
            let _gone = self.view.redraw();
        }
        if let Some(act) = self.question_key(key, at) {
            return act;
        }
        if let Some(act) = self.list_key(key) {
            return act;
        }
        let dropped = self.pasted(key);
        let key = dropped.as_ref().unwrap_or(key);
        if self.input.key(key) {
            self.wrote(key);
            return Act::Stay;
        }
        let action = bindings::action(key);
        if matches!(action, Some(Action::Send | Action::Queue | Action::Interrupt)) && self.is_not_meant() {
            return Act::Stay;
        }
        let is_running = self.chat.snapshot().steering.is_executing();
        match action {
            None => Act::Stay,
            Some(Action::Send) => self.enter(),
            Some(Action::Queue) => self.queue(),
            Some(Action::Interrupt) => self.interrupt(is_running),
            Some(Action::Cancel) => self.cancel(is_running, was_leaving),
            Some(Action::End) => self.end(is_running),
            Some(Action::Redraw) => Act::Redraw,
            Some(Action::Reasoning) => {
                let how = if self.view.toggle_reasoning() { "is shown" } else { "is one line" };
                screen::note(err(style::DIM, &format!("  reasoning {how} from here on")));
                Act::Stay
            }
            Some(Action::Raw) => {
                screen::set_raw(!screen::is_raw());
                let how = if screen::is_raw() { "is shown as it is" } else { "is rendered" };
                screen::note(err(style::DIM, &format!("  Markdown {how} from here on")));
                Act::Stay
            }
            Some(Action::Stop) => Act::Stop,
        }
    }

    /// Whether the input was written for a question that is closed, which is said once: it is no message yet.
    fn is_not_meant(&mut self) -> bool {
        let is_left = std::mem::take(&mut self.is_left) && !is_blank(self.input.text());
        if is_left {
            screen::note(err(
                style::DIM,
                "  this was written for a question that is closed; the same key again sends it",
            ));
        }
        is_left
    }

    pub(super) fn enter(&mut self) -> Act {
        if is_blank(self.input.text()) {
            return Act::Stay;
        }
        if !self.input.text().starts_with('/') {
            if self.attach_images() {
                let text = self.remembered();
                self.chat.submit(&text);
            }
            return Act::Stay;
        }
        match Slash::parse(self.input.text()) {
            Ok(command) => {
                self.remembered();
                Act::Run(command)
            }
            // The input stays, to be corrected.
            Err(why) => {
                let line = format!("{why}; a space before the `/` sends the line to the model");
                screen::note(format!("{} {line}", err(style::WARNING, "!")));
                Act::Stay
            }
        }
    }

    /// Takes the input, and keeps it for later chats.
    fn remembered(&mut self) -> String {
        let text = self.input.submit();
        self.replaced();
        if let Err(error) = self.history.add(&text) {
            screen::note(format!("{} the input is not kept for later chats: {error}", err(style::WARNING, "!")));
            self.history = History::nowhere();
        }
        text
    }

    fn queue(&mut self) -> Act {
        if !self.is_running() {
            return self.enter();
        }
        if self.has_images() {
            screen::note(format!(
                "{} queued messages cannot have images; `Enter` sends it now",
                err(style::WARNING, "!")
            ));
        } else if !is_blank(self.input.text()) {
            let text = self.remembered();
            let _id = self.chat.queue(&text);
        }
        Act::Stay
    }

    /// What is written goes to the model now; where nothing is, the turn is cancelled, and what waits stays.
    fn interrupt(&mut self, is_running: bool) -> Act {
        match (is_running, is_blank(self.input.text())) {
            (true, false) if self.attach_images() => {
                let text = self.remembered();
                self.chat.interrupt(&text);
            }
            (true, false) => {}
            (true, true) => self.session.cancel_by(BY),
            (false, _) => {}
        }
        Act::Stay
    }

    /// Cancels the turn, and what waits returns to the input line. Where none runs, the input is cleared, or the chat ends.
    fn cancel(&mut self, is_running: bool, was_leaving: bool) -> Act {
        if is_running {
            self.session.cancel_by(BY);
            self.take_back_all();
        } else if !self.input.is_empty() {
            self.input.take();
        } else if was_leaving {
            return Act::End(Exit::Cancelled);
        } else {
            self.is_leaving = true;
            screen::note(err(style::DIM, "  Ctrl+C again or Ctrl+D ends the chat"));
        }
        Act::Stay
    }

    fn end(&mut self, is_running: bool) -> Act {
        if !self.input.is_empty() {
            self.input.key(&Key::Delete);
        } else if is_running {
            screen::note(err(style::DIM, "  a turn runs: Ctrl+C cancels it, then Ctrl+D ends the chat"));
        } else {
            return Act::End(Exit::Completed);
        }
        Act::Stay
    }
}
