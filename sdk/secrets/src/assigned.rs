//! The value of a name that says it is a secret: `password = "…"`, `API_KEY=…`, `"token": "…"`, `the password is …`.

use crate::forms::of_kind;
use crate::judged::{is_encoded, is_key, is_of_vendor, is_password, is_token};
use crate::names::{LONGEST_NAME, Name, Strength, may_end};
use crate::operator::{Operator, operator};
use crate::plausible::is_placeholder;
use crate::text::{Text, is_base64, is_quote, is_word};
use crate::value::{self, LONGEST_PLAIN_VALUE, LONGEST_VALUE, Value};
use crate::{Found, shapes, structured};

/// A name that begins here, with its value.
pub(crate) fn assigned(text: &Text<'_>, at: usize) -> Option<Found> {
    if at < text.no_value_before.get() {
        return None;
    }
    let end = name_end(text, at)?;
    let may_be_name = may_end(&text.bytes[at..end]);
    if !may_be_name && !may_join(text, end) {
        return None;
    }
    let phrase = phrase(text, at);
    let name = Name::of(&text.bytes[phrase..end]);
    let strength = if may_be_name { name.strength() } else { None };
    let (joined, from) = operator(text, at, end, strength)?;
    let value = value::find(text, from, joined, if strength.is_some() { LONGEST_VALUE } else { LONGEST_PLAIN_VALUE })?;
    text.note_begun(value.start);
    let name = name.as_bytes();
    // `Pass` is a verb of prose.
    let is_loose = matches!(joined, Operator::Blank | Operator::Prose);
    let is_verb = name.ends_with(b"pass") && text.previous(at) != Some(b'-') && !text.starts_any_case(end, b" is ");
    if is_loose && is_verb {
        return None;
    }
    if let Some(found) = of_kind(text, &value, joined, name) {
        return Some(found);
    }
    // `SECRET=word` of the environment.
    let is_variable = !text.bytes[at..end].iter().any(u8::is_ascii_lowercase) || name.contains(&b'_');
    let is_vendors = || is_of_vendor(&value, joined, text, at, end);
    let kind = match strength {
        Some(Strength::Password) => is_password(&value, joined, name, is_variable).then_some("password"),
        Some(Strength::Token) => (is_token(&value, joined) || is_vendors()).then_some("key"),
        Some(Strength::Weak) => (is_key(&value, joined) || is_vendors()).then_some("key"),
        None => is_vendors().then_some("key"),
    };
    if let Some(kind) = kind {
        let end = value.end(text);
        // A key that tells itself is called what it is.
        let own = shapes::prefixed(text, value.start).or_else(|| structured::token(text, value.start));
        return own.filter(|own| own.end >= end).or_else(|| Some(Found::new(kind, value.start, end)));
    }
    if strength.is_some() && !value.quoted && value.bytes.len() > LONGEST_PLAIN_VALUE {
        // What it contains is no value either.
        text.no_value_before.set(value.start + value.bytes.len());
    }
    let is_typed = strength >= Some(Strength::Token) && joined == Operator::Assigns;
    if is_typed { typed(text, &value, strength?) } else { None }
}

/// Whether what follows a word can join it with a value: not where another word of prose, or code, does.
fn may_join(text: &Text<'_>, end: usize) -> bool {
    match text.at(end) {
        Some(b' ' | b'\t') => text.at(end + 1).is_some_and(|byte| !byte.is_ascii_alphabetic()),
        Some(byte) => {
            is_quote(byte)
                || matches!(byte, b':' | b'=' | b',' | b'|' | b'?' | b'<' | b'>' | b'*' | b'_' | b']' | b')' | b'\\')
        }
        None => false,
    }
}

/// Where the name ends that begins here; `None` where it is longer than any.
fn name_end(text: &Text<'_>, at: usize) -> Option<usize> {
    let mut end =
        text.run(at, LONGEST_NAME + 1, |byte| is_word(byte) || matches!(byte, b'-' | b'.') || !byte.is_ascii());
    if end - at > LONGEST_NAME {
        return None;
    }
    // The colon of other writings.
    if let Some(colon) = text.bytes[at..end].windows(3).position(|part| part == "：".as_bytes()) {
        end = at + colon;
    }
    // `name->value` and the end of a sentence.
    while end > at && matches!(text.bytes[end - 1], b'-' | b'.') {
        end -= 1;
    }
    (end > at).then_some(end)
}

/// Where the phrase begins whose last word is here: `API key`, `client secret`.
fn phrase(text: &Text<'_>, at: usize) -> usize {
    let Some(blank) = at.checked_sub(1).filter(|blank| text.bytes[*blank] == b' ') else { return at };
    let before = text.bytes[..blank].iter().rev().take(24).take_while(|byte| is_word(**byte)).count();
    if before == 0 { at } else { blank - before }
}

/// The literal behind a type: `password: &str = "…"`.
fn typed(text: &Text<'_>, value: &Value<'_>, strength: Strength) -> Option<Found> {
    if value.quoted {
        return None;
    }
    let end = text.run(value.start, 48, |byte| {
        is_word(byte) || matches!(byte, b'<' | b'>' | b'&' | b'\'' | b':' | b'[' | b']' | b' ' | b'?' | b'|')
    });
    if text.at(end) != Some(b'=') || text.at(end + 1) == Some(b'=') {
        return None;
    }
    let literal = value::find(text, end + 1, Operator::Assigns, LONGEST_VALUE).filter(|value| value.quoted)?;
    let (is_secret, kind) = match strength {
        Strength::Password => (is_password(&literal, Operator::Assigns, b"", false), "password"),
        Strength::Token | Strength::Weak => (is_token(&literal, Operator::Assigns), "key"),
    };
    is_secret.then(|| Found::new(kind, literal.start, literal.end(text)))
}

/// How a value is judged whose name is elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// As behind an operator.
    Assigned,
    /// As in a cell.
    Alone,
    /// As in a list, which can be one of ordinary words.
    Listed,
    /// All of it is a secret.
    Any,
    /// It is one if it is base64 of something.
    Encoded,
}

/// The value that begins at a place of a line, of a name that was on an earlier one.
pub(crate) fn value_of(line: &str, from: usize, strength: Strength, judged: Judged) -> Option<Found> {
    let text = Text::new(line.as_bytes(), None);
    let joined = match judged {
        Judged::Alone => Operator::Cell,
        Judged::Listed => Operator::Blank,
        Judged::Assigned | Judged::Any | Judged::Encoded => Operator::Assigns,
    };
    let value = value::find(&text, from, joined, LONGEST_VALUE)?;
    let bytes = value.bytes;
    let is_secret = match (judged, strength) {
        (Judged::Any, _) => bytes.len() >= 4 && !is_placeholder(bytes),
        (Judged::Encoded, _) => {
            bytes.len() >= 8
                && bytes.len().is_multiple_of(4)
                && bytes.iter().all(|byte| is_base64(*byte))
                && is_encoded(bytes)
        }
        (_, Strength::Password) => is_password(&value, joined, b"", false),
        (_, Strength::Token | Strength::Weak) => is_token(&value, joined),
    };
    let kind = if strength == Strength::Password { "password" } else { "key" };
    is_secret.then(|| Found::new(kind, value.start, value.end(&text)))
}
