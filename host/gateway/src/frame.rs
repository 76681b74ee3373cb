//! A frame of an answer on its way to the client.

use serde_json::Value;
use wire::SseEvent;

use crate::json;

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
    /// Why clients can read something else in it than rules do, in words that follow "because".
    pub(crate) ambiguous: Option<&'static str>,
    /// Whether a string in it has half of a surrogate pair, whose other half is in another frame: it would be lost if the frame were
    /// rewritten.
    pub(crate) has_halves: bool,
}

impl Frame {
    pub(crate) fn new(raw: &[u8], event: Option<&SseEvent<'_>>) -> Self {
        let mut own = Self { raw: raw.to_owned(), ..Self::default() };
        let Some(event) = event else { return own };
        own.name = event.name.to_string();
        let strict = serde_json::from_str(&event.data).ok();
        own.has_halves = strict.is_none();
        let data = strict.or_else(|| wire::json(&event.data).ok());
        own.ambiguous = data.as_ref().and_then(|data| ambiguous(data, &event.data));
        own.data = data.filter(Value::is_object);
        own
    }

    /// The kind of its event, which formats write into the data as well.
    pub(crate) fn kind(&self) -> &str {
        self.data.as_ref().and_then(|data| data["type"].as_str()).unwrap_or(&self.name)
    }

    /// A frame of our own.
    pub(crate) fn of(name: &str, data: Value) -> Self {
        let mut own = Self { name: name.to_owned(), data: Some(data), ..Self::default() };
        own.write();
        own
    }

    /// Writes its data again, because that was changed. Its other fields and its comments stay.
    pub(crate) fn write(&mut self) {
        let Some(data) = &self.data else { return };
        self.is_changed = true;
        if let Some(raw) = with_data(&self.raw, data) {
            self.raw = raw;
            return;
        }
        self.raw.clear();
        if !self.name.is_empty() {
            self.raw.extend_from_slice(format!("event: {}\n", self.name).as_bytes());
        }
        self.raw.extend_from_slice(format!("data: {data}\n\n").as_bytes());
    }
}

fn ambiguous(data: &Value, text: &str) -> Option<&'static str> {
    if data.is_array() {
        return Some("an event of it is a list");
    }
    // The decoder refuses a second text of a delta or a choice itself, and most frames have nothing else.
    let is_small = ["delta", "choices"].iter().any(|key| data.get(key).is_some());
    (!is_small && json::repeats_name(text.as_bytes())).then_some(json::REPEATS)
}

/// Returns the bytes of a frame with other data. `None`: it has no line of data, no blank line at its end, or lines that end with a carriage return
/// alone.
fn with_data(raw: &[u8], data: &Value) -> Option<Vec<u8>> {
    let (mut out, mut is_written) = (Vec::with_capacity(raw.len()), false);
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        let end =
            if line.ends_with(b"\r\n") { line.len() - 2 } else { line.len() - usize::from(line.ends_with(b"\n")) };
        let (field, end) = line.split_at(end);
        // The line feed behind the last carriage return can be on its way.
        if field.contains(&b'\r') && line != b"\r" {
            return None;
        }
        if !(field == b"data" || field.starts_with(b"data:")) {
            out.extend_from_slice(line);
        } else if !std::mem::replace(&mut is_written, true) {
            out.extend_from_slice(format!("data: {data}").as_bytes());
            out.extend_from_slice(end);
        }
    }
    // The end of a stream can leave out the blank line.
    (is_written && [&b"\n\n"[..], b"\n\r\n", b"\n\r"].iter().any(|end| out.ends_with(end))).then_some(out)
}
