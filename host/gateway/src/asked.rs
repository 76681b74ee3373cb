//! The part of a request that is new to its conversation: messages of the user, and results of calls.

use flow::{CallId, Message, Origin, Part, Role, ToolResult};
use wire::Wire;

use crate::conversation::{self, Author, Conversation};
use crate::json::Doc;

/// The part of a request behind its last answer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Asked {
    /// The user's messages.
    pub messages: Vec<Message>,
    /// The results of calls, each with the name of its tool.
    pub results: Vec<(String, ToolResult)>,
}

impl Asked {
    /// Reads the new part of a request from its body as it goes upstream. Without a conversation it is empty.
    pub fn of(wire: Wire, body: &[u8]) -> Self {
        let mut own = Self::default();
        let Some((doc, root)) = Doc::read(body) else { return own };
        let Some(conversation) = Conversation::of(wire, doc, &root) else { return own };
        let (before, new) = conversation.messages.split_at(conversation.first_new());
        let calls = before.iter().rev().flat_map(|message| &message.parts).filter_map(|part| match part {
            conversation::Part::Call(call) => Some((call.id.as_str(), call.name.as_str())),
            _ => None,
        });
        let calls: Vec<(&str, &str)> = calls.collect();
        for message in new.iter().filter(|one| matches!(one.author, Author::User | Author::Tool)) {
            let mut parts = Vec::new();
            for part in &message.parts {
                match part {
                    conversation::Part::Text { at, .. } => parts.extend(doc.text(at).map(Part::Text)),
                    conversation::Part::Result(result) => {
                        let name = calls.iter().find(|(id, _)| *id == result.call).map_or("", |(_, name)| name);
                        let content = result.texts.iter().filter_map(|at| doc.text(at)).collect();
                        let call = CallId::new(result.call.as_str());
                        let result = ToolResult { call, content, is_error: result.is_error };
                        own.results.push((name.to_owned(), result));
                    }
                    conversation::Part::Thinking { .. } | conversation::Part::Call(_) => {}
                }
            }
            if !parts.is_empty() {
                own.messages.push(Message { role: Role::User, origin: Origin::User, parts, hidden: false });
            }
        }
        own
    }
}
