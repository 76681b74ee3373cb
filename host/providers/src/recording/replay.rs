//! Answers from a recording, request by request, with its chunks and pauses.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flow::ports::BoxFuture;
use flow::{FailureKind, ModelError};
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep_until};

use super::format::{Expect, Recorded, RecordedEnd, Recording};
use super::held::mask_text;
use super::secrets::Masks;
use crate::config::{ProviderError, ReplayConfig};
use crate::model::{Chunks, Reply, Transport};
use wire::Wire;

/// A recording that answers.
pub(crate) struct Replay {
    recording: Arc<Recording>,
    next: AtomicUsize,
    speed: f64,
    strict: bool,
}

impl Replay {
    pub(crate) fn open(config: &ReplayConfig) -> Result<Self, ProviderError> {
        if !config.speed.is_finite() || config.speed < 0.0 {
            let cause = format!("{} is not a speed; 1 is as recorded, 2 twice as fast, 0 without pauses", config.speed);
            return Err(ProviderError::Setting { key: "speed", cause });
        }
        let recording = Arc::new(Recording::read(&config.path)?);
        Ok(Self { recording, next: AtomicUsize::new(0), speed: config.speed, strict: config.strict })
    }

    pub(crate) fn wire(&self) -> Wire {
        self.recording.wire
    }

    pub(crate) fn model(&self) -> &str {
        &self.recording.model
    }

    pub(crate) fn requests(&self) -> usize {
        self.recording.requests.len()
    }

    async fn answer(&self, body: Vec<u8>) -> Result<Reply, ModelError> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(recorded) = self.recording.requests.get(at) else {
            let why = format!(
                "the recording contains {}; the turn sent another one, as after a tool call, an answer that a rule stopped, or \
                 an answer that failed and is asked for again: add an answer to the file, or use `tidegate rules test` or `rules replay`, which send none",
                requests(self.requests())
            );
            return Err(diverged(at, &why));
        };
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        judge(recorded, &body, self.strict).map_err(|why| diverged(at, &why))?;
        let time = Time { begun: Instant::now(), speed: self.speed };
        let Some(head) = recorded.head.clone() else {
            sleep_until(time.of(recorded.end.0)).await;
            return Err(end_error(&recorded.end.1).unwrap_or_else(|| diverged(at, "no answer is recorded for it")));
        };
        sleep_until(time.of(head.at_ms)).await;
        let timer = Box::pin(sleep_until(time.begun));
        let body = ReplayBody { recording: Arc::clone(&self.recording), at, next: 0, time, timer, done: false };
        Ok(Reply { status: head.status, headers: head.headers, body: Box::new(body) })
    }
}

impl Transport for Replay {
    fn send(&self, body: Vec<u8>) -> BoxFuture<'_, Result<Reply, ModelError>> {
        Box::pin(self.answer(body))
    }
}

/// When a recorded moment comes.
#[derive(Clone, Copy)]
struct Time {
    begun: Instant,
    speed: f64,
}

impl Time {
    fn of(self, at_ms: u64) -> Instant {
        if self.speed == 0.0 {
            return self.begun;
        }
        let scaled = Duration::try_from_secs_f64(at_ms as f64 / 1000.0 / self.speed).unwrap_or(Duration::MAX);
        self.begun.checked_add(scaled).unwrap_or(self.begun)
    }
}

/// A recorded body as it arrives again.
struct ReplayBody {
    recording: Arc<Recording>,
    at: usize,
    next: usize,
    time: Time,
    timer: Pin<Box<Sleep>>,
    done: bool,
}

impl Chunks for ReplayBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ModelError>>> {
        let recorded = &self.recording.requests[self.at];
        let chunk = recorded.chunks.get(self.next);
        if self.done {
            return Poll::Ready(None);
        }
        let due = self.time.of(chunk.map_or(recorded.end.0, |(at_ms, _)| *at_ms));
        if due > Instant::now() {
            self.timer.as_mut().reset(due);
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        self.next += 1;
        if let Some((_, bytes)) = chunk {
            return Poll::Ready(Some(Ok(bytes.clone())));
        }
        self.done = true;
        Poll::Ready(end_error(&recorded.end.1).map(Err))
    }
}

fn end_error(end: &RecordedEnd) -> Option<ModelError> {
    match end {
        RecordedEnd::Complete => None,
        RecordedEnd::Cut => Some(ModelError::of_kind(
            FailureKind::Recording,
            "the recording of this answer was cut off here; what would have followed is not known",
        )),
        RecordedEnd::Failed { .. } => end.error(),
    }
}

/// A number of requests, in words.
pub(crate) fn requests(count: usize) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

fn diverged(at: usize, why: &str) -> ModelError {
    let message = format!("request {} does not match the recording: {why}", at + 1);
    ModelError::of_kind(FailureKind::Recording, message)
}

fn judge(recorded: &Recorded, body: &Value, strict: bool) -> Result<(), String> {
    let Expect { contains, absent } = &recorded.expect;
    if let Some(text) = contains.iter().find(|text| !holds(body, text)) {
        return Err(format!("it should contain {text:?}"));
    }
    if let Some(text) = absent.iter().find(|text| holds(body, text)) {
        return Err(format!("it should not contain {text:?}"));
    }
    match strict.then(|| difference(&recorded.body, body, String::new())).flatten() {
        Some(place) => Err(format!("it differs from the recorded one at {place}")),
        None => Ok(()),
    }
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(list) => list.iter().any(|value| holds(value, text)),
        Value::Object(map) => map.values().any(|value| holds(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The place of the first difference, such as `messages[2].content`.
fn difference(a: &Value, b: &Value, place: String) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                let inner = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => difference(a, b, inner),
                    _ => Some(inner),
                }
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            let inner = a.iter().zip(b).enumerate().find_map(|(at, (a, b))| difference(a, b, format!("{place}[{at}]")));
            inner.or_else(|| (a.len() != b.len()).then(|| format!("{place}[{}]", a.len().min(b.len()))))
        }
        (Value::String(recorded), Value::String(sent)) => (!same(recorded, sent)).then_some(place),
        _ => (a != b).then_some(place),
    }
}

/// Whether a text that was sent is the recorded one, in which secrets were masked: configured ones by asterisks.
fn same(recorded: &str, sent: &str) -> bool {
    if recorded == sent {
        return true;
    }
    let mut sent = sent.to_owned();
    mask_text(&Masks::default(), &mut sent);
    let masked = |(recorded, sent): (u8, u8)| recorded == sent || recorded == b'*';
    recorded.len() == sent.len() && recorded.bytes().zip(sent.bytes()).all(masked)
}
