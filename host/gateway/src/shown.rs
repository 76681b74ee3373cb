//! The conversation and the tools of a request as plugins are shown them: as the model gets them, without reminders and without the text
//! that plugins add to the prompt.

use flow::{CallId, Message, Origin, Part, Role, ToolCall, ToolResult, ToolSpec};
use wire::Wire;

use crate::conversation::{self, Author, Conversation};
use crate::json::Doc;
use crate::tools;

/// The messages and the tools of a request.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Shown {
    /// The messages, the oldest first, without instructions.
    pub messages: Vec<Message>,
    /// The tools that the model is offered.
    pub tools: Vec<ToolSpec>,
}

/// Receives the messages for plugins: first those before the new input, then all.
pub type Show<'a> = &'a (dyn Fn(Shown) + Sync);

impl Shown {
    /// Reads a body. `is_past`: only what precedes the new input.
    pub(crate) fn of(wire: Wire, body: &[u8], is_past: bool) -> Self {
        let Some((doc, root)) = Doc::read(body) else { return Self::default() };
        let tools = tools::specs(doc, &root);
        let Some(conversation) = Conversation::of(wire, doc, &root) else { return Self { tools, ..Self::default() } };
        let end = if is_past { conversation.first_new() } else { conversation.messages.len() };
        let mut messages = Vec::new();
        for message in conversation.messages.iter().take(end) {
            add(wire, doc, message, &mut messages);
        }
        Self { messages, tools }
    }
}

/// Adds a message as a session has it: results are in a message of their own, that of all results in a row; the items of an answer of the
/// Responses API are one message.
fn add(wire: Wire, doc: Doc<'_>, message: &conversation::Message<'_>, messages: &mut Vec<Message>) {
    let (mut results, mut parts) = (Vec::new(), Vec::new());
    for one in &message.parts {
        match part(doc, one) {
            Some(result @ Part::ToolResult(_)) => results.push(result),
            Some(other) => parts.push(other),
            None => {}
        }
    }
    join(Role::Tool, Origin::Host, results, true, messages);
    match message.author {
        Author::User => join(Role::User, Origin::User, parts, false, messages),
        Author::Model => join(Role::Assistant, Origin::Model, parts, wire == Wire::OpenAiResponses, messages),
        Author::Tool | Author::System | Author::Nobody => {}
    }
}

/// Adds parts as a message, or to the last one if it `may_join` one of the same role.
fn join(role: Role, origin: Origin, parts: Vec<Part>, may_join: bool, messages: &mut Vec<Message>) {
    if parts.is_empty() {
        return;
    }
    match messages.last_mut().filter(|last| may_join && last.role == role) {
        Some(last) => last.parts.extend(parts),
        None => messages.push(Message { role, origin, parts, hidden: false }),
    }
}

fn part(doc: Doc<'_>, part: &conversation::Part<'_>) -> Option<Part> {
    Some(match part {
        conversation::Part::Text { at, .. } => Part::Text(doc.text(at)?),
        conversation::Part::Thinking { at, .. } => {
            Part::Thinking { text: doc.text(at)?, signature: None, redacted: false, shown: None }
        }
        conversation::Part::Call(call) => Part::ToolCall(ToolCall {
            id: CallId::new(call.id.as_str()),
            name: call.name.clone(),
            arguments: call.arguments(doc),
        }),
        conversation::Part::Result(result) => Part::ToolResult(ToolResult {
            call: CallId::new(result.call.as_str()),
            content: result.texts.iter().filter_map(|at| doc.text(at)).collect(),
            is_error: result.is_error,
        }),
    })
}
