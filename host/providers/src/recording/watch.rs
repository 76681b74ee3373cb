//! Finds what must be masked in one text that arrives in chunks, each byte with its position in the body.
//!
//! The text is searched twice: as it is, and with JSON's escapes decoded once more, because the arguments of a call are
//! JSON inside of JSON and an error's body may be read raw.

use std::ops::Range;

use super::secrets::{Fill, Hit, Masks};

/// A text under way.
#[derive(Debug, Default)]
pub(super) struct Watch {
    text: Vec<u8>,
    /// For each byte of the text, the bytes of the body that spell it.
    places: Vec<Range<usize>>,
    /// The byte before `text`, as it is and with escapes undone.
    before: [Option<u8>; 2],
    /// Bytes of the body from here on must wait.
    pub(super) hold: Option<usize>,
}

/// Bytes of the body, and what is to be written over each of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Patch {
    pub(super) place: Range<usize>,
    pub(super) fill: u8,
}

impl Patch {
    /// Masks one byte. Nothing of a named secret remains, even if it has a known shape.
    pub(super) fn apply(fill: u8, byte: &mut u8) {
        if *byte != b'*' {
            *byte = fill;
        }
    }
}

impl Watch {
    pub(super) fn push(&mut self, byte: u8, place: Range<usize>) {
        self.text.push(byte);
        self.places.push(place);
    }

    /// Finds what is complete, and forgets what can no longer matter. `is_last`: nothing follows, so that all is complete.
    pub(super) fn look(&mut self, masks: &Masks, is_last: bool, patches: &mut Vec<Patch>) {
        let [before, inner_before] = self.before;
        let plain = masks.find(&self.text, before, is_last);
        self.patch(&plain.hits, &self.text, |at| at..at + 1, patches);
        let (mut unsure, mut open) = (plain.unsure, plain.open);
        let mut last = None;
        if before != inner_before || memchr::memchr(b'\\', &self.text).is_some() {
            let inner = Unescaped::of(&self.text);
            let found = masks.find(&inner.bytes, inner_before, is_last);
            self.patch(&found.hits, &inner.bytes, |at| inner.places[at].clone(), patches);
            let place = |at: usize| inner.places.get(at).map_or(inner.end, |place| place.start);
            unsure = unsure.min(place(found.unsure));
            open = open.min(place(found.open));
            // Whole escapes are forgotten, or none of one.
            let known = inner.places.iter().rposition(|place| place.end <= open);
            open = known.map_or(0, |known| inner.places[known].end);
            last = known.map(|known| inner.bytes[known]);
        }
        self.hold = self.places.get(unsure).map(|place| place.start);
        if let Some(plain) = open.checked_sub(1).map(|at| self.text[at]) {
            self.before = [Some(plain), last.or(Some(plain))];
        }
        self.text.drain(..open);
        self.places.drain(..open);
    }

    /// Nothing more comes in time: what can be a secret is one, and what is the beginning of a named secret is masked as far as it is
    /// there.
    pub(super) fn give_up(&mut self, masks: &Masks, patches: &mut Vec<Patch>) {
        self.look(masks, true, patches);
        let last = |bytes: &[u8]| [Hit { from: bytes.len() - masks.cut_off(bytes), to: bytes.len(), fill: Fill::Star }];
        self.patch(&last(&self.text), &self.text, |at| at..at + 1, patches);
        let inner = Unescaped::of(&self.text);
        self.patch(&last(&inner.bytes), &inner.bytes, |at| inner.places[at].clone(), patches);
    }

    fn patch(&self, hits: &[Hit], bytes: &[u8], of: impl Fn(usize) -> Range<usize>, patches: &mut Vec<Patch>) {
        for hit in hits {
            for (at, byte) in bytes.iter().enumerate().take(hit.to).skip(hit.from) {
                let fill = hit.fill.of(*byte);
                if fill != *byte {
                    patches.extend(self.places[of(at)].iter().map(|place| Patch { place: place.clone(), fill }));
                }
            }
        }
    }
}

/// A text with its escapes undone, and where each byte comes from.
pub(super) struct Unescaped {
    pub(super) bytes: Vec<u8>,
    pub(super) places: Vec<Range<usize>>,
    /// The text was read up to here: its end can be an incomplete escape.
    pub(super) end: usize,
}

impl Unescaped {
    /// A text without escapes.
    pub(super) fn none(text: &[u8]) -> Self {
        Self { bytes: text.to_vec(), places: (0..text.len()).map(|at| at..at + 1).collect(), end: text.len() }
    }

    /// Undoes JSON's escapes; what is none stays as it is.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut done = Self { bytes: Vec::with_capacity(text.len()), places: Vec::with_capacity(text.len()), end: 0 };
        while done.end < text.len() {
            let rest = &text[done.end..];
            let (letter, len) = match rest {
                [b'\\'] => return done,
                [b'\\', b'u', ..] => match unicode(rest) {
                    None => return done,
                    Some(known) => known,
                },
                [b'\\', escape, ..] => (char::from(simple(*escape)), 2),
                _ => {
                    done.bytes.push(rest[0]);
                    done.places.push(done.end..done.end + 1);
                    done.end += 1;
                    continue;
                }
            };
            let mut utf8 = [0; 4];
            for byte in letter.encode_utf8(&mut utf8).bytes() {
                done.bytes.push(byte);
                done.places.push(done.end..done.end + len);
            }
            done.end += len;
        }
        done
    }
}

fn simple(escape: u8) -> u8 {
    match escape {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        // A letter that is not ASCII is not an escape; secrets do not contain such characters.
        other if other.is_ascii() => other,
        _ => b'?',
    }
}

/// The character of `\uXXXX` (of two of them, for a pair) and its length; `None` where more must come.
fn unicode(rest: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<Option<u32>> {
        let digits = rest.get(at + 2..at + 6)?;
        let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        Some(text.and_then(|text| u32::from_str_radix(text, 16).ok()))
    };
    if rest.len() < 6 && rest[2..].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let Some(Some(first)) = unit(0) else { return Some(('?', 2)) };
    if !(0xD800..0xDC00).contains(&first) {
        return Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6));
    }
    match unit(6) {
        None if rest.len() < 12 && b"\\u".starts_with(&rest[6..rest.len().min(8)]) => None,
        Some(Some(second)) if rest[6..8] == *b"\\u" && (0xDC00..0xE000).contains(&second) => {
            let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            Some((char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12))
        }
        _ => Some((char::REPLACEMENT_CHARACTER, 6)),
    }
}
