//! A chat that is connected with its session: what a front end needs where it is in the same process.

pub(crate) mod child_events;
pub(crate) mod event_size;
pub(crate) mod followed;
pub(crate) mod recent;
pub(crate) mod trouble;

use chat::{
    Answer, AnswerError, Attachment, Changed, ChatMode, ChatOptions, ChatSession, ChatState, Command, CommandSource,
    Outgoing, OutgoingId, QuestionId,
};
use flow::{Image, InputId, Message, Origin, Part, Role};

use turn::{AnswerError as AnswerRefused, InputEditError, NotWaiting, Subscription};

use crate::Session;
use crate::front_end::child_events::ChildEvents;
use crate::front_end::recent::NoBacklog;
use crate::session::{Input, NewInput, WhenBusy};

/// A [`ChatSession`] that takes the events of a [`Session`] and of the agents that it starts, and whose commands are carried out there.
///
/// Any number of chats can be open on one session, and all show the same. Dropping one changes nothing in the session.
///
/// ```no_run
/// # async fn run(host: tidegate::Host) -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate::event::Backlog;
/// use tidegate::{Chat, SessionOptions};
///
/// let options = SessionOptions::new(".").backlog(Backlog::default()).questions_wait();
/// let session = host.session(options).await?;
/// let mut chat = Chat::open(&session)?;
/// chat.submit("Rename the function");
/// while let Some(state) = chat.changed().await {
///     // Draw it. Questions are answered with `chat.respond(&question.id, Answer::Approve)`.
///     println!("{:?}: {} messages", state.mode, state.messages.messages().count());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Chat<M = ChatMode> {
    session: Session,
    chat: ChatSession<M>,
    by: String,
    events: Subscription,
    children: ChildEvents,
    /// What is shown has changed since it was returned last.
    changed: Changed,
}

impl Chat {
    /// Connects a chat with the default settings. What has happened in the session is in its state.
    ///
    /// # Errors
    /// The session was opened without [`SessionOptions::backlog`](crate::SessionOptions::backlog).
    pub fn open(session: &Session) -> Result<Self, NoBacklog> {
        Self::with_options(session, ChatOptions::default(), "the user")
    }
}

impl<M> Chat<M> {
    /// Connects a chat. `by`: who answers questions here, for records and other front ends.
    ///
    /// # Errors
    /// The session was opened without [`SessionOptions::backlog`](crate::SessionOptions::backlog).
    pub fn with_options(session: &Session, options: ChatOptions<M>, by: impl Into<String>) -> Result<Self, NoBacklog> {
        let mut chat = ChatSession::new(options);
        let children = session.child_events()?;
        let mut subscribed = session.subscribe_from(0)?;
        if let Some(before) = subscribed.snapshot.take() {
            let _changed = chat.restore(before.chat);
        }
        let (session, events) = (session.clone(), subscribed.events);
        Ok(Self { session, chat, by: by.into(), events, children, changed: Changed::No })
    }

    /// Waits until what is shown has changed, and returns it; `None`: the session is closed, and all its events were taken. It loses nothing
    /// when it is dropped before its end, so that it can be a branch of `tokio::select!`.
    pub async fn changed(&mut self) -> Option<ChatState<M>> {
        while !std::mem::replace(&mut self.changed, Changed::No).is_yes() {
            let changed = tokio::select! {
                event = self.events.next() => self.chat.process(&event?),
                event = self.children.next() => event.apply(&mut self.chat),
            };
            self.changed = changed.or(carry_out(&self.session, &mut self.chat, &self.by));
        }
        Some(self.chat.snapshot())
    }

    /// Takes a snapshot of what is shown.
    pub fn state(&self) -> ChatState<M> {
        self.chat.snapshot()
    }

    /// The session that it is connected with.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Sends a message if nothing runs; otherwise steers or queues it, as the options say.
    pub fn submit(&mut self, text: &str) -> OutgoingId {
        self.act(|chat| chat.submit(text))
    }

    /// Answers a question.
    ///
    /// # Errors
    /// The question is not open, or this front end has answered it. An answer that the session refuses opens the question again, with the
    /// reason.
    pub fn respond(&mut self, question: &QuestionId, answer: Answer) -> Result<(), AnswerError> {
        self.act(|chat| chat.respond(question, answer))
    }

    /// Does something with the chat, such as to steer, queue, edit or remove a message, and carries out what follows from it.
    ///
    /// ```no_run
    /// # fn run(chat: &mut tidegate::Chat) {
    /// let id = chat.act(|chat| chat.queue("Then run the tests"));
    /// let removed = chat.act(|chat| chat.remove(&id));
    /// # drop(removed); }
    /// ```
    pub fn act<T>(&mut self, act: impl FnOnce(&mut ChatSession<M>) -> T) -> T {
        let result = act(&mut self.chat);
        // What follows at once, such as an answer that is refused, has no event.
        self.changed = self.changed.or(carry_out(&self.session, &mut self.chat, &self.by));
        result
    }
}

/// Carries out what a chat, or one primitive alone, has asked for at its session. `by`: who answers questions here, for records and other
/// front ends. For front ends that take the events themselves; [`Chat`] does it on its own.
///
/// Returns whether what is shown has changed: an answer that the session refuses opens its question again. What becomes of messages is reported
/// by events, also where it is too late to change one.
///
/// ```no_run
/// # async fn run(session: tidegate::Session) {
/// use tidegate::chat::{Policy, ToolConfirmations};
///
/// // Questions alone: a guard that answers some of them, next to any other front end.
/// let mut questions = ToolConfirmations::with_policy(|question| match &*question.tool {
///     "read_file" => Policy::APPROVE,
///     _ => Policy::Prompt,
/// });
/// let mut events = session.subscribe();
/// while let Some(event) = events.next().await {
///     let mut changed = questions.process(&event);
///     changed = changed.or(tidegate::carry_out(&session, &mut questions, "the guard"));
///     if changed.is_yes() {
///         println!("{} questions are open", questions.state().pending().count());
///     }
/// }
/// # }
/// ```
pub fn carry_out(session: &Session, source: &mut impl CommandSource, by: &str) -> Changed {
    let mut changed = Changed::No;
    for command in source.take_commands() {
        // What becomes of messages is reported by events.
        if let Err(CommandError::Answer { question, error }) = carry_out_command(session, command, by) {
            changed = changed.or(source.answer_failed(&question, &error.to_string()));
        }
    }
    changed
}

/// Why a session does not carry out a command.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// An answer is refused.
    #[error("{error}")]
    Answer {
        /// The question that was answered.
        question: QuestionId,
        /// What the session reports.
        error: AnswerRefused,
    },
    /// The message that is to be changed does not wait any more.
    #[error(transparent)]
    NotWaiting(#[from] NotWaiting),
    /// The new text of a message that waits is blank, and the message has no attachment. It stays as it is.
    #[error("the new text of the message `{id}` is blank: give it a text, or remove the message")]
    Blank {
        /// The id of that message.
        id: InputId,
    },
    /// The command is of a later version.
    #[error("this version does not know the command")]
    Unknown,
}

/// Carries out one command, such as one that a front end in another process has sent. A message whose id the session knows already is not
/// taken a second time.
///
/// # Errors
/// The session refuses the answer or the edit, or the message does not wait any more.
pub fn carry_out_command(session: &Session, command: Command, by: &str) -> Result<(), CommandError> {
    match command {
        Command::Prompt { messages } => session.prompt(messages.iter().map(input).collect::<Input>()).detach(),
        Command::Steer { message } => drop(session.send(input(&message), WhenBusy::Steer)),
        Command::Interrupt { message } => drop(session.send(input(&message), WhenBusy::Interrupt)),
        Command::Queue { message } => drop(session.inbox().queue(input(&message))),
        Command::Flush => drop(session.inbox().flush()),
        Command::Edit { message } => session.inbox().edit(&(&message.id).into(), &message.text)?,
        Command::Remove { id } => session.inbox().remove(&(&id).into())?,
        Command::TakeBack { id } => drop(session.inbox().take_back(&(&id).into())?),
        Command::Answer { question, answer, .. } => session
            .answer(&(&question).into(), answer.into(), by)
            .map_err(|error| CommandError::Answer { question, error })?,
        // `Command` can grow, and this crate is released with it.
        other => {
            tracing::error!(?other, "a command of the chat is not carried out");
            return Err(CommandError::Unknown);
        }
    }
    Ok(())
}

impl From<InputEditError> for CommandError {
    fn from(error: InputEditError) -> Self {
        match error {
            InputEditError::NotWaiting(error) => Self::NotWaiting(error),
            InputEditError::Blank { id } => Self::Blank { id },
            // It can grow, and this crate is released with it.
            other => {
                tracing::error!(?other, "an edit is refused for an unknown reason");
                Self::Unknown
            }
        }
    }
}

/// Returns a message as an input, under the id that the chat has for it: events and receipts refer to that id.
fn input(message: &Outgoing) -> NewInput {
    let mut parts = vec![Part::Text(message.text.to_string())];
    parts.extend(message.attachments.iter().map(attached));
    let message_of_user = Message { role: Role::User, origin: Origin::User, parts, hidden: false };
    NewInput::from(message_of_user).id((&message.id).into())
}

/// Returns an attachment as a part of a message. What no model of this host takes is named, so that neither the model nor the user
/// believes that it was sent.
fn attached(attachment: &Attachment) -> Part {
    let Attachment { name, media_type, source, .. } = attachment;
    if attachment.is_address() {
        return Part::Text(format!("\n[{name}]({source})"));
    }
    match Image::new(media_type, &**source) {
        Ok(image) => Part::Image(image),
        Err(error) => Part::Text(format!("\n[the attachment {name} was not sent: {error}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Attachment, Part, attached};

    #[test]
    fn what_cannot_be_sent_is_named() {
        let image = attached(&Attachment::new("dot.png", "image/png", "iVBORw=="));
        assert!(matches!(&image, Part::Image(image) if image.base64() == "iVBORw=="), "{image:?}");
        for (attachment, expected) in [
            (Attachment::new("page", "image/png", "https://example.com/p.png"), "\n[page](https://example.com/p.png)"),
            (
                Attachment::new("a.pdf", "application/pdf", "AAAA"),
                "\n[the attachment a.pdf was not sent: an image of the type \"application/pdf\" cannot be sent; the types are image/png, \
                 image/jpeg, image/gif, image/webp]",
            ),
        ] {
            assert_eq!(attached(&attachment), Part::Text(expected.to_owned()));
        }
    }
}
