//! The value behind an operator: where it begins, and where it ends in its surroundings.

use crate::operator::{Operator, tag};
use crate::text::{Text, is_blank, is_quote, is_visible, is_word};

/// What is looked at of a value: enough to see that it is one.
pub(crate) const LONGEST_VALUE: usize = 2048;

/// A name without a meaning of its own is not followed further: its value is not looked for in long runs.
pub(crate) const LONGEST_PLAIN_VALUE: usize = 160;

/// A value, as it is found behind an operator.
pub(crate) struct Value<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) start: usize,
    pub(crate) quoted: bool,
    /// Nothing follows on its line, or in its cell: it is no word of a sentence.
    pub(crate) is_last: bool,
    /// The byte behind it.
    pub(crate) next: Option<u8>,
}

impl Value<'_> {
    /// Where it ends: one that is longer than what is looked at ends with its run.
    pub(crate) fn end(&self, text: &Text<'_>) -> usize {
        let end = self.start + self.bytes.len();
        let is_cut = self.bytes.len() + 4 >= LONGEST_VALUE;
        if is_cut { text.run(end, usize::MAX, |byte| is_visible(byte) && !is_quote(byte)) } else { end }
    }
}

/// The value that begins behind an operator.
pub(crate) fn find<'a>(text: &Text<'a>, from: usize, joined: Operator, most: usize) -> Option<Value<'a>> {
    let mut at = text.run(from, 64, is_blank);
    while let Some(next) = tag(text, at).filter(|_| joined != Operator::Tight) {
        at = text.run(next, 64, is_blank);
    }
    if joined != Operator::Tight {
        at = text.run(at, 3, |byte| matches!(byte, b'*' | b'_'));
    }
    at = text.run(at, 64, is_blank);
    at = text.run(at, 1, |byte| byte == b'|' && joined == Operator::Cell);
    at = text.run(at, 64, is_blank);
    // A second sign, a quote that is escaped or written as an entity, the letter of a kind of string.
    let sign = text.run(at, 2, |byte| byte == b'=');
    let prefix = text.run(at, 1, |byte| matches!(byte, b'r' | b'b' | b'f' | b'u' | b'$' | b'@' | b'L'));
    let escaped = text.run(at, 2, |byte| byte == b'\\');
    let open = [at, sign, prefix, escaped].into_iter().find(|at| text.at(*at).is_some_and(is_quote));
    if let Some(open) = open {
        let start = text.run(open, 4, |byte| is_quote(byte) || byte == b'=');
        let quote = text.bytes[open..start].iter().copied().rfind(|byte| is_quote(*byte))?;
        // Two quotes are an empty string, unless a value is written behind them.
        let follows = text.at(start).is_some_and(|byte| is_word(byte) || byte == b'-');
        let is_empty = start - open == 2 && text.bytes[open] == quote && !follows;
        return if is_empty { None } else { quoted(text, start, quote, joined, most) };
    }
    let start = if text.starts(at, b"&quot;") { at + 6 } else { sign };
    plain(text, start, joined, most)
}

fn quoted<'a>(text: &Text<'a>, start: usize, quote: u8, joined: Operator, most: usize) -> Option<Value<'a>> {
    let mut end = start;
    while end - start < most && text.at(end).is_some_and(|byte| byte != quote && byte != b'\n' && byte != b'\r') {
        end +=
            if text.bytes[end] == b'\\' && text.bytes.get(end + 1).is_some_and(|next| *next != quote) { 2 } else { 1 };
    }
    end = floor(text.bytes, end.min(text.bytes.len()));
    if text.at(end) != Some(quote) {
        // Without its closing quote it ends as any other value.
        return plain(text, start, joined, most);
    }
    // The backslash of an escaped quote is not a part of it.
    while end > start && text.bytes[end - 1] == b'\\' {
        end -= 1;
    }
    let next = text.bytes.get(end + 1).copied();
    Some(Value { bytes: &text.bytes[start..end], start, quoted: true, is_last: true, next })
}

/// A value without quotes: up to white space, or to what ends one in its surroundings.
pub(crate) fn plain<'a>(text: &Text<'a>, start: usize, joined: Operator, most: usize) -> Option<Value<'a>> {
    // Few separators are looked behind.
    let left = core::cell::Cell::new(8_u32);
    let ends = |at: usize, byte: u8| match byte {
        b'"' | b'`' | b'<' | b'>' => true,
        b'\'' => !text.at(at + 1).is_some_and(|next| next.is_ascii_alphanumeric()),
        b'\\' => matches!(text.at(at + 1), Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\\')),
        b'(' | b'[' => joined != Operator::Prose,
        b')' | b']' | b'}' => !text.at(at + 1).is_some_and(|next| next.is_ascii_alphanumeric()),
        b'|' => joined == Operator::Cell,
        // Another pair follows.
        b'&' | b';' | b',' => {
            left.set(left.get().saturating_sub(1));
            left.get() == 0 || is_pair_next(text, at + 1)
        }
        _ => false,
    };
    let mut end = start;
    while end - start < most && text.at(end).is_some_and(|byte| is_visible(byte) && !(ends(end, byte) && end > start)) {
        end += 1;
    }
    end = floor(text.bytes, end);
    let next = text.bytes.get(end).copied();
    let rest = text.run(end, 8, |byte| matches!(byte, b' ' | b'*' | b'_' | b'`'));
    let is_last = matches!(text.at(rest), None | Some(b'\n' | b'\r' | b'|' | b'<' | b'#'));
    // Punctuation behind it is that of a sentence.
    while end > start && matches!(text.bytes[end - 1], b'.' | b',' | b';' | b':' | b'*') {
        end -= 1;
    }
    (end > start).then(|| Value { bytes: &text.bytes[start..end], start, quoted: false, is_last, next })
}

/// Whether `&`, `;` or `,` ended a value: nothing, white space or another name follows.
fn is_pair_next(text: &Text<'_>, at: usize) -> bool {
    let from = text.run(at, 8, |byte| is_blank(byte) || byte == b'"');
    if from > at || text.at(from).is_none_or(|byte| !is_visible(byte)) {
        return true;
    }
    let end = text.run(from, 40, |byte| is_word(byte) || matches!(byte, b' ' | b'-' | b'.'));
    end > from && matches!(text.at(end), Some(b'=' | b':'))
}

fn floor(bytes: &[u8], mut at: usize) -> usize {
    while at > 0 && at < bytes.len() && bytes[at] & 0xc0 == 0x80 {
        at -= 1;
    }
    at
}
