//! Text that grows by small chunks: a rope whose clones share everything but its last kilobyte.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::list::List;

/// A chunk is closed before it exceeds this many bytes, unless it is one delta. Appending to text that a clone shares copies at most one
/// chunk.
const CHUNK: usize = 1024;

/// Text of any length. Appending and cloning take constant time, whatever the length; the text is copied only where it is read as
/// one string.
#[derive(Clone, Default)]
pub struct Text {
    closed: List<Str>,
    tail: Arc<String>,
    len: usize,
}

impl Text {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text in order, in chunks that end at no particular place. A front end that has drawn the first `n` bytes gets the rest with
    /// [`Text::chunks_from`].
    pub fn chunks(&self) -> impl Iterator<Item = &str> {
        self.closed.iter().map(|chunk| &**chunk).chain([self.tail.as_str()]).filter(|chunk| !chunk.is_empty())
    }

    /// The text from byte `start` on, or from the next character where that is inside of one.
    pub fn chunks_from(&self, start: usize) -> impl Iterator<Item = &str> {
        let (mut skip, mut done) = (start.min(self.len), 0);
        // Most readers have everything but the last bytes.
        let in_tail = skip >= self.len - self.tail.len();
        if in_tail {
            skip -= self.len - self.tail.len();
        }
        let closed = if in_tail { 0 } else { self.closed.len() };
        let chunks = (0..closed).filter_map(|index| self.closed.get(index)).map(|chunk| &**chunk);
        chunks.chain([self.tail.as_str()]).filter_map(move |chunk| {
            let from = skip.saturating_sub(done).min(chunk.len());
            done += chunk.len();
            Some(&chunk[chunk.ceil_char_boundary(from)..]).filter(|rest| !rest.is_empty())
        })
    }

    /// What was added at the end since `before`; `None`: this is not the same text with more at its end, or it cannot be told without comparing
    /// all of it.
    pub fn added_since(&self, before: &Self) -> Option<String> {
        let closed = before.closed.len();
        let shared = match closed.checked_sub(1) {
            // Chunks are made once, so that those before the same one are the same.
            Some(last) => {
                let pair = (self.closed.get(last)?, before.closed.get(last)?);
                Arc::ptr_eq(&pair.0.0, &pair.1.0)
            }
            None => true,
        };
        let next = self.closed.get(closed).map_or(self.tail.as_str(), Str::as_str);
        let is_grown = shared && self.len >= before.len && next.starts_with(before.tail.as_str());
        is_grown.then(|| self.chunks_from(before.len).collect())
    }

    /// Appends a chunk.
    pub fn push(&mut self, text: &str) {
        self.len += text.len();
        if !self.tail.is_empty() && self.tail.len() + text.len() > CHUNK {
            self.closed.push(Str::from(self.tail.as_str()));
            self.tail = Arc::default();
        }
        if text.len() > CHUNK {
            self.closed.push(Str::from(text));
        } else {
            Arc::make_mut(&mut self.tail).push_str(text);
        }
    }

    /// Cuts it after `at` bytes, or at the character before, and returns the rest. Takes time in the number of chunks.
    pub fn split_off(&mut self, at: usize) -> Self {
        let (mut before, mut after, mut done) = (Self::default(), Self::default(), 0);
        for chunk in self.chunks() {
            let cut = chunk.floor_char_boundary(at.saturating_sub(done).min(chunk.len()));
            done += chunk.len();
            before.push(&chunk[..cut]);
            after.push(&chunk[cut..]);
        }
        *self = before;
        after
    }

    /// The number of bytes from the start in which it agrees with `other`, at a character.
    pub fn common_prefix(&self, other: &str) -> usize {
        let mut rest = other;
        for chunk in self.chunks() {
            match rest.strip_prefix(chunk) {
                Some(after) => rest = after,
                None => {
                    let same = chunk.bytes().zip(rest.bytes()).take_while(|(one, two)| one == two).count();
                    return other.floor_char_boundary(other.len() - rest.len() + same);
                }
            }
        }
        other.len() - rest.len()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chunks().try_for_each(|chunk| f.write_str(chunk))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self == &*other.to_string()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.len == other.len() && self.common_prefix(other) == self.len
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut rope = Self::default();
        rope.push(text);
        rope
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|text| Self::from(text.as_str()))
    }
}

/// A short string that does not change: a clone counts a reference.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Str(Arc<str>);

impl Str {
    /// The string itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Default for Str {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&String> for Str {
    fn from(text: &String) -> Self {
        Self(text.as_str().into())
    }
}

impl From<Arc<str>> for Str {
    fn from(text: Arc<str>) -> Self {
        Self(text)
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl Serialize for Str {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Str {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "a\u{e9}\u{4e16}\u{1f980}b";

    #[test]
    fn text_is_what_was_pushed_at_every_cut() {
        let text = MIXED.repeat(300);
        let mut rope = Text::default();
        text.chars().for_each(|letter| rope.push(letter.encode_utf8(&mut [0; 4])));
        assert_eq!((rope.to_string(), rope.len()), (text.clone(), text.len()));
        assert_eq!(rope, Text::from(text.as_str()));
        for at in (0..text.len() + 2).step_by(7) {
            let (mut before, cut) = (rope.clone(), text.floor_char_boundary(at));
            let after = before.split_off(at);
            assert_eq!((before.to_string().as_str(), after.to_string().as_str()), text.split_at(cut), "{at}");
            let start = text.ceil_char_boundary(at.min(text.len()));
            assert_eq!(rope.chunks_from(at).collect::<String>(), text[start..], "{at}");
            let other = format!("{}\u{e8}", &text[..cut]);
            assert_eq!(rope.common_prefix(&other), cut, "{at}");
        }
    }

    /// Case 8 of the specification: constant work for each delta, and memory linear in the text, also where each state is kept.
    #[test]
    fn a_hundred_thousand_deltas_make_few_chunks_and_share_them() {
        let mut rope = Text::default();
        let mut kept = Vec::new();
        for delta in 0..100_000 {
            rope.push("word");
            if delta % 997 == 0 {
                kept.push(rope.clone());
            }
        }
        assert_eq!(rope.len(), 400_000);
        assert!(rope.closed.len() <= 400_000 / (CHUNK / 2), "{} chunks", rope.closed.len());
        let copied = kept.windows(2).filter(|pair| {
            let shared = pair[0].closed.iter().zip(pair[1].closed.iter());
            !shared.into_iter().all(|(one, two)| Arc::ptr_eq(&one.0, &two.0))
        });
        assert_eq!(copied.count(), 0, "closed chunks are never copied");
        assert!(kept.iter().all(|state| state.tail.len() <= CHUNK));
    }
}
