//! A model that answers with what a script says, in deltas.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use flow::ports::{BoxFuture, Model, ModelStream};
use flow::{CallId, Delta, ModelError, Prompt, Role, StopReason, StreamKind};
use tokio::sync::mpsc;

use crate::events::said;

/// The text of a live answer, as the test sends it.
type Live = Arc<Mutex<mpsc::UnboundedReceiver<&'static str>>>;

/// One answer of the scripted model.
#[derive(Clone)]
pub enum Script {
    /// The request is refused.
    Refuse(ModelError),
    /// These deltas come; then, where given, the error; `None` for a stream that never ends after its deltas.
    Say(Vec<Delta>, Option<Result<(), ModelError>>),
    /// These deltas come, each so many milliseconds after the one before; then the stream ends.
    Slow(Vec<(u64, Delta)>),
    /// A block of text whose pieces the test sends: [`live`].
    Live(Live),
}

/// Every way in which tests cut an answer: characters, small and odd chunks, the whole, and at random.
pub const CUTS: [usize; 8] = [1, 2, 3, 7, usize::MAX, RANDOM, RANDOM + 1, RANDOM + 2];

/// A cut from here on is the seed of chunks of random length.
pub const RANDOM: usize = 1 << 30;

/// Deltas of an answer made of blocks, each `(kind, words)`.
pub fn blocks(blocks: &[(StreamKind, &str)], cut: usize, reason: StopReason) -> Vec<Delta> {
    let mut deltas = vec![Delta::Start { model: None }];
    for (block, (kind, words)) in (0..).zip(blocks) {
        deltas.push(Delta::BlockStart { block, kind: kind.clone() });
        deltas.extend(pieces(block, words, cut));
        deltas.push(Delta::BlockEnd { block });
    }
    deltas.push(Delta::Stop { reason });
    deltas
}

/// The kind of a block of tool arguments.
pub fn tool(id: &str, name: &str) -> StreamKind {
    StreamKind::Tool { call: CallId::new(id), name: name.into() }
}

/// Deltas of a text answer, cut into chunks of `cut` characters.
pub fn text(words: &str, cut: usize) -> Script {
    Script::Say(blocks(&[(StreamKind::Text, words)], cut, StopReason::EndTurn), Some(Ok(())))
}

/// A text answer in one piece.
pub fn say(words: &str) -> Script {
    text(words, usize::MAX)
}

/// A text answer whose pieces the test sends; it ends when the sender is dropped.
pub fn live() -> (mpsc::UnboundedSender<&'static str>, Script) {
    let (say, pieces) = mpsc::unbounded_channel();
    (say, Script::Live(Arc::new(Mutex::new(pieces))))
}

/// Deltas of an answer that calls tools: `(id, name, arguments)`.
pub fn calls(calls: &[(&str, &str, &str)], cut: usize) -> Script {
    let calls: Vec<_> = calls.iter().map(|(id, name, arguments)| (tool(id, name), *arguments)).collect();
    Script::Say(blocks(&calls, cut, StopReason::ToolUse), Some(Ok(())))
}

pub fn pieces(block: u32, words: &str, cut: usize) -> Vec<Delta> {
    let mut chars = words.chars().peekable();
    let mut state = cut as u64;
    let mut length = || {
        if !(RANDOM..usize::MAX).contains(&cut) {
            return cut.max(1);
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % 9 + 1
    };
    let mut deltas = Vec::new();
    while chars.peek().is_some() {
        deltas.push(Delta::Piece { block, text: chars.by_ref().take(length()).collect() });
    }
    deltas
}

/// Answers in order and keeps the prompts it was asked with. Counts the streams that are open.
#[derive(Default)]
pub struct ScriptedModel {
    pub scripts: Mutex<Vec<Script>>,
    pub prompts: Mutex<Vec<Prompt>>,
    pub open: Arc<AtomicUsize>,
    /// It supports prefill.
    pub prefill: bool,
    /// Its reasoning has no signatures.
    pub unsigned: bool,
    /// The note of its next answer.
    pub note: Mutex<Option<String>>,
    /// The answer after the last of the script; `None`: there must be no request for one.
    pub otherwise: Option<Script>,
}

impl ScriptedModel {
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Arc<Self> {
        Arc::new(Self { scripts: Mutex::new(scripts.into_iter().collect()), ..Self::default() })
    }

    /// A model that supports prefill.
    pub fn going_on(scripts: impl IntoIterator<Item = Script>) -> Arc<Self> {
        Arc::new(Self { scripts: Mutex::new(scripts.into_iter().collect()), prefill: true, ..Self::default() })
    }

    /// A model that gives this answer to every request.
    pub fn always(script: Script) -> Arc<Self> {
        Arc::new(Self { otherwise: Some(script), ..Self::default() })
    }

    /// The texts of the messages of each request.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let prompts = self.prompts.lock().unwrap();
        prompts.iter().map(|prompt| prompt.messages.iter().map(|message| message.plain_text()).collect()).collect()
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.prompts.lock().unwrap().len()
    }

    /// The conversation it was asked with, by number of the request: role and what a provider would send.
    pub fn request(&self, number: usize) -> Vec<(Role, String)> {
        self.prompts.lock().unwrap()[number].messages.iter().map(|message| (message.role, said(message))).collect()
    }
}

impl Model for ScriptedModel {
    fn provider(&self) -> &str {
        "script"
    }

    fn name(&self) -> &str {
        "script-1"
    }

    fn prefill(&self) -> bool {
        self.prefill
    }

    fn signs_reasoning(&self) -> bool {
        !self.unsigned
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        self.prompts.lock().unwrap().push(prompt.clone());
        let mut scripts = self.scripts.lock().unwrap();
        let script = if scripts.is_empty() { self.otherwise.clone() } else { Some(scripts.remove(0)) };
        let script = script.expect("the model was asked more often than the script has answers");
        let (open, note) = (Arc::clone(&self.open), self.note.lock().unwrap().take());
        Box::pin(async move {
            let mut live = None;
            let (deltas, end) = match script {
                Script::Refuse(error) => return Err(error),
                Script::Live(pieces) => {
                    live = Some(pieces);
                    let start = [Delta::Start { model: None }, Delta::BlockStart { block: 0, kind: StreamKind::Text }];
                    (start.map(|delta| (0, delta)).into(), Some(Ok(())))
                }
                Script::Say(deltas, end) => (deltas.into_iter().map(|delta| (0, delta)).collect(), end),
                Script::Slow(deltas) => (deltas, Some(Ok(()))),
            };
            open.fetch_add(1, Ordering::SeqCst);
            let stream: Box<dyn ModelStream> =
                Box::new(ScriptedStream { deltas: deltas.into(), live, wait: None, end, open, note });
            Ok(stream)
        })
    }
}

struct ScriptedStream {
    deltas: VecDeque<(u64, Delta)>,
    live: Option<Live>,
    wait: Option<Pin<Box<tokio::time::Sleep>>>,
    end: Option<Result<(), ModelError>>,
    open: Arc<AtomicUsize>,
    note: Option<String>,
}

impl ModelStream for ScriptedStream {
    fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        if let Some((millis, _)) = self.deltas.front_mut().filter(|(millis, _)| *millis > 0) {
            let time = Duration::from_millis(std::mem::take(millis));
            self.wait = Some(Box::pin(tokio::time::sleep(time)));
        }
        if let Some(wait) = &mut self.wait {
            std::task::ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        if let (true, Some(live)) = (self.deltas.is_empty(), &self.live) {
            let piece = live.lock().unwrap().poll_recv(cx);
            match std::task::ready!(piece) {
                Some(text) => self.deltas.push_back((0, Delta::Piece { block: 0, text: text.to_owned() })),
                None => {
                    let stop = Delta::Stop { reason: StopReason::EndTurn };
                    self.deltas.extend([(0, Delta::BlockEnd { block: 0 }), (0, stop)]);
                    self.live = None;
                }
            }
        }
        match (self.deltas.pop_front(), &mut self.end) {
            (Some((_, delta)), _) => Poll::Ready(Some(Ok(delta))),
            (None, Some(end)) => match std::mem::replace(end, Ok(())) {
                Ok(()) => Poll::Ready(None),
                Err(error) => Poll::Ready(Some(Err(error))),
            },
            (None, None) => Poll::Pending,
        }
    }
}

impl Drop for ScriptedStream {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}
