//! JSON with the byte range of each value: a changed value is written over its own bytes, and all other bytes stay, so that the caches of
//! providers keep hitting.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value;

/// The maximum nesting depth.
const MAX_DEPTH: u32 = 128;

/// A value and its byte range.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: Range<usize>,
    pub(crate) kind: Kind,
}

/// The kind of a value.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    String,
    /// A number, a truth value or null.
    Other,
}

/// The reason why an answer in which [`repeats_name`] is true cannot be checked.
pub(crate) const REPEATS: &str = "an object in it has two members of one name, of which clients read either";

/// Returns whether an object in a document has two members of one name.
pub(crate) fn repeats_name(bytes: &[u8]) -> bool {
    fn repeats(node: &Node) -> bool {
        match &node.kind {
            Kind::Object(members) => {
                let mut names = BTreeSet::new();
                members.iter().any(|one| !names.insert(&one.name) || repeats(&one.value))
            }
            Kind::Array(items) => items.iter().any(repeats),
            Kind::String | Kind::Other => false,
        }
    }
    Doc::read(bytes).is_some_and(|(_, root)| repeats(&root))
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// The byte range of its name.
    pub(crate) key: Range<usize>,
    pub(crate) value: Node,
}

/// A parsed document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doc<'b> {
    pub(crate) bytes: &'b [u8],
}

impl<'b> Doc<'b> {
    /// Parses a document; returns `None` if it is not JSON, or nested too deeply.
    pub(crate) fn read(bytes: &'b [u8]) -> Option<(Self, Node)> {
        serde_json::from_slice::<IgnoredAny>(bytes).ok()?;
        let mut reader = Reader { bytes, at: 0 };
        let root = reader.value(0)?;
        Some((Self { bytes }, root))
    }

    /// Returns the value of a string; `None` if the node is not a string. An unpaired surrogate is replaced by U+FFFD.
    pub(crate) fn text(self, node: &Node) -> Option<String> {
        matches!(node.kind, Kind::String).then(|| decoded(&self.bytes[node.at.clone()]))
    }

    /// Returns the string at a member of an object.
    pub(crate) fn text_of(self, node: &Node, name: &str) -> Option<String> {
        self.text(node.get(name)?)
    }
}

impl Node {
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    /// Returns a member of an object; of several with one name, the last one, which is the one that counts.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Object(members) => members.iter().rev().find(|one| one.name == name).map(|one| &one.value),
            _ => None,
        }
    }

    /// Returns the elements of an array; none for any other value.
    pub(crate) fn items(&self) -> &[Self] {
        if let Kind::Array(items) = &self.kind { items } else { &[] }
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self.kind, Kind::String)
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.kind, Kind::Array(_))
    }
}

/// Decodes a string literal.
fn decoded(literal: &[u8]) -> String {
    let strict = serde_json::from_slice::<Cow<'_, str>>(literal).map(Cow::into_owned);
    strict.unwrap_or_else(|_| {
        let lenient = wire::json(&String::from_utf8_lossy(literal)).ok();
        lenient.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    })
}

/// Changes of a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Replaces a value, or the name of a member, by a string.
    pub(crate) fn text(&mut self, at: &Range<usize>, text: &str) {
        self.raw(at.clone(), Value::from(text).to_string());
    }

    /// Replaces bytes by JSON.
    pub(crate) fn raw(&mut self, at: Range<usize>, json: String) {
        self.0.push((at, json));
    }

    /// Inserts an element before the one with this number, or at the end.
    pub(crate) fn insert(&mut self, list: &Node, number: usize, json: &str) {
        match list.items().get(number) {
            Some(next) => self.raw(next.at.start..next.at.start, format!("{json},")),
            None => {
                let end = list.items().last().map_or(list.at.start + 1, |last| last.at.end);
                let comma = if list.items().is_empty() { "" } else { "," };
                self.raw(end..end, format!("{comma}{json}"));
            }
        }
    }

    /// Removes the elements with these numbers from a list, each with an adjacent comma.
    pub(crate) fn remove(&mut self, list: &Node, numbers: &BTreeSet<usize>) {
        let items = list.items();
        let mut is_kept_before = false;
        for (number, one) in items.iter().enumerate() {
            if !numbers.contains(&number) {
                is_kept_before = true;
                continue;
            }
            let at = match (number.checked_sub(1).and_then(|before| items.get(before)), items.get(number + 1)) {
                (Some(before), _) if is_kept_before => before.at.end..one.at.end,
                (_, Some(next)) => one.at.start..next.at.start,
                (_, None) => one.at.clone(),
            };
            self.raw(at, String::new());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the document with the changes. Of several changes of the same bytes, the first one counts.
    pub(crate) fn apply(mut self, bytes: &[u8]) -> Vec<u8> {
        self.0.sort_by_key(|(at, _)| (at.start, at.end));
        let (mut out, mut end) = (Vec::with_capacity(bytes.len()), 0);
        for (at, new) in self.0 {
            if at.start < end {
                continue;
            }
            out.extend_from_slice(&bytes[end..at.start]);
            out.extend_from_slice(new.as_bytes());
            end = at.end;
        }
        out.extend_from_slice(&bytes[end..]);
        out
    }
}

/// Parses a value that is known to be valid JSON.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Consumes the next byte if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn value(&mut self, depth: u32) -> Option<Node> {
        if depth > MAX_DEPTH {
            return None;
        }
        let first = self.peek()?;
        let start = self.at;
        let kind = match first {
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b'"' => {
                self.string()?;
                Kind::String
            }
            _ => {
                let is_part = |byte: &u8| !byte.is_ascii_whitespace() && !b",]}".contains(byte);
                self.at += self.bytes[self.at..].iter().take_while(|byte| is_part(byte)).count();
                Kind::Other
            }
        };
        Some(Node { at: start..self.at, kind })
    }

    fn object(&mut self, depth: u32) -> Option<Kind> {
        let mut members = Vec::new();
        self.at += 1;
        while !self.take(b'}') {
            self.take(b',');
            self.peek()?;
            let key = self.string()?;
            if !self.take(b':') {
                return None;
            }
            let name = decoded(&self.bytes[key.clone()]);
            members.push(Member { name, key, value: self.value(depth + 1)? });
        }
        Some(Kind::Object(members))
    }

    fn array(&mut self, depth: u32) -> Option<Kind> {
        let mut items = Vec::new();
        self.at += 1;
        while !self.take(b']') {
            self.take(b',');
            items.push(self.value(depth + 1)?);
        }
        Some(Kind::Array(items))
    }

    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some(start..self.at);
                }
                _ => self.at += 1,
            }
        }
    }
}
