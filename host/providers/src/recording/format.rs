//! The lines of a recording: their shapes, and a whole file read into requests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use flow::{Action, CallId, ErrorClass, FailureKind, ModelError, ProviderKind, RuleMatch, StreamKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use wire::Wire;

/// The version of the format that is written. Version 1 had no `rules`, and version 2 a `class` instead of the `kind` of a failure; both
/// are read as well.
pub(crate) const VERSION: u32 = 3;

/// What a request must say for its recorded answer to make sense.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Texts that some string in the request's body must contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// Texts that no string in the request's body may contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

/// How a recorded answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedEnd {
    /// All of it came.
    Complete,
    /// Our side dropped it.
    Cut,
    /// The connection broke, or there never was one.
    Failed {
        /// The class, in a recording that gives it one; `None`: the error is classified when it is replayed.
        class: Option<ErrorClass>,
        /// Where the request failed.
        kind: Option<FailureKind>,
        /// The error of the transport.
        message: String,
    },
}

impl RecordedEnd {
    /// The end of an answer that failed.
    pub(crate) fn of_error(error: &ModelError) -> Self {
        Self::Failed { class: error.class, kind: error.facts.kind, message: error.message.clone() }
    }

    /// The error of an answer that failed; `None`: it did not.
    pub(crate) fn error(&self) -> Option<ModelError> {
        let Self::Failed { class, kind, message } = self else { return None };
        let kind = kind.unwrap_or(FailureKind::Transport);
        Some(ModelError { class: *class, ..ModelError::of_kind(kind, message.clone()) })
    }
}

/// What stream rules did with a recorded answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedRules {
    /// The text of an earlier attempt that the answer continued.
    pub prefix: String,
    /// What fired, in order.
    pub fired: Vec<RecordedFire>,
}

/// A rule that fired in a recorded session. The matched text is not written down: it may be what the rule hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFire {
    /// The rule's name.
    pub rule: String,
    /// The stream of the match.
    pub stream: StreamKind,
    /// What was done.
    pub action: Action,
    /// The first byte of the match in its stream (for a tool, in the argument).
    pub start: u64,
    /// The byte after the match.
    pub end: u64,
}

impl RecordedFire {
    pub(crate) fn new(found: &RuleMatch, action: Action) -> Self {
        let RuleMatch { rule, stream, evidence } = found;
        Self { rule: rule.clone(), stream: stream.clone(), action, start: evidence.start, end: evidence.end }
    }
}

/// A recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("recording {}{}: {message}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct RecordingError {
    /// The path of the recording.
    pub path: PathBuf,
    /// The line, counted from 1, where one is to blame.
    pub line: Option<usize>,
    /// The problem and the remedy.
    pub message: String,
}

/// What a line must be.
pub(super) const NO_LINE: &str = "is not one of request, response, text, base64, end, rules";

/// Why a file without a complete line is no recording. `is_torn`: it has bytes.
pub(super) fn no_head(is_torn: bool) -> String {
    let head = format!("{{\"tidegate_recording\":{VERSION},…}}");
    if is_torn {
        format!("does not begin with the line {head}: it is not a recording, or its first line was cut off")
    } else {
        format!("is empty; its first line must be {head}")
    }
}

/// A whole recording.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) wire: Wire,
    pub(crate) model: String,
    pub(crate) requests: Vec<Recorded>,
}

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) body: Value,
    pub(crate) expect: Expect,
    /// Status, headers and time; `None` where the connection failed before.
    pub(crate) head: Option<Head>,
    /// Chunks with their times in milliseconds.
    pub(crate) chunks: Vec<(u64, Bytes)>,
    pub(crate) end: (u64, RecordedEnd),
}

#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) at_ms: u64,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

/// Any line: the present members determine its kind. Absent members are not written.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tidegate_recording: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wire: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<Expect>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) headers: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rules: Option<RulesLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) n: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at_ms: Option<u64>,
}

/// The inside of a line `rules`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RulesLine {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) prefix: String,
    #[serde(default)]
    pub(crate) fired: Vec<FireLine>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FireLine {
    pub(crate) rule: String,
    /// `text`, `thinking` or `tool`.
    pub(crate) stream: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    pub(crate) action: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl RulesLine {
    pub(crate) fn new(rules: &RecordedRules) -> Self {
        let line = |fire: &RecordedFire| {
            let (call, tool) = match &fire.stream {
                StreamKind::Tool { call, name } => (Some(call.as_str().to_owned()), Some(name.clone())),
                StreamKind::Text | StreamKind::Thinking => (None, None),
            };
            let (stream, action) = (fire.stream.as_str().to_owned(), fire.action.as_str().to_owned());
            FireLine { rule: fire.rule.clone(), stream, call, tool, action, start: fire.start, end: fire.end }
        };
        Self { prefix: rules.prefix.clone(), fired: rules.fired.iter().map(line).collect() }
    }

    pub(crate) fn read(self) -> Result<RecordedRules, String> {
        let fired = self.fired.into_iter().map(FireLine::read).collect::<Result<_, _>>()?;
        Ok(RecordedRules { prefix: self.prefix, fired })
    }

    /// Every string of it, to be masked.
    pub(crate) fn strings(&mut self) -> impl Iterator<Item = &mut String> {
        std::iter::once(&mut self.prefix).chain(self.fired.iter_mut().flat_map(FireLine::strings))
    }
}

impl FireLine {
    fn strings(&mut self) -> impl Iterator<Item = &mut String> {
        std::iter::once(&mut self.rule).chain(&mut self.call).chain(&mut self.tool)
    }

    fn read(self) -> Result<RecordedFire, String> {
        let (call, tool) = (self.call.map(CallId::new), self.tool);
        let names_call = call.is_some() || tool.is_some();
        let stream = StreamKind::read(&self.stream, || call.zip(tool).ok_or(()));
        let stream = stream.and_then(Result::ok).filter(|stream| stream.is_tool() == names_call).ok_or_else(|| {
            let kinds = "`text`, `thinking`, or `tool` with `call` and `tool`";
            format!("`stream` of what fired is {:?}; it must be {kinds}", self.stream)
        })?;
        let action = Action::from_word(&self.action);
        let action = action.ok_or_else(|| format!("`action` {:?} is not an action of a rule", self.action))?;
        Ok(RecordedFire { rule: self.rule, stream, action, start: self.start, end: self.end })
    }
}

impl Line {
    pub(crate) fn chunk(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { text: Some(text.to_owned()), ..Self::default() },
            Err(_) => Self { base64: Some(BASE64.encode(bytes)), ..Self::default() },
        }
    }

    pub(crate) fn end(end: &RecordedEnd) -> Self {
        let end_of = |word: &str| Self { end: Some(word.to_owned()), ..Self::default() };
        match end {
            RecordedEnd::Complete => end_of("complete"),
            RecordedEnd::Cut => end_of("cut"),
            RecordedEnd::Failed { class, kind, message } => Self {
                class: class.map(|class| class.as_str().to_owned()),
                kind: kind.map(|kind| kind.as_str().to_owned()),
                message: Some(message.clone()),
                ..end_of("failed")
            },
        }
    }
}

impl Recording {
    /// Reads a recording.
    pub(crate) fn read(path: &Path) -> Result<Self, RecordingError> {
        let bytes = std::fs::read(path).map_err(|cause| RecordingError {
            path: path.to_owned(),
            line: None,
            message: format!("cannot be read: {cause}"),
        })?;
        Self::parse(&bytes).map_err(|(line, message)| RecordingError { path: path.to_owned(), line, message })
    }

    /// Reads a recording's bytes; an error names its line.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, (Option<usize>, String)> {
        // A last line that a killed program left incomplete is ignored.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let torn = &bytes[whole..];
        let take_torn = serde_json::from_slice::<Line>(torn).is_ok();
        let bytes = if take_torn { bytes } else { &bytes[..whole] };
        let mut recording: Option<Self> = None;
        for (at, text) in
            bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, text)| !text.trim_ascii().is_empty())
        {
            let wrong = |message: String| (Some(at + 1), message);
            let line: Line = serde_json::from_slice(text)
                .map_err(|cause| wrong(format!("is not a line of a recording: {cause}")))?;
            match &mut recording {
                None => recording = Some(Self::head(line).map_err(wrong)?),
                Some(recording) => recording.take(line).map_err(wrong)?,
            }
        }
        recording.ok_or_else(|| (None, no_head(!torn.trim_ascii().is_empty())))
    }

    pub(super) fn head(line: Line) -> Result<Self, String> {
        match line.tidegate_recording {
            None => {
                return Err(format!(
                    "the first line must say {{\"tidegate_recording\":{VERSION},\"wire\":…,\"model\":…}}"
                ));
            }
            Some(1..=VERSION) => {}
            Some(other) => {
                return Err(format!("has version {other} of the format; this program reads versions 1 to {VERSION}"));
            }
        }
        let kind = line.wire.as_deref().and_then(ProviderKind::from_word);
        let wire = kind.and_then(Wire::of).ok_or("`wire` must be anthropic, openai-chat or openai-responses")?;
        let model = line.model.ok_or("`model` is missing")?;
        Ok(Self { wire, model, requests: Vec::new() })
    }

    fn take(&mut self, line: Line) -> Result<(), String> {
        if let Some(body) = line.request {
            self.requests.push(Recorded {
                body,
                expect: line.expect.unwrap_or_default(),
                head: None,
                chunks: Vec::new(),
                end: (0, RecordedEnd::Cut),
            });
            return Ok(());
        }
        let n = line.n.unwrap_or(self.requests.len());
        let Some(request) = n.checked_sub(1).and_then(|at| self.requests.get_mut(at)) else {
            return Err(format!("belongs to request {n}, which has not begun; there are {}", self.requests.len()));
        };
        let at_ms = line.at_ms.unwrap_or(request.end.0);
        if line.rules.is_none() {
            request.end.0 = at_ms;
        }
        if let Some(status) = line.response {
            let headers = line.headers.unwrap_or_default().into_iter().collect();
            request.head = Some(Head { at_ms, status, headers });
        } else if let Some(text) = line.text {
            request.chunks.push((at_ms, text.into()));
        } else if let Some(text) = line.base64 {
            let bytes = BASE64.decode(text).map_err(|cause| format!("`base64` cannot be decoded: {cause}"))?;
            request.chunks.push((at_ms, bytes.into()));
        } else if let Some(word) = line.end {
            request.end.1 = end(&word, line.class.as_deref(), line.kind.as_deref(), line.message)?;
        } else if let Some(rules) = line.rules {
            rules.read()?; // a replay asks its own rules
        } else {
            return Err(NO_LINE.to_owned());
        }
        Ok(())
    }
}

pub(super) fn end(
    word: &str,
    class: Option<&str>,
    kind: Option<&str>,
    message: Option<String>,
) -> Result<RecordedEnd, String> {
    match word {
        "complete" => Ok(RecordedEnd::Complete),
        "cut" => Ok(RecordedEnd::Cut),
        "failed" => {
            if let (None, None) = (class, kind) {
                return Err("`end` is \"failed\", and neither `kind` nor `class` says how".to_owned());
            }
            let unknown = |class: &str| format!("`class` {class:?} is not a class of errors");
            let class = class.map(|class| ErrorClass::from_word(class).ok_or_else(|| unknown(class))).transpose()?;
            let unknown = |kind: &str| format!("`kind` {kind:?} is not a kind of failure");
            let kind = kind.map(|kind| FailureKind::from_word(kind).ok_or_else(|| unknown(kind))).transpose()?;
            Ok(RecordedEnd::Failed {
                class,
                kind,
                message: message.unwrap_or_else(|| "the recorded connection broke".to_owned()),
            })
        }
        other => Err(format!("`end` is {other:?}; it must be complete, cut or failed")),
    }
}
