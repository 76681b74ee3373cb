//! The client's request, and what it becomes when a rule has stopped the answer to it.

use bytes::Bytes;
use serde_json::{Value, json};
use wire::Wire;

use crate::json::{Doc, Edits};

/// A request for an answer.
#[derive(Debug)]
pub(crate) struct Request {
    wire: Wire,
    body: Bytes,
    /// What was kept of each answer that was stopped, and the reminder that followed it.
    stopped: Vec<(String, String)>,
}

impl Request {
    pub(crate) fn new(wire: Wire, body: Bytes) -> Self {
        Self { wire, body, stopped: Vec::new() }
    }

    /// Returns the body as it went upstream first.
    pub(crate) fn first(&self) -> (Wire, &Bytes) {
        (self.wire, &self.body)
    }

    /// Another answer was stopped.
    pub(crate) fn stopped(&mut self, kept: &str, reminder: String) {
        self.stopped.push((kept.trim_end().to_owned(), reminder));
    }

    /// Sets the text that the client has of the answer that was stopped last.
    pub(crate) fn keeps(&mut self, shown: &str) {
        if let Some((kept, _)) = self.stopped.last_mut() {
            shown.trim_end().clone_into(kept);
        }
    }

    /// Returns the next body: the client's own bytes and, after a stop, the kept text and the reminder behind the last message. `None` if
    /// the body has no conversation that can be continued.
    pub(crate) fn body(&self) -> Option<Bytes> {
        if self.stopped.is_empty() {
            return Some(self.body.clone());
        }
        let (doc, root) = Doc::read(&self.body)?;
        let list = root.get(if self.wire == Wire::OpenAiResponses { "input" } else { "messages" })?;
        let mut edits = Edits::default();
        let added: Vec<String> = self.added().map(|message| message.to_string()).collect();
        match doc.text(list) {
            // The input can be one text.
            Some(text) if self.wire == Wire::OpenAiResponses => {
                let first = self.message("user", &text);
                edits.raw(list.at.clone(), format!("[{first},{}]", added.join(",")));
            }
            _ if list.is_array() => edits.insert(list, list.items().len(), &added.join(",")),
            _ => return None,
        }
        Some(Bytes::from(edits.apply(&self.body)))
    }

    /// Returns the messages behind those of the client.
    fn added(&self) -> impl Iterator<Item = Value> {
        self.stopped.iter().flat_map(|(kept, reminder)| {
            let kept = (!kept.is_empty()).then(|| self.message("assistant", kept));
            kept.into_iter().chain([self.message("user", reminder)])
        })
    }

    fn message(&self, role: &str, text: &str) -> Value {
        match self.wire {
            Wire::Anthropic => json!({"role": role, "content": [{"type": "text", "text": text}]}),
            Wire::OpenAiChat => json!({"role": role, "content": text}),
            Wire::OpenAiResponses => {
                let kind = if role == "assistant" { "output_text" } else { "input_text" };
                json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
            }
        }
    }
}
