//! Writes a recording, line by line, each flushed; secrets are masked before they reach the disk.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;

use super::format::{End, Expect, Line, VERSION};
use crate::Wire;

/// Headers of an answer that are written down; no other can hold back a reader, and none of these holds a secret.
const HEADERS: [&str; 7] =
    ["content-type", "date", "retry-after", "retry-after-ms", "request-id", "x-request-id", "x-should-retry"];

/// Writes one recording.
pub struct RecordingWriter {
    out: Box<dyn Write + Send>,
    begun: usize,
    secrets: Vec<Vec<u8>>,
    /// By request: the last chunks, kept back while a secret may have begun at their end.
    waiting: HashMap<usize, Vec<(u64, Vec<u8>)>>,
}

/// Names a request of one recording: 1, 2, 3, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestNumber(usize);

impl RecordingWriter {
    /// Begins a recording in a new file.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn create(path: &Path, wire: Wire, model: &str) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true).create_new(true);
        // What was said to a model is nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::new(options.open(path)?, wire, model)
    }

    /// Begins a recording in `out`, which should not buffer: each line is written with one call.
    ///
    /// # Errors
    /// The first line cannot be written.
    pub fn new(out: impl Write + Send + 'static, wire: Wire, model: &str) -> io::Result<Self> {
        let mut writer = Self { out: Box::new(out), begun: 0, secrets: Vec::new(), waiting: HashMap::new() };
        writer.line(&Line {
            tidegate_recording: Some(VERSION),
            wire: Some(wire.as_str().to_owned()),
            model: Some(model.to_owned()),
            ..Line::default()
        })?;
        Ok(writer)
    }

    /// From now on this text is masked with asterisks wherever it appears, in requests and answers, also where it is
    /// cut by a chunk boundary. Texts of fewer than 6 bytes are no secrets.
    pub fn hide(&mut self, secret: &str) {
        if secret.len() >= 6 {
            self.secrets.push(secret.as_bytes().to_vec());
        }
    }

    /// A request begins.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn request(&mut self, body: &Value, expect: &Expect) -> io::Result<RequestNumber> {
        self.begun += 1;
        let mut body = body.clone();
        self.mask_strings(&mut body);
        let expect = Some(expect.clone()).filter(|expect| *expect != Expect::default());
        self.line(&Line { request: Some(body), expect, ..Line::default() })?;
        Ok(RequestNumber(self.begun))
    }

    /// The answer's head came. Only the headers that matter are kept.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn response<'h>(
        &mut self,
        request: RequestNumber,
        at_ms: u64,
        status: u16,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    ) -> io::Result<()> {
        let kept = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        let headers: BTreeMap<_, _> = kept.filter(|(name, _)| HEADERS.contains(&name.as_str())).collect();
        self.of(request, at_ms, Line { response: Some(status), headers: Some(headers), ..Line::default() })
    }

    /// A chunk of the answer's body came.
    ///
    /// # Errors
    /// A line cannot be written.
    pub fn chunk(&mut self, request: RequestNumber, at_ms: u64, bytes: &[u8]) -> io::Result<()> {
        let mut waiting = self.waiting.remove(&request.0).unwrap_or_default();
        waiting.push((at_ms, bytes.to_vec()));
        let may_go_on = self.mask_chunks(&mut waiting);
        if may_go_on {
            self.waiting.insert(request.0, waiting);
            return Ok(());
        }
        self.chunks(request, waiting)
    }

    /// The answer ended.
    ///
    /// # Errors
    /// A line cannot be written.
    pub fn end(&mut self, request: RequestNumber, at_ms: u64, end: &End) -> io::Result<()> {
        let waiting = self.waiting.remove(&request.0).unwrap_or_default();
        self.chunks(request, waiting)?;
        self.of(request, at_ms, Line::end(end))
    }

    fn chunks(&mut self, request: RequestNumber, chunks: Vec<(u64, Vec<u8>)>) -> io::Result<()> {
        chunks.into_iter().try_for_each(|(at_ms, bytes)| self.of(request, at_ms, Line::chunk(&bytes)))
    }

    fn of(&mut self, request: RequestNumber, at_ms: u64, line: Line) -> io::Result<()> {
        let n = Some(request.0).filter(|n| *n != self.begun);
        self.line(&Line { at_ms: Some(at_ms), n, ..line })
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.out.write_all(&text)?;
        self.out.flush()
    }

    /// Masks every secret in these chunks, read as one; says whether one may go on in the next chunk.
    fn mask_chunks(&self, chunks: &mut [(u64, Vec<u8>)]) -> bool {
        let mut all: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes).copied().collect();
        if self.mask(&mut all) {
            let mut from = 0;
            for (_, bytes) in chunks.iter_mut() {
                let len = bytes.len();
                bytes.copy_from_slice(&all[from..from + len]);
                from += len;
            }
        }
        self.secrets.iter().any(|secret| (1..secret.len()).any(|len| all.ends_with(&secret[..len])))
    }

    fn mask(&self, bytes: &mut [u8]) -> bool {
        let mut found = false;
        for secret in &self.secrets {
            let places: Vec<usize> = memchr::memmem::find_iter(bytes, secret).collect();
            for at in places {
                bytes[at..at + secret.len()].fill(b'*');
                found = true;
            }
        }
        found
    }

    fn mask_strings(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let mut bytes = text.clone().into_bytes();
                if self.mask(&mut bytes) {
                    *text = String::from_utf8_lossy(&bytes).into_owned();
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.mask_strings(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.mask_strings(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingWriter").field("begun", &self.begun).finish_non_exhaustive()
    }
}
