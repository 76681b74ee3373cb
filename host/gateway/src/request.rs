//! The client's request, and what it becomes when a rule has stopped the answer to it.

use bytes::Bytes;
use serde_json::{Value, json};
use wire::Wire;

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

    /// Another answer was stopped.
    pub(crate) fn stopped(&mut self, kept: &str, reminder: String) {
        self.stopped.push((kept.trim_end().to_owned(), reminder));
    }

    /// The next body: the client's own bytes, until an answer was stopped. `None`: the body has no conversation that could be continued.
    pub(crate) fn body(&self) -> Option<Bytes> {
        if self.stopped.is_empty() {
            return Some(self.body.clone());
        }
        let mut body: Value = serde_json::from_slice(&self.body).ok()?;
        let messages = match self.wire {
            Wire::Anthropic | Wire::OpenAiChat => body.get_mut("messages")?,
            Wire::OpenAiResponses => as_list(body.get_mut("input")?),
        };
        let messages = messages.as_array_mut()?;
        for (kept, reminder) in &self.stopped {
            if !kept.is_empty() {
                messages.push(self.message("assistant", kept));
            }
            messages.push(self.message("user", reminder));
        }
        serde_json::to_vec(&body).ok().map(Bytes::from)
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

/// The input of a request, which can be one text.
fn as_list(input: &mut Value) -> &mut Value {
    if let Value::String(text) = input {
        *input = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]);
    }
    input
}
