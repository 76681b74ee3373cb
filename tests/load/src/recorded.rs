//! A model that answers with recorded bytes of a provider, and looks for secrets in what it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use flow::ports::{BoxFuture, Model, ModelStream};
use flow::{Delta, ModelError, Prompt};
use serde_json::json;
use wire::{AnswerDecoder, Wire};

use crate::tally::Tally;

/// Answers of one session, in turn.
pub(crate) struct Recorded {
    canary: String,
    streams: Vec<Vec<Bytes>>,
    next: AtomicUsize,
    tally: Arc<Tally>,
}

impl Recorded {
    pub(crate) fn new(canary: &str, texts: &[String], tally: Arc<Tally>) -> Arc<Self> {
        let streams = texts.iter().map(|text| record(text)).collect();
        Arc::new(Self { canary: canary.to_owned(), streams, next: AtomicUsize::new(0), tally })
    }
}

impl Model for Recorded {
    fn provider(&self) -> &str {
        "recording"
    }

    fn name(&self) -> &str {
        "load"
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let system = prompt.system.iter().map(|block| block.text.clone());
        for text in system.chain(prompt.messages.iter().map(|message| message.plain_text())) {
            self.tally.look_for_secrets("the prompt", &text, &self.canary);
        }
        let stream = self.next.fetch_add(1, Ordering::Relaxed) % self.streams.len();
        let chunks = self.streams[stream].clone().into_iter();
        let stream = Stream { decoder: AnswerDecoder::new(Wire::Anthropic), chunks };
        Box::pin(async { Ok(Box::new(stream) as Box<dyn ModelStream>) })
    }
}

struct Stream {
    decoder: AnswerDecoder,
    chunks: std::vec::IntoIter<Bytes>,
}

impl ModelStream for Stream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        loop {
            if let Some(delta) = self.decoder.next_delta() {
                return Poll::Ready(Some(Ok(delta)));
            }
            let Some(chunk) = self.chunks.next() else { return Poll::Ready(None) };
            if let Err(error) = self.decoder.push(&chunk) {
                return Poll::Ready(Some(Err(error)));
            }
            // As on a network, the next chunk is there a moment later: other sessions run in between.
            if self.chunks.as_slice().len().is_multiple_of(8) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

/// The bytes of an answer as Anthropic sends them, a chunk for each event, four characters each.
fn record(text: &str) -> Vec<Bytes> {
    let event = |value: serde_json::Value| {
        Bytes::from(format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default()))
    };
    let usage = json!({"input_tokens": 100, "output_tokens": 1});
    let message =
        json!({"id": "m", "type": "message", "role": "assistant", "model": "load", "content": [], "usage": usage});
    let mut chunks = vec![
        event(json!({"type": "message_start", "message": message})),
        event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
    ];
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(4) {
        let delta = json!({"type": "text_delta", "text": piece.iter().collect::<String>()});
        chunks.push(event(json!({"type": "content_block_delta", "index": 0, "delta": delta})));
    }
    chunks.push(event(json!({"type": "content_block_stop", "index": 0})));
    chunks.push(event(
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
    ));
    chunks.push(event(json!({"type": "message_stop"})));
    chunks
}
