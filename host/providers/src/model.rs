//! A model: request encoded, sent, answer checked and decoded. The same over HTTP and from a recording.

mod negotiation;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flow::ports::{AnswerLog, BoxFuture, Model, ModelStream};
use flow::{Delta, FailureKind, Image, ModelError, Prompt, Usage};
use tokio::runtime::Handle;
use tokio::time::timeout;
use wire::head::{content_type, finish, is_stream, no_stream};
use wire::{AnswerDecoder, AnswerLimits, Renamed, RequestOptions, Wire};

use crate::config::{HttpConfig, Secrets, request_options};
use crate::models;
use crate::patience::Patience;
use crate::recording::{RecordedEnd, Recorder, Taken};
use crate::refused::Refused;

/// The body of the request that this configuration makes of a prompt: JSON, as it is sent.
///
/// # Errors
/// A tool's parameters cannot be written as JSON.
pub fn encode(config: &HttpConfig, prompt: &Prompt) -> serde_json::Result<Vec<u8>> {
    wire::encode(config.wire, prompt, &config.model, &request_options(config, config.base_url.is_none()))
}

/// How a request travels.
pub(crate) trait Transport: Send + Sync {
    /// Sends a body and waits for the answer's head.
    fn send(&self, body: Vec<u8>) -> BoxFuture<'_, Result<Reply, ModelError>>;
}

/// An answer before its body.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Box<dyn Chunks>,
}

/// A body as it arrives. Dropping it closes the connection.
pub(crate) trait Chunks: Send {
    /// The next bytes; `None` at the end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ModelError>>>;
}

/// A model behind a transport.
pub(crate) struct WireModel {
    provider: &'static str,
    name: String,
    wire: Wire,
    options: RequestOptions,
    transport: Box<dyn Transport>,
    recorder: Option<Recorder>,
    secrets: Secrets,
    limits: AnswerLimits,
    content_timeout: Option<Duration>,
    refused: Refused,
    /// The provider refuses marks for its prompt cache.
    unmarked: AtomicBool,
}

impl WireModel {
    pub(crate) fn new(
        provider: &'static str,
        name: String,
        wire: Wire,
        options: RequestOptions,
        transport: Box<dyn Transport>,
        recorder: Option<Recorder>,
    ) -> Self {
        Self {
            provider,
            name,
            wire,
            options,
            transport,
            recorder,
            secrets: Secrets::default(),
            limits: AnswerLimits::default(),
            content_timeout: None,
            refused: Refused::default(),
            unmarked: AtomicBool::default(),
        }
    }

    /// The same, with these strings masked in errors.
    pub(crate) fn hiding(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The same, and no answer becomes larger.
    pub(crate) fn limited(self, limits: AnswerLimits) -> Self {
        Self { limits, ..self }
    }

    /// The same, and no answer goes without content for longer.
    pub(crate) fn patient(self, content_timeout: Duration) -> Self {
        Self { content_timeout: Some(content_timeout), ..self }
    }

    fn options(&self) -> RequestOptions {
        RequestOptions { unmarked: self.unmarked.load(Ordering::Relaxed), ..self.options.clone() }
    }

    async fn answer(&self, prompt: &Prompt) -> Result<AnswerStream, ModelError> {
        let body = wire::encode(self.wire, prompt, &self.name, &self.options()).map_err(|cause| {
            self.reported(ModelError::of_kind(
                FailureKind::Request,
                format!("cannot write the request as JSON: {cause}"),
            ))
        })?;
        let mut taken = self.recorder.as_ref().map(|recorder| recorder.request(&body));
        let reply = match self.transport.send(body).await {
            Ok(reply) => reply,
            Err(error) => {
                let error = self.reported(error);
                end(&mut taken, &RecordedEnd::of_error(&error));
                return Err(error);
            }
        };
        if let Some(taken) = &mut taken {
            taken.response(reply.status, &reply.headers);
        }
        let is_stream = is_stream(reply.status, &reply.headers);
        let mut stream = AnswerStream {
            body: Some(reply.body),
            kind: content_type(&reply.headers).map(str::to_owned),
            decoder: AnswerDecoder::with_limits(self.wire, self.limits),
            failed: None,
            ended: false,
            taken,
            secrets: self.secrets.clone(),
            wire: self.wire,
            renamed: Renamed::new(&prompt.tools, self.wire),
            patience: self.content_timeout.map(Patience::new),
            note: None,
        };
        if is_stream {
            return Ok(stream);
        }
        let mut body = Vec::new();
        // A refusal whose body breaks off, or does not end, is still that refusal.
        drop(timeout(REFUSAL_PATIENCE, stream.read_refusal(&mut body)).await);
        Err(self.reported(no_stream(reply.status, &reply.headers, &body)))
    }

    /// An error as it leaves the crate.
    fn reported(&self, error: ModelError) -> ModelError {
        reported(error, self.wire, &self.secrets)
    }
}

impl Model for WireModel {
    fn provider(&self) -> &str {
        self.provider
    }

    fn name(&self) -> &str {
        &self.name
    }

    /// Chat Completions has reasoning as plain text; the other two formats have signatures.
    fn signs_reasoning(&self) -> bool {
        self.wire != Wire::OpenAiChat
    }

    fn prefill(&self) -> bool {
        self.wire == Wire::Anthropic && wire::goes_on(&self.name, &self.options)
    }

    fn context_tokens(&self, usage: Usage) -> Option<u64> {
        let tokens = usage.input?.saturating_add(usage.output.unwrap_or(0));
        // This format counts what comes from or goes to its cache apart.
        let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
        Some(if self.wire == Wire::Anthropic { tokens.saturating_add(cached) } else { tokens })
    }

    fn uncached_tokens(&self, usage: Usage) -> Option<u64> {
        // This format counts what comes from or goes to its cache apart.
        let cached = if self.wire == Wire::Anthropic { 0 } else { usage.cache_read.unwrap_or(0) };
        Some(usage.input?.saturating_sub(cached))
    }

    fn image_tokens(&self, _: &Image) -> u64 {
        models::image_tokens(&self.name)
    }

    fn answer_tokens(&self, asked: Option<u32>) -> Option<u64> {
        let asked = asked.or(self.options.max_tokens);
        // This format requires a number.
        let default = (self.wire == Wire::Anthropic).then_some(wire::DEFAULT_MAX_TOKENS);
        asked.or(default).map(u64::from)
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        Box::pin(self.negotiate(prompt))
    }
}

/// The bytes that are read of a body that is not a stream: enough for any error report.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// How long it is read: a body that drips is not worth a turn's time.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(10);

/// How long the end of a complete answer's body is waited for.
const GRACE: Duration = Duration::from_millis(500);

/// An answer in flight.
struct AnswerStream {
    /// `None` once nothing more is wanted from it.
    body: Option<Box<dyn Chunks>>,
    /// Its content type.
    kind: Option<String>,
    decoder: AnswerDecoder,
    failed: Option<ModelError>,
    ended: bool,
    taken: Option<Taken>,
    secrets: Secrets,
    wire: Wire,
    renamed: Renamed,
    patience: Option<Patience>,
    /// What its request was sent without.
    note: Option<String>,
}

impl ModelStream for AnswerStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        loop {
            if let Some(mut delta) = self.decoder.next_delta() {
                self.renamed.restore(&mut delta);
                self.patience.iter_mut().for_each(|patience| patience.decoded(&delta));
                return Poll::Ready(Some(Ok(delta)));
            }
            if let Some(error) = self.failed.take() {
                self.ended = true;
                self.body = None;
                return Poll::Ready(Some(Err(reported(error, self.wire, &self.secrets))));
            }
            if self.decoder.is_stopped() || self.ended {
                return Poll::Ready(None);
            }
            match self.poll_body(cx) {
                Poll::Pending => match self.patience.as_mut().map(|patience| patience.poll(cx)) {
                    Some(Poll::Ready(error)) => self.failed = Some(error),
                    Some(Poll::Pending) | None => return Poll::Pending,
                },
                Poll::Ready(Some(Ok(bytes))) => self.failed = self.decoder.push(&bytes).err(),
                Poll::Ready(Some(Err(error))) => self.failed = Some(error),
                Poll::Ready(None) => {
                    self.ended = true;
                    self.failed = finish(&mut self.decoder, self.kind.as_deref()).err();
                }
            }
        }
    }

    fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn log(&self) -> Option<Arc<dyn AnswerLog>> {
        self.taken.as_ref().map(|taken| taken.log() as Arc<dyn AnswerLog>)
    }
}

impl AnswerStream {
    /// The next bytes, written down where the session is recorded.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ModelError>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = body.poll_chunk(cx);
        if polled.is_ready() {
            self.patience.iter_mut().for_each(Patience::received);
        }
        match (&polled, &mut self.taken) {
            (Poll::Ready(Some(Ok(bytes))), Some(taken)) => taken.chunk(bytes),
            (Poll::Ready(Some(Err(error))), taken) => {
                end(taken, &RecordedEnd::of_error(error));
            }
            (Poll::Ready(None), taken) => end(taken, &RecordedEnd::Complete),
            _ => {}
        }
        polled
    }

    /// The body of an answer that is not a stream, up to the limit for error reports.
    async fn read_refusal(&mut self, read: &mut Vec<u8>) {
        while read.len() < MAX_REFUSAL_BYTES {
            let Some(Ok(bytes)) = std::future::poll_fn(|cx| self.poll_body(cx)).await else { return };
            read.extend(&bytes[..bytes.len().min(MAX_REFUSAL_BYTES - read.len())]);
        }
    }
}

impl Drop for AnswerStream {
    /// In the middle of an answer this is the abort: everything goes at once. After its stop only the end of the HTTP body
    /// is missing; it is waited for outside, briefly, so that the connection can serve the next request.
    fn drop(&mut self) {
        if !self.decoder.is_stopped() {
            return;
        }
        end(&mut self.taken, &RecordedEnd::Complete);
        let delivered = self.decoder.next_delta().is_none();
        if let (true, Some(mut body), Ok(runtime)) = (delivered, self.body.take(), Handle::try_current()) {
            runtime.spawn(timeout(GRACE, async move {
                while let Some(Ok(_)) = std::future::poll_fn(|cx| body.poll_chunk(cx)).await {}
            }));
        }
    }
}

/// An error with the name of its provider, which for a recording is that of the recorded session, and without secrets.
fn reported(mut error: ModelError, wire: Wire, secrets: &Secrets) -> ModelError {
    error.facts.provider = Some(wire.as_str().to_owned());
    secrets.mask(error)
}

fn end(taken: &mut Option<Taken>, how: &RecordedEnd) {
    if let Some(taken) = taken {
        taken.end(how);
    }
}
