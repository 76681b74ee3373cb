//! Carries out the commands of the chat at its session.

use tidegate::chat::{ChatSession, Command, Outgoing};
use tidegate::{Input, NewInput, Session};

use crate::say;

/// Who acts, for records.
pub(super) const BY: &str = "the terminal";

/// Carries out what the chat has asked for.
pub(super) fn carry_out(session: &Session, chat: &mut ChatSession) {
    for command in chat.take_commands() {
        match command {
            Command::Prompt { messages } => {
                session.prompt(messages.iter().map(input).collect::<Input>()).detach();
            }
            Command::Steer { message } => drop(session.steer(input(&message))),
            Command::Interrupt { message } => drop(session.interrupt(input(&message))),
            Command::Queue { message } => drop(session.queue(input(&message))),
            Command::Flush => drop(session.flush()),
            // Where it is too late, the log says with which text the message was delivered.
            Command::Edit { message } => drop(session.edit(&(&message.id).into(), &message.text)),
            Command::Remove { id } => drop(session.remove(&(&id).into())),
            Command::Answer { question, answer, .. } => {
                if let Err(error) = session.answer(&(&question).into(), answer.into(), BY) {
                    let _changed = chat.answer_failed(&question, &error.to_string());
                }
            }
            other => say::note(format_args!("warning: the terminal cannot carry out {other:?}")),
        }
    }
}

/// Under the id that the chat has for it, so that events tell what became of it.
fn input(message: &Outgoing) -> NewInput {
    NewInput::from(&*message.text).id((&message.id).into())
}
