//! The conversation as every wire format wants it: user and assistant in turns, results of tools first.
//!
//! Providers differ in strictness: one refuses two user messages in a row, one refuses anything between calls and their
//! results, chat templates of local models refuse a `system` or `developer` message in the middle. What all accept is
//! one user turn of results and then words. So messages of the host in the middle of a conversation (reminders) go
//! out under the user's role; their own text identifies the sender.

use flow::{Image, Message, Part, Role, ToolCall, ToolResult};
use serde_json::Value;
use std::sync::Arc;

/// One side's turn, borrowed from the conversation.
#[derive(Debug)]
pub(crate) enum Exchange<'a> {
    /// Everything between two answers of the model.
    User {
        /// Results of the calls in the answer before.
        results: Vec<&'a ToolResult>,
        /// Words and images, in order.
        words: Vec<Word<'a>>,
    },
    /// The model's answer (several messages, where one was kept and continued).
    Assistant {
        /// Its parts, in order.
        parts: Vec<&'a Part>,
    },
}

/// What a user says or shows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word<'a> {
    /// Text that is not empty.
    Text(&'a str),
    /// An image, which goes out where it is among the words.
    Image(&'a Image),
}

/// Groups messages into turns. Parts that do not belong to a role (a tool result of the assistant) stay with what they
/// are, not with who carries them.
pub(crate) fn exchanges(messages: &[Arc<Message>]) -> Vec<Exchange<'_>> {
    let mut turns: Vec<Exchange<'_>> = Vec::new();
    for message in messages {
        for part in &message.parts {
            let assistant = message.role == Role::Assistant && !matches!(part, Part::ToolResult(_));
            match part {
                _ if assistant => assistant_parts(&mut turns).push(part),
                Part::Text(text) if is_blank(text) => {}
                Part::Text(text) => user_parts(&mut turns).1.push(Word::Text(text)),
                Part::Image(image) => user_parts(&mut turns).1.push(Word::Image(image)),
                Part::ToolResult(result) => user_parts(&mut turns).0.push(result),
                // Only the model thinks and calls.
                Part::Thinking { .. } | Part::ToolCall(_) => {}
            }
        }
    }
    turns
}

/// A call's arguments as a JSON object, which all providers demand. What the model wrote otherwise (an answer cut off in
/// the middle of a call) is kept under one key, so that it can see its own mistake.
pub(crate) fn arguments(call: &ToolCall) -> Value {
    let text = call.arguments.trim();
    match serde_json::from_str(if text.is_empty() { "{}" } else { text }) {
        Ok(Value::Object(map)) => Value::Object(map),
        _ => serde_json::json!({ "unreadable_arguments": call.arguments }),
    }
}

/// The arguments as the model wrote them, or as repaired by [`arguments`].
pub(crate) fn arguments_text(call: &ToolCall) -> String {
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(_)) => call.arguments.clone(),
        _ => arguments(call).to_string(),
    }
}

/// A result as one text, for the formats that have no mark for a failed call.
pub(crate) fn result_text(result: &ToolResult) -> String {
    let failed = result.is_error.then_some("The tool call failed.");
    let texts: Vec<&str> = failed.into_iter().chain(result.content.iter().map(String::as_str)).collect();
    texts.join("\n\n")
}

/// An image as a URL that contains it.
pub(crate) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type(), image.base64())
}

/// Providers refuse text of white space alone.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn assistant_parts<'t, 'a>(turns: &'t mut Vec<Exchange<'a>>) -> &'t mut Vec<&'a Part> {
    if !matches!(turns.last(), Some(Exchange::Assistant { .. })) {
        turns.push(Exchange::Assistant { parts: Vec::new() });
    }
    match turns.last_mut() {
        Some(Exchange::Assistant { parts }) => parts,
        _ => unreachable!("the last turn was just made"),
    }
}

type UserParts<'t, 'a> = (&'t mut Vec<&'a ToolResult>, &'t mut Vec<Word<'a>>);

fn user_parts<'t, 'a>(turns: &'t mut Vec<Exchange<'a>>) -> UserParts<'t, 'a> {
    if !matches!(turns.last(), Some(Exchange::User { .. })) {
        turns.push(Exchange::User { results: Vec::new(), words: Vec::new() });
    }
    match turns.last_mut() {
        Some(Exchange::User { results, words }) => (results, words),
        _ => unreachable!("the last turn was just made"),
    }
}
