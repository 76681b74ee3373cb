//! Carries out the commands of the chat at its session.

use tidegate::chat::{ChatSession, Command, Outgoing};
use tidegate::{Message, Session};

/// Who acts, for records.
pub(super) const BY: &str = "the terminal";

/// Carries out what the chat has asked for.
pub(super) fn carry_out(session: &Session, chat: &mut ChatSession) {
    for command in chat.take_commands() {
        match command {
            Command::Prompt { messages } => session.prompt(messages.iter().map(input).collect::<Vec<_>>()).detach(),
            Command::Steer { message } => session.steer(input(&message)),
            // What was shown of the answer stays in the conversation.
            Command::Interrupt { message } => {
                session.cancel_by(BY);
                session.prompt(input(&message)).detach();
            }
            Command::Answer { question, answer, .. } => {
                if let Err(error) = session.answer(&(&question).into(), answer.into(), BY) {
                    let _changed = chat.answer_failed(&question, &error.to_string());
                }
            }
            // Nothing that was sent is edited or removed here.
            _ => {}
        }
    }
}

fn input(message: &Outgoing) -> Message {
    Message::user(&*message.text)
}
