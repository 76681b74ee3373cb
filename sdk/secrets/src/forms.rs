//! Values that have a form of their own: of headers, cookies, logins and recovery phrases.

use crate::judged::is_password;
use crate::operator::Operator;
use crate::plausible::{is_code, is_placeholder, looks_random, words};
use crate::text::{LONGEST_RUN, Text, is_blank, is_quote, is_visible, is_word};
use crate::value::{LONGEST_PLAIN_VALUE, LONGEST_VALUE, Value, plain};
use crate::{Found, address};

/// What is in the value of a name that has values of a form of its own.
pub(crate) fn of_kind(text: &Text<'_>, value: &Value<'_>, joined: Operator, name: &[u8]) -> Option<Found> {
    let ends = |words: &[&str]| words.iter().any(|word| name.ends_with(word.as_bytes()));
    if ends(&["authorization"]) {
        header(text, value)
    } else if ends(&["cookie", "cookies"]) {
        cookie(text, value)
    } else if ends(&["phrase", "mnemonic"]) {
        recovery_phrase(text, value)
    } else if ends(&["auth", "creds", "credentials", "login"]) {
        login(text, value, joined)
    } else {
        None
    }
}

/// The password of `auth: user:password`, plain or encoded, and of `login: user / password`.
fn login(text: &Text<'_>, value: &Value<'_>, joined: Operator) -> Option<Found> {
    if value.bytes.len() >= 12 && address::is_pair(value.bytes) {
        return Some(Found::new("key", value.start, value.start + value.bytes.len()));
    }
    let end = value.start + value.bytes.len();
    let (user, password) = if text.starts(end, b" / ") {
        (value.bytes, plain(text, end + 3, joined, LONGEST_PLAIN_VALUE)?)
    } else {
        let colon = value.bytes.iter().position(|byte| *byte == b':')?;
        let (bytes, start) = (&value.bytes[colon + 1..], value.start + colon + 1);
        (&value.bytes[..colon], Value { bytes, start, ..*value })
    };
    let start = password.start;
    let is_user = !user.is_empty() && user.iter().all(|byte| is_word(*byte) || matches!(byte, b'.' | b'-' | b'@'));
    let is_secret = is_user && joined != Operator::Comma && is_password(&password, Operator::Blank, b"", false);
    is_secret.then(|| Found::new("password", start, start + password.bytes.len()))
}

/// The words of a recovery phrase that has no quotes: a dozen of them, and nothing else on the line.
fn recovery_phrase(text: &Text<'_>, value: &Value<'_>) -> Option<Found> {
    if value.quoted {
        return None;
    }
    let end = text.run(value.start, 512, |byte| byte.is_ascii_lowercase() || byte == b' ');
    text.note_begun(value.start);
    let count = words(&text.bytes[value.start..end]).count();
    (count >= 12).then(|| Found::new("recovery phrase", value.start, end))
}

/// `Authorization: Bearer …`, and without a scheme.
fn header(text: &Text<'_>, value: &Value<'_>) -> Option<Found> {
    if let Some(found) = address::scheme(text, value.start) {
        return Some(found);
    }
    let word = text.run(value.start, 24, |byte| is_word(byte) || byte == b'-');
    let from = text.run(word, 4, |byte| is_blank(byte) || byte == b'=');
    let starts = if from > word { [from, value.start] } else { [value.start; 2] };
    starts.into_iter().find_map(|start| {
        let end = text.run(start, LONGEST_RUN, |byte| {
            is_visible(byte) && !is_quote(byte) && !matches!(byte, b'<' | b'\\' | b',')
        });
        text.note_begun(start);
        let bytes = &text.bytes[start..end];
        let is_key = bytes.len() >= 8
            && looks_random(bytes)
            && !is_placeholder(bytes)
            && !is_code(bytes, text.bytes.get(end).copied());
        is_key.then(|| Found::new("token", start, end))
    })
}

/// The values of cookies that look random: all of the header, from the first on.
fn cookie(text: &Text<'_>, value: &Value<'_>) -> Option<Found> {
    let end = text
        .run(value.start, LONGEST_VALUE, |byte| is_visible(byte) && !is_quote(byte) && byte != b'<' || byte == b' ');
    text.note_begun(value.start);
    let cookies = text.bytes[value.start..end].split(|byte| *byte == b';');
    let mut at = value.start;
    let mut first = None;
    for cookie in cookies {
        let equals = cookie.iter().position(|byte| *byte == b'=').map_or(cookie.len(), |equals| equals + 1);
        let secret = &cookie[equals..];
        if secret.len() >= 12 && looks_random(secret) && !is_placeholder(secret) {
            first.get_or_insert(at + equals);
            return Some(Found::new("cookie", first?, end));
        }
        at += cookie.len() + 1;
    }
    text.no_value_before.set(end);
    None
}
