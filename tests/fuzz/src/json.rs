//! The JSON decoder: every cut gives the same, and what `serde_json` reads it reads too, with the same values.

use std::fmt;

use rules::json::{JsonDecoder, JsonPath, MAX_DEPTH, MAX_KEY_BYTES, Sink};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::mutate::Numbers;

pub(crate) const WORDS: &[&str] = &[
    "{\"a\":",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\u",
    "\\ud83d",
    "\\ude00",
    "\\n",
    "\\\"",
    "\\\\",
    "null",
    "true",
    "-1.5e+9",
    " ",
    "é",
    "😀",
    "\"path\":\"a.rs\"",
    "[[[[[[[[",
    "]]]]]]]]",
];

/// A value: its place, by number and by kind, and its text.
type Found = (String, String, String);

/// What the oracle notes for a number or a boolean: it does not know the spelling.
const LITERAL: &str = "\0literal";

#[derive(Debug, Default, PartialEq, Eq)]
struct Strings {
    done: Vec<Found>,
    open: Option<Found>,
}

impl Sink for Strings {
    fn begin(&mut self, place: &JsonPath) {
        assert!(self.open.is_none());
        assert!(place.exact().starts_with(&place.owner()));
        self.open = Some((place.exact(), place.field(), String::new()));
    }

    fn text(&mut self, text: &str) {
        assert!(!text.is_empty());
        self.open.as_mut().unwrap().2.push_str(text);
    }

    fn end(&mut self) {
        self.done.extend(self.open.take());
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let whole = decode(&[&text]);
    let single: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
    assert_eq!(whole, decode(&single), "{text:?} in single characters");
    let mut numbers = Numbers::new(bytes.len() as u64);
    let (mut random, mut from) = (Vec::new(), 0);
    for (at, _) in text.char_indices().skip(1).chain([(text.len(), ' ')]) {
        if at == text.len() || numbers.below(4) == 0 {
            random.push(&text[from..at]);
            from = at;
        }
    }
    assert_eq!(whole, decode(&random), "{text:?} in pieces");
    let mut expected = Judge { found: Vec::new(), within: true };
    let mut judge = serde_json::Deserializer::from_str(&text);
    let read = Value { judge: &mut expected, exact: "", field: "", depth: 0 }.deserialize(&mut judge);
    if read.is_ok() && judge.end().is_ok() && expected.within {
        assert_eq!(whole.1, None, "{text:?}");
        // A literal at the top ends only with what follows it.
        let mut found: Vec<Found> = whole.0.done.into_iter().chain(whole.0.open).collect();
        for ((_, _, read), (_, _, wanted)) in found.iter_mut().zip(&expected.found) {
            if wanted == LITERAL && serde_json::from_str::<serde_json::Value>(read).is_ok_and(|one| !one.is_string()) {
                *read = LITERAL.to_owned();
            }
        }
        assert_eq!(found, expected.found, "{text:?}");
    }
}

fn decode(pieces: &[&str]) -> (Strings, Option<String>) {
    let (mut decoder, mut sink) = (JsonDecoder::default(), Strings::default());
    for piece in pieces {
        decoder.feed(piece, &mut sink);
    }
    (sink, decoder.error().map(str::to_owned))
}

/// What `serde_json` reads, in the order of the text.
struct Judge {
    found: Vec<Found>,
    /// Nothing is beyond the decoder's bounds.
    within: bool,
}

struct Value<'j> {
    judge: &'j mut Judge,
    exact: &'j str,
    field: &'j str,
    depth: usize,
}

impl Value<'_> {
    fn note(self, text: &str) {
        self.judge.found.push((self.exact.to_owned(), self.field.to_owned(), text.to_owned()));
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.note(LITERAL);
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.note(LITERAL);
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.note(LITERAL);
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.note(LITERAL);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.note(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.judge.within &= self.depth < MAX_DEPTH;
        for number in 0_u64.. {
            let (exact, field) = (format!("{}[{number}]", self.exact), format!("{}[]", self.field));
            let value = Value { judge: &mut *self.judge, exact: &exact, field: &field, depth: self.depth + 1 };
            if entries.next_element_seed(value)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.judge.within &= self.depth < MAX_DEPTH;
        while let Some(key) = entries.next_key::<String>()? {
            self.judge.within &= key.len() <= MAX_KEY_BYTES;
            let dot = |at: &str| if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            let (exact, field) = (dot(self.exact), dot(self.field));
            entries.next_value_seed(Value {
                judge: &mut *self.judge,
                exact: &exact,
                field: &field,
                depth: self.depth + 1,
            })?;
        }
        Ok(())
    }
}
