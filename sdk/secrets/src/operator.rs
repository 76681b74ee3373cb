//! What joins a name with its value, in code, files, markup and prose.

use crate::names::Strength;
use crate::plausible::looks_random;
use crate::text::{Text, is_blank, is_quote, is_word};

/// How a name and its value are joined. The looser, the more the value itself must look like a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `NAME=value`, without blanks: the environment, a query, a connection string.
    Tight,
    /// `name = value`, `name: value`, `name => value`.
    Assigns,
    /// `<name>value</name>`, the element of a document.
    Element,
    /// `name("value")`, the argument of a call.
    Call,
    /// `--name value`, `name "value"`.
    Blank,
    /// `name is value`.
    Prose,
    /// `| name | value |`, `<td>name</td><td>value</td>`.
    Cell,
    /// `name, value`, as in a list; `name > value`.
    Comma,
}

/// The operator behind a name that begins at `start` and ends at `end`, and where its value begins.
pub(crate) fn operator(
    text: &Text<'_>,
    start: usize,
    end: usize,
    strength: Option<Strength>,
) -> Option<(Operator, usize)> {
    if text.previous(start) == Some(b'<') {
        return element(text, end);
    }
    // `the password's hunter2`.
    if text.starts(end, b"'s ") {
        return Some((Operator::Prose, end + 3));
    }
    let closed = closers(text, end);
    let (mut at, mut in_cell) = (closed, false);
    // Tags behind the name, such as the end of its cell.
    while let Some(next) = tag(text, blanks(text, at)) {
        in_cell = true;
        at = next;
    }
    at = blanks(text, if in_cell { closers(text, blanks(text, at)) } else { at });
    let spaced = at > closed;
    let first = text.at(at)?;
    // The attribute that has the value of `<add key="Password" value="…">`.
    if (spaced || closed > end) && text.starts_any_case(at, b"value") && matches!(text.at(at + 5), Some(b'=' | b':')) {
        return Some((Operator::Assigns, at + 6));
    }
    let operator = match first {
        b':' if text.starts(at, b"::=") || text.starts(at, b":::=") => {
            (Operator::Assigns, text.run(at, 3, |byte| byte == b':') + 1)
        }
        b':' if matches!(text.at(at + 1), Some(b':' | b'/')) => return None,
        b':' => (Operator::Assigns, at + 1 + usize::from(text.at(at + 1) == Some(b'='))),
        b'=' | b'!' if text.at(at + 1) == Some(b'=') => (Operator::Assigns, text.run(at + 1, 2, |byte| byte == b'=')),
        b'=' if text.at(at + 1) == Some(b'>') => (Operator::Assigns, at + 2),
        b'=' if !spaced && !text.at(at + 1).is_some_and(is_blank) => (Operator::Tight, at + 1),
        b'=' => (Operator::Assigns, at + 1),
        b'?' | b'|' if text.at(at + 1) == Some(b'=') => (Operator::Assigns, at + 2),
        b'|' if text.at(at + 1) == Some(b'|') => (Operator::Assigns, at + 2),
        b'|' => (Operator::Cell, at + 1),
        b'-' if text.at(at + 1) == Some(b'>') => (Operator::Assigns, at + 2),
        b'-' if spaced && text.at(at + 1).is_some_and(is_blank) => (Operator::Prose, at + 1),
        b'>' if !in_cell => (Operator::Comma, at + 1),
        0xe2 if text.starts(at, "→".as_bytes())
            || text.starts(at, "—".as_bytes())
            || text.starts(at, "–".as_bytes()) =>
        {
            (Operator::Prose, at + 3)
        }
        0xef if text.starts(at, "：".as_bytes()) => (Operator::Assigns, at + 3),
        b',' => match named_value(text, at) {
            Some(value) => (Operator::Assigns, value),
            // `define('DB_PASSWORD', '…')`, `["token", "…"]`.
            None if closed > end && text.at(blanks(text, at + 1)).is_some_and(is_quote) => {
                let is_first = start >= 3 && text.bytes[start - 2] == b'(' && is_word(text.bytes[start - 3]);
                (if is_first { Operator::Call } else { Operator::Blank }, at + 1)
            }
            None => (Operator::Comma, at + 1),
        },
        b'%' if text.starts_any_case(at, b"%3d") || text.starts_any_case(at, b"%3a") => (Operator::Tight, at + 3),
        b'(' if closed == end && text.at(end) == Some(b'(') => (Operator::Call, at + 1),
        _ if in_cell => (Operator::Cell, at),
        _ if spaced => return loose(text, (start, end), at, strength?),
        _ => return None,
    };
    Some(operator)
}

/// The quotes, the emphasis and the brackets that end with a name.
fn closers(text: &Text<'_>, at: usize) -> usize {
    let quoted = text.run(at, 6, |byte| is_quote(byte) || matches!(byte, b'*' | b'_' | b']' | b')' | b'\\' | b'~'));
    if text.starts(quoted, b"&quot;") { quoted + 6 } else { quoted }
}

fn blanks(text: &Text<'_>, at: usize) -> usize {
    text.run(at, 64, is_blank)
}

/// Where the tag ends that begins here.
pub(crate) fn tag(text: &Text<'_>, at: usize) -> Option<usize> {
    let is_tag = text.at(at)? == b'<' && text.at(at + 1).is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'/');
    if !is_tag {
        return None;
    }
    let end = text.run(at + 1, 80, |byte| !matches!(byte, b'<' | b'>' | b'\n'));
    (text.at(end) == Some(b'>')).then_some(end + 1)
}

/// `<name>` and `<name attribute="…">`.
fn element(text: &Text<'_>, end: usize) -> Option<(Operator, usize)> {
    let close = text.run(end, 120, |byte| !matches!(byte, b'<' | b'>' | b'\n' | b'/'));
    (text.at(close) == Some(b'>')).then_some((Operator::Element, close + 1))
}

/// The value of `name="password", value="…"`, and of the same in other spellings.
fn named_value(text: &Text<'_>, comma: usize) -> Option<usize> {
    let mut at = blanks(text, comma + 1);
    at = text.run(at, 3, |byte| is_quote(byte) || byte == b'\\');
    if !text.starts_any_case(at, b"value") {
        return None;
    }
    at = text.run(at + 5, 3, |byte| is_quote(byte) || byte == b'\\');
    at = blanks(text, at);
    matches!(text.at(at)?, b':' | b'=').then_some(at + 1)
}

/// What is behind a name and a blank: words that lead to a value, or the value.
fn loose(text: &Text<'_>, name: (usize, usize), at: usize, strength: Strength) -> Option<(Operator, usize)> {
    if strength == Strength::Weak {
        return None;
    }
    let is_flag = text.previous(name.0) == Some(b'-');
    let is_quoted = text.at(at).is_some_and(is_quote);
    if is_flag || is_quoted {
        return Some((Operator::Blank, at));
    }
    if let Some(value) = linked(text, at) {
        return Some((Operator::Prose, value));
    }
    // Of a sentence: what follows must look like a secret by itself.
    if let Some(verb) = [&b"to "[..], b"are "].into_iter().find(|verb| text.starts_any_case(at, verb)) {
        return Some((Operator::Blank, at + verb.len()));
    }
    // In a file of logins, and in short prose: `password hunter2`.
    let word = text.run(at, 80, |byte| byte > b' ' && !is_quote(byte));
    let word = text.bytes.get(at..word)?;
    let has = |part: fn(&u8) -> bool| word.iter().any(part);
    // Names of algorithms have capitals and digits.
    let is_long =
        word.len() >= 8 && has(u8::is_ascii_digit) && (has(u8::is_ascii_lowercase) || !has(u8::is_ascii_uppercase));
    if looks_random(word) || is_long {
        return Some((Operator::Blank, at));
    }
    // A few words may say whose it is: `the password for the database is …`, `Password (staging): …`.
    let end = text.run(at, 48, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-' | b'\'' | b'(' | b')' | b'`' | b'*')
    });
    if text.at(end) == Some(b':') && text.at(end + 1).is_some_and(is_blank) {
        return Some((Operator::Prose, end + 1));
    }
    let words = text.bytes.get(at..end)?;
    let verb = words.windows(4).position(|word| word == b" is " || word == b" to ")?;
    Some((Operator::Prose, at + verb + 4))
}

/// The value behind a verb.
fn linked(text: &Text<'_>, at: usize) -> Option<usize> {
    let after = |words: &[&str], at: usize| {
        let word = words.iter().find(|word| text.starts_any_case(at, word.as_bytes()))?;
        Some(at + word.len())
    };
    let verb = after(&["is ", "was ", "as ", "is: ", "= ", "has been ", "lautet ", "ist ", "est ", "es "], at)?;
    let adverb = after(&["now ", "still ", "just ", "set to ", "reset to ", "changed to ", "called ", "simply "], verb);
    Some(adverb.unwrap_or(verb))
}
