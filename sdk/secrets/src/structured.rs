//! Tokens that are known by what is in their middle or at their end, and web tokens, which are several parts.

use crate::Found;
use crate::plausible::{is_placeholder, looks_random};
use crate::text::{LONGEST_RUN, Text, is_base64};

/// A web token, or a key block that was encoded.
pub(crate) fn token(text: &Text<'_>, at: usize) -> Option<Found> {
    match text.at(at)? {
        b'e' => web_token(text, at),
        b'L' => encoded_key(text, at),
        _ => None,
    }
}

/// A signed or encrypted web token: parts of base64 with dots between, the first of which is a JSON object.
fn web_token(text: &Text<'_>, at: usize) -> Option<Found> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'+' | b'=');
    if !text.starts(at, b"ey") || at < text.no_web_token_before.get() {
        return None;
    }
    let mut end = text.run(at, LONGEST_RUN, is_part);
    if text.starts(at, b"eyJ") || end - at >= 17 {
        text.note_begun(at);
    }
    if end - at < 17 || text.at(end) != Some(b'.') {
        // From any place before its end it would fail again.
        text.no_web_token_before.set(end);
        return None;
    }
    let second = part(text, end + 1);
    if second - end < 17 {
        return None;
    }
    end = second;
    for _ in 0..3 {
        if text.at(end) != Some(b'.') {
            break;
        }
        let next = part(text, end + 1);
        if next == end + 1 {
            break;
        }
        end = next;
    }
    (!is_placeholder(&text.bytes[at..end])).then(|| Found::new("web token", at, end))
}

/// Where a part of a web token ends; a backslash in it is no escape of a line end or a quote.
fn part(text: &Text<'_>, from: usize) -> usize {
    let mut end = from;
    while end - from < LONGEST_RUN {
        let is_part = match text.at(end) {
            Some(b'\\') => {
                text.at(end + 1).is_some_and(|next| next.is_ascii_alphanumeric() && !matches!(next, b'n' | b'r' | b't'))
            }
            Some(byte) => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'+' | b'='),
            None => false,
        };
        if !is_part {
            break;
        }
        end += 1;
    }
    end
}

/// A key block that was encoded once more, as in the configuration of Kubernetes.
fn encoded_key(text: &Text<'_>, at: usize) -> Option<Found> {
    // `-----BEGIN `, then the label: the encoding of `PRIVATE` has three forms, by the bytes before it.
    if !text.starts(at, b"LS0tLS1CRUdJTi") {
        return None;
    }
    let end = text.run(at, LONGEST_RUN, is_base64);
    text.note_begun(at);
    let head = &text.bytes[at..end.min(at + 72)];
    let is_private = [&b"UFJJVkFURS"[..], b"BSSVZBVEUg", b"QUklWQVRFI"]
        .iter()
        .any(|form| head.windows(form.len()).any(|part| part == *form));
    (is_private && end - at >= 80).then(|| Found::new(crate::PRIVATE_KEY, at, end))
}

/// The shortest token with a landmark.
const SHORTEST: usize = 30;

/// Where the run of letters, digits and marks ends that a token can be.
pub(crate) fn run_end(text: &Text<'_>, at: usize) -> usize {
    text.run(at, 512, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+'))
}

/// A token with a landmark in it.
pub(crate) fn landmark(text: &Text<'_>, at: usize) -> Option<Found> {
    let mut end = run_end(text, at);
    // A short run before a sign is a name; a long one goes on behind it.
    if end - at >= SHORTEST {
        end = text.run(end, 512, |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'=' | b'/')
        });
    }
    // The end of a sentence is none of a token.
    while end > at && text.bytes[end - 1] == b'.' {
        end -= 1;
    }
    let token = &text.bytes[at..end];
    let has = |part: fn(&u8) -> bool| token.iter().any(part);
    let may_be = token.len() >= 6 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    if may_be || matches!(token, [_, _, _, b'0'..=b'9'] | [_, _, _, b'0'..=b'9', b'Q', ..]) {
        text.note_begun(at);
    }
    if token.len() < SHORTEST {
        return None;
    }
    let has = |mark: &[u8]| token.windows(mark.len()).any(|part| part == mark);
    let kind = match token {
        [_, _, _, digit, b'Q', b'~', rest @ ..] if digit.is_ascii_digit() && (31..=34).contains(&rest.len()) => {
            "Azure secret"
        }
        _ if token.len() >= 75 && has(b".atlasv1.") => "Terraform token",
        _ if token.len() == 40 && token.ends_with(b"_mmk") => "MaxMind key",
        _ if token.len() >= 50 && (has(b".acc_") || has(b".acc-")) => "Authress key",
        [b'M' | b'N' | b'O', ..] if is_discord(token) => "Discord token",
        [hex @ .., b'-', b'u', b's', _] | [hex @ .., b'-', b'u', b's', _, _]
            if hex.len() == 32 && hex.iter().all(u8::is_ascii_hexdigit) =>
        {
            "Mailchimp key"
        }
        _ => return None,
    };
    looks_random(token).then(|| Found::new(kind, at, end))
}

/// Three parts: a user's number, a time, a signature.
fn is_discord(token: &[u8]) -> bool {
    let mut parts = token.split(|byte| *byte == b'.').map(<[u8]>::len);
    let lengths = (parts.next(), parts.next(), parts.next(), parts.next());
    matches!(lengths, (Some(24..=28), Some(6..=7), Some(27..=40), None))
}

/// The secret that belongs to the number of an AWS key: 40 letters of base64.
pub(crate) fn aws_secret(text: &Text<'_>, at: usize) -> Option<Found> {
    let end = text.run(at, 41, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    text.note_begun(at);
    let secret = &text.bytes[at..end];
    let has = |part: fn(&u8) -> bool| secret.iter().any(part);
    let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    (secret.len() == 40 && is_mixed && !is_placeholder(secret)).then(|| Found::new("AWS secret", at, end))
}

/// A number of a bot or an app with its secret: `110201543:AAH…`, `1234567890123456|abc…`.
pub(crate) fn numbered(text: &Text<'_>, at: usize) -> Option<Found> {
    if !text.at(at)?.is_ascii_digit() {
        return None;
    }
    let digits = text.run(at, 20, |byte| byte.is_ascii_digit());
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let (kind, length) = match (digits - at, text.at(digits)?) {
        (5..=16, b':') if text.at(digits + 1) == Some(b'A') => ("Telegram token", 35..=35),
        (15..=16, b'|' | b'%') => ("Facebook token", 27..=40),
        _ => return None,
    };
    let end = text.run(digits + 1, LONGEST_RUN, is_part);
    text.note_begun(at);
    let secret = &text.bytes[digits + 1..end];
    (length.contains(&secret.len()) && looks_random(secret)).then(|| Found::new(kind, at, end))
}
