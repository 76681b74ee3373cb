//! Guests in text format, made into components of our contract, and a session to run them in.
//!
//! A guest is a core module: a body for each callback, written as WebAssembly text over raw memory, so that its bytes can
//! be as wrong as a test wants. `wit-component` wraps it with the types of `sdk/wit`.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use flow::ports::{
    BoxFuture, Clock, EmitError, EventSink, ExtensionHost as _, Extensions, SessionInfo, SessionView, StateStore,
};
use flow::{CallbackKind, EventKind, Message, NoAnswer, PluginId, Power, SessionId, TextPlace, ToolSpec};
use serde_json::Value;
use store::emission::DeclaredTypes;
use store::{MemoryStore, StoreOptions};
use tidegate_kit::ready;
use tidegate_sandbox::{ComponentSource, EngineOptions, LoadError, Plugin, PluginSource, Sandbox, SandboxHost};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, SourceMap};

/// Where a guest's answers are: 64 bytes of zeroes, which mean "ok" and "pass" for every callback.
pub const ANSWER: u32 = 16;
/// Where the texts of a guest begin.
const DATA: u32 = 1024;

/// A callback as `register` returns it: its number in the contract's variant, and what is in it.
#[derive(Clone, Debug)]
pub enum Registered {
    InputMessages,
    /// Unit: 0 line, 1 paragraph, 2 whole, 3 other.
    PlainText(u8),
    Tag(Vec<&'static str>),
    /// Mode: 0 observe, 1 rewrite, 2 other.
    LlmOutput(u8),
    TtsrTriggered,
    ToolCall,
    ToolResult,
    Other(&'static str),
}

/// A guest to be made.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Interfaces of the contract to import, such as `state`; `text` must import functions of them to keep them.
    pub imports: Vec<&'static str>,
    /// What `register` returns, with priorities.
    pub registers: Vec<(Registered, Option<u8>)>,
    /// The failure policy of every callback, by its number in the contract's variant: 0 skip, 1 withhold, 2 reject, 3 other.
    pub on_failure: Option<u8>,
    /// Exported callbacks with their bodies. `$a0`, `$a1`, … are the flat parameters, `$x`, `$y`, `$z` free locals; the
    /// body leaves the address of the result. `ANSWER`, `@name` (address) and `#name` (length) are filled in.
    pub exports: Vec<(CallbackKind, String)>,
    /// Body of `register`; without one it returns what is in `registers`.
    pub register: Option<String>,
    /// Texts in memory, by name.
    pub data: Vec<(&'static str, Vec<u8>)>,
    /// Further fields of the module.
    pub text: String,
    /// More of the world, and packages it needs.
    pub world: String,
    pub packages: String,
    /// Pages of 64 KiB that its memory begins with.
    pub pages: u32,
    /// The contract's version to be built for.
    pub version: &'static str,
    /// Whether there is a `registration` at all.
    pub is_extension: bool,
    /// What is replaced in the text of the contract: the types that the guest was built for are others.
    pub edits: Vec<(&'static str, &'static str)>,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            imports: Vec::new(),
            registers: Vec::new(),
            on_failure: None,
            exports: Vec::new(),
            register: None,
            data: Vec::new(),
            text: String::new(),
            world: String::new(),
            packages: String::new(),
            pages: 4,
            version: "0.1.0",
            is_extension: true,
            edits: Vec::new(),
        }
    }
}

impl Guest {
    /// A guest with `on_plain_text` alone.
    pub fn text(body: &str) -> Self {
        Self {
            registers: vec![(Registered::PlainText(0), None)],
            exports: vec![(CallbackKind::PlainText, body.to_owned())],
            ..Self::default()
        }
    }

    /// Encodes the module as a component of the contract.
    pub fn component(&self) -> Vec<u8> {
        let (mut map, mut edited) = (SourceMap::default(), 0);
        for file in ["types", "callbacks", "tool-callbacks", "powers", "tools", "worlds"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../sdk/wit/0.1.0/{file}.wit"));
            let mut text = std::fs::read_to_string(&path).unwrap().replace("0.1.0", self.version);
            for (from, to) in &self.edits {
                edited += text.matches(from).count();
                text = text.replace(from, to);
            }
            map.push_str(path.to_str().unwrap(), text);
        }
        assert!(edited >= self.edits.len(), "an edit of the contract is about nothing in it: {:?}", self.edits);
        let mut resolve = Resolve::default();
        let group = map.parse().map_err(|(_, error)| error).unwrap();
        resolve.push_group(group).unwrap();
        let package = resolve.push_str("guest.wit", &self.wit()).unwrap();
        let world = resolve.select_world(&[package], Some("guest")).unwrap();
        let mut module = wat::parse_str(self.wat()).unwrap_or_else(|error| panic!("{error}\n{}", self.wat()));
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        let encoder = ComponentEncoder::default();
        encoder
            .validate(true)
            .module(&module)
            .unwrap()
            .encode()
            .unwrap_or_else(|error| panic!("{error:?}\n{}", self.wat()))
    }

    fn wit(&self) -> String {
        let mut wit = format!("package test:guest;\n{}\nworld guest {{\n{}\n", self.packages, self.world);
        for import in &self.imports {
            wit += &format!("import tidegate:extension/{import}@{};\n", self.version);
        }
        for export in self.interfaces() {
            wit += &format!("export tidegate:extension/{export}@{};\n", self.version);
        }
        wit + "}\n"
    }

    fn interfaces(&self) -> Vec<&'static str> {
        let registration = self.is_extension.then_some("registration");
        registration.into_iter().chain(self.exports.iter().map(|(kind, _)| interface(*kind).0)).collect()
    }

    fn wat(&self) -> String {
        let mut memory = Memory { at: DATA, bytes: Vec::new() };
        let names: Vec<_> = self.data.iter().map(|(name, bytes)| (*name, memory.put(bytes), bytes.len())).collect();
        let registered = self.registered(&mut memory);
        let fill = |text: &str| {
            let mut text = text.replace("ANSWER", &ANSWER.to_string());
            for (name, at, length) in &names {
                text = text
                    .replace(&format!("@{name}"), &at.to_string())
                    .replace(&format!("#{name}"), &length.to_string());
            }
            text
        };
        let mut functions = String::new();
        if self.is_extension {
            let body = self.register.clone().unwrap_or_else(|| format!("(i32.const {registered})"));
            functions += &self.function("registration", "register", 6, &fill(&body));
        }
        for (kind, body) in &self.exports {
            let (name, parameters) = interface(*kind);
            functions += &self.function(name, name, parameters, &fill(body));
        }
        let bytes: String = memory.bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
        let text = fill(&self.text).replace("VERSION", self.version);
        let pages = self.pages;
        format!(
            "(module $guest {text}
               (memory (export \"memory\") {pages})
               (global $heap (mut i32) (i32.const 131072))
               (data (i32.const {DATA}) \"{bytes}\")
               (func $realloc (export \"cabi_realloc\") (param i32 i32) (param $align i32) (param $n i32) (result i32)
                 (local $at i32)
                 (local.set $at (i32.and (i32.add (global.get $heap) (i32.sub (local.get $align) (i32.const 1)))
                                         (i32.sub (i32.const 0) (local.get $align))))
                 (global.set $heap (i32.add (local.get $at) (local.get $n)))
                 (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
                   (then (if (i32.eq (i32.const -1)
                                     (memory.grow (i32.add (i32.shr_u (local.get $n) (i32.const 16)) (i32.const 1))))
                     (then unreachable))))
                 (local.get $at))
               {functions})"
        )
    }

    /// A function that leaves an address; the memory of its parameters is released.
    fn function(&self, interface: &str, name: &str, parameters: usize, body: &str) -> String {
        let version = self.version;
        let parameters: String = (0..parameters).map(|n| format!("(param $a{n} i32)")).collect();
        format!(
            "(func ${name} (export \"tidegate:extension/{interface}@{version}#{name}\") {parameters} (result i32)
               (local $x i32) (local $y i32) (local $z i32)
               (global.set $heap (i32.const 131072))
               {body})\n"
        )
    }

    /// Lays out what `register` returns: `result<registered-extension, failure>`.
    fn registered(&self, memory: &mut Memory) -> u32 {
        let mut list = Vec::new();
        for (callback, priority) in &self.registers {
            let mut one = [0u8; 76];
            let mut put = |at: usize, (text, length): (u32, u32)| {
                one[at..at + 4].copy_from_slice(&text.to_le_bytes());
                one[at + 4..at + 8].copy_from_slice(&length.to_le_bytes());
            };
            // The number of the case, the discriminant of a variant in its options, and where its failure policy is.
            let (number, option, policy_at) = match callback {
                Registered::InputMessages => (0, 0, Some(4)),
                Registered::PlainText(unit) => {
                    put(8, memory.text("new"));
                    (1, *unit, Some(24))
                }
                Registered::Tag(tags) => {
                    let texts: Vec<_> = tags.iter().map(|tag| memory.text(tag)).collect();
                    let bytes: Vec<u8> =
                        texts.iter().flat_map(|(at, n)| [*at, *n]).flat_map(u32::to_le_bytes).collect();
                    put(4, (memory.put(&bytes), tags.len() as u32));
                    (2, 0, Some(12))
                }
                Registered::LlmOutput(mode) => {
                    put(8, memory.text("new"));
                    (3, *mode, Some(16))
                }
                Registered::TtsrTriggered => (4, 0, None),
                Registered::ToolCall => (5, 0, Some(4)),
                Registered::ToolResult => (6, 0, Some(4)),
                Registered::Other(name) => {
                    put(4, memory.text(name));
                    (7, 0, None)
                }
            };
            if let (Some(policy), Some(at)) = (self.on_failure, policy_at) {
                put(at + 8, memory.text("explode"));
                (one[at], one[at + 4]) = (1, policy);
            }
            one[0] = number;
            if matches!(callback, Registered::PlainText(_) | Registered::LlmOutput(_)) {
                one[4] = option;
            }
            if let Some(priority) = priority {
                (one[64], one[65]) = (1, *priority);
            }
            list.extend(one);
        }
        let at = memory.put(&list);
        let mut result = [0u8; 20];
        result[4..8].copy_from_slice(&at.to_le_bytes());
        result[8..12].copy_from_slice(&(self.registers.len() as u32).to_le_bytes());
        memory.put(&result)
    }
}

/// The interface of a callback and its number of flat parameters.
fn interface(kind: CallbackKind) -> (&'static str, usize) {
    match kind {
        CallbackKind::InputMessages => ("on-input-messages", 2),
        CallbackKind::PlainText => ("on-plain-text", 13),
        CallbackKind::Tag => ("on-tag", 15),
        CallbackKind::LlmOutput => ("on-llm-output", 1),
        CallbackKind::TtsrTriggered => ("ttsr-triggered", 10),
        CallbackKind::ToolCall => ("on-tool-call", 14),
        CallbackKind::ToolResult => ("on-tool-result", 1),
    }
}

struct Memory {
    at: u32,
    bytes: Vec<u8>,
}

impl Memory {
    fn put(&mut self, bytes: &[u8]) -> u32 {
        let at = self.at + self.bytes.len() as u32;
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        at
    }

    fn text(&mut self, text: &str) -> (u32, u32) {
        (self.put(text.as_bytes()), text.len() as u32)
    }
}

/// Stores an answer (`number` in its variant) with a text: the shape is the same for text, tag, input and output.
pub fn answer(number: u8, at: &str, length: &str) -> String {
    format!(
        "(i32.store8 (i32.const ANSWER) (i32.const 0))
         (i32.store8 (i32.add (i32.const ANSWER) (i32.const 4)) (i32.const {number}))
         (i32.store (i32.add (i32.const ANSWER) (i32.const 8)) {at})
         (i32.store (i32.add (i32.const ANSWER) (i32.const 12)) {length})
         (i32.const ANSWER)"
    )
}

/// Answers with a text of the guest's data.
pub fn says(number: u8, name: &str) -> String {
    answer(number, &format!("(i32.const @{name})"), &format!("(i32.const #{name})"))
}

/// Answers with the text that came in (first and second parameter).
pub fn echo(number: u8) -> String {
    answer(number, "(local.get $a0)", "(local.get $a1)")
}

/// Answers `pass` (and `keep`, and nothing).
pub const PASS: &str = "(i32.const ANSWER)";

/// One engine for all tests of a file: each sets address space aside.
pub fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| {
        let sandbox = Sandbox::new(&EngineOptions { max_instances: 256, ..EngineOptions::default() }).unwrap();
        assert_eq!(sandbox.report(), &tidegate_sandbox::EngineReport::default(), "pooling works here");
        sandbox
    })
}

/// A source with all powers asked for and granted.
pub fn source(id: &str, component: Vec<u8>) -> PluginSource {
    let mut source = PluginSource::new(id.parse::<PluginId>().unwrap(), ComponentSource::Bytes(component.into()));
    source.asked = Power::ALL.iter().copied().collect();
    source.granted = Power::ALL.iter().copied().collect();
    source
}

/// Limits of time that a busy machine does not reach by itself. Calls with these run on a stack of their own.
pub fn patient(mut source: PluginSource) -> PluginSource {
    source.limits.text_time = Duration::from_millis(1000);
    source.limits.time = Duration::from_secs(5);
    source.limits.turn_time = Duration::from_secs(60);
    source
}

/// Loads a guest with all powers.
pub fn load(guest: &Guest) -> Result<Plugin, LoadError> {
    sandbox().load(source("guest", guest.component()))
}

/// A session that shows little and keeps events.
#[derive(Debug, Default)]
pub struct Stage {
    pub events: Mutex<Vec<EventKind>>,
    pub turn: Mutex<u32>,
    pub history: Vec<Arc<Message>>,
    pub tools: Vec<ToolSpec>,
    pub event_types: Option<DeclaredTypes>,
}

impl EventSink for Stage {
    fn emit(&self, kind: EventKind) {
        self.events.lock().unwrap().push(kind);
    }
}

impl SessionView for Stage {
    fn info(&self) -> SessionInfo {
        SessionInfo {
            id: SessionId::new("s1"),
            place: flow::RunPosition { turn: *self.turn.lock().unwrap(), step: 2, attempt: 3 },
            provider: "recording".into(),
            model: "m".into(),
            workspace: "/w".into(),
            agent: "helper".into(),
        }
    }

    fn history_len(&self) -> usize {
        self.history.len()
    }

    fn history(&self, from: usize, count: usize) -> Vec<(u64, Arc<Message>)> {
        (0..).zip(self.history.iter().cloned()).skip(from).take(count).collect()
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.clone()
    }

    fn admit_event(&self, plugin: &PluginId, event_type: &str, payload: &Value) -> Result<String, EmitError> {
        let none = || EmitError::Catalogue("there are no types".to_owned());
        self.event_types.as_ref().ok_or_else(none)?.admit(Some(plugin), event_type, payload)
    }
}

/// A store that lasts as long as the test.
pub fn store() -> Arc<dyn StateStore> {
    Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(system::SystemClock)))
}

/// Opens a session over some plugins.
pub fn open(host: &SandboxHost, session: &str, stage: &Arc<Stage>) -> Arc<dyn Extensions> {
    ready(host.open(&SessionId::new(session), Arc::clone(stage) as _, Arc::clone(stage) as _)).unwrap()
}

/// Loads one guest and opens a session with it.
pub fn one(guest: &Guest) -> (Arc<dyn Extensions>, Arc<Stage>) {
    let stage = Arc::new(Stage::default());
    let host = SandboxHost::new(vec![load(guest).unwrap()], store()).unwrap();
    (open(&host, "s1", &stage), stage)
}

/// Calls `on_plain_text` of the first plugin.
pub async fn say(extensions: &Arc<dyn Extensions>, text: &str) -> Result<flow::TextAnswer, flow::CallFailure> {
    extensions.plain_text(0, text, &TextPlace::default()).await.map_err(failure)
}

/// The failure of a call that was made.
pub fn failure(no_answer: NoAnswer) -> flow::CallFailure {
    match no_answer {
        NoAnswer::Failed(failure) => failure,
        NoAnswer::NotPermitted(why) | NoAnswer::NoInstance(why) => panic!("not called: {why}"),
    }
}

/// Why `on_plain_text` of the first plugin is not called with this text.
pub async fn skipped(extensions: &Arc<dyn Extensions>, text: &str) -> Option<String> {
    match extensions.plain_text(0, text, &TextPlace::default()).await {
        Err(NoAnswer::NotPermitted(why)) => Some(why),
        Err(NoAnswer::Failed(_) | NoAnswer::NoInstance(_)) | Ok(_) => None,
    }
}

/// A clock that moves on by two minutes whenever it is looked at.
#[derive(Debug, Default)]
pub struct Leaping(AtomicU64);

impl Clock for Leaping {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(120_000, Ordering::SeqCst)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A clock that stays where it is put.
#[derive(Debug, Default)]
pub struct Still(pub AtomicU64);

impl Clock for Still {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The time for which this thread has had a processor.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
