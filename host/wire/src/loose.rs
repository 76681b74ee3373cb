//! Text and numbers that a server may send as something else: what has another type counts as absent.
//!
//! Servers that imitate a wire format get details wrong (`"id": 7`, `"content": null`, `"index": "0"`); a strict type
//! would discard a whole answer because of an unused field.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::surrogates::{self, Cut, TEXT};

/// A string, borrowed where it contains no escapes; empty where it was absent or no string.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    /// A string of whole characters.
    Whole(Cow<'a, str>),
    /// It begins or ends inside a character, or contains a half of one.
    Cut(Box<Cut>),
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::Whole(Cow::Borrowed(""))
    }
}

impl Text<'_> {
    /// The string; halves of characters are U+FFFD.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Whole(whole) => whole,
            Self::Cut(cut) => cut.lossy(),
        }
    }

    pub(crate) fn into_string(self) -> String {
        match self {
            Self::Whole(whole) => whole.into_owned(),
            Self::Cut(cut) => cut.into_lossy(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }

    /// The string, or `None` where it is empty.
    pub(crate) fn given(&self) -> Option<&str> {
        Some(self.as_str()).filter(|text| !text.is_empty())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_newtype_struct(TEXT, Loose::<false>).map(|value| match value {
            Value::Text(text) => text,
            Value::Number(_) | Value::List(_) | Value::Map(_) | Value::Other => Self::default(),
        })
    }
}

/// A whole number that is not negative, also in quotes; `None` where it was absent or something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) Option<u64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Loose::<false>).map(|value| match value {
            Value::Number(number) => Self(Some(number)),
            Value::Text(text) => Self(text.as_str().parse().ok()),
            Value::List(_) | Value::Map(_) | Value::Other => Self(None),
        })
    }
}

/// For a field with parts of its own: absent and `null` are the same.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// Any value, for fields whose shape differs between servers.
#[derive(Debug, Default)]
pub(crate) enum Value<'a> {
    /// A JSON string, decoded.
    Text(Text<'a>),
    /// A whole number that is not negative.
    Number(u64),
    /// An array; its elements are skipped.
    List(Vec<Value<'a>>),
    /// An object; its members are skipped.
    Map(Vec<(String, Value<'a>)>),
    /// A number, a boolean or null.
    #[default]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_newtype_struct(TEXT, Loose::<true>)
    }
}

/// Reads any value; the inside of arrays and objects only where `INSIDE`.
struct Loose<const INSIDE: bool>;

impl<'de, const INSIDE: bool> Visitor<'de> for Loose<INSIDE> {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Text::Whole(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Text::Whole(Cow::Owned(text.to_owned()))))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Value::Text(Text::Whole(Cow::Owned(text))))
    }

    /// A string with halves of characters, which only [`crate::surrogates`] gives.
    fn visit_byte_buf<E: serde::de::Error>(self, marked: Vec<u8>) -> Result<Self::Value, E> {
        surrogates::read(marked).map(|cut| Value::Text(Text::Cut(Box::new(cut)))).map_err(E::custom)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        // `12.0` is what some servers make of 12.
        let whole = number >= 0.0 && number.fract() == 0.0 && number < 9e15;
        Ok(if whole { Value::Number(number as u64) } else { Value::Other })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        if INSIDE {
            while let Some(entry) = seq.next_element()? {
                list.push(entry);
            }
        } else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        if INSIDE {
            while let Some(entry) = map.next_entry()? {
                list.push(entry);
            }
        } else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        Ok(Value::Map(list))
    }
}
