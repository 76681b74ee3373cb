//! What a callback costs: `on_plain_text` through the whole host path, next to the bare engine, native code and a process
//! hook; callbacks that answer with what they were given, next to a handler in Node and an Extism plugin; a new instance with
//! its first call; and what a session's instances take in memory.

use std::hint::black_box;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flow::ports::{BoxFuture, ExtensionHost as _, Extensions, TtsrEvent};
use flow::{
    Action, AskedCall, CallId, Callback, Evidence, GivenResult, InputAnswer, Message, ModelOutput, NoAnswer,
    OutputAnswer, ResultStage, RuleMatch, RunPosition, SessionId, StopReason, StreamKind, Tag, TagAnswer, TagPattern,
    TagPlace, TextAnswer, TextPlace, ToolCall, Usage,
};
use sandbox::{Plugin, SandboxHost};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

use crate::support::echo::Echo;
use crate::support::extism::Extism;
use crate::support::guests::{EmptyStage, build, load, sandbox, store};
use crate::support::node::{self, Handover};
use crate::support::peer::Peer;
use crate::support::{Aim, Lane, Table, cpu_time, criterion, memory_kb, race, ready};

wasmtime::component::bindgen!({
    inline: "
        package tidegate:bench;
        world bench {
            include tidegate:extension/extension@0.1.0;
            include tidegate:extension/with-on-input-messages@0.1.0;
            include tidegate:extension/with-on-plain-text@0.1.0;
            include tidegate:extension/with-on-tag@0.1.0;
            include tidegate:extension/with-on-llm-output@0.1.0;
            include tidegate:extension/with-ttsr-triggered@0.1.0;
        }
    ",
    path: "../sdk/wit/0.1.0",
    world: "tidegate:bench/bench",
    ownership: Borrowing { duplicate_if_necessary: true },
});

use self::tidegate::extension::types::{Moment, TextStreamParam};
use exports::tidegate::extension::on_plain_text::{Guest as BareGuest, GuestIndices, TextPlace as BarePlace};

/// Sessions whose memory is measured, and those that are opened before; together, with three plugins, they fit into the pool.
const SESSIONS: usize = 1_000;
const FIRST: usize = 300;

const PLUGINS: [&str; 3] = ["redact-secrets", "session-notes", "team-guard"];

pub(crate) fn bench() {
    let mut table = Table::new("callback");
    let component = build("tests/guests/pass-through");
    let sandbox = sandbox(6_000);
    let plugin = load(&sandbox, "pass-through", component.clone());
    calls(&mut table, &plugin, &component);
    echoes(&mut table);
    instances(&mut table, &plugin, &component);
    drop((plugin, sandbox));
    memory(&mut table, "our three plugins", Aim::AtMost(45.0), &PLUGINS.map(|name| ("plugins/", name)));
    memory(&mut table, "a plugin that does nothing, thrice", Aim::None, &[("tests/guests/", "pass-through"); 3]);
    for name in PLUGINS {
        memory(&mut table, &format!("`{name}`"), Aim::None, &[("plugins/", name)]);
    }
    table.finish();
}

fn calls(table: &mut Table, plugin: &Plugin, component: &[u8]) {
    for (size, words) in [("20 B", "twenty bytes of text".to_owned()), ("1 KB", "sixteen letters ".repeat(64))] {
        let words = words.as_str();
        let host = SandboxHost::new(vec![plugin.clone()], store()).unwrap();
        let (whole, native): (Arc<dyn Extensions>, Arc<dyn Extensions>) = (open(&host, "calls"), Arc::new(Native));
        let bare = Bare::new(component);
        let ((mut store, func), (mut fiber_store, fiber_func)) = (bare.start(), bare.start());
        let place = TextPlace::default();
        let lanes = vec![
            Lane::new("bare engine", || {
                store.set_epoch_deadline(1000);
                black_box(func.call_on_plain_text(&mut store, words, bare_place()).unwrap().unwrap());
            }),
            Lane::new("bare engine, call_async", || {
                fiber_store.set_epoch_deadline(1000);
                let func = fiber_func.func_on_plain_text();
                black_box(ready(func.call_async(&mut fiber_store, (words, bare_place()))).unwrap().0.unwrap());
            }),
            Lane::new("whole path", || {
                answered(black_box(ready(whole.plain_text(0, words, &place))));
            }),
            Lane::new("native trait", || {
                black_box(ready(black_box(&native).plain_text(0, black_box(words), &place)).unwrap());
            }),
            Lane::waiting("sh -c cat", || process_hook(words)),
        ];
        let times = race(&mut criterion(), &format!("on_plain_text {size}"), 101, lanes);
        let aim = if size == "20 B" { Aim::AtMost(1.3) } else { Aim::None };
        table.row(&format!("`on_plain_text` of {size}, whole path ÷ bare engine"), aim, times.ratio(2, 0), "×");
        table.row(&format!("– ÷ bare engine with `call_async`, {size}"), Aim::None, times.ratio(2, 1), "×");
        table.row(&format!("– ÷ native trait call, {size}"), Aim::None, times.ratio(2, 3), "×");
        table.row(&format!("process hook (`sh -c cat`, JSON) ÷ whole path, {size}"), Aim::None, times.ratio(4, 2), "×");
        for (lane, name) in
            ["bare engine", "bare `call_async`", "whole path", "native trait", "process hook"].iter().enumerate()
        {
            table.row(&format!("– {name}, {size}"), Aim::None, times.of(lane) / 1000.0, "µs");
        }
    }
}

/// What a user would choose instead of a plugin, with the same data both ways: a handler in the host's own process, if the
/// host is written in JavaScript, or a plugin for Extism.
fn echoes(table: &mut Table) {
    let sandbox = sandbox(16);
    let plugin = load(&sandbox, "echo", build("tests/guests/echo"));
    let host = SandboxHost::new(vec![plugin], store()).unwrap();
    let extensions = open(&host, "echoes");
    let extism = Extism::prepare();
    for (what, echo) in Echo::cases() {
        echo.check(&*extensions);
        let mut peers = Vec::new();
        for (name, peer) in contenders(&echo, &extism) {
            match peer {
                Ok(peer) => peers.push((name, peer)),
                Err(why) => table.missing(&format!("{name}, echo of {what}"), &why),
            }
        }
        let mut lanes = vec![Lane::new("whole path", || echo.call(&*extensions))];
        lanes.extend(peers.iter_mut().map(|(name, peer)| peer.lane(name)));
        let times = race(&mut criterion(), &format!("echo of {what}"), 101, lanes);
        table.row(&format!("echo of {what}, whole path"), Aim::None, times.of(0) / 1000.0, "µs");
        for (at, (name, _)) in peers.iter().enumerate() {
            table.row(&format!("– {name}, echo of {what}"), Aim::None, times.of(at + 1) / 1000.0, "µs");
            table.row(&format!("– {name} ÷ whole path, echo of {what}"), Aim::None, times.ratio(at + 1, 0), "×");
        }
    }
}

type Contender = (&'static str, Result<Peer, String>);

fn contenders(echo: &Echo, extism: &Result<Extism, String>) -> Vec<Contender> {
    let (callback, (input, answer)) = (echo.callback(), echo.json());
    let node = |handover| node::start(callback, &input, &answer, handover);
    let mut all = vec![("Node handler", node(Handover::Reference))];
    // A string cannot be changed, so that only messages need a copy to be safe from the handler.
    if let Echo::Messages(_) = echo {
        all.push(("Node handler that gets a copy", node(Handover::Copy)));
    }
    let plugin = extism.as_ref().map_err(String::clone);
    all.push(("Extism plugin", plugin.and_then(|extism| extism.start(callback, &input, &answer))));
    all
}

/// A session of its own each time: a session is open once at a time.
fn open(host: &SandboxHost, session: &str) -> Arc<dyn Extensions> {
    static OPENED: AtomicUsize = AtomicUsize::new(0);
    let id = SessionId::new(format!("{session}-{}", OPENED.fetch_add(1, Ordering::Relaxed)));
    ready(host.open(&id, Arc::new(EmptyStage), Arc::new(EmptyStage))).unwrap()
}

fn answered<T>(answer: Result<T, NoAnswer>) {
    if let Err(failure) = answer {
        panic!("{failure:?}");
    }
}

/// Instances that are made before those of a slice are dropped, which is not counted.
const TOGETHER: u64 = 64;

fn instances(table: &mut Table, plugin: &Plugin, component: &[u8]) {
    let host = SandboxHost::new(vec![plugin.clone()], store()).unwrap();
    let bare = Bare::new(component);
    let words = "twenty bytes of text";
    let whole = |_: u64| {
        let extensions = open(&host, "instances");
        answered(ready(extensions.plain_text(0, words, &TextPlace::default())));
        extensions
    };
    let alone = |_: u64| {
        let (mut store, func) = bare.start();
        func.call_on_plain_text(&mut store, words, bare_place()).unwrap().unwrap();
        store
    };
    let lanes = vec![
        Lane::timed("bare engine", |times| in_slices(times, alone)),
        Lane::timed("whole path", |times| in_slices(times, whole)),
    ];
    let times = race(&mut criterion(), "new instance and first call", 101, lanes);
    table.row("new instance and first call, whole path", Aim::AtMost(35.0), times.of(1) / 1000.0, "µs");
    table.row("– bare engine", Aim::None, times.of(0) / 1000.0, "µs");
}

fn in_slices<T>(times: u64, mut make: impl FnMut(u64) -> T) -> Duration {
    let mut took = Duration::ZERO;
    let mut left = times;
    while left > 0 {
        let count = left.min(TOGETHER);
        let start = cpu_time();
        let made: Vec<T> = (0..count).map(&mut make).collect();
        took += cpu_time() - start;
        drop(made);
        left -= count;
    }
    took
}

/// Measures idle sessions: opens many, calls every callback of every plugin once, and keeps them all. In an engine of its
/// own, none of whose pool is resident yet.
fn memory(table: &mut Table, what: &str, aim: Aim, folders: &[(&str, &str)]) {
    let sandbox = sandbox(6_000);
    let load = |(number, (folder, name)): (usize, &(&str, &str))| {
        load(&sandbox, &format!("{name}-{number}"), build(&format!("{folder}{name}")))
    };
    let host = SandboxHost::new(folders.iter().enumerate().map(load).collect(), store()).unwrap();
    let used = || {
        let extensions = open(&host, "idle");
        call_all(&host, &*extensions);
        extensions
    };
    // What is set up once is not what a session takes; and memory that the compiler has freed stays resident, so that the
    // first sessions, which get it, would look smaller than they are.
    let first: Vec<_> = (0..FIRST).map(|_| used()).collect();
    let before = memory_kb();
    let sessions: Vec<_> = (0..SESSIONS).map(|_| used()).collect();
    let each = (memory_kb() - before) / (SESSIONS * folders.len()) as f64;
    table.row(&format!("memory per idle session and plugin, {SESSIONS} sessions: {what}"), aim, each, "KB");
    drop((first, sessions));
}

fn call_all(host: &SandboxHost, extensions: &dyn Extensions) {
    for (plugin, one) in host.registrations().iter().enumerate() {
        for callback in one.callbacks.iter().map(|one| &one.callback) {
            call_once(extensions, plugin, callback);
        }
    }
}

fn call_once(extensions: &dyn Extensions, plugin: usize, callback: &Callback) {
    match callback {
        Callback::InputMessages => {
            let messages = [Message::user("Take the port from the environment, please.")];
            answered(ready(extensions.input_messages(plugin, &messages)).map(drop));
        }
        Callback::PlainText(_) => {
            let words = "I will look at the server and at the deploy script's settings first.\n";
            answered(ready(extensions.plain_text(plugin, words, &TextPlace::default())).map(drop));
        }
        Callback::Tag(patterns) => {
            let (TagPattern::Exact(name) | TagPattern::Prefix(name)) = &patterns[0];
            let (open, close) = (format!("<{name}>"), format!("</{name}>"));
            let content = "the port is read in main".to_owned();
            let tag = Tag { name: name.clone(), attributes: Vec::new(), open, content, close };
            answered(ready(extensions.tag(plugin, &tag, &TagPlace::default())).map(drop));
        }
        Callback::LlmOutput(_) => {
            let (text, usage) = ("Done: the port comes from PORT.".to_owned(), Usage::default());
            let output = ModelOutput {
                at: RunPosition::default(),
                text,
                tool_calls: Vec::new(),
                stop: StopReason::EndTurn,
                usage,
            };
            answered(ready(extensions.llm_output(plugin, &output)).map(drop));
        }
        Callback::TtsrTriggered => answered(ready(extensions.ttsr_triggered(plugin, &fired()))),
        Callback::ToolCall => answered(ready(extensions.tool_call(plugin, &asked())).map(drop)),
        Callback::ToolResult => {
            let AskedCall { at, call, .. } = asked();
            let content = vec!["src/main.rs:12: let port = env::var(\"PORT\")".to_owned()];
            let given = GivenResult { at, call, stage: ResultStage::Done, content, diff: None, is_error: false };
            answered(ready(extensions.tool_result(plugin, &given)).map(drop));
        }
    }
}

fn asked() -> AskedCall {
    let arguments = r#"{"pattern":"PORT"}"#.to_owned();
    let call = ToolCall { id: CallId::new("1"), name: "grep".to_owned(), arguments };
    AskedCall { at: RunPosition::default(), call, edited: false }
}

fn fired() -> TtsrEvent {
    let (pattern, text) = (r"\.unwrap\(\)".to_owned(), ".unwrap()".to_owned());
    let evidence = Evidence { pattern, text, start: 10, end: 19, line: 1, field: None, path: None, unread: false };
    let found = RuleMatch { rule: "rust-no-unwrap".into(), stream: StreamKind::Text, evidence };
    TtsrEvent { matches: vec![found], action: Action::Interrupt, place: RunPosition { turn: 1, step: 1, attempt: 1 } }
}

/// What other hosts do: a process for each call, JSON in, JSON out.
fn process_hook(words: &str) {
    let mut child =
        Command::new("sh").args(["-c", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let request = serde_json::json!({ "callback": "on_plain_text", "text": words });
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(black_box(answer)["text"], words);
}

fn bare_place() -> BarePlace<'static> {
    let at = Moment { turn: 0, step: 0, attempt: 0 };
    BarePlace { at, stream: TextStreamParam::Answer, unit: 0, inside: &[], attributes: &[] }
}

/// The engine alone, with the settings of the sandbox that matter to a call.
struct Bare {
    engine: Engine,
    ready: InstancePre<()>,
}

impl Bare {
    fn new(component: &[u8]) -> Self {
        let mut config = Config::new();
        config.concurrency_support(false).epoch_interruption(true);
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(128).total_core_instances(512).total_memories(128).total_tables(384);
        pool.total_stacks(128).max_memory_size(4 << 30);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).unwrap();
        let component = Component::new(&engine, component).unwrap();
        let mut linker = Linker::<()>::new(&engine);
        linker.define_unknown_imports_as_traps(&component).unwrap();
        let ready = linker.instantiate_pre(&component).unwrap();
        Self { engine, ready }
    }

    fn start(&self) -> (Store<()>, BareGuest) {
        let mut store = Store::new(&self.engine, ());
        store.set_epoch_deadline(1000);
        let instance = self.ready.instantiate(&mut store).unwrap();
        let func = GuestIndices::new(&self.ready).unwrap().load(&mut store, &instance).unwrap();
        (store, func)
    }
}

/// An extension in native code behind the same port.
struct Native;

impl Extensions for Native {
    fn plain_text<'a>(
        &'a self,
        _plugin: usize,
        text: &'a str,
        _place: &'a TextPlace,
    ) -> BoxFuture<'a, Result<TextAnswer, NoAnswer>> {
        Box::pin(async move {
            black_box(text);
            Ok(TextAnswer::Pass)
        })
    }

    fn input_messages<'a>(
        &'a self,
        _plugin: usize,
        _messages: &'a [Message],
    ) -> BoxFuture<'a, Result<InputAnswer, NoAnswer>> {
        Box::pin(async { Ok(InputAnswer::Pass) })
    }

    fn tag<'a>(
        &'a self,
        _plugin: usize,
        _tag: &'a Tag,
        _place: &'a TagPlace,
    ) -> BoxFuture<'a, Result<TagAnswer, NoAnswer>> {
        Box::pin(async { Ok(TagAnswer::Keep) })
    }

    fn llm_output<'a>(
        &'a self,
        _plugin: usize,
        _output: &'a ModelOutput,
    ) -> BoxFuture<'a, Result<OutputAnswer, NoAnswer>> {
        Box::pin(async { Ok(OutputAnswer::default()) })
    }

    fn ttsr_triggered<'a>(&'a self, _plugin: usize, _event: &'a TtsrEvent) -> BoxFuture<'a, Result<(), NoAnswer>> {
        Box::pin(async { Ok(()) })
    }
}
