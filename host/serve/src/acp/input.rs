//! Input of which a line that is no UTF-8 is refused, and not the connection: the SDK reads lines as text, and ends where one is none. It
//! keeps a line in memory until it ends, so that a line without an end is an error here. A blank line, which it would refuse, is left out.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// What replaces a byte that is no UTF-8. No JSON contains it, so that the line is answered with −32700 and nothing of it is done: another
/// character would change a path.
const INVALID: u8 = 0;

/// Bytes that are read at once.
const CHUNK: usize = 8192;

/// The bytes that a message may have: twice what the largest prompt has, 20 images of 5 MiB in base64.
pub(super) const MAX_LINE: usize = 256 << 20;

/// Reads UTF-8 from any input.
pub(super) struct Utf8<R> {
    input: Pin<Box<R>>,
    /// Read, and not given out from `given` on.
    ready: Vec<u8>,
    given: usize,
    /// The beginning of a character whose other bytes are not read yet: at most three bytes.
    begun: Vec<u8>,
    /// Nothing of the current line is given out yet.
    is_at_start: bool,
    /// Bytes of the current line that were read.
    line: usize,
    max_line: usize,
}

impl<R: AsyncRead> Utf8<R> {
    pub(super) fn new(input: R) -> Self {
        let (ready, begun) = (Vec::new(), Vec::new());
        Self { input: Box::pin(input), ready, given: 0, begun, is_at_start: true, line: 0, max_line: MAX_LINE }
    }

    /// Counts the bytes of lines. A line that is too long is an error, and the input ends with it.
    fn measure(&mut self, chunk: &[u8]) -> io::Result<()> {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.line += part.len();
            if self.line > self.max_line {
                let message = format!("a message has more than {} bytes", self.max_line);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            if part.ends_with(b"\n") {
                self.line = 0;
            }
        }
        Ok(())
    }

    /// Takes what was read; nothing at the end of the input.
    fn take(&mut self, chunk: &[u8]) {
        (self.given, self.ready) = (0, Vec::with_capacity(chunk.len() + self.begun.len()));
        self.decode(chunk);
        self.skip_blank_lines();
    }

    /// A line that is blank is no message. White space at the start of one means nothing in JSON.
    fn skip_blank_lines(&mut self) {
        if !self.is_at_start && !self.ready.contains(&b'\n') {
            return;
        }
        let read = std::mem::take(&mut self.ready);
        self.ready.reserve(read.len());
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            let part = if self.is_at_start { part.trim_ascii_start() } else { part };
            self.ready.extend_from_slice(part);
            self.is_at_start = part.last().map_or(self.is_at_start, |last| *last == b'\n');
        }
    }

    fn decode(&mut self, chunk: &[u8]) {
        let mut bytes = std::mem::take(&mut self.begun);
        if chunk.is_empty() && !bytes.is_empty() {
            return self.ready.push(INVALID);
        }
        bytes.extend_from_slice(chunk);
        let mut rest = bytes.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, after) = rest.split_at(error.valid_up_to());
            self.ready.extend_from_slice(valid);
            let Some(invalid) = error.error_len() else {
                self.begun = after.to_owned();
                return;
            };
            self.ready.push(INVALID);
            rest = &after[invalid..];
        }
        self.ready.extend_from_slice(rest);
    }
}

impl<R: AsyncRead> AsyncRead for Utf8<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.given == self.ready.len() {
            let mut chunk = [0; CHUNK];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(self.input.as_mut().poll_read(cx, &mut read))?;
            self.measure(read.filled())?;
            let is_end = read.filled().is_empty();
            self.take(read.filled());
            if is_end && self.ready.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
        let end = self.ready.len().min(self.given + out.remaining());
        out.put_slice(&self.ready[self.given..end]);
        self.given = end;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::Utf8;

    async fn read(chunks: &[&[u8]]) -> Vec<u8> {
        let mut input = input(chunks);
        let mut all = Vec::new();
        input.read_to_end(&mut all).await.unwrap();
        all
    }

    fn input(chunks: &[&[u8]]) -> Utf8<tokio::io::DuplexStream> {
        let (mut write, read) = tokio::io::duplex(1 << 16);
        let chunks: Vec<Vec<u8>> = chunks.iter().map(|chunk| chunk.to_vec()).collect();
        tokio::spawn(async move {
            for chunk in chunks {
                tokio::io::AsyncWriteExt::write_all(&mut write, &chunk).await.unwrap();
                // The reader gets each chunk by itself.
                tokio::task::yield_now().await;
            }
        });
        Utf8::new(read)
    }

    #[tokio::test]
    async fn what_is_no_utf_8_is_no_json_and_the_rest_stays() {
        let text = "a\u{e9}\u{20ac}\u{1f980}\n".as_bytes();
        for cut in 0..text.len() {
            assert_eq!(read(&[&text[..cut], &text[cut..]]).await, text, "cut at {cut}");
        }
        assert_eq!(read(&[b"caf\xe9\"\nok\n"]).await, b"caf\0\"\nok\n");
        assert_eq!(read(&[b"\xf0\x9f", b"\xa6x"]).await, b"\0x");
        assert_eq!(read(&[b"end \xe2\x82"]).await, b"end \0");
        assert_eq!(read(&[]).await, b"");
    }

    #[tokio::test]
    async fn blank_lines_are_left_out() {
        let text = b"\n\r\n{\n \t\r\n\n  {\"a\": \" \"} \n\n  ";
        for cut in 0..text.len() {
            assert_eq!(read(&[&text[..cut], &text[cut..]]).await, b"{\n{\"a\": \" \"} \n", "cut at {cut}");
        }
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_an_error() {
        let mut all = Vec::new();
        let mut bounded = input(&[b"12345", b"67\n1234567\n", b"123", b"456789"]);
        bounded.max_line = 8;
        let error = bounded.read_to_end(&mut all).await.unwrap_err();
        assert_eq!(
            (all.as_slice(), error.to_string().as_str()),
            (&b"1234567\n1234567\n123"[..], "a message has more than 8 bytes")
        );
        let mut exact = input(&[b"1234567\n", b"12345678"]);
        exact.max_line = 8;
        assert_eq!(exact.read_to_end(&mut Vec::new()).await.unwrap(), 16);
    }
}
