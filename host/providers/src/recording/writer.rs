//! Writes a recording, line by line, each flushed; secrets are masked before they reach the disk.
//!
//! The documentation of `recording` describes what is masked, and what waits for that.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;

use super::format::{Expect, Line, RecordedEnd, RecordedRules, RulesLine, VERSION};
use super::held::{Chunk, Held, mask_text};
use super::secrets::Masks;
use wire::Wire;
use wire::head::is_stream;

/// Headers of an answer that are written down; no other can hold back a reader, and none of these contains a secret.
const HEADERS: [&str; 8] = [
    "content-encoding",
    "content-type",
    "date",
    "retry-after",
    "retry-after-ms",
    "request-id",
    "x-request-id",
    "x-should-retry",
];

/// Writes one recording.
pub struct RecordingWriter {
    out: Box<dyn Write + Send>,
    begun: usize,
    masks: Masks,
    /// By request: the last chunks, held back while they can contain a part of a secret.
    held: HashMap<usize, Held>,
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
        // The conversation is private: only the user may read the file.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::new(options.open(path)?, wire, model)
    }

    /// Begins a recording in `out`, which should not buffer: each line is written with one call.
    ///
    /// # Errors
    /// The first line cannot be written.
    pub fn new(out: impl Write + Send + 'static, wire: Wire, model: &str) -> io::Result<Self> {
        let mut writer = Self { out: Box::new(out), begun: 0, masks: Masks::default(), held: HashMap::new() };
        writer.line(&Line {
            tidegate_recording: Some(VERSION),
            wire: Some(wire.as_str().to_owned()),
            model: Some(model.to_owned()),
            ..Line::default()
        })?;
        Ok(writer)
    }

    /// From now on this text is masked with asterisks wherever it appears, in requests and answers, also where a model
    /// splits it over many chunks. Strings of fewer than 6 bytes are not treated as secrets. Known shapes of keys are
    /// always masked.
    pub fn hide(&mut self, secret: &str) {
        self.masks.name(secret);
    }

    /// A request begins.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn request(&mut self, body: &Value, expect: &Expect) -> io::Result<RequestNumber> {
        self.begun += 1;
        let mut body = body.clone();
        mask_strings(&self.masks, &mut body);
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
        let mut headers: BTreeMap<_, _> = kept.filter(|(name, _)| HEADERS.contains(&name.as_str())).collect();
        headers.values_mut().for_each(|value| mask_text(&self.masks, value));
        let list: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if !is_stream(status, &list) {
            self.held.entry(request.0).or_default().is_plain();
        }
        self.of(request, at_ms, Line { response: Some(status), headers: Some(headers), ..Line::default() })
    }

    /// A chunk of the answer's body came.
    ///
    /// # Errors
    /// A line cannot be written.
    pub fn chunk(&mut self, request: RequestNumber, at_ms: u64, bytes: &[u8]) -> io::Result<()> {
        let ready = self.held.entry(request.0).or_default().push(&self.masks, at_ms, bytes);
        self.chunks(request, ready)
    }

    /// The answer ended.
    ///
    /// # Errors
    /// A line cannot be written.
    pub fn end(&mut self, request: RequestNumber, at_ms: u64, end: &RecordedEnd) -> io::Result<()> {
        let rest = self.held.remove(&request.0).map(|held| held.finish(&self.masks));
        self.chunks(request, rest.unwrap_or_default())?;
        let mut line = Line::end(end);
        line.message.iter_mut().for_each(|message| mask_text(&self.masks, message));
        self.of(request, at_ms, line)
    }

    /// What stream rules did with the answer is known. Where it never is, the recording does not say that nothing fired.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn rules(&mut self, request: RequestNumber, at_ms: u64, rules: &RecordedRules) -> io::Result<()> {
        let mut rules = RulesLine::new(rules);
        rules.strings().for_each(|text| mask_text(&self.masks, text));
        self.of(request, at_ms, Line { rules: Some(rules), ..Line::default() })
    }

    fn chunks(&mut self, request: RequestNumber, chunks: Vec<Chunk>) -> io::Result<()> {
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
}

fn mask_strings(masks: &Masks, value: &mut Value) {
    match value {
        Value::String(text) => mask_text(masks, text),
        Value::Array(list) => list.iter_mut().for_each(|value| mask_strings(masks, value)),
        Value::Object(map) => map.values_mut().for_each(|value| mask_strings(masks, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingWriter").field("begun", &self.begun).finish_non_exhaustive()
    }
}
