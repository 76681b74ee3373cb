//! A turn without the outside: a model that says what a script says, extensions that are closures, tools that echo.
//!
//! These stand in for the real parts only where exact timing, exact chunking or a fault is wanted.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by several test files, each using its part; tests may panic")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use flow::{
    BlockKind, CallFailure, CallId, Callback, CallbackKind, Confirmation, Delta, Event, FailureCause, InputAnswer, Message,
    ModelError, ModelOutput, OutputAnswer, Permission, Prompt, Registration, SessionId, StopReason, Tag, TagAnswer, TagPlace,
    TextAnswer, TextPlace, ToolCall, ToolOutput, ToolSpec,
};
use tidegate_turn as turn;
use turn::ports::{
    BoxFuture, Clock, Confirm, EventSink, ExtensionHost, Extensions, Model, ModelStream, SessionView, Tools, TtsrEvent,
};
use turn::{Parts, Session, Settings};

/// One answer of the scripted model.
#[derive(Clone)]
pub enum Script {
    /// The request is refused.
    Refuse(ModelError),
    /// These deltas come; then, where given, the error; `None` for a stream that never ends after its deltas.
    Say(Vec<Delta>, Option<Result<(), ModelError>>),
}

/// Deltas of a text answer, cut into pieces of `cut` characters.
pub fn text(words: &str, cut: usize) -> Script {
    let mut deltas = vec![Delta::Start { model: None }, Delta::BlockStart { block: 0, kind: BlockKind::Text }];
    deltas.extend(pieces(0, words, cut));
    deltas.extend([Delta::BlockEnd { block: 0 }, Delta::Stop { reason: StopReason::EndTurn }]);
    Script::Say(deltas, Some(Ok(())))
}

/// Deltas of an answer that calls tools: `(id, name, arguments)`.
pub fn calls(calls: &[(&str, &str, &str)], cut: usize) -> Script {
    let mut deltas = vec![Delta::Start { model: None }];
    for (block, (id, name, arguments)) in (0..).zip(calls) {
        let kind = BlockKind::Tool { call: CallId::new(*id), name: (*name).into() };
        deltas.push(Delta::BlockStart { block, kind });
        deltas.extend(pieces(block, arguments, cut));
        deltas.push(Delta::BlockEnd { block });
    }
    deltas.push(Delta::Stop { reason: StopReason::ToolUse });
    Script::Say(deltas, Some(Ok(())))
}

pub fn pieces(block: u32, words: &str, cut: usize) -> Vec<Delta> {
    let chars: Vec<char> = words.chars().collect();
    chars.chunks(cut.max(1)).map(|piece| Delta::Piece { block, text: piece.iter().collect() }).collect()
}

/// Answers in order and keeps the prompts it was asked with. Counts the streams that are open.
#[derive(Default)]
pub struct ScriptedModel {
    pub scripts: Mutex<Vec<Script>>,
    pub prompts: Mutex<Vec<Prompt>>,
    pub open: Arc<AtomicUsize>,
}

impl ScriptedModel {
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Arc<Self> {
        Arc::new(Self { scripts: Mutex::new(scripts.into_iter().collect()), ..Self::default() })
    }
}

impl Model for ScriptedModel {
    fn provider(&self) -> &str {
        "script"
    }

    fn name(&self) -> &str {
        "script-1"
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        self.prompts.lock().unwrap().push(prompt.clone());
        let mut scripts = self.scripts.lock().unwrap();
        assert!(!scripts.is_empty(), "the model was asked more often than the script has answers");
        let script = scripts.remove(0);
        let open = Arc::clone(&self.open);
        Box::pin(async move {
            match script {
                Script::Refuse(error) => Err(error),
                Script::Say(deltas, end) => {
                    open.fetch_add(1, Ordering::SeqCst);
                    let stream: Box<dyn ModelStream> = Box::new(ScriptedStream { deltas: deltas.into_iter(), end, open });
                    Ok(stream)
                }
            }
        })
    }
}

struct ScriptedStream {
    deltas: std::vec::IntoIter<Delta>,
    end: Option<Result<(), ModelError>>,
    open: Arc<AtomicUsize>,
}

impl ModelStream for ScriptedStream {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        match (self.deltas.next(), &mut self.end) {
            (Some(delta), _) => Poll::Ready(Some(Ok(delta))),
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

type Answer<A, R> = Box<dyn Fn(A) -> Result<R, String> + Send + Sync>;

/// One extension made of closures; what is not set passes.
#[derive(Default)]
pub struct Plugin {
    pub id: &'static str,
    pub callbacks: Vec<(Callback, u8)>,
    pub required: bool,
    pub input: Option<Answer<Vec<Message>, InputAnswer>>,
    pub text: Option<Answer<(String, TextPlace), TextAnswer>>,
    pub tag: Option<Answer<(Tag, TagPlace), TagAnswer>>,
    pub output: Option<Answer<ModelOutput, OutputAnswer>>,
    pub ttsr: Option<Answer<TtsrEvent, ()>>,
}

#[derive(Clone, Default)]
pub struct Plugins(Arc<Vec<Plugin>>);

impl Plugins {
    pub fn new(plugins: Vec<Plugin>) -> Arc<Self> {
        Arc::new(Self(Arc::new(plugins)))
    }

    fn call<A, R: Send + 'static>(
        &self,
        plugin: usize,
        callback: CallbackKind,
        answer: Option<&Answer<A, R>>,
        value: A,
        pass: R,
    ) -> BoxFuture<'static, Result<R, CallFailure>> {
        let result = answer.map_or(Ok(pass), |answer| answer(value)).map_err(|message| CallFailure {
            plugin: self.0[plugin].id.parse().unwrap(),
            callback,
            cause: FailureCause::Returned,
            message,
            frames: Vec::new(),
        });
        Box::pin(async move { result })
    }
}

impl ExtensionHost for Plugins {
    fn registrations(&self) -> Vec<Registration> {
        let one = |plugin: &Plugin| Registration {
            plugin: plugin.id.parse().unwrap(),
            version: "1.0.0".into(),
            callbacks: plugin.callbacks.clone(),
            required: plugin.required,
        };
        self.0.iter().map(one).collect()
    }

    fn open(&self, _: SessionId, _: Arc<dyn SessionView>, _: Arc<dyn EventSink>) -> Arc<dyn Extensions> {
        Arc::new(self.clone())
    }
}

impl Extensions for Plugins {
    fn input_messages<'a>(&'a self, plugin: usize, messages: &'a [Message]) -> BoxFuture<'a, Result<InputAnswer, CallFailure>> {
        self.call(plugin, CallbackKind::InputMessages, self.0[plugin].input.as_ref(), messages.to_vec(), InputAnswer::Pass)
    }

    fn plain_text<'a>(
        &'a self,
        plugin: usize,
        text: &'a str,
        place: &'a TextPlace,
    ) -> BoxFuture<'a, Result<TextAnswer, CallFailure>> {
        let value = (text.to_owned(), place.clone());
        self.call(plugin, CallbackKind::PlainText, self.0[plugin].text.as_ref(), value, TextAnswer::Pass)
    }

    fn tag<'a>(&'a self, plugin: usize, tag: &'a Tag, place: &'a TagPlace) -> BoxFuture<'a, Result<TagAnswer, CallFailure>> {
        let value = (tag.clone(), place.clone());
        self.call(plugin, CallbackKind::Tag, self.0[plugin].tag.as_ref(), value, TagAnswer::Keep)
    }

    fn llm_output<'a>(&'a self, plugin: usize, output: &'a ModelOutput) -> BoxFuture<'a, Result<OutputAnswer, CallFailure>> {
        let answer = self.0[plugin].output.as_ref();
        self.call(plugin, CallbackKind::LlmOutput, answer, output.clone(), OutputAnswer::default())
    }

    fn ttsr_triggered<'a>(&'a self, plugin: usize, event: &'a TtsrEvent) -> BoxFuture<'a, Result<(), CallFailure>> {
        self.call(plugin, CallbackKind::TtsrTriggered, self.0[plugin].ttsr.as_ref(), event.clone(), ())
    }

    fn skip_reason(&self, _: usize, _: CallbackKind) -> Option<String> {
        None
    }
}

/// Tools `write` and `read` that say what they were called with; `slow` never ends; `shell` asks.
pub struct EchoTools;

impl Tools for EchoTools {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |name: &str| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
        };
        ["read", "write", "edit", "slow", "shell"].map(spec).into()
    }

    fn permission(&self, call: &ToolCall) -> Permission {
        if call.name == "shell" { Permission::Ask { reason: "shell is set to ask".into() } } else { Permission::Allow }
    }

    fn run<'a>(&'a self, call: &'a ToolCall, _: &'a (dyn Fn(&str) + Send + Sync)) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            if call.name == "slow" {
                std::future::pending::<()>().await;
            }
            ToolOutput { content: format!("{} done: {}", call.name, call.arguments), diff: None, is_error: false }
        })
    }
}

/// Nobody can be asked.
pub struct Nobody;

impl Confirm for Nobody {
    fn confirm<'a>(&'a self, _: &'a ToolCall, reason: &'a str) -> BoxFuture<'a, Confirmation> {
        let reason = format!("{reason}, and nobody can be asked");
        Box::pin(async move { Confirmation::Denied { reason } })
    }
}

/// Tokio's time, which tests may pause.
pub struct TokioClock;

impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        0
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// A session over these parts.
pub fn session(model: &Arc<ScriptedModel>, plugins: Vec<Plugin>, rules: Arc<rules::RuleSet>) -> Session {
    Session::open(Parts {
        id: SessionId::new("test"),
        model: Arc::<ScriptedModel>::clone(model),
        extensions: Plugins::new(plugins),
        tools: Arc::new(EchoTools),
        confirm: Arc::new(Nobody),
        rules,
        clock: Arc::new(TokioClock),
        settings: Settings::default(),
    })
}

/// A set of rules, each `(name, toml)`, over default settings changed by `change`.
pub fn rule_set(specs: &[(&str, &str)], change: impl FnOnce(&mut rules::Settings)) -> Arc<rules::RuleSet> {
    let mut settings = rules::Settings { builtin_rules: false, retry_delay_ms: 0, ..rules::Settings::default() };
    change(&mut settings);
    let source = |name: &str| rules::Source { layer: rules::Layer::Project, path: format!("{name}.md") };
    let parse = |(name, text): &(&str, &str)| {
        let (rule, diagnostics) = rules::parse_rule_file(name, &source(name), text);
        rule.unwrap_or_else(|| panic!("{name}: {diagnostics:?}"))
    };
    let (set, diagnostics) = rules::RuleSet::build(specs.iter().map(parse).collect(), settings, "/workspace");
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    set
}

/// What was shown of an attempt, joined.
pub fn shown(events: &[Event]) -> String {
    let delta = |event: &Event| match &event.kind {
        flow::EventKind::CognitionOutDelta { text, .. } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

/// All events that are there.
pub fn drain(subscription: &mut turn::Subscription) -> Vec<Event> {
    std::iter::from_fn(|| subscription.try_next()).collect()
}
