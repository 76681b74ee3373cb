//! A turn without the outside: a model that says what a script says, extensions that are closures, tools that echo.
//!
//! These stand in for the real parts only where exact timing, exact chunking or a fault is wanted.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared by several test files, each using its part; tests may panic"
)]

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use flow::{
    CallFailure, CallId, Callback, CallbackKind, Confirmation, Delta, Event, FailureCause, InputAnswer, Message,
    ModelError, ModelOutput, NoAnswer, OutputAnswer, Part, Permission, Preview, Prompt, Registered, Registration, Role,
    SessionId, SessionInUse, StopReason, StreamKind, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, ToolCall,
    ToolOutput, ToolSpec,
};
use tidegate_turn as turn;
use turn::ports::{
    BoxFuture, Clock, Confirm, EventSink, ExtensionHost, Extensions, FixedRules, Model, ModelStream, PreparedCall,
    Progress, Question, SessionView, Tools, TtsrEvent,
};
use turn::{Parts, Session, Settings};

/// One answer of the scripted model.
#[derive(Clone)]
pub enum Script {
    /// The request is refused.
    Refuse(ModelError),
    /// These deltas come; then, where given, the error; `None` for a stream that never ends after its deltas.
    Say(Vec<Delta>, Option<Result<(), ModelError>>),
    /// These deltas come, each so many milliseconds after the one before; then the stream ends.
    Slow(Vec<(u64, Delta)>),
}

/// Every way in which tests cut an answer: characters, small and odd pieces, the whole, and at random.
pub const CUTS: [usize; 8] = [1, 2, 3, 7, usize::MAX, RANDOM, RANDOM + 1, RANDOM + 2];

/// A cut from here on is the seed of pieces of random length.
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

/// Deltas of a text answer, cut into pieces of `cut` characters.
pub fn text(words: &str, cut: usize) -> Script {
    Script::Say(blocks(&[(StreamKind::Text, words)], cut, StopReason::EndTurn), Some(Ok(())))
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
    /// It goes on from a beginning of its answer.
    pub prefill: bool,
}

impl ScriptedModel {
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Arc<Self> {
        Arc::new(Self { scripts: Mutex::new(scripts.into_iter().collect()), ..Self::default() })
    }

    /// A model that goes on from a beginning of its answer.
    pub fn going_on(scripts: impl IntoIterator<Item = Script>) -> Arc<Self> {
        Arc::new(Self { scripts: Mutex::new(scripts.into_iter().collect()), prefill: true, ..Self::default() })
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

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        self.prompts.lock().unwrap().push(prompt.clone());
        let mut scripts = self.scripts.lock().unwrap();
        assert!(!scripts.is_empty(), "the model was asked more often than the script has answers");
        let script = scripts.remove(0);
        let open = Arc::clone(&self.open);
        Box::pin(async move {
            let (deltas, end) = match script {
                Script::Refuse(error) => return Err(error),
                Script::Say(deltas, end) => (deltas.into_iter().map(|delta| (0, delta)).collect(), end),
                Script::Slow(deltas) => (deltas, Some(Ok(()))),
            };
            open.fetch_add(1, Ordering::SeqCst);
            let stream: Box<dyn ModelStream> =
                Box::new(ScriptedStream { deltas: deltas.into(), wait: None, end, open });
            Ok(stream)
        })
    }
}

struct ScriptedStream {
    deltas: VecDeque<(u64, Delta)>,
    wait: Option<Pin<Box<tokio::time::Sleep>>>,
    end: Option<Result<(), ModelError>>,
    open: Arc<AtomicUsize>,
}

impl ModelStream for ScriptedStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        if let Some((millis, _)) = self.deltas.front_mut().filter(|(millis, _)| *millis > 0) {
            let time = Duration::from_millis(std::mem::take(millis));
            self.wait = Some(Box::pin(tokio::time::sleep(time)));
        }
        if let Some(wait) = &mut self.wait {
            std::task::ready!(wait.as_mut().poll(cx));
            self.wait = None;
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

type Answer<A, R> = Box<dyn Fn(A) -> Result<R, String> + Send + Sync>;

/// One extension made of closures; what is not set passes.
#[derive(Default)]
pub struct Plugin {
    pub id: &'static str,
    pub callbacks: Vec<(Callback, u8)>,
    pub required: bool,
    /// Callbacks that can fail closed do.
    pub closed: bool,
    pub input: Option<Answer<Vec<Message>, InputAnswer>>,
    pub text: Option<Answer<(String, TextPlace), TextAnswer>>,
    pub tag: Option<Answer<(Tag, TagPlace), TagAnswer>>,
    pub output: Option<Answer<ModelOutput, OutputAnswer>>,
    pub ttsr: Option<Answer<TtsrEvent, ()>>,
    /// This callback never answers.
    pub hangs: Option<CallbackKind>,
    /// Calls are not made, for this reason.
    pub skipped: Option<&'static str>,
    /// Every call is waited for.
    pub yields: bool,
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
    ) -> BoxFuture<'static, Result<R, NoAnswer>> {
        if let Some(why) = self.0[plugin].skipped {
            return Box::pin(std::future::ready(Err(NoAnswer::Skipped(why.to_owned()))));
        }
        if self.0[plugin].hangs == Some(callback) {
            return Box::pin(std::future::pending());
        }
        let result = answer.map_or(Ok(pass), |answer| answer(value)).map_err(|message| {
            let (cause, frames) = (FailureCause::Returned, Vec::new());
            CallFailure { plugin: self.0[plugin].id.parse().unwrap(), callback, cause, message, frames }.into()
        });
        let yields = self.0[plugin].yields;
        Box::pin(async move {
            if yields {
                tokio::task::yield_now().await;
            }
            result
        })
    }
}

impl ExtensionHost for Plugins {
    fn registrations(&self) -> Vec<Registration> {
        let one = |plugin: &Plugin| Registration {
            plugin: plugin.id.parse().unwrap(),
            version: "1.0.0".into(),
            callbacks: plugin
                .callbacks
                .iter()
                .cloned()
                .map(Registered::from)
                .map(|one| if plugin.closed { one.closed() } else { one })
                .collect(),
            required: plugin.required,
        };
        self.0.iter().map(one).collect()
    }

    fn open(
        &self,
        _: SessionId,
        _: Arc<dyn SessionView>,
        _: Arc<dyn EventSink>,
    ) -> Result<Arc<dyn Extensions>, SessionInUse> {
        Ok(Arc::new(self.clone()))
    }
}

impl Extensions for Plugins {
    fn input_messages<'a>(
        &'a self,
        plugin: usize,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<InputAnswer, NoAnswer>> {
        self.call(
            plugin,
            CallbackKind::InputMessages,
            self.0[plugin].input.as_ref(),
            messages.to_vec(),
            InputAnswer::Pass,
        )
    }

    fn plain_text<'a>(
        &'a self,
        plugin: usize,
        text: &'a str,
        place: &'a TextPlace,
    ) -> BoxFuture<'a, Result<TextAnswer, NoAnswer>> {
        let value = (text.to_owned(), place.clone());
        self.call(plugin, CallbackKind::PlainText, self.0[plugin].text.as_ref(), value, TextAnswer::Pass)
    }

    fn tag<'a>(
        &'a self,
        plugin: usize,
        tag: &'a Tag,
        place: &'a TagPlace,
    ) -> BoxFuture<'a, Result<TagAnswer, NoAnswer>> {
        let value = (tag.clone(), place.clone());
        self.call(plugin, CallbackKind::Tag, self.0[plugin].tag.as_ref(), value, TagAnswer::Keep)
    }

    fn llm_output<'a>(
        &'a self,
        plugin: usize,
        output: &'a ModelOutput,
    ) -> BoxFuture<'a, Result<OutputAnswer, NoAnswer>> {
        let answer = self.0[plugin].output.as_ref();
        self.call(plugin, CallbackKind::LlmOutput, answer, output.clone(), OutputAnswer::default())
    }

    fn ttsr_triggered<'a>(&'a self, plugin: usize, event: &'a TtsrEvent) -> BoxFuture<'a, Result<(), NoAnswer>> {
        self.call(plugin, CallbackKind::TtsrTriggered, self.0[plugin].ttsr.as_ref(), event.clone(), ())
    }
}

/// Tools that say what they were called with; `slow` never ends, `shell` asks, `locked` is denied, `steps` tells progress.
pub struct EchoTools;

impl Tools for EchoTools {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |name: &str| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
        };
        ["read", "write", "edit", "slow", "shell", "locked", "steps"].map(spec).into()
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(EchoCall(call))
    }
}

struct EchoCall<'a>(&'a ToolCall);

impl PreparedCall for EchoCall<'_> {
    fn permission(&self) -> Permission {
        match self.0.name.as_str() {
            "shell" => Permission::Ask { reason: "shell is set to ask".into() },
            "locked" => Permission::Deny { reason: "locked is set to deny".into() },
            _ => Permission::Allow,
        }
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        Box::pin(std::future::ready(Preview::of_arguments(&self.0.arguments).unwrap()))
    }

    fn run<'a>(&'a mut self, progress: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        let call = self.0;
        Box::pin(async move {
            tokio::task::yield_now().await;
            match call.name.as_str() {
                "slow" => std::future::pending::<()>().await,
                "steps" => ["one", "two"].into_iter().for_each(progress),
                _ => {}
            }
            ToolOutput { content: format!("{} done: {}", call.name, call.arguments), diff: None, is_error: false }
        })
    }
}

/// Nobody can be asked.
pub struct Nobody;

impl Confirm for Nobody {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Confirmation> {
        let reason = format!("{}, and nobody can be asked", question.reason);
        Box::pin(async move { Confirmation::Denied { reason } })
    }
}

/// Tokio's time, which tests may pause.
pub struct TokioClock(tokio::time::Instant);

impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// A session over these parts.
pub fn session(model: &Arc<ScriptedModel>, plugins: Vec<Plugin>, rules: Arc<rules::RuleSet>) -> Session {
    Session::open(parts(model, plugins, rules)).unwrap()
}

/// What [`session`] is made of.
pub fn parts(model: &Arc<ScriptedModel>, plugins: Vec<Plugin>, rules: Arc<rules::RuleSet>) -> Parts {
    Parts {
        id: SessionId::new("test"),
        model: Arc::<ScriptedModel>::clone(model),
        extensions: Plugins::new(plugins),
        tools: Arc::new(EchoTools),
        confirm: Arc::new(Nobody),
        rules: Arc::new(FixedRules(rules)),
        clock: Arc::new(TokioClock(tokio::time::Instant::now())),
        settings: Settings::default(),
    }
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

/// What a provider would send of a message: words, `call NAME ARGUMENTS`, `result [BLOCKS]`.
pub fn said(message: &Message) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Thinking { text, .. } => format!("<{text}>"),
        Part::ToolCall(call) => format!("call {} {}", call.name, call.arguments),
        Part::ToolResult(result) => format!("result {:?}", result.content),
    };
    message.parts.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// A provider takes this conversation: no empty message, every call answered by the message after it and by no other.
pub fn assert_valid(history: &[Arc<Message>]) {
    let mut open: Vec<CallId> = Vec::new();
    for message in history {
        assert!(!said(message).trim().is_empty(), "an empty message: {history:#?}");
        if message.role == Role::Assistant {
            let words = |part: &Part| !matches!(part, Part::Thinking { .. });
            assert!(message.parts.iter().any(words), "reasoning alone: {history:#?}");
        }
        let answered: Vec<CallId> = message
            .parts
            .iter()
            .filter_map(|part| if let Part::ToolResult(result) = part { Some(result.call.clone()) } else { None })
            .collect();
        assert_eq!(open, answered, "calls and the results after them: {history:#?}");
        open = message.tool_calls().map(|call| call.id.clone()).collect();
    }
    assert!(open.is_empty(), "calls without results: {history:#?}");
}

/// One turn and what came of it.
pub struct Scene {
    pub model: Arc<ScriptedModel>,
    pub session: Session,
    pub events: turn::Subscription,
}

impl Scene {
    pub fn new(scripts: impl IntoIterator<Item = Script>, plugins: Vec<Plugin>, rules: Arc<rules::RuleSet>) -> Self {
        Self::of(ScriptedModel::new(scripts), plugins, rules)
    }

    pub fn of(model: Arc<ScriptedModel>, plugins: Vec<Plugin>, rules: Arc<rules::RuleSet>) -> Self {
        let session = session(&model, plugins, rules);
        let events = session.subscribe();
        Self { model, session, events }
    }

    /// Runs a turn to its end; everything must be closed and valid then.
    pub async fn turn(&mut self, input: &str) -> (turn::TurnReport, Vec<Event>) {
        let report = self.session.run(vec![Message::user(input)], &turn::CancellationToken::new()).await;
        assert_eq!(self.model.open.load(Ordering::SeqCst), 0, "a stream is left open");
        assert_valid(&self.session.history());
        let events = drain(&mut self.events);
        assert_eq!(kept_on_screen(&events), report.text, "what a front end keeps is what the report says");
        (report, events)
    }
}

/// What a front end has on its screen at the end that takes back what is void: it adds each piece, and cuts back to what
/// stands when an answer did not come to its end.
pub fn kept_on_screen(events: &[Event]) -> String {
    let (mut accepted, mut answer) = (String::new(), String::new());
    for event in events {
        match &event.kind {
            flow::EventKind::CognitionOutDelta { text, .. } => answer.push_str(text),
            flow::EventKind::CognitionOut { partial: Some(partial), .. } => {
                assert_eq!(partial.shown_bytes, answer.len() as u64, "shown: {answer:?}");
                answer.truncate(usize::try_from(partial.stands_bytes).unwrap());
            }
            flow::EventKind::CognitionOut { partial: None, .. } => accepted.push_str(&std::mem::take(&mut answer)),
            _ => {}
        }
    }
    accepted
}

/// The callbacks' reports, as `plugin callback outcome`.
pub fn reports(events: &[Event]) -> Vec<String> {
    let report = |event: &Event| match &event.kind {
        flow::EventKind::ExtensionCallback(report) => {
            let outcome = match &report.outcome {
                flow::CallbackOutcome::Passed => "passed".to_owned(),
                flow::CallbackOutcome::Changed => "changed".to_owned(),
                flow::CallbackOutcome::Skipped(why) => format!("skipped: {why}"),
                flow::CallbackOutcome::Ignored(why) => format!("ignored: {why}"),
                flow::CallbackOutcome::Failed(failure) => format!("failed: {}", failure.message),
            };
            Some(format!("{} {} {outcome}", report.plugin, report.callback.as_str()))
        }
        _ => None,
    };
    events.iter().filter_map(report).collect()
}
