//! An editor may write its next request right behind `initialize`. The SDK refuses what it reads before it has answered `initialize`, so
//! that what follows is held back until then.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::outgoing::Outgoing;

/// The bytes that are read at once.
const CHUNK: usize = 8 * 1024;

/// A request `initialize` has fewer bytes.
const MAX_REQUEST: usize = 256 * 1024;

/// An input that pauses after the request `initialize` until its response is written.
pub(super) struct InitializeGate<R> {
    input: Pin<Box<R>>,
    state: State,
    /// Read and not given out yet.
    rest: Vec<u8>,
    outgoing: Outgoing,
}

enum State {
    /// `initialize` has not come: the current line as far as it was given out.
    Line(Vec<u8>),
    Waits(Pin<Box<dyn Future<Output = ()> + Send>>),
    Open,
}

impl<R: AsyncRead> InitializeGate<R> {
    pub(super) fn new(input: R, outgoing: &Outgoing) -> Self {
        Self { input: Box::pin(input), state: State::Line(Vec::new()), rest: Vec::new(), outgoing: outgoing.clone() }
    }

    /// Gives out what was read, up to the end of the line before `initialize` has come.
    fn give(&mut self, out: &mut ReadBuf<'_>) {
        let mut count = self.rest.len().min(out.remaining());
        if let State::Line(line) = &mut self.state {
            let end = self.rest[..count].iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            count = end.unwrap_or(count);
            if line.len() < MAX_REQUEST {
                line.extend_from_slice(&self.rest[..count]);
            }
            if end.is_some() {
                let is_initialize = is_initialize(&std::mem::take(line));
                if is_initialize {
                    self.outgoing.expect_answer();
                    self.state = State::Waits(Box::pin(answered(self.outgoing.clone())));
                }
            }
        }
        out.put_slice(&self.rest[..count]);
        self.rest.drain(..count);
    }
}

async fn answered(outgoing: Outgoing) {
    outgoing.answered().await;
}

fn is_initialize(line: &[u8]) -> bool {
    let message: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    message["method"] == "initialize" && !message["id"].is_null()
}

impl<R: AsyncRead> AsyncRead for InitializeGate<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let State::Waits(answer) = &mut self.state {
            ready!(answer.as_mut().poll(cx));
            self.state = State::Open;
        }
        if self.rest.is_empty() && matches!(self.state, State::Open) {
            return self.input.as_mut().poll_read(cx, out);
        }
        if self.rest.is_empty() {
            let mut chunk = [0; CHUNK];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(self.input.as_mut().poll_read(cx, &mut read))?;
            self.rest.extend_from_slice(read.filled());
        }
        self.give(out);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn what_follows_initialize_waits_for_its_answer() {
        let before = "no JSON\n{\"method\": \"initialize\"}\n";
        let request = "{\"params\": {}, \"method\": \"initialize\", \"id\": 0}\n";
        let after = "{\"id\": 1, \"method\": \"session/new\"}\nmore";
        for step in [1, 7, 1000] {
            let outgoing = Outgoing::default();
            let sent = [before, request, after].concat();
            // The answer to what was no JSON.
            let (output, _client) = tokio::io::duplex(1024);
            let mut output = outgoing.counted(output);
            output.write_all(b"{\"id\": null, \"error\": {}}\n").await.unwrap();
            let mut input = InitializeGate::new(sent.as_bytes(), &outgoing);
            let mut read = Vec::new();
            while read.len() < before.len() + request.len() {
                let mut chunk = vec![0; step];
                let count = input.read(&mut chunk).await.unwrap();
                read.extend_from_slice(&chunk[..count]);
            }
            assert_eq!(String::from_utf8_lossy(&read), [before, request].concat());
            let mut rest = String::new();
            tokio::select! {
                biased;
                _ = input.read_to_string(&mut rest) => panic!("it did not wait"),
                () = std::future::ready(()) => {}
            }
            output.write_all(b"{\"id\": 0, \"result\": {}}\n").await.unwrap();
            input.read_to_string(&mut rest).await.unwrap();
            assert_eq!(rest, after);
        }
    }
}
