//! The conversation as every wire format wants it: user and assistant in turns, each call with its result, results first.
//!
//! Providers differ in strictness: one refuses two user messages in a row, one refuses anything between calls and their
//! results, chat templates of local models refuse a `system` or `developer` message in the middle. What all accept is
//! one user turn of results and then words. So messages of the host in the middle of a conversation (reminders) go
//! out under the user's role; their own text identifies the sender.
//!
//! Nothing here changes the conversation itself, which keeps what the model wrote.

mod ids;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use flow::{Image, Message, Part, Role, ToolCall, ToolResult};
use serde_json::Value;

use self::ids::Ids;
pub use self::ids::Renamed;
pub(crate) use self::ids::tool_name;
use crate::nul;
use crate::wires::Takes;

/// What stands for the result of a call that has none.
const NO_RESULT: &str = "The result of this tool call is not available.";

/// What precedes a result whose call is not in the conversation.
const NO_CALL: &str = "Result of a tool call that is no longer in the conversation:";

/// What the user says where the conversation begins with an answer, or has no words at all.
const NO_WORDS: &str = "(no text)";

/// One side's turn.
#[derive(Debug)]
pub(crate) enum Exchange<'a> {
    /// Everything between two answers of the model.
    User {
        /// Results of the calls in the answer before, in their order.
        results: Vec<Answered<'a>>,
        /// Words and images, in order.
        words: Vec<Word<'a>>,
    },
    /// The model's answer (several messages, where one was kept and continued). It has a text or a call.
    Assistant {
        /// Its parts, in order.
        parts: Vec<Said<'a>>,
    },
}

/// What a user says or shows.
#[derive(Clone, Debug)]
pub(crate) enum Word<'a> {
    /// Text that is not empty.
    Text(Cow<'a, str>),
    /// An image, which goes out where it is among the words.
    Image(&'a Image),
}

/// A part of the model's answer.
#[derive(Debug)]
pub(crate) enum Said<'a> {
    Text(&'a str),
    Thinking { text: &'a str, signature: Option<&'a str>, redacted: bool },
    Call(Called<'a>),
}

/// A call, as the provider takes it.
#[derive(Debug)]
pub(crate) struct Called<'a> {
    pub(crate) id: String,
    pub(crate) name: Cow<'a, str>,
    call: &'a ToolCall,
}

/// A result, with the id of its call as the provider takes it.
#[derive(Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) id: String,
    /// `None`: the call has no result.
    result: Option<&'a ToolResult>,
}

/// What the user says after an answer that the model cannot continue from its start.
const CONTINUE: &str = "Continue.";

/// Groups messages into turns that a provider takes. Parts that do not belong to a role (a tool result of the assistant) stay with what
/// they are, not with who carries them. `goes_on`: the model continues from the start of an answer, which is the last turn.
pub(crate) fn exchanges<'a>(messages: &'a [Arc<Message>], takes: &Takes, goes_on: bool) -> Vec<Exchange<'a>> {
    let said = |text| Turn::User { results: Vec::new(), words: vec![Word::Text(Cow::Borrowed(text))] };
    let mut turns = Vec::new();
    for turn in grouped(messages) {
        match turn {
            Turn::Assistant(parts) if !has_content(&parts) => {}
            turn => turn.join(&mut turns),
        }
    }
    if !matches!(turns.first(), Some(Turn::User { .. })) {
        turns.insert(0, said(NO_WORDS));
    }
    if let Some(Turn::Assistant(parts)) = turns.last()
        && !goes_on
        && !parts.iter().any(|part| matches!(part, Part::ToolCall(_)))
    {
        turns.push(said(CONTINUE));
    }
    paired(turns, takes)
}

/// A turn before its calls and results are paired.
enum Turn<'a> {
    User { results: Vec<&'a ToolResult>, words: Vec<Word<'a>> },
    Assistant(Vec<&'a Part>),
}

impl<'a> Turn<'a> {
    /// Adds the turn to others: to the last one where that is of the same side.
    fn join(self, turns: &mut Vec<Self>) {
        match (turns.last_mut(), self) {
            (Some(Turn::Assistant(before)), Turn::Assistant(parts)) => before.extend(parts),
            (Some(Turn::User { results, words }), Turn::User { results: more, words: further }) => {
                results.extend(more);
                words.extend(further);
            }
            (_, turn) => turns.push(turn),
        }
    }

    fn of(message: &Message, part: &'a Part) -> Option<Self> {
        let word = |word| Self::User { results: Vec::new(), words: vec![word] };
        match part {
            Part::ToolResult(result) => Some(Self::User { results: vec![result], words: Vec::new() }),
            _ if message.role == Role::Assistant => Some(Self::Assistant(vec![part])),
            Part::Text(text) => (!is_blank(text)).then(|| word(Word::Text(Cow::Borrowed(text)))),
            Part::Image(image) => Some(word(Word::Image(image))),
            // Only the model thinks and calls.
            Part::Thinking { .. } | Part::ToolCall(_) => None,
        }
    }
}

fn grouped(messages: &[Arc<Message>]) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    for message in messages {
        message.parts.iter().filter_map(|part| Turn::of(message, part)).for_each(|turn| turn.join(&mut turns));
    }
    turns
}

/// Reasoning alone is no answer: providers refuse it, or have no place for it.
fn has_content(parts: &[&Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Text(text) => !is_blank(text),
        Part::ToolCall(_) => true,
        Part::Image(_) | Part::Thinking { .. } | Part::ToolResult(_) => false,
    })
}

/// Gives each call its id and its result.
fn paired<'a>(turns: Vec<Turn<'a>>, takes: &Takes) -> Vec<Exchange<'a>> {
    let mut ids = Ids::new(takes);
    let mut paired = Vec::with_capacity(turns.len());
    // The calls of the answer before: the id as it is in the conversation, and as it is sent.
    let mut open: Vec<(&'a str, String)> = Vec::new();
    for turn in turns {
        match turn {
            Turn::Assistant(parts) => {
                let parts: Vec<Said<'a>> =
                    parts.into_iter().filter_map(|part| Said::of(part, &mut ids, takes)).collect();
                open.extend(parts.iter().filter_map(Said::ids));
                paired.push(Exchange::Assistant { parts });
            }
            Turn::User { results, words } => {
                let (results, orphans) = answered(std::mem::take(&mut open), results);
                paired.push(Exchange::User { results, words: orphans.into_iter().chain(words).collect() });
            }
        }
    }
    if !open.is_empty() {
        paired.push(Exchange::User { results: answered(open, Vec::new()).0, words: Vec::new() });
    }
    paired
}

/// The results of these calls, in their order, and those that belong to none of them, as words.
fn answered<'a>(open: Vec<(&str, String)>, results: Vec<&'a ToolResult>) -> (Vec<Answered<'a>>, Vec<Word<'a>>) {
    let mut rest: VecDeque<&ToolResult> = results.into();
    let result_of = |(own, id): (&str, String)| {
        let at = rest.iter().position(|result| result.call.as_str() == own);
        Answered { id, result: at.and_then(|at| rest.remove(at)) }
    };
    let answered = open.into_iter().map(result_of).collect();
    let as_words = |result: &ToolResult| Word::Text(Cow::Owned(format!("{NO_CALL}\n\n{}", text_of(result))));
    (answered, rest.into_iter().map(as_words).collect())
}

impl<'a> Said<'a> {
    fn of(part: &'a Part, ids: &mut Ids<'_>, takes: &Takes) -> Option<Self> {
        match part {
            Part::Text(text) => Some(Self::Text(text)),
            Part::Thinking { text, signature, redacted, .. } => {
                Some(Self::Thinking { text, signature: signature.as_deref(), redacted: *redacted })
            }
            Part::ToolCall(call) => {
                let (id, name) = (ids.next(call.id.as_str()), tool_name(&call.name, takes));
                Some(Self::Call(Called { id, name, call }))
            }
            // Images are of the user's input.
            Part::Image(_) | Part::ToolResult(_) => None,
        }
    }

    /// Of a call, its id as it is in the conversation, and as it is sent.
    fn ids(&self) -> Option<(&'a str, String)> {
        match self {
            Self::Call(called) => Some((called.call.id.as_str(), called.id.clone())),
            Self::Text(_) | Self::Thinking { .. } => None,
        }
    }
}

impl Called<'_> {
    /// The arguments as a JSON object, which all providers demand. What the model wrote otherwise (an answer cut off in the middle of a
    /// call) is kept under one key, so that it can see its own mistake.
    pub(crate) fn arguments(&self) -> Value {
        let text = self.call.arguments.trim();
        match serde_json::from_str(if text.is_empty() { "{}" } else { text }) {
            Ok(Value::Object(map)) => Value::Object(map),
            _ => serde_json::json!({ "unreadable_arguments": self.call.arguments }),
        }
    }

    /// The arguments as the model wrote them, or as repaired by [`Called::arguments`].
    pub(crate) fn arguments_text(&self) -> String {
        match serde_json::from_str::<Value>(&self.call.arguments) {
            Ok(Value::Object(_)) => nul::replaced_in(self.call.arguments.clone()),
            _ => nul::replaced_in(self.arguments().to_string()),
        }
    }
}

impl<'a> Answered<'a> {
    /// Whether the call failed; one without a result counts as failed.
    pub(crate) fn is_error(&self) -> bool {
        self.result.is_none_or(|result| result.is_error)
    }

    /// The texts of the result that are not blank.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> {
        let missing = self.result.is_none().then_some(NO_RESULT);
        let own = self.result.into_iter().flat_map(|result| &result.content).map(String::as_str);
        own.filter(|text| !is_blank(text)).chain(missing)
    }

    /// The result as one text, for the formats that have no mark for a failed call.
    pub(crate) fn text(&self) -> String {
        self.result.map_or_else(|| NO_RESULT.to_owned(), text_of)
    }
}

fn text_of(result: &ToolResult) -> String {
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
