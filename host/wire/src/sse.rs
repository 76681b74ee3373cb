//! Splits a byte stream into server-sent events: bounded, linear, the same for every way the network cuts the bytes.
//!
//! It knows lines and fields, no provider. A line that lies whole in one chunk is read where it lies; only a line cut by
//! a chunk boundary is copied. `id` and `retry` are passed over: a model's answer is never resumed by reconnecting.

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

/// An event was larger than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is larger than {MAX_EVENT_BYTES} bytes")]
pub struct TooLarge;

/// The decoder of one stream. After [`TooLarge`] it must not be used again.
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// The start of an incomplete line.
    line: Vec<u8>,
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
        mut bytes: &[u8],
        mut each: impl FnMut(&SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.line.extend_from_slice(bytes);
                return Ok(self.check(self.line.len())?);
            };
            self.after_cr = bytes[end] == b'\r';
            let (rest_of_line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.line.is_empty() {
                self.take_line(rest_of_line, &mut each)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(rest_of_line);
                self.take_line(&line, &mut each)?;
                line.clear();
                self.line = line; // keeps its memory for the next cut line
            }
        }
        Ok(())
    }

    /// Gives the event that the end of the stream left without its blank line, if there is one.
    ///
    /// The standard discards such an event. Some servers end with `data: [DONE]` and nothing after it, so whoever
    /// reads decides: it may also be an event that was cut off.
    ///
    /// # Errors
    /// What `each` returns, or [`TooLarge`].
    pub fn finish<E: From<TooLarge>>(mut self, mut each: impl FnMut(&SseEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut each)?;
        }
        self.take_line(b"", &mut each)
    }

    /// One line, without its end.
    fn take_line<E: From<TooLarge>>(
        &mut self,
        mut line: &[u8],
        each: &mut impl FnMut(&SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(each);
        }
        self.check(line.len())?;
        let (field, value) = match memchr(b':', line) {
            Some(0) => return Ok(()), // a comment
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
        Ok(())
    }

    /// A blank line: the event is complete. Without data it is none.
    fn dispatch<E>(&mut self, each: &mut impl FnMut(&SseEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        self.held = 0;
        let answer = if std::mem::take(&mut self.has_data) {
            let event =
                SseEvent { name: String::from_utf8_lossy(&self.name), data: String::from_utf8_lossy(&self.data) };
            each(&event)
        } else {
            Ok(())
        };
        self.name.clear();
        self.data.clear();
        answer
    }

    fn check(&self, line: usize) -> Result<(), TooLarge> {
        if self.held + line > MAX_EVENT_BYTES { Err(TooLarge) } else { Ok(()) }
    }
}
