//! What a front end hands to a session.

use flow::{InputId, Message};

/// The input of a prompt: a string, one message, or several.
#[derive(Clone, Debug, PartialEq)]
pub struct Input(pub(super) Vec<NewInput>);

/// One message on its way into a session, with the id that the front end has given it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewInput {
    pub(super) id: Option<InputId>,
    pub(super) message: Message,
}

/// What [`Session::send`](crate::Session::send) does with a message while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenBusy {
    /// The message joins the running turn: before the next request to the model, after the results of all tool calls. Where the turn
    /// completes before that, the message starts the next one.
    #[default]
    Steer,
    /// The message waits for a turn of its own, behind what is queued.
    Queue,
    /// The message joins the running turn, and what the turn is doing is stopped for it: the answer under way is aborted, and its text stays
    /// in the conversation, marked as partial; a call that runs is stopped, and those that have not begun do not run. The steering
    /// messages before it are delivered first.
    Interrupt,
}

/// A message that was handed to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// Its id, for the [`Inbox`](crate::input::Inbox) and in events.
    pub id: InputId,
    /// It has started a turn. If not, a turn ran at that moment, or the session is closed; [`Inbox::receipt`](crate::input::Inbox::receipt)
    /// says which turn has delivered it in the end.
    pub started: bool,
}

impl NewInput {
    /// Gives it an id. A session takes an input with the same id once, so that a front end can hand it over again where it does not
    /// know whether the session has it.
    #[must_use]
    pub fn id(mut self, id: InputId) -> Self {
        self.id = Some(id);
        self
    }

    pub(super) fn into_parts(self) -> (Option<InputId>, Message) {
        (self.id, self.message)
    }
}

impl Input {
    pub(super) fn into_parts(self) -> Vec<(Option<InputId>, Message)> {
        self.0.into_iter().map(NewInput::into_parts).collect()
    }
}

impl From<&str> for NewInput {
    fn from(text: &str) -> Self {
        Self { id: None, message: Message::user(text) }
    }
}

impl From<String> for NewInput {
    fn from(text: String) -> Self {
        Self { id: None, message: Message::user(text) }
    }
}

impl From<Message> for NewInput {
    fn from(message: Message) -> Self {
        Self { id: None, message }
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self(vec![text.into()])
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self(vec![text.into()])
    }
}

impl From<Message> for Input {
    fn from(message: Message) -> Self {
        Self(vec![message.into()])
    }
}

impl From<Vec<Message>> for Input {
    fn from(messages: Vec<Message>) -> Self {
        messages.into_iter().map(NewInput::from).collect()
    }
}

impl From<NewInput> for Input {
    fn from(input: NewInput) -> Self {
        Self(vec![input])
    }
}

impl FromIterator<NewInput> for Input {
    fn from_iter<I: IntoIterator<Item = NewInput>>(inputs: I) -> Self {
        Self(inputs.into_iter().collect())
    }
}
