//! The messages that a client has: those that it has sent, and those of the run. A snapshot replaces all of them, so it needs all of them.

use serde_json::{Value, json};

/// The messages of a client.
#[derive(Debug, Default)]
pub(super) struct Messages {
    all: Vec<Value>,
    /// The messages of the answer that can become void.
    answer: Vec<String>,
}

impl Messages {
    /// Those that the client has sent.
    pub(super) fn of(sent: Vec<Value>) -> Self {
        Self { all: sent, answer: Vec::new() }
    }

    /// All of them, for a snapshot.
    pub(super) fn all(&self) -> Vec<Value> {
        self.all.clone()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.all.iter().any(|message| message["id"] == id)
    }

    /// A message of the user.
    pub(super) fn said(&mut self, id: &str, text: &str) {
        self.all.push(json!({"id": id, "role": "user", "content": text}));
    }

    /// What follows is another answer: nothing of this one becomes void any more.
    pub(super) fn keep(&mut self) {
        self.answer.clear();
    }

    /// Removes the text of a message that the client has already and that begins again. Returns whether there was any.
    pub(super) fn restart(&mut self, id: &str) -> bool {
        let known = self.all.iter_mut().find(|message| message["id"] == id);
        let content = known.and_then(|message| message.get_mut("content"));
        let Some(content) = content.filter(|content| content.as_str().is_none_or(|text| !text.is_empty())) else {
            return false;
        };
        *content = json!("");
        true
    }

    /// A message of the answer begins, unless the client has it.
    pub(super) fn begin(&mut self, id: &str, role: &str) {
        if !self.has(id) {
            self.all.push(json!({"id": id, "role": role, "content": ""}));
        }
        self.answer.push(id.to_owned());
    }

    /// Adds to a message of the answer.
    pub(super) fn grow(&mut self, id: &str, text: &str) {
        let message = self.all.iter_mut().rev().find(|message| message["id"] == id);
        if let Some(Value::String(content)) = message.and_then(|message| message.get_mut("content")) {
            content.push_str(text);
        }
    }

    /// Removes the answer, which is void. A client leaves out reasoning only where a snapshot has other reasoning: where there is none, what is
    /// void is empty.
    pub(super) fn void(&mut self) {
        let void = std::mem::take(&mut self.answer);
        let is_void = |message: &Value| void.iter().any(|id| message["id"] == id.as_str());
        let is_reasoning = |message: &Value| message["role"] == "reasoning";
        let has_other = self.all.iter().any(|message| is_reasoning(message) && !is_void(message));
        self.all.retain(|message| !is_void(message) || (is_reasoning(message) && !has_other));
        for message in self.all.iter_mut().filter(|message| void.iter().any(|id| message["id"] == id.as_str())) {
            message["content"] = json!("");
        }
    }

    /// The last message of text of the answer, which has its calls.
    pub(super) fn parent(&self) -> Option<String> {
        let is_text = |id: &&String| {
            self.all.iter().any(|message| message["id"] == id.as_str() && message["role"] == "assistant")
        };
        self.answer.iter().rev().find(is_text).cloned()
    }

    /// Returns the arguments of a call that the client has.
    pub(super) fn arguments(&mut self, call: &str) -> Option<&mut Value> {
        let calls = self.all.iter_mut().filter_map(|message| message.get_mut("toolCalls")?.as_array_mut());
        let known = calls.flatten().find(|known| known["id"] == call)?;
        known.get_mut("function")?.get_mut("arguments")
    }

    /// A call, which is in its parent, or else a message of its own.
    pub(super) fn call(&mut self, call: &str, tool: &str, arguments: &str, parent: Option<&str>) {
        let entry = json!({"id": call, "type": "function", "function": {"name": tool, "arguments": arguments}});
        let parent = parent.and_then(|parent| self.all.iter_mut().rev().find(|message| message["id"] == parent));
        match parent.and_then(Value::as_object_mut) {
            Some(parent) => {
                let calls = parent.entry("toolCalls").or_insert_with(|| json!([]));
                if let Some(calls) = calls.as_array_mut() {
                    calls.push(entry);
                }
            }
            None => self.all.push(json!({"id": call, "role": "assistant", "toolCalls": [entry]})),
        }
    }

    pub(super) fn has_result(&self, call: &str) -> bool {
        self.all.iter().any(|message| message["role"] == "tool" && message["toolCallId"] == call)
    }

    pub(super) fn result(&mut self, id: &str, call: &str, content: &str) {
        self.all.push(json!({"id": id, "role": "tool", "toolCallId": call, "content": content}));
    }
}
