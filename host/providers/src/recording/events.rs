//! The texts of a recorded stream, each with its place in the body: string values of its events, and everything else.
//!
//! Unlike [`crate::SseDecoder`] it never fails and keeps places; it knows how server-sent events and JSON are written, and
//! no wire format except for the names that distinguish texts.

use std::ops::Range;

use memchr::memchr2;

/// Finds the texts of a stream that arrives in chunks.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The event under way, and the place of its first byte in the body.
    bytes: Vec<u8>,
    place: usize,
    /// Where the line under way begins, and how far it has been read.
    line: usize,
    read: usize,
    after_cr: bool,
    /// The values of the event's `data` fields so far.
    data: Vec<Range<usize>>,
}

/// A segment of a text. Segments with the same `name` belong together.
#[derive(Debug)]
pub(super) struct Piece<'b> {
    pub(super) name: Name,
    /// The bytes in the body.
    pub(super) bytes: &'b [u8],
    /// Its position in the body.
    pub(super) place: usize,
    /// How it continues.
    pub(super) kind: PieceKind,
}

/// The text that a segment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// The content of a JSON string that continues in another event.
    Part,
    /// The inside of a JSON string, whole.
    Whole,
    /// A line that is not JSON.
    Line,
}

/// What a text is known by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Name {
    /// Its key, and the block that its event names.
    pub(super) base: Vec<u8>,
    /// The id of its object: servers send it once, with the first chunk of a call.
    pub(super) id: Vec<u8>,
}

/// Values that say what an event is. No model writes them, and an answer is unreadable without them.
const STRUCTURE: [&[u8]; 7] =
    [b"type", b"object", b"role", b"status", b"stop_reason", b"finish_reason", b"native_finish_reason"];

/// Keys of what the wire formats send in parts.
const PARTS: [&[u8]; 10] = [
    b"text",
    b"thinking",
    b"partial_json",
    b"content",
    b"reasoning_content",
    b"reasoning",
    b"refusal",
    b"arguments",
    b"delta",
    b"token",
];

/// Members that identify the block of an event.
const OWNERS: [&[u8]; 5] = [b"index", b"output_index", b"content_index", b"summary_index", b"item_id"];

/// An event with more objects than these is read to its end, but those beyond are taken for one.
const MOST_OBJECTS: usize = 65_536;

impl Events {
    /// Reads the next bytes and gives each text that they complete.
    pub(super) fn push(&mut self, bytes: &[u8], each: &mut impl FnMut(Piece<'_>)) {
        self.bytes.extend_from_slice(bytes);
        let mut done = 0;
        while self.read < self.bytes.len() {
            if std::mem::take(&mut self.after_cr) && self.bytes[self.read] == b'\n' {
                self.read += 1;
                self.line = self.read;
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', &self.bytes[self.read..]).map(|end| self.read + end) else {
                self.read = self.bytes.len();
                break;
            };
            self.after_cr = self.bytes[end] == b'\r';
            let line = self.line..end;
            (self.line, self.read) = (end + 1, end + 1);
            if line.is_empty() {
                self.event(each);
                done = self.read;
            } else {
                self.take_line(line, each);
            }
        }
        if self.data.is_empty() {
            done = self.line; // nothing that waits for the rest of an event
        }
        self.forget(done);
    }

    /// The body has ended: what is left of its last event is given too.
    pub(super) fn finish(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        let line = self.line..self.bytes.len();
        if !line.is_empty() {
            self.take_line(line, each);
        }
        self.event(each);
    }

    /// The place from which on the body is not complete enough to be read.
    pub(super) fn hold(&self) -> Option<usize> {
        (!self.bytes.is_empty()).then_some(self.place)
    }

    fn forget(&mut self, done: usize) {
        self.bytes.drain(..done);
        self.place += done;
        self.line -= done;
        self.read -= done;
        for data in &mut self.data {
            *data = data.start - done..data.end - done;
        }
    }

    fn take_line(&mut self, line: Range<usize>, each: &mut impl FnMut(Piece<'_>)) {
        let bytes = &self.bytes[line.clone()];
        let unmarked = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        if let Some(value) = unmarked.strip_prefix(b"data:") {
            self.data.push(line.end - value.len()..line.end);
        } else if !unmarked.starts_with(b"event:") {
            each(Piece { name: Name::default(), bytes, place: self.place + line.start, kind: PieceKind::Line });
        }
    }

    fn event(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        let values = std::mem::take(&mut self.data);
        let Some(first) = values.first() else { return };
        if !self.bytes[first.clone()].trim_ascii_start().starts_with(b"{") {
            for value in values {
                let bytes = &self.bytes[value.clone()];
                each(Piece { name: Name::default(), bytes, place: self.place + value.start, kind: PieceKind::Line });
            }
            return;
        }
        // Lines of one event are joined; no string of it goes over a line's end.
        let mut data = Vec::new();
        let mut starts = Vec::new();
        for value in &values {
            starts.push((data.len(), value.start));
            data.extend_from_slice(&self.bytes[value.clone()]);
            data.push(b'\n');
        }
        for (name, kind, string) in strings(&data) {
            let at = starts.partition_point(|(start, _)| *start <= string.start) - 1;
            let place = self.place + starts[at].1 + (string.start - starts[at].0);
            each(Piece { name, bytes: &data[string], place, kind });
        }
    }
}

/// An object or list of an event.
#[derive(Default)]
struct Part {
    parent: usize,
    /// The key under which the string is in its object.
    key: Range<usize>,
    owners: Vec<(usize, Range<usize>)>,
    kind: Range<usize>,
    id: Range<usize>,
}

/// Every string value in a JSON text, with its name. Invalid JSON is not an error.
fn strings(data: &[u8]) -> Vec<(Name, PieceKind, Range<usize>)> {
    let mut parts = vec![Part::default()];
    let mut inside = vec![0];
    let mut found: Vec<(usize, Range<usize>, Range<usize>)> = Vec::new();
    let mut key = 0..0;
    let mut at = 0;
    while at < data.len() {
        let part = inside.last().copied().unwrap_or(0);
        match data[at] {
            b'"' => {
                let string = at + 1..string_end(data, at + 1);
                at = string.end + 1;
                let next = data.get(at..).unwrap_or_default().iter().find(|byte| !byte.is_ascii_whitespace());
                if next == Some(&b':') {
                    key = string;
                } else {
                    parts[part].note(data, &key, &string);
                    found.push((part, key.clone(), string));
                }
                continue;
            }
            b'{' | b'[' => {
                if parts.len() < MOST_OBJECTS {
                    let key = if key.is_empty() { parts[part].key.clone() } else { key.clone() };
                    parts.push(Part { parent: part, key, ..Part::default() });
                }
                inside.push(parts.len() - 1);
                key = 0..0;
            }
            b'}' | b']' => {
                inside.pop();
                key = 0..0;
            }
            b',' => key = 0..0,
            b'0'..=b'9' => {
                let len = data[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                parts[part].note(data, &key, &(at..at + len));
                at += len;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    let structure = |key: &Range<usize>| STRUCTURE.contains(&&data[key.clone()]);
    let values = found.into_iter().filter(|(_, key, _)| !structure(key));
    let named = values.map(|(part, key, string)| {
        let key = if key.is_empty() { parts[part].key.clone() } else { key };
        let kind = if PARTS.contains(&&data[key.clone()]) { PieceKind::Part } else { PieceKind::Whole };
        (name(data, &parts, part, key), kind, string)
    });
    named.collect()
}

impl Part {
    fn note(&mut self, data: &[u8], key: &Range<usize>, value: &Range<usize>) {
        let word = &data[key.clone()];
        if let Some(owner) = OWNERS.iter().position(|owner| *owner == word) {
            self.owners.push((owner, value.clone()));
        } else if word == b"type" {
            self.kind = value.clone();
        } else if word == b"id" {
            self.id = value.clone();
        }
    }
}

/// Only the last key of the way to a text counts: a block's first words may come with its beginning.
fn name(data: &[u8], parts: &[Part], mut part: usize, key: Range<usize>) -> Name {
    let mut name = Name { base: data[key].to_vec(), id: Vec::new() };
    while part > 0 {
        let Part { parent, owners, kind, id, .. } = &parts[part];
        let mut owners = owners.clone();
        owners.sort_unstable_by_key(|(owner, _)| *owner);
        for (owner, value) in owners {
            name.base.push(b'0' + owner as u8);
            name.base.extend_from_slice(&data[value]);
        }
        // The whole event: its id is the answer's. The type distinguishes text and arguments of one item.
        if *parent == 0 {
            if data[kind.clone()].starts_with(b"response.") {
                name.base.extend_from_slice(&data[kind.clone()]);
            }
        } else if name.id.is_empty() {
            name.id.extend_from_slice(&data[id.clone()]);
        }
        name.base.push(b'/');
        part = *parent;
    }
    name
}

/// Where the string that begins here ends.
fn string_end(data: &[u8], mut at: usize) -> usize {
    while let Some(next) = data.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if data[at] == b'"' {
            return at;
        }
        at += 2;
    }
    data.len()
}
