//! A session whose model is a case's script, through the real encoders and decoders of a wire format.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use ::wire::{AnswerDecoder, Wire};
use flow::ports::{
    AnswerLog, BoxFuture, Clock, Confirm, EventSink, ExtensionHost, Extensions, Model, ModelStream, PreparedCall,
    Progress, Question, SessionView, StateError, Tools, TtsrEvent,
};
use flow::{
    Callback, Delta, InputAnswer, Message, ModelError, ModelOutput, NoAnswer, OutputAnswer, Permission, Preview,
    Prompt, Registration, SessionId, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, ToolCall, ToolOutput, ToolSpec,
};
use providers::HttpConfig;
use turn::sources::{RuleSource, RuleUpdate};

use super::case::Answer;
use super::replayed::{Recording, RequestLog};
use super::wire::{self, Cut};

/// Rules that may be edited between turns.
pub(crate) struct Edited(pub(crate) Mutex<Arc<rules::RuleSet>>);

impl RuleSource for Edited {
    fn current<'a>(&'a self) -> BoxFuture<'a, Result<RuleUpdate, String>> {
        let set = Arc::clone(&self.0.lock().unwrap());
        Box::pin(std::future::ready(Ok(RuleUpdate { set, notices: Vec::new() })))
    }
}

/// Says what the script says, in bytes of a wire format; keeps the bodies of the requests.
pub(crate) struct WireModel {
    pub(crate) config: HttpConfig,
    pub(crate) prefill: bool,
    pub(crate) cut: Cut,
    pub(crate) answers: Mutex<VecDeque<Vec<u8>>>,
    pub(crate) requests: Mutex<Vec<serde_json::Value>>,
    pub(crate) recording: Recording,
}

impl WireModel {
    pub(crate) fn new(wire: Wire, prefill: bool, cut: Cut, recording: Recording) -> Arc<Self> {
        let config = HttpConfig::new(wire, "m");
        Arc::new(Self { config, prefill, cut, answers: Mutex::default(), requests: Mutex::default(), recording })
    }

    /// These answers come next.
    pub(crate) fn will_say(&self, answers: &[Answer]) {
        let bytes = answers.iter().map(|answer| wire::encode(self.config.wire, answer, self.cut));
        self.answers.lock().unwrap().extend(bytes);
    }

    /// The bodies of the requests since the last time.
    pub(crate) fn take_requests(&self) -> Vec<serde_json::Value> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

impl Model for WireModel {
    fn provider(&self) -> &str {
        self.config.wire.as_str()
    }

    fn name(&self) -> &str {
        "m"
    }

    fn prefill(&self) -> bool {
        self.prefill
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let body = providers::encode(&self.config, prompt).unwrap();
        let body = serde_json::from_slice(&body).unwrap();
        let log = self.recording.request(&body);
        self.requests.lock().unwrap().push(body);
        let answer = self.answers.lock().unwrap().pop_front().expect("the model is asked once more than the case says");
        let chunks = wire::chunks(&answer, self.cut).into();
        let stream = WireStream { decoder: AnswerDecoder::new(self.config.wire), chunks, failed: None, log };
        Box::pin(async move { Ok(Box::new(stream) as Box<dyn ModelStream>) })
    }
}

struct WireStream {
    decoder: AnswerDecoder,
    chunks: VecDeque<Vec<u8>>,
    failed: Option<ModelError>,
    log: Arc<RequestLog>,
}

impl ModelStream for WireStream {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        loop {
            if let Some(delta) = self.decoder.next_delta() {
                return Poll::Ready(Some(Ok(delta)));
            }
            if let Some(error) = self.failed.take() {
                return Poll::Ready(Some(Err(error)));
            }
            let read = match self.chunks.pop_front() {
                Some(chunk) => {
                    self.log.chunk(&chunk);
                    self.decoder.push(&chunk)
                }
                None if self.decoder.is_stopped() => return Poll::Ready(None),
                None => {
                    self.log.end();
                    self.decoder.finish()
                }
            };
            self.failed = read.err();
        }
    }

    fn log(&self) -> Option<Arc<dyn AnswerLog>> {
        Some(Arc::clone(&self.log) as Arc<dyn AnswerLog>)
    }
}

/// An extension that is notified when rules fire.
#[derive(Clone, Default)]
pub(crate) struct Listener(pub(crate) Arc<Mutex<Vec<TtsrEvent>>>);

impl ExtensionHost for Listener {
    fn registrations(&self) -> Arc<[Registration]> {
        Arc::new([Registration {
            plugin: "listener".parse().unwrap(),
            version: "1.0.0".into(),
            callbacks: vec![Callback::TtsrTriggered.into()],
            tools: Vec::new(),
            required: false,
        }])
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionId,
        _: Arc<dyn SessionView>,
        _: Arc<dyn EventSink>,
    ) -> BoxFuture<'a, Result<Arc<dyn Extensions>, StateError>> {
        Box::pin(async { Ok(Arc::new(self.clone()) as Arc<dyn Extensions>) })
    }
}

type Answered<'a, T> = BoxFuture<'a, Result<T, NoAnswer>>;

impl Extensions for Listener {
    fn input_messages<'a>(&'a self, _: usize, _: &'a [Message]) -> Answered<'a, InputAnswer> {
        Box::pin(async { Ok(InputAnswer::Pass) })
    }

    fn plain_text<'a>(&'a self, _: usize, _: &'a str, _: &'a TextPlace) -> Answered<'a, TextAnswer> {
        Box::pin(async { Ok(TextAnswer::Pass) })
    }

    fn tag<'a>(&'a self, _: usize, _: &'a Tag, _: &'a TagPlace) -> Answered<'a, TagAnswer> {
        Box::pin(async { Ok(TagAnswer::Keep) })
    }

    fn llm_output<'a>(&'a self, _: usize, _: &'a ModelOutput) -> Answered<'a, OutputAnswer> {
        Box::pin(async { Ok(OutputAnswer::default()) })
    }

    fn ttsr_triggered<'a>(&'a self, _: usize, event: &'a TtsrEvent) -> Answered<'a, ()> {
        self.0.lock().unwrap().push(event.clone());
        Box::pin(async { Ok(()) })
    }
}

/// Tools that say that they ran, and keep their names.
#[derive(Default)]
pub(crate) struct Echo(pub(crate) Mutex<Vec<String>>);

impl Tools for Echo {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |name: &str| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
        };
        ["read", "write", "edit"].map(spec).into()
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(EchoCall { ran: &self.0, call })
    }
}

struct EchoCall<'a> {
    ran: &'a Mutex<Vec<String>>,
    call: &'a ToolCall,
}

impl PreparedCall for EchoCall<'_> {
    fn permission(&self) -> Permission {
        Permission::Allow
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        Box::pin(std::future::ready(Preview::default()))
    }

    fn run<'a>(&'a mut self, _: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        self.ran.lock().unwrap().push(self.call.name.clone());
        let content = format!("{} of {} is done", self.call.id, self.call.name);
        Box::pin(async move { ToolOutput { content, diff: None, is_error: false } })
    }
}

/// Nobody can be asked.
pub(crate) struct Nobody;

impl Confirm for Nobody {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, flow::Answer> {
        let reason = question.reason.clone();
        Box::pin(async move { flow::Answer::Unavailable { reason } })
    }
}

/// A clock on which waiting takes no time, but may be when the user interrupts.
#[derive(Default)]
pub(crate) struct Sudden {
    pub(crate) cancel: Mutex<Option<turn::CancellationToken>>,
}

impl Clock for Sudden {
    fn now_ms(&self) -> u64 {
        0
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        let cancel = self.cancel.lock().unwrap().take();
        Box::pin(async move {
            if let Some(cancel) = cancel {
                cancel.cancel();
            }
        })
    }
}
