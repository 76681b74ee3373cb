//! The messages that wait: they are the session's, so that they outlive this process, and other front ends see them.

use tidegate::chat::{OutgoingId, SteeringState, Way};
use tidegate::message::Part;

use super::app::App;
use super::slash::Queue;
use crate::print::shorten;
use crate::screen;

/// A message that waits.
#[derive(Debug, PartialEq)]
pub(super) struct Waits {
    pub(super) id: OutgoingId,
    /// Whether the running turn takes it, or one after it.
    pub(super) way: Way,
    pub(super) text: String,
}

impl Waits {
    /// The word for how it waits, while a turn runs or not.
    pub(super) fn label(&self, is_running: bool) -> &'static str {
        match self.way {
            Way::Steer | Way::Interrupt if is_running => "sent",
            // Its turn has ended without it, and the next one takes it.
            Way::Steer | Way::Interrupt => "waiting",
            // A prompt of a process that is gone is in the queue.
            Way::Queue | Way::Prompt => "queued",
        }
    }
}

/// The messages that wait in the session, oldest first, and then those that are on their way to it.
pub(super) fn waiting(state: &SteeringState) -> Vec<Waits> {
    let in_session = state.waiting();
    let known = in_session.iter().map(|one| Waits { id: one.id.clone(), way: one.way, text: one.text.to_string() });
    let on_the_way = state.sent().iter().filter(|sent| in_session.iter().all(|one| one.id != sent.message.id));
    // What starts a turn is in the conversation in a moment.
    let sent = on_the_way.map(|sent| Waits {
        id: sent.message.id.clone(),
        way: if sent.way == Way::Prompt { Way::Steer } else { sent.way },
        text: sent.message.text.to_string(),
    });
    known.chain(sent).collect()
}

impl App {
    /// The messages that wait.
    pub(super) fn waiting(&self) -> Vec<Waits> {
        waiting(&self.chat.snapshot().steering)
    }

    /// Whether a turn runs, or was asked for.
    pub(super) fn is_running(&self) -> bool {
        let steering = self.chat.snapshot().steering;
        steering.is_executing() || steering.sent().iter().any(|sent| sent.way == Way::Prompt)
    }

    /// Takes back all that waits, to the input line.
    pub(super) fn take_back_all(&mut self) {
        let ids: Vec<_> = self.waiting().into_iter().map(|message| message.id).collect();
        self.take_back(&ids);
    }

    /// Takes messages back, to the input line. The session decides whether it is in time, and the user is to know where it is not.
    fn take_back(&mut self, ids: &[OutgoingId]) {
        let mut texts = Vec::new();
        let in_session = self.session.inbox().waiting();
        for id in ids {
            // Of another front end, which can send images.
            let is_text = |part: &Part| matches!(part, Part::Text(_));
            let message = in_session.iter().find(|one| one.id == id.into()).map(|one| &one.message);
            if message.is_some_and(|message| !message.parts.iter().all(is_text)) {
                screen::note("a message with an image stays in the queue: the input line takes only text");
                continue;
            }
            match self.session.inbox().take_back(&id.into()) {
                Ok(message) => texts.push(message.plain_text()),
                Err(error) => screen::note(format!("too late: {error}")),
            }
        }
        self.give_back(&texts);
    }

    /// Prompts that the session has given back, because their turn was cancelled, return to the input line.
    pub(super) fn take_given_back(&mut self) {
        let state = self.chat.snapshot().steering;
        let ids: Vec<_> = state.queued().iter().map(|message| message.id.clone()).collect();
        let texts: Vec<_> =
            ids.iter().filter_map(|id| self.chat.take_back(id)).map(|one| one.text.to_string()).collect();
        self.give_back(&texts);
    }

    /// Puts messages before what is being written.
    fn give_back(&mut self, texts: &[String]) {
        if !texts.is_empty() {
            self.input.prepend(&texts.join("\n"));
            self.replaced();
        }
    }

    /// Shows or changes what waits.
    pub(super) fn queue_command(&mut self, command: &Queue) {
        let waiting = self.waiting();
        let nth = |place: usize| waiting.get(place - 1).map(|message| message.id.clone());
        let gone = |place: usize| screen::note(format!("no message {place} waits; `/queue` lists them"));
        match command {
            Queue::Show | Queue::Send if waiting.is_empty() => screen::note("no message waits"),
            Queue::Show => {
                for (place, message) in (1..).zip(&waiting) {
                    screen::note(format!("{place}  {}", shorten(&message.text, 200)));
                }
            }
            Queue::Send => self.send_first(&waiting),
            Queue::Drop(place) => match nth(*place).map(|id| self.session.inbox().remove(&(&id).into())) {
                Some(Ok(())) => {}
                Some(Err(error)) => screen::note(format!("too late: {error}")),
                None => gone(*place),
            },
            Queue::Edit(place) => match nth(*place) {
                Some(id) => self.take_back(&[id]),
                None => gone(*place),
            },
            Queue::Clear => _ = self.chat.clear_queue(),
        }
    }

    /// Sends the first message that waits. One that was sent to a turn that has ended is not in the queue, and begins a turn as well.
    fn send_first(&mut self, waiting: &[Waits]) {
        let is_sent = |message: &Waits| matches!(message.way, Way::Steer | Way::Interrupt);
        match waiting.first() {
            Some(first) if !self.is_running() && is_sent(first) => {
                match self.session.inbox().take_back(&(&first.id).into()) {
                    Ok(message) => self.session.prompt(message).detach(),
                    Err(error) => screen::note(format!("too late: {error}")),
                }
            }
            Some(_) if waiting.iter().all(is_sent) => {
                screen::note("no message is queued; the running turn takes what was sent at its next step");
            }
            _ => _ = self.chat.flush(),
        }
    }
}
