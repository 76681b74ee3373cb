//! A frame of an answer on its way to the client.

use serde_json::Value;
use wire::SseEvent;

/// A frame as it arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// The bytes that the client gets.
    pub(crate) raw: Vec<u8>,
    /// The name of its event; empty where it has none.
    pub(crate) name: String,
    /// What it carries, an object; `None`: it is a comment, or its data is something else.
    pub(crate) data: Option<Value>,
    /// Its bytes are not those that came.
    pub(crate) is_changed: bool,
}

impl Frame {
    pub(crate) fn new(raw: &[u8], event: Option<&SseEvent<'_>>) -> Self {
        let data = event.and_then(|event| serde_json::from_str(&event.data).ok()).filter(Value::is_object);
        let name = event.map_or_else(String::new, |event| event.name.to_string());
        Self { raw: raw.to_owned(), name, data, is_changed: false }
    }

    /// The kind of its event, which formats write into the data as well.
    pub(crate) fn kind(&self) -> &str {
        self.data.as_ref().and_then(|data| data["type"].as_str()).unwrap_or(&self.name)
    }

    /// A frame of our own.
    pub(crate) fn of(name: &str, data: Value) -> Self {
        let mut own = Self { raw: Vec::new(), name: name.to_owned(), data: Some(data), is_changed: true };
        own.write();
        own
    }

    /// Writes its bytes anew, because its data was changed.
    pub(crate) fn write(&mut self) {
        let Some(data) = &self.data else { return };
        self.is_changed = true;
        self.raw.clear();
        if !self.name.is_empty() {
            self.raw.extend_from_slice(format!("event: {}\n", self.name).as_bytes());
        }
        self.raw.extend_from_slice(format!("data: {data}\n\n").as_bytes());
    }
}
