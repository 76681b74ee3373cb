//! Splits a byte stream into server-sent events: bounded, linear, the same for every way the network cuts the bytes.
//!
//! It knows lines and fields, no provider. What lies whole in one chunk is read where it lies; only what a chunk boundary cuts is copied. No
//! byte is lost: whoever forwards a stream gets each event with the bytes that it came in, and those between events. `id` and `retry` are
//! passed over: a model's answer is never resumed by reconnecting.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// The most bytes one event may have, its field names and line ends included. Far above the largest event a provider
/// sends (a whole answer repeated in one `response.completed`), far below what would hurt the host.
pub const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// One event, as it arrived. Bytes that are not UTF-8 have become U+FFFD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The value of the last `event` field; empty where there was none.
    pub name: Cow<'a, str>,
    /// The values of all `data` fields, joined by `\n`.
    pub data: Cow<'a, str>,
}

/// A stretch of a stream. All frames of a stream, one after the other, are its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its bytes: those of an event with the blank line after it, or of comments.
    pub raw: &'a [u8],
    /// The event; `None` for comments, blank lines, and fields without data.
    pub event: Option<SseEvent<'a>>,
}

/// An event was larger than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is larger than {MAX_EVENT_BYTES} bytes")]
pub struct TooLarge;

/// The decoder of one stream. After [`TooLarge`] it must not be used again.
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// The beginning of an incomplete frame.
    raw: Vec<u8>,
    /// Where in it an incomplete line begins.
    line: usize,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// Bytes of this event's complete lines.
    held: usize,
    /// The last byte was `\r`: a `\n` that follows belongs to it.
    after_cr: bool,
    /// Something was read: a byte order mark can no longer come.
    begun: bool,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Blank,
    Comment,
    Field,
}

impl SseDecoder {
    /// A decoder at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes and gives each event they complete to `each`, until it fails.
    ///
    /// # Errors
    /// What `each` returns, or [`TooLarge`].
    pub fn push<E: From<TooLarge>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.push_frames(bytes, |frame| frame.event.as_ref().map_or(Ok(()), &mut each))
    }

    /// Reads the next bytes and gives each frame they complete to `each`, until it fails. A comment between events is a frame as soon as its
    /// line is complete.
    ///
    /// # Errors
    /// What `each` returns, or [`TooLarge`].
    pub fn push_frames<E: From<TooLarge>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&Frame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut raw = std::mem::take(&mut self.raw);
        // Where in `bytes` what is not in `raw` begins, and the line; that can begin in `raw`.
        let (mut frame, mut line) = (0, 0);
        let mut is_cut = raw.len() > self.line;
        if std::mem::take(&mut self.after_cr) && bytes.first() == Some(&b'\n') {
            line = 1;
        }
        while let Some(length) = memchr2(b'\n', b'\r', &bytes[line..]) {
            let end = line + length;
            let is_pair = bytes[end..].starts_with(b"\r\n");
            let next = end + if is_pair { 2 } else { 1 };
            self.after_cr = bytes[end] == b'\r' && next == bytes.len() && !is_pair;
            let kind = if std::mem::take(&mut is_cut) {
                raw.extend_from_slice(&bytes[frame..end]);
                frame = end;
                self.take_line(&raw[self.line..])?
            } else {
                self.take_line(&bytes[line..end])?
            };
            line = next;
            if kind == Line::Blank || (kind == Line::Comment && self.held == 0) {
                let whole = if raw.is_empty() {
                    &bytes[frame..next]
                } else {
                    raw.extend_from_slice(&bytes[frame..next]);
                    raw.as_slice()
                };
                self.give(whole, &mut each)?;
                raw.clear();
                frame = next;
            }
        }
        if !is_cut {
            self.line = raw.len() + line - frame;
        }
        raw.extend_from_slice(&bytes[frame..]);
        self.raw = raw;
        Ok(self.check(self.raw.len() - self.line)?)
    }

    /// Gives the event that the end of the stream left without its blank line, if there is one.
    ///
    /// The standard discards such an event. Some servers end with `data: [DONE]` and nothing after it, so whoever
    /// reads decides: it may also be an event that was cut off.
    ///
    /// # Errors
    /// What `each` returns, or [`TooLarge`].
    pub fn finish<E: From<TooLarge>>(self, mut each: impl FnMut(&SseEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        self.finish_frames(|frame| frame.event.as_ref().map_or(Ok(()), &mut each))
    }

    /// Gives what the end of the stream left, if there is anything, as [`SseDecoder::finish`] does.
    ///
    /// # Errors
    /// What `each` returns, or [`TooLarge`].
    pub fn finish_frames<E: From<TooLarge>>(
        mut self,
        mut each: impl FnMut(&Frame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let raw = std::mem::take(&mut self.raw);
        let line = &raw[self.line..];
        if !line.is_empty() {
            self.take_line(line)?;
        }
        if raw.is_empty() { Ok(()) } else { self.give(&raw, &mut each) }
    }

    /// One line, without its end.
    fn take_line(&mut self, mut line: &[u8]) -> Result<Line, TooLarge> {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(Line::Blank);
        }
        self.check(line.len())?;
        let (field, value) = match memchr(b':', line) {
            Some(0) => {
                // Within an event it is kept with that.
                if self.held > 0 {
                    self.held += line.len() + 1;
                }
                return Ok(Line::Comment);
            }
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        self.held += line.len() + 1;
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {}
        }
        Ok(Line::Field)
    }

    /// A frame is complete. Without data it is no event.
    fn give<E>(&mut self, raw: &[u8], each: &mut impl FnMut(&Frame<'_>) -> Result<(), E>) -> Result<(), E> {
        self.held = 0;
        let event = std::mem::take(&mut self.has_data)
            .then(|| SseEvent { name: String::from_utf8_lossy(&self.name), data: String::from_utf8_lossy(&self.data) });
        let answer = each(&Frame { raw, event });
        self.name.clear();
        self.data.clear();
        answer
    }

    fn check(&self, line: usize) -> Result<(), TooLarge> {
        if self.held + line > MAX_EVENT_BYTES { Err(TooLarge) } else { Ok(()) }
    }
}
