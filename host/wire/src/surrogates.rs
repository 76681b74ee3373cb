//! Characters cut between their UTF-16 halves. A server that splits its answer by UTF-16 code units sends `"\ud83d"` in
//! one event and `"\ude00"` in the next: each is legal JSON and neither is a string in Rust.
//!
//! An event is read by `serde_json` alone; only where that fails and the event contains an escaped surrogate is it read
//! again, with each unpaired surrogate replaced by an ASCII escape sequence that is undone in the parsed value. What
//! [`Text`](crate::loose::Text) reads keeps a half at its beginning or end; everywhere else an unpaired surrogate becomes
//! U+FFFD, as in a decoder of UTF-16. [`Half`] joins what belongs together.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use crate::loose::Text;

/// Introduces an escape sequence in a marked string: `0` for the character itself, four hexadecimal digits for an
/// unpaired surrogate. A noncharacter, so that it is rare in what servers send.
const MARK: char = '\u{FDD0}';

/// Reads JSON. Where `T` keeps strings as [`Text`], halves of characters at their ends are kept.
pub(crate) fn from_str<'de, T: Deserialize<'de>>(json: &'de str) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|cause| match marked(json) {
        Some(value) => T::deserialize(Lenient(value)),
        None => Err(cause),
    })
}

/// Parses the data of an event for passing it on; unpaired surrogates become U+FFFD.
///
/// # Errors
/// It is not JSON.
pub fn json(data: &str) -> serde_json::Result<Value> {
    from_str(data)
}

/// Reads JSON into a type that borrows nothing.
pub(crate) fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(json).or_else(|cause| match std::str::from_utf8(json).ok().and_then(marked) {
        Some(value) => T::deserialize(Lenient(value)),
        None => Err(cause),
    })
}

/// The value of a JSON text that contains unpaired surrogates, with its strings marked; `None` where there is none, or
/// the text is invalid JSON for another reason.
fn marked(json: &str) -> Option<Value> {
    let mut out = String::new();
    let (mut copied, mut at, mut unpaired) = (0, 0, false);
    // Outside of strings JSON has neither backslashes nor noncharacters, so strings need not be found.
    while let Some(next) = json[at..].find(['\\', MARK]) {
        at += next;
        let unit = escaped_unit(&json[at..]);
        let (len, mark) = match unit {
            _ if json[at..].starts_with(MARK) => (MARK.len_utf8(), Some("0".to_owned())),
            Some(unit) if unit == MARK as u16 => (6, Some("0".to_owned())),
            Some(0xD800..=0xDBFF) if matches!(escaped_unit(&json[at + 6..]), Some(0xDC00..=0xDFFF)) => (12, None),
            Some(unit @ 0xD800..=0xDFFF) => {
                unpaired = true;
                (6, Some(format!("{unit:04x}")))
            }
            _ => (1 + json[at + 1..].chars().next().map_or(0, char::len_utf8), None),
        };
        if let Some(mark) = mark {
            out.push_str(&json[copied..at]);
            out.push(MARK);
            out.push_str(&mark);
            copied = at + len;
        }
        at += len;
    }
    if !unpaired {
        return None;
    }
    out.push_str(&json[copied..]);
    serde_json::from_str(&out).ok()
}

/// The code unit of `\uXXXX` at the beginning of a text.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// A string whose unpaired surrogates are marked, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The second half of a character, at the beginning.
    low: Option<u16>,
    /// What lies between; what was unpaired in it is U+FFFD.
    inner: String,
    /// The first half of a character, at the end.
    high: Option<u16>,
    /// The string with each half replaced by U+FFFD.
    lossy: String,
}

impl Cut {
    pub(crate) fn lossy(&self) -> &str {
        &self.lossy
    }

    pub(crate) fn into_lossy(self) -> String {
        self.lossy
    }

    fn read(marked: &str) -> Self {
        let mut units: Vec<Result<char, u16>> = Vec::with_capacity(marked.len());
        let mut chars = marked.chars();
        while let Some(c) = chars.next() {
            units.push(match c {
                MARK if chars.as_str().starts_with('0') => {
                    chars.next();
                    Ok(MARK)
                }
                MARK => Err((0..4).fold(0, |unit, _| {
                    unit << 4 | chars.next().and_then(|digit| digit.to_digit(16)).unwrap_or(0) as u16
                })),
                other => Ok(other),
            });
        }
        let low = units.first().and_then(|unit| unit.err()).filter(|unit| *unit >= 0xDC00);
        let high = units.last().and_then(|unit| unit.err()).filter(|unit| *unit < 0xDC00);
        let string = |units: &[Result<char, u16>]| -> String {
            units.iter().map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        };
        let inner = &units[usize::from(low.is_some())..units.len() - usize::from(high.is_some())];
        Self { low, inner: string(inner), high, lossy: string(&units) }
    }
}

/// The first half of a character at the end of a stream's text so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Half(Option<u16>);

impl Half {
    /// What more text makes of a stream: what can be given now, without the half that waits for its other half.
    pub(crate) fn join<'a>(&mut self, text: Text<'a>) -> Cow<'a, str> {
        if text.is_empty() {
            return Cow::Borrowed("");
        }
        let (low, inner, high) = match text {
            Text::Whole(whole) if self.0.is_none() => return whole,
            Text::Whole(whole) => (None, whole, None),
            Text::Cut(cut) => (cut.low, Cow::Owned(cut.inner), cut.high),
        };
        let first = match (self.0.take(), low) {
            (None, None) => None,
            (Some(high), Some(low)) => char::decode_utf16([high, low]).next().and_then(Result::ok),
            (Some(_), None) | (None, Some(_)) => Some(char::REPLACEMENT_CHARACTER),
        };
        self.0 = high;
        match first {
            Some(first) => Cow::Owned(format!("{first}{inner}")),
            None => inner,
        }
    }

    /// The other half is missing: the replacement of the received one.
    pub(crate) fn give_up(&mut self) -> &'static str {
        if self.0.take().is_some() { "\u{FFFD}" } else { "" }
    }

    /// The half is part of something that is known otherwise.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

/// A marked value, read as `serde_json` reads one.
struct Lenient(Value);

impl<'de> Deserializer<'de> for Lenient {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::String(text) => visitor.visit_string(Cut::read(&text).lossy),
            Value::Array(list) => {
                let mut list = SeqDeserializer::new(list.into_iter().map(Lenient));
                let value = visitor.visit_seq(&mut list)?;
                list.end().map(|()| value)
            }
            Value::Object(map) => {
                let mut map =
                    MapDeserializer::new(map.into_iter().map(|(key, value)| (Cut::read(&key).lossy, Lenient(value))));
                let value = visitor.visit_map(&mut map)?;
                map.end().map(|()| value)
            }
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    /// [`Text`] asks as a newtype: it alone is given the halves, in the marked form that [`read`] understands.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::String(text) if name == TEXT && text.contains(MARK) => visitor.visit_byte_buf(text.into_bytes()),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

impl IntoDeserializer<'_, serde_json::Error> for Lenient {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The name under which [`Text`] asks.
pub(crate) const TEXT: &str = "Text";

/// A string in its marked form.
pub(crate) fn read(marked: Vec<u8>) -> Result<Cut, fmt::Error> {
    String::from_utf8(marked).map(|marked| Cut::read(&marked)).map_err(|_| fmt::Error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Event<'a> {
        #[serde(borrow, default)]
        text: Text<'a>,
        #[serde(default)]
        other: Value,
    }

    /// The chunks of a stream, and the rest at its end.
    fn join(pieces: &[&str]) -> (Vec<String>, &'static str) {
        let mut half = Half::default();
        let given = pieces.iter().map(|piece| {
            let json = format!("{{\"text\":\"{piece}\"}}");
            let event: Event<'_> = from_str(&json).unwrap();
            half.join(event.text).into_owned()
        });
        (given.collect(), half.give_up())
    }

    #[test]
    fn halves_of_one_character_are_joined_and_others_replaced() {
        let given = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(join(&["a\\ud83d", "\\ude00b"]), (given(&["a", "😀b"]), ""));
        assert_eq!(join(&["\\uD83D", "", "\\uDE00"]), (given(&["", "", "😀"]), ""));
        assert_eq!(join(&["\\ude00\\ud83d", "\\ude00\\ud83d", "\\ude00"]), (given(&["\u{FFFD}", "😀", "😀"]), ""));
        assert_eq!(join(&["a\\ud83d"]), (given(&["a"]), "\u{FFFD}"));
        assert_eq!(join(&["a\\ud83d", "b"]), (given(&["a", "\u{FFFD}b"]), ""));
        assert_eq!(join(&["a\\ud83d", "\\ud83d", "\\ude00"]), (given(&["a", "\u{FFFD}", "😀"]), ""));
        assert_eq!(join(&["a", "\\ude00b"]), (given(&["a", "\u{FFFD}b"]), ""));
        assert_eq!(join(&["\\ud83dx\\ude00"]), (given(&["\u{FFFD}x\u{FFFD}"]), ""), "inside of a string nothing joins");
        assert_eq!(join(&["\\ud83d\\ude00\\n\\\\ud83d\\ud83d"]), (given(&["😀\n\\ud83d"]), "\u{FFFD}"));
        assert_eq!(join(&["\\ufdd0d83d\u{FDD0}\\ud83d", "\\ude00"]), (given(&["\u{FDD0}d83d\u{FDD0}", "😀"]), ""));
    }

    #[test]
    fn other_values_are_read_as_ever() {
        let json = r#"{"text":7,"other":{"a\udc00":["\ud83d",1,-2,3.5,null,true,{"b":"\ud83d\ude00"}]}}"#;
        let event: Event<'_> = from_str(json).unwrap();
        assert_eq!(event.text, Text::default());
        assert_eq!(event.other.to_string(), "{\"a\u{FFFD}\":[\"\u{FFFD}\",1,-2,3.5,null,true,{\"b\":\"😀\"}]}");
        for broken in [r#"{"text":"\ud83d""#, r#"{"text":"\ud83d"} x"#, r#"{"text":"\ud8"}"#, r#"{"text":"\ud83d\x"}"#]
        {
            assert!(from_str::<Event<'_>>(broken).is_err(), "{broken}");
        }
        assert_eq!(from_slice::<Value>(br#"["a\ud83d"]"#).unwrap(), serde_json::json!(["a\u{FFFD}"]));
    }
}
