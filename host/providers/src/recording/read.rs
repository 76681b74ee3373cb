//! Reads a recording answer by answer, decoded, without replaying it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flow::{Delta, FailureKind, ModelError};
use serde_json::Value;

use super::format::{Head, Line, NO_LINE, RecordedEnd, RecordedRules, Recording, RecordingError, end, no_head};
use wire::head::{content_type, no_stream};
use wire::{AnswerDecoder, Wire};

/// The most bytes one line may have: 64 MiB, far above the largest request there is.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The maximum number of bytes kept of a body that is not a stream: enough for the server's message.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// One recorded request and what its answer decodes to.
#[derive(Clone, Debug)]
pub struct RecordedAnswer {
    /// The request's number, from 1.
    pub number: usize,
    /// The line of the request, from 1.
    pub line: usize,
    /// Every text in the last message of the request; none where the request was not written down.
    pub last_texts: Vec<String>,
    /// What was decoded, as far as it came.
    pub deltas: Vec<Delta>,
    /// Deltas from this one on came with the last chunk of an answer.
    pub last_chunk: usize,
    /// How the answer ended.
    pub end: RecordedEnd,
    /// Why there is no complete answer, unless the host stopped it: refused, broken, or undecodable.
    pub error: Option<ModelError>,
    /// What stream rules did with it. `None` where that was not recorded: by a program that wrote version 1 of the
    /// format, by one that was killed, or by hand.
    pub rules: Option<RecordedRules>,
}

/// A recording under way, an answer at a time. The whole file is looked through when it is opened, so that a bad line is
/// told before anything is made of the others; in memory are one line and the answers that are not complete yet.
#[derive(Debug)]
pub struct RecordingReader {
    lines: Lines,
    wire: Wire,
    model: String,
    /// By request: the last line that belongs to it.
    last_lines: Vec<usize>,
    torn: Option<usize>,
    begun: usize,
    open: BTreeMap<usize, Pending>,
}

#[derive(Debug)]
struct Pending {
    wire: Wire,
    answer: RecordedAnswer,
    decoder: AnswerDecoder,
    head: Option<Head>,
    /// Of a body that is not a stream.
    refusal: Vec<u8>,
}

impl RecordingReader {
    /// Opens a recording and looks through all of it.
    ///
    /// # Errors
    /// The file cannot be read, or a line is none of a recording; the error names the line.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let mut lines = Lines::open(path)?;
        let mut head = None;
        let (mut last_lines, mut torn) = (Vec::new(), None);
        while let Some(at) = lines.next()? {
            let line = match lines.parse(at) {
                Ok(line) => line,
                // A last line that a killed program left incomplete is ignored.
                Err(_) if !lines.ended => {
                    torn = Some(at);
                    break;
                }
                Err(error) => return Err(error),
            };
            if head.is_none() {
                head = Some(Recording::head(line).map_err(|message| lines.wrong(at, message))?);
                continue;
            }
            if line.request.is_some() {
                last_lines.push(at);
                continue;
            }
            let number = line.n.unwrap_or(last_lines.len());
            let begun = last_lines.len();
            let last = number.checked_sub(1).and_then(|index| last_lines.get_mut(index));
            let Some(last) = last else {
                let message = format!("belongs to request {number}, which has not begun; there are {begun}");
                return Err(lines.wrong(at, message));
            };
            *last = at;
        }
        let head = head.ok_or_else(|| RecordingError { line: None, ..lines.wrong(0, no_head(torn.is_some())) })?;
        let mut lines = Lines::open(path)?;
        // The head, which has been read.
        lines.next()?;
        Ok(Self { lines, wire: head.wire, model: head.model, last_lines, torn, begun: 0, open: BTreeMap::new() })
    }

    /// The model's name in the recording.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The last line, where it was cut off by a program that was killed: it was not read.
    pub fn torn_line(&self) -> Option<usize> {
        self.torn
    }

    fn advance(&mut self) -> Result<Option<RecordedAnswer>, RecordingError> {
        while let Some(at) = self.lines.next()? {
            if Some(at) == self.torn {
                break;
            }
            let line = self.lines.parse(at)?;
            let number = if line.request.is_some() { self.begun + 1 } else { line.n.unwrap_or(self.begun) };
            self.take(at, number, line).map_err(|message| self.lines.wrong(at, message))?;
            if self.last_lines.get(number.wrapping_sub(1)) == Some(&at)
                && let Some(pending) = self.open.remove(&number)
            {
                return Ok(Some(pending.finish()));
            }
        }
        Ok(None)
    }

    fn take(&mut self, at: usize, number: usize, line: Line) -> Result<(), String> {
        if let Some(request) = line.request {
            self.begun = number;
            self.open.insert(number, Pending::new(self.wire, number, at, &request));
            return Ok(());
        }
        let Some(pending) = self.open.get_mut(&number) else {
            return Err(format!("belongs to request {number}, which has not begun; there are {}", self.begun));
        };
        pending.take(line)
    }
}

impl Iterator for RecordingReader {
    type Item = Result<RecordedAnswer, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

impl Pending {
    fn new(wire: Wire, number: usize, line: usize, request: &Value) -> Self {
        let answer = RecordedAnswer {
            number,
            line,
            last_texts: last_texts(request),
            deltas: Vec::new(),
            last_chunk: 0,
            end: RecordedEnd::Cut,
            error: None,
            rules: None,
        };
        Self { wire, answer, decoder: AnswerDecoder::new(wire), head: None, refusal: Vec::new() }
    }

    fn take(&mut self, line: Line) -> Result<(), String> {
        if let Some(status) = line.response {
            let headers = line.headers.unwrap_or_default().into_iter().collect();
            self.head = Some(Head { at_ms: 0, status, headers });
        } else if let Some(text) = line.text {
            self.chunk(text.as_bytes());
        } else if let Some(text) = line.base64 {
            self.chunk(&BASE64.decode(text).map_err(|cause| format!("`base64` cannot be decoded: {cause}"))?);
        } else if let Some(word) = line.end {
            self.answer.end = end(&word, line.class.as_deref(), line.kind.as_deref(), line.message)?;
        } else if let Some(rules) = line.rules {
            self.answer.rules = Some(rules.read()?);
        } else {
            return Err(NO_LINE.to_owned());
        }
        Ok(())
    }

    fn chunk(&mut self, bytes: &[u8]) {
        if !self.is_stream() {
            let room = MAX_REFUSAL_BYTES - self.refusal.len();
            self.refusal.extend_from_slice(&bytes[..bytes.len().min(room)]);
            return;
        }
        // After its stop, or after an error, an answer is not read any further.
        if self.answer.error.is_some() || self.decoder.is_stopped() {
            return;
        }
        self.answer.last_chunk = self.answer.deltas.len();
        self.answer.error = self.decoder.push(bytes).err();
        self.answer.deltas.extend(std::iter::from_fn(|| self.decoder.next_delta()));
    }

    fn is_stream(&self) -> bool {
        self.head.as_ref().is_none_or(|head| wire::head::is_stream(head.status, &head.headers))
    }

    fn finish(mut self) -> RecordedAnswer {
        match &self.head {
            Some(head) if !self.is_stream() => {
                self.answer.error = Some(no_stream(head.status, &head.headers, &self.refusal));
            }
            _ if self.answer.error.is_some() || self.decoder.is_stopped() => {}
            _ => self.answer.error = self.end_error(),
        }
        if let Some(error) = &mut self.answer.error {
            error.facts.provider = Some(self.wire.as_str().to_owned());
        }
        self.answer
    }

    fn end_error(&mut self) -> Option<ModelError> {
        match &self.answer.end {
            RecordedEnd::Cut => None,
            RecordedEnd::Failed { .. } => self.answer.end.error(),
            RecordedEnd::Complete if self.head.is_none() => {
                Some(ModelError::of_kind(FailureKind::Recording, "no answer is recorded for it"))
            }
            RecordedEnd::Complete => {
                let kind = self.head.as_ref().and_then(|head| content_type(&head.headers));
                let error = wire::head::finish(&mut self.decoder, kind).err();
                self.answer.deltas.extend(std::iter::from_fn(|| self.decoder.next_delta()));
                error
            }
        }
    }
}

/// Every text in the last message of a request. The wire formats call the list of messages `messages` or `input`.
fn last_texts(request: &Value) -> Vec<String> {
    let list = ["messages", "input"].iter().find_map(|key| request.get(key)?.as_array());
    let mut texts = Vec::new();
    if let Some(last) = list.and_then(|list| list.last()) {
        collect(last, &mut texts);
    }
    texts
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| collect(value, texts)),
        Value::Object(map) => map.values().for_each(|value| collect(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The lines of a file, one in memory at a time.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    text: Vec<u8>,
    number: usize,
    /// The line at hand has its line end.
    ended: bool,
}

impl Lines {
    fn open(path: &Path) -> Result<Self, RecordingError> {
        let (path, text) = (path.to_owned(), Vec::new());
        let file = File::open(&path).map_err(|cause| unreadable(&path, &cause))?;
        Ok(Self { path, file: BufReader::new(file), text, number: 0, ended: true })
    }

    /// Reads the next line that is not blank and gives its number.
    fn next(&mut self) -> Result<Option<usize>, RecordingError> {
        loop {
            self.text.clear();
            let mut bounded = (&mut self.file).take(MAX_LINE_BYTES + 1);
            let read = bounded.read_until(b'\n', &mut self.text).map_err(|cause| unreadable(&self.path, &cause))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.ended = self.text.ends_with(b"\n");
            if read as u64 > MAX_LINE_BYTES {
                return Err(self.wrong(self.number, format!("has more than {MAX_LINE_BYTES} bytes")));
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(Some(self.number));
            }
        }
    }

    fn parse(&self, at: usize) -> Result<Line, RecordingError> {
        serde_json::from_slice(&self.text)
            .map_err(|cause| self.wrong(at, format!("is not a line of a recording: {cause}")))
    }

    fn wrong(&self, line: usize, message: impl Into<String>) -> RecordingError {
        RecordingError { path: self.path.clone(), line: Some(line), message: message.into() }
    }
}

fn unreadable(path: &Path, cause: &io::Error) -> RecordingError {
    RecordingError { path: path.to_owned(), line: None, message: format!("cannot be read: {cause}") }
}
