//! Whether the value of a name is a secret, by what the name says and by how the value looks.

use crate::names::Name;
use crate::operator::Operator;
use crate::plausible::{
    is_about_secrets, is_code, is_filler, is_known_word, is_mixed, is_of_sentence, is_passphrase, is_place,
    is_placeholder, is_scrambled, looks_random, words,
};
use crate::text::{Text, is_word};
use crate::value::Value;

/// Whether a value can be none, whatever its name is.
fn is_no_value(value: &Value<'_>) -> bool {
    let bytes = value.bytes;
    let is_tagged = !value.quoted
        && matches!(bytes.first(), Some(b'!' | b'&' | b'*' | b'@' | b'-'))
        && bytes.len() < 24
        && !looks_random(bytes);
    is_placeholder(bytes)
        || is_known_word(bytes)
        || is_place(bytes)
        || is_tagged
        || (!value.quoted && is_code(bytes, value.next))
}

pub(crate) fn is_password(value: &Value<'_>, joined: Operator, name: &[u8], is_variable: bool) -> bool {
    let bytes = value.bytes;
    if is_no_value(value) || bytes.len() < 4 || is_filler(bytes) {
        return false;
    }
    if bytes.contains(&b' ') {
        // The words of a phrase, or a sentence about passwords.
        let is_phrase = [&b"phrase"[..], b"mnemonic"].iter().any(|end| name.ends_with(end));
        return value.quoted && (is_phrase && words(bytes).count() >= 4 || is_passphrase(bytes));
    }
    if is_mail(bytes) || words(bytes).any(is_about_secrets) && !is_mixed(bytes) {
        return false;
    }
    let strict = looks_random(bytes)
        || (is_mixed(inner(bytes)) && !words(bytes).all(is_number_or_short))
        || bytes.len() >= 6 && bytes.iter().all(u8::is_ascii_digit)
        || is_scrambled(bytes);
    let is_word = || bytes.len() >= 6 && bytes.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-');
    // A word alone can be one of a sentence, or of code.
    let is_chosen = || is_word() && value.is_last && !is_of_sentence(bytes);
    match joined {
        Operator::Element => strict || is_mixed(bytes) && bytes.len() >= 5 || is_word(),
        Operator::Tight | Operator::Assigns => {
            let may_be_word = value.quoted || (joined == Operator::Tight && is_variable);
            strict || is_mixed(bytes) && bytes.len() >= 5 || (may_be_word && is_word()) || is_chosen()
        }
        Operator::Call | Operator::Cell | Operator::Prose => strict || is_chosen(),
        Operator::Blank => strict && bytes.len() >= 6,
        Operator::Comma => bytes.len() >= 8 && looks_random(bytes) && value.next != Some(b'='),
    }
}

/// Without punctuation at its end.
fn inner(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|byte| !matches!(byte, b'!' | b'?' | b'*')).map_or(0, |at| at + 1);
    &value[..end]
}

fn is_number_or_short(word: &[u8]) -> bool {
    word.len() < 3 || word.iter().all(u8::is_ascii_digit)
}

fn is_mail(value: &[u8]) -> bool {
    let Some(at) = value.iter().position(|byte| *byte == b'@') else { return false };
    let (user, host) = (&value[..at], &value[at + 1..]);
    let is_host =
        host.contains(&b'.') && host.iter().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'-'));
    !user.is_empty() && is_host
}

pub(crate) fn is_token(value: &Value<'_>, joined: Operator) -> bool {
    let bytes = value.bytes;
    if is_no_value(value) || bytes.contains(&b' ') || is_mail(bytes) {
        return false;
    }
    let least = match joined {
        Operator::Tight | Operator::Assigns | Operator::Element if value.quoted => 8,
        Operator::Tight | Operator::Assigns | Operator::Element | Operator::Call => 10,
        Operator::Blank | Operator::Prose | Operator::Cell => 12,
        Operator::Comma => 16,
    };
    bytes.len() >= least && (looks_random(bytes) || is_scrambled(bytes))
}

/// A value that only a key has: long, random, and no number of a version, a digest or a record.
pub(crate) fn is_key(value: &Value<'_>, joined: Operator) -> bool {
    let bytes = value.bytes;
    let is_text = is_no_value(value)
        || is_uuid(bytes)
        || bytes.iter().any(|byte| matches!(byte, b' ' | b':' | b'/' | b'@' | b'(' | b','));
    let random: usize = words(bytes).filter(|word| word.len() >= 8 && looks_random(word)).map(<[u8]>::len).sum();
    matches!(joined, Operator::Tight | Operator::Assigns) && !is_text && bytes.len() >= 16 && random * 2 >= bytes.len()
}

/// The key of a vendor whose name is near: it looks random, or it is a long number.
pub(crate) fn is_of_vendor(value: &Value<'_>, joined: Operator, text: &Text<'_>, at: usize, end: usize) -> bool {
    let bytes = value.bytes;
    let is_loose = matches!(joined, Operator::Prose | Operator::Blank);
    if is_loose || bytes.len() < 12 || bytes.contains(&b' ') {
        return false;
    }
    let is_number = bytes.len() >= 14 && bytes.iter().all(u8::is_ascii_digit);
    let is_random = looks_random(bytes) && words(bytes).any(|word| word.len() >= 8 && looks_random(word))
        || is_uuid(bytes)
        || is_scrambled(bytes);
    if !(is_number || is_random) || is_no_value(value) {
        return false;
    }
    let before = text.bytes[..at]
        .iter()
        .rev()
        .take(40)
        .take_while(|byte| is_word(**byte) || matches!(byte, b' ' | b'.' | b'-'))
        .count();
    let name = Name::of(&text.bytes[at - before..end]);
    let ends_in = |word: &str| name.as_bytes().ends_with(word.as_bytes());
    let is_record = [
        "trace_id",
        "event_id",
        "request_id",
        "span_id",
        "run_id",
        "build_id",
        "commit",
        "sha",
        "sha256",
        "digest",
        "checksum",
        "hash",
    ];
    name.names_a_vendor() && !is_record.iter().any(|word| ends_in(word))
}

fn is_uuid(value: &[u8]) -> bool {
    let lengths = value.split(|byte| *byte == b'-').map(<[u8]>::len);
    value.len() == 36
        && lengths.eq([8, 4, 4, 4, 12])
        && value.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}

/// Base64 has capitals, or the padding of its end; a word has neither.
pub(crate) fn is_encoded(value: &[u8]) -> bool {
    value.ends_with(b"=") || (value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase))
}
