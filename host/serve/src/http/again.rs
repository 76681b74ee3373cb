//! Messages that clients of conventions send again: each request has the conversation, or its end, as the client has it.

use chat::{Command, MessageLog, Outgoing};
use tidegate::Session;

use super::begin::saved;
use super::commands::{is_known, taken_once};
use super::open::Open;
use super::problem::Problem;

/// Checks that messages which the session has taken are those that it has taken, or those that it shows: it can show another text than it was
/// sent, because the message was edited while it waited, an extension has changed it, or its attachments are not shown.
///
/// # Errors
/// A message has the id of another one.
pub(super) fn check(open: &Open, messages: &[Outgoing]) -> Result<(), Problem> {
    let session = &open.session;
    open.sent().check(messages, |message| is_known(session, &(&message.id).into()) && !shows(session, message))
}

/// Hands over those of a request that the session has not taken, each once.
///
/// # Errors
/// The session refuses one of them.
pub(super) fn hand_over(open: &Open, messages: &[Outgoing], steer: bool, user: &str) -> Result<(), Problem> {
    let is_new = |message: &&Outgoing| !is_known(&open.session, &(&message.id).into());
    let messages: Vec<Outgoing> = messages.iter().filter(is_new).cloned().collect();
    if steer {
        let mut commands = messages.into_iter().map(|message| Command::Steer { message });
        return commands.try_for_each(|command| taken_once(open, command, user).map(drop));
    }
    if messages.is_empty() {
        return Ok(());
    }
    taken_once(open, Command::Prompt { messages }, user).map(drop)
}

fn shows(session: &Session, message: &Outgoing) -> bool {
    if !message.attachments.is_empty() {
        return false;
    }
    let waiting = session.inbox().waiting();
    if waiting.iter().any(|one| one.id.as_str() == message.id.as_str() && one.message.plain_text() == *message.text) {
        return true;
    }
    let Ok(saved) = saved(session) else { return false };
    let mut log = MessageLog::default();
    let _changed = log.restore(saved.shown().log().clone());
    log.snapshot().messages().any(|shown| shown.input.as_ref() == Some(&message.id) && shown.text() == *message.text)
}
