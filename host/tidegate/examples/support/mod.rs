//! A model without a network, so that the examples run anywhere: it gives prepared answers, word by word.
#![allow(dead_code, reason = "each example uses its part")]

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate::BoxFuture;
use tidegate::event::StreamKind;
use tidegate::model::{Delta, Model, ModelError, ModelStream, StopReason};
use tidegate::prompt::Prompt;
use tidegate::tool::CallId;

/// A prepared answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A block of text.
    Text(String),
    /// The call of a tool: its name, and its arguments as JSON.
    Call(&'static str, String),
}

/// Returns its answers one after the other; when none is left, it echoes the user's input.
pub(crate) struct Prepared {
    answers: Mutex<VecDeque<Answer>>,
    /// The time between two words.
    pause: Duration,
}

impl Prepared {
    /// A model with these answers.
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>, pause: Duration) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), pause })
    }
}

impl Model for Prepared {
    fn provider(&self) -> &str {
        "example"
    }

    fn name(&self) -> &str {
        "prepared"
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let next = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let answer = next.unwrap_or_else(|| {
            let said = prompt.messages.last().map(|message| message.plain_text()).unwrap_or_default();
            Answer::Text(format!("You said: {said}"))
        });
        let stream = Words { deltas: deltas(answer), pause: self.pause, wait: None };
        Box::pin(async move { Ok(Box::new(stream) as Box<dyn ModelStream>) })
    }
}

/// The answer as a decoder of a provider would give it.
fn deltas(answer: Answer) -> VecDeque<Delta> {
    let (kind, text, reason) = match answer {
        Answer::Text(text) => (StreamKind::Text, text, StopReason::EndTurn),
        Answer::Call(name, arguments) => {
            (StreamKind::Tool { call: CallId::new(name), name: name.to_owned() }, arguments, StopReason::ToolUse)
        }
    };
    let words = text.split_inclusive(' ').map(|word| Delta::Piece { block: 0, text: word.to_owned() });
    let start = [Delta::Start { model: None }, Delta::BlockStart { block: 0, kind }];
    start.into_iter().chain(words).chain([Delta::BlockEnd { block: 0 }, Delta::Stop { reason }]).collect()
}

struct Words {
    deltas: VecDeque<Delta>,
    pause: Duration,
    wait: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl ModelStream for Words {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        if let Some(wait) = &mut self.wait {
            std::task::ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        let next = self.deltas.pop_front();
        if matches!(next, Some(Delta::Piece { .. })) && !self.pause.is_zero() {
            self.wait = Some(Box::pin(tokio::time::sleep(self.pause)));
        }
        Poll::Ready(next.map(Ok))
    }
}
