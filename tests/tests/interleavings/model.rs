//! A model that answers at random: text, reasoning and calls in small pieces, and now and then not at all.

use std::sync::Mutex;
use std::task::{Context, Poll};

use flow::{Delta, ErrorClass, ModelError, Prompt, StopReason, StreamKind};
use tidegate::BoxFuture;
use tidegate::model::{Model, ModelStream};
use tidegate_kit::{Random, assert_valid, blocks, tool};

pub(crate) struct RandomModel {
    random: Mutex<Random>,
    /// Calls that were made so far: their ids are unique, as those of providers are.
    calls: Mutex<u32>,
}

impl RandomModel {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Mutex::new(Random::new(seed)), calls: Mutex::new(0) }
    }

    fn answer(&self) -> Vec<Delta> {
        let mut random = self.random.lock().unwrap();
        let kinds = random.below(5);
        let mut parts: Vec<(StreamKind, String)> = Vec::new();
        if kinds == 0 {
            parts.push((StreamKind::Thinking, "I had better think about it.".to_owned()));
        }
        if kinds != 1 {
            parts.push((StreamKind::Text, "Some words, and then some more.".to_owned()));
        }
        let calls = if random.once_in(2) { 1 + random.below(3) } else { 0 };
        for _ in 0..calls {
            let mut number = self.calls.lock().unwrap();
            *number += 1;
            let (name, arguments) = match random.below(3) {
                0 => ("list_dir", "{}".to_owned()),
                _ => ("write_file", format!(r#"{{"path": "{number}.txt", "content": "{number}"}}"#)),
            };
            parts.push((tool(&format!("call-{number}"), name), arguments));
        }
        if parts.is_empty() {
            parts.push((StreamKind::Text, "Nothing to add.".to_owned()));
        }
        let parts: Vec<(StreamKind, &str)> = parts.iter().map(|(kind, text)| (kind.clone(), text.as_str())).collect();
        let stop = if calls > 0 { StopReason::ToolUse } else { StopReason::EndTurn };
        blocks(&parts, 4, stop)
    }
}

impl Model for RandomModel {
    fn provider(&self) -> &str {
        "random"
    }

    fn name(&self) -> &str {
        "random-1"
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        assert_valid(&prompt.messages);
        if self.random.lock().unwrap().once_in(20) {
            let error = ModelError::new(ErrorClass::Permanent, "the provider is away");
            return Box::pin(async move { Err(error) });
        }
        let mut deltas = self.answer();
        deltas.reverse();
        Box::pin(async move { Ok(Box::new(Slow { deltas, waits: false }) as Box<dyn ModelStream>) })
    }
}

/// Gives others a turn before each delta, so that anything can happen in between.
struct Slow {
    /// The last comes first.
    deltas: Vec<Delta>,
    waits: bool,
}

impl ModelStream for Slow {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        self.waits = !self.waits;
        if self.waits {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.deltas.pop().map(Ok))
    }
}
