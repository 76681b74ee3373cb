//! The primitive of an instance: what an action means for each of them.

use std::fmt::Display;

use chat::{
    Attachment, Attachments, BlockKind, Changed, ChatOptions, ChatSession, ChildThread, Command, MessageLog,
    MessageSteering, Outgoing, OutgoingId, Receipt, SavedChat, SteeringState, StreamingText, ToolConfirmations,
};
use flow::{Event, RunPosition};
use serde::Deserialize;
use serde_json::Value;

use crate::action::Action;
use crate::options::{Kind, Options};
use crate::output::Returned;
use crate::view::View;

pub(crate) enum Primitive {
    Chat(Box<ChatSession>),
    Log(MessageLog),
    Confirmations(ToolConfirmations),
    Steering(MessageSteering),
    Text(StreamingText),
}

/// Whether an action has changed something, and what it returns; or why it was refused.
type Acted = Result<(Changed, Option<Returned>), String>;

impl Primitive {
    /// A primitive whose policy, if it has one, calls `asked` and leaves the decision to JavaScript.
    pub(crate) fn new(options: &Options, asked: impl Fn(&chat::Question) + Send + Sync + 'static) -> Self {
        let policy = move |question: &chat::Question| {
            asked(question);
            chat::Policy::Prompt
        };
        match options.kind {
            Kind::Log => Self::Log(MessageLog::new(options.log())),
            Kind::Confirmations => Self::Confirmations(ToolConfirmations::with_policy(policy)),
            Kind::Steering => Self::Steering(MessageSteering::new(options.steering())),
            Kind::Text => Self::Text(StreamingText::default()),
            Kind::Chat => {
                let chat = ChatOptions::default().log(options.log()).steering(options.steering()).policy(policy);
                let chat = match &options.attachments {
                    Some(limits) => {
                        let types: Vec<&str> = limits.types.iter().map(String::as_str).collect();
                        chat.attachments(Attachments::new(limits.most, &types))
                    }
                    None => chat,
                };
                Self::Chat(Box::new(ChatSession::new(chat)))
            }
        }
    }

    pub(crate) fn view(&self) -> View {
        match self {
            Self::Chat(chat) => chat.snapshot().into(),
            Self::Log(log) => View { messages: Some(log.snapshot()), ..View::default() },
            Self::Confirmations(all) => View { questions: Some(all.snapshot()), ..View::default() },
            Self::Steering(steering) => View { steering: Some(steering.snapshot()), ..View::default() },
            Self::Text(text) => View { streaming: Some(text.clone()), ..View::default() },
        }
    }

    pub(crate) fn process(&mut self, event: &Event) -> Changed {
        match self {
            Self::Chat(chat) => chat.process(event),
            Self::Log(log) => log.process(event),
            Self::Confirmations(all) => all.process(event),
            Self::Steering(steering) => steering.process(event),
            Self::Text(text) => text.process(event),
        }
    }

    /// The index of the message that the next delta at `place` is added to, where nothing else changes; 0 for streaming text alone.
    pub(crate) fn adds_to(&self, place: RunPosition, kind: BlockKind) -> Option<usize> {
        match self {
            Self::Chat(chat) => chat.adds_to(place, kind),
            Self::Log(log) => log.adds_to(place, kind),
            Self::Text(text) => text.adds(place).then_some(0),
            Self::Confirmations(_) | Self::Steering(_) => None,
        }
    }

    pub(crate) fn process_child(&mut self, child: &ChildThread, event: &Event) -> Changed {
        match self {
            Self::Chat(chat) => chat.process_child(child, event),
            Self::Log(log) => log.process_child(child, event),
            Self::Confirmations(all) => all.process_child(child, event),
            Self::Steering(_) | Self::Text(_) => Changed::No,
        }
    }

    pub(crate) fn take_commands(&mut self) -> Vec<Command> {
        match self {
            Self::Chat(chat) => chat.take_commands(),
            Self::Confirmations(all) => all.take_commands(),
            Self::Steering(steering) => steering.take_commands(),
            Self::Log(_) | Self::Text(_) => Vec::new(),
        }
    }

    pub(crate) fn act(&mut self, action: Action) -> Acted {
        match self {
            Self::Chat(chat) => act_on_chat(chat, action),
            Self::Log(log) => act_on_log(log, action),
            Self::Confirmations(all) => act_on_questions(all, action),
            Self::Steering(steering) => act_on_steering(steering, action),
            Self::Text(text) => match action {
                Action::Restore { chat } => changed(restore_text(text, saved(chat)?.streaming())),
                Action::RestoreChild { .. } => changed(Changed::No),
                _ => unknown("StreamingText"),
            },
        }
    }
}

fn restore_text(text: &mut StreamingText, saved: &StreamingText) -> Changed {
    let before = std::mem::replace(text, saved.clone());
    Changed::from(before != *text)
}

fn act_on_chat(chat: &mut ChatSession, action: Action) -> Acted {
    match action {
        Action::Submit { text, attachments } => with(chat, &text, attachments, |chat| chat.submit(&text)),
        Action::Steer { text, attachments } => with(chat, &text, attachments, |chat| chat.steer(&text)),
        Action::Interrupt { text, attachments } => with(chat, &text, attachments, |chat| chat.interrupt(&text)),
        Action::Queue { text } => written(&text, ALONE).and_then(|()| given(chat.queue(&text))),
        Action::Edit { id, text } => {
            rewritten(&chat.snapshot().steering, &id, &text).and_then(|()| done(chat.edit(&id, &text)))
        }
        Action::Remove { id } => done(chat.remove(&id)),
        Action::TakeBack { id } => taken(chat.take_back(&id)),
        Action::Flush {} => changed(chat.flush()),
        Action::ClearQueue {} => changed(chat.clear_queue()),
        Action::Clear {} => changed(chat.clear()),
        Action::SetMode { mode } => changed(chat.set_mode(mode)),
        Action::Acknowledge { id, r#as } => changed(chat.acknowledge(&id, r#as)),
        Action::Receipt { id } => receipt(chat.snapshot().steering.receipt(&id)),
        Action::Respond { question, answer } => done(chat.respond(&question, answer)),
        Action::AnswerFailed { question, why } => changed(chat.answer_failed(&question, &why)),
        Action::PolicyFailed { question, why } => changed(chat.policy_failed(&question, &why)),
        Action::Attach { name, media_type, source } => done(chat.attach(Attachment::new(&name, &media_type, &source))),
        Action::Detach { index } => changed(chat.detach(index)),
        Action::Save {} => Ok((Changed::No, Some(Returned::Saved(Box::new(chat.save()))))),
        Action::Restore { chat: state } => changed(chat.restore(saved(state)?)),
        Action::RestoreChild { child, chat: state } => changed(chat.restore_child(&child, &saved(state)?)),
    }
}

/// Sends a message with more attachments than those that the chat has.
fn with(
    chat: &mut ChatSession,
    text: &str,
    attachments: Vec<Attachment>,
    send: impl FnOnce(&mut ChatSession) -> OutgoingId,
) -> Acted {
    if attachments.is_empty() && chat.snapshot().attachments.is_empty() {
        written(text, OR_ATTACHED)?;
    }
    for attachment in attachments {
        chat.attach(attachment).map_err(|error| error.to_string())?;
    }
    given(send(chat))
}

fn act_on_log(log: &mut MessageLog, action: Action) -> Acted {
    match action {
        Action::Clear {} => changed(log.clear()),
        Action::Restore { chat } => changed(log.restore(saved(chat)?.log().clone())),
        Action::RestoreChild { child, chat } => changed(log.restore_child(&child, saved(chat)?.log())),
        _ => unknown("MessageLog"),
    }
}

fn act_on_questions(all: &mut ToolConfirmations, action: Action) -> Acted {
    match action {
        Action::Respond { question, answer } => done(all.respond(&question, answer)),
        Action::AnswerFailed { question, why } => changed(all.answer_failed(&question, &why)),
        Action::PolicyFailed { question, why } => changed(all.policy_failed(&question, &why)),
        Action::Restore { chat } => changed(all.restore(saved(chat)?.confirmations())),
        Action::RestoreChild { child, chat } => changed(all.restore_child(&child, saved(chat)?.confirmations())),
        _ => unknown("ToolConfirmations"),
    }
}

fn act_on_steering(steering: &mut MessageSteering, action: Action) -> Acted {
    match action {
        Action::Submit { text, attachments } => sent(&text, attachments, |files| steering.submit(&text, files)),
        Action::Steer { text, attachments } => sent(&text, attachments, |files| steering.steer(&text, files)),
        Action::Interrupt { text, attachments } => sent(&text, attachments, |files| steering.interrupt(&text, files)),
        Action::Queue { text } => written(&text, ALONE).and_then(|()| given(steering.queue(&text))),
        Action::Edit { id, text } => {
            rewritten(steering.state(), &id, &text).and_then(|()| done(steering.edit(&id, &text)))
        }
        Action::Remove { id } => done(steering.remove(&id)),
        Action::TakeBack { id } => taken(steering.take_back(&id)),
        Action::Flush {} => changed(steering.flush()),
        Action::ClearQueue {} | Action::Clear {} => changed(steering.clear()),
        Action::SetMode { mode } => changed(steering.set_mode(mode)),
        Action::Acknowledge { id, r#as } => changed(steering.acknowledge(&id, r#as)),
        Action::Receipt { id } => receipt(steering.state().receipt(&id)),
        Action::Restore { chat } => changed(steering.restore(saved(chat)?.progress().clone())),
        Action::RestoreChild { .. } => changed(Changed::No),
        _ => unknown("MessageSteering"),
    }
}

/// Sends a message that is not blank.
fn sent(text: &str, attachments: Vec<Attachment>, send: impl FnOnce(Vec<Attachment>) -> OutgoingId) -> Acted {
    if attachments.is_empty() {
        written(text, OR_ATTACHED)?;
    }
    given(send(attachments))
}

/// What to do about a blank message: a queued one cannot have attachments.
const ALONE: &str = "write a text";
const OR_ATTACHED: &str = "write a text, or attach something";
const OR_REMOVED: &str = "write a text, or remove the message";

/// # Errors
/// The text of a message without attachments is blank: the model would have nothing to answer.
fn written(text: &str, advice: &str) -> Result<(), String> {
    if chat::is_blank(text) {
        return Err(format!("the message is blank: {advice}"));
    }
    Ok(())
}

/// # Errors
/// The new text is blank, and the message has no attachments. Only the server knows the attachments of another front end's message.
fn rewritten(state: &SteeringState, id: &OutgoingId, text: &str) -> Result<(), String> {
    let sent = state.sent().iter().map(|sent| &sent.message);
    match state.queued().iter().chain(sent).find(|message| message.id == *id) {
        Some(message) if message.attachments.is_empty() => written(text, OR_REMOVED),
        _ => Ok(()),
    }
}

fn changed(changed: Changed) -> Acted {
    Ok((changed, None))
}

fn given(id: OutgoingId) -> Acted {
    Ok((Changed::Yes, Some(Returned::Id(id))))
}

fn taken(message: Option<Outgoing>) -> Acted {
    Ok((Changed::from(message.is_some()), message.map(Returned::Message)))
}

fn saved(state: Value) -> Result<SavedChat, String> {
    SavedChat::deserialize(state).map_err(|error| format!("the state is not valid: {error}"))
}

fn done<E: Display>(result: Result<(), E>) -> Acted {
    result.map(|()| (Changed::Yes, None)).map_err(|error| error.to_string())
}

fn receipt(receipt: Option<Receipt>) -> Acted {
    Ok((Changed::No, receipt.map(Returned::Receipt)))
}

fn unknown(name: &str) -> Acted {
    Err(format!("a {name} has no such action"))
}
