//! The fault matrix of `tests/corpus/faults`: each cause of failure, in each callback, failing open and failing closed, with
//! what the user saw and what was reported.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use flow::ports::{BoxFuture, Confirm, ExtensionHost, Model, ModelStream, PreparedCall, Progress, Question, Tools};
use flow::{
    Answer, CallbackKind, CallbackOutcome, Delta, EventKind, Message, ModelError, Permission, Preview, Prompt,
    SessionId, StopReason, StreamKind, ToolCall, ToolOutput, ToolSpec, TurnStatus,
};
use serde::Deserialize;
use tidegate_kit::ready;
use tidegate_sandbox::{EngineOptions, PluginSource, Sandbox, SandboxHost, Setting};
use tokio::task::JoinHandle;
use turn::sources::FixedRules;
use turn::{CancellationToken, Session, SessionParts};

use crate::support::{Guest, Registered, Still, patient, source, store};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    fault: Vec<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    name: String,
    #[serde(default)]
    script: String,
    variant: Option<Variant>,
    #[serde(default)]
    text: Vec<u8>,
    #[serde(default)]
    fails_before: u32,
    #[serde(default)]
    spends_turn: bool,
    #[serde(default)]
    no_instance: bool,
    output_kib: Option<usize>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Variant {
    Number(u8),
    Named(Other),
}

/// The variant case that represents a value unknown to a version of the contract.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Other {
    Other,
}

/// What must not be seen where a callback fails closed.
const RAW: &str = "RAW";

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/faults").join(name)
}

fn conformance() -> Vec<u8> {
    static COMPONENT: OnceLock<Vec<u8>> = OnceLock::new();
    let build = || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/conformance");
        tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes
    };
    COMPONENT.get_or_init(build).clone()
}

/// Answers with a text or a call, and keeps what it was asked with.
struct Speaker {
    says: Mutex<Vec<Says>>,
    asked: Mutex<Vec<Prompt>>,
}

#[derive(Clone)]
enum Says {
    Text(String),
    /// A call of `echo` with this text.
    Call(String),
}

impl Model for Speaker {
    fn provider(&self) -> &str {
        "recording"
    }

    fn name(&self) -> &str {
        "speaker"
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        self.asked.lock().unwrap().push(prompt.clone());
        let says = self.says.lock().unwrap().pop().unwrap_or_else(|| Says::Text("fine".into()));
        let (kind, text, reason) = match says {
            Says::Text(text) => (StreamKind::Text, text, StopReason::EndTurn),
            Says::Call(text) => {
                let kind = StreamKind::Tool { call: flow::CallId::new("1"), name: "echo".into() };
                (kind, serde_json::json!({ "text": text }).to_string(), StopReason::ToolUse)
            }
        };
        let deltas = vec![
            Delta::Stop { reason },
            Delta::BlockEnd { block: 0 },
            Delta::Piece { block: 0, text },
            Delta::BlockStart { block: 0, kind },
            Delta::Start { model: None },
        ];
        Box::pin(std::future::ready(Ok(Box::new(Spoken(deltas)) as Box<dyn ModelStream>)))
    }
}

/// Deltas, the next one last.
struct Spoken(Vec<Delta>);

impl ModelStream for Spoken {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        Poll::Ready(self.0.pop().map(Ok))
    }
}

/// A tool that returns its text, and keeps what it ran with.
#[derive(Default)]
struct Echo(Arc<Mutex<Vec<String>>>);

impl Tools for Echo {
    fn specs(&self) -> Vec<ToolSpec> {
        let parameters = serde_json::json!({ "type": "object" });
        vec![ToolSpec { name: "echo".into(), description: "Echoes.".into(), parameters }]
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(Echoing { call, ran: Arc::clone(&self.0) })
    }
}

struct Echoing<'a> {
    call: &'a ToolCall,
    ran: Arc<Mutex<Vec<String>>>,
}

impl PreparedCall for Echoing<'_> {
    fn permission(&self) -> Permission {
        Permission::Allow
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        unreachable!("nobody is asked")
    }

    fn run<'a>(&'a mut self, _: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        let arguments: serde_json::Value = serde_json::from_str(&self.call.arguments).unwrap();
        let content = arguments["text"].as_str().unwrap_or_default().to_owned();
        self.ran.lock().unwrap().push(content.clone());
        Box::pin(std::future::ready(ToolOutput { content, diff: None, is_error: false }))
    }
}

impl Confirm for Echo {
    fn confirm<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        unreachable!("nobody is asked")
    }
}

/// A guest with one callback, which returns this case of its answer with these bytes.
fn returns(kind: CallbackKind, variant: Variant, text: &[u8], closed: bool) -> Guest {
    let (registered, other) = match kind {
        CallbackKind::InputMessages => (Registered::InputMessages, 5),
        CallbackKind::PlainText => (Registered::PlainText(2), 2),
        CallbackKind::Tag => (Registered::Tag(vec!["do"]), 3),
        CallbackKind::LlmOutput => (Registered::LlmOutput(1), 2),
        CallbackKind::TtsrTriggered => (Registered::TtsrTriggered, 0),
        CallbackKind::ToolCall => (Registered::ToolCall, 3),
        CallbackKind::ToolResult => (Registered::ToolResult, 2),
    };
    let number = match variant {
        Variant::Number(number) => number,
        Variant::Named(Other::Other) => other,
    };
    let policy = if matches!(kind, CallbackKind::InputMessages | CallbackKind::ToolCall) { 2 } else { 1 };
    Guest {
        registers: vec![(registered, None)],
        exports: vec![(kind, crate::support::says(number, "text"))],
        on_failure: closed.then_some(policy),
        data: vec![("text", text.to_vec())],
        ..Guest::default()
    }
}

fn plugin(fault: &Fault, kind: CallbackKind, closed: bool) -> PluginSource {
    if let Some(variant) = fault.variant {
        return patient(source("guard", returns(kind, variant, &fault.text, closed).component()));
    }
    if fault.no_instance {
        // With no other callback that would meet the fault before.
        return patient(source("guard", returns(kind, Variant::Number(0), &[], closed).component()));
    }
    let mut source = source("guard", conformance());
    let texts = |of: &[&str]| Setting::Texts(of.iter().map(ToString::to_string).collect());
    let text = |text: &str| Setting::Text(text.into());
    source.settings.insert("unit".into(), text("whole"));
    source.settings.insert("mode".into(), text(if kind == CallbackKind::LlmOutput { "rewrite" } else { "observe" }));
    let name = [kind.as_str()];
    source.settings.insert("closed".into(), texts(if closed { &name } else { &[] }));
    let runs = if fault.spends_turn { CallbackKind::InputMessages } else { kind };
    source.settings.insert("only".into(), texts(&[runs.as_str()]));
    source.limits.time = Duration::from_millis(100);
    source.limits.text_time = Duration::from_millis(60);
    source.limits.turn_time = if fault.spends_turn { Duration::from_millis(80) } else { Duration::from_secs(10) };
    if let Some(kib) = fault.output_kib {
        source.limits.returned_bytes = kib << 10;
    }
    source
}

/// The rule that `ttsr_triggered` hears of.
fn rules() -> Arc<rules::RuleSet> {
    let settings = rules::RuleSettings { builtin_rules: false, retry_delay_ms: 0, ..rules::RuleSettings::default() };
    let from = rules::RuleOrigin { layer: rules::RuleLayer::Project, path: "raw.md".into() };
    let text = "---\ncondition: 'RAW(\\n![^~]*\\n)?~'\nrepeat: always\n---\nDo not.\n";
    let (rule, found) = rules::parse_rule_file("raw", &from, text);
    let rule = rule.unwrap_or_else(|| panic!("{found:?}"));
    rules::RuleSet::build(vec![rule], settings, "").0
}

struct Scene {
    session: Session,
    model: Arc<Speaker>,
    events: turn::Subscription,
    /// What the tool ran with.
    ran: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn new(host: SandboxHost, rules: Arc<rules::RuleSet>) -> Self {
        let model = Arc::new(Speaker { says: Mutex::default(), asked: Mutex::default() });
        let ran = Arc::<Mutex<Vec<String>>>::default();
        let session = ready(Session::open(SessionParts {
            id: SessionId::new("s"),
            model: model.clone(),
            extensions: Arc::new(host) as Arc<dyn ExtensionHost>,
            tools: Arc::new(Echo(Arc::clone(&ran))),
            confirm: Arc::new(Echo::default()),
            rules: Arc::new(FixedRules(rules)),
            clock: Arc::new(Still::default()),
            settings: turn::SessionSettings::default(),
        }))
        .unwrap();
        let events = session.subscribe();
        Self { session, model, events, ran }
    }

    /// Runs a turn and describes its result for one callback.
    async fn turn(&mut self, kind: CallbackKind, input: &str, answer: &Says) -> String {
        while self.events.try_next().is_some() {}
        self.model.asked.lock().unwrap().clear();
        self.ran.lock().unwrap().clear();
        *self.model.says.lock().unwrap() = vec![answer.clone()];
        let report = self.session.run(vec![Message::user(input)], &CancellationToken::new()).await;
        // `ttsr_triggered` may outlive the turn.
        self.session.notified().await;
        let events: Vec<EventKind> = std::iter::from_fn(|| self.events.try_next()).map(|event| event.kind).collect();
        let mut text = String::new();
        if kind == CallbackKind::InputMessages {
            let asked = self.model.asked.lock().unwrap();
            match asked.first().and_then(|prompt| prompt.messages.last()) {
                Some(message) => writeln!(text, "  sent {:?}", message.plain_text()).unwrap(),
                None => writeln!(text, "  sent nothing").unwrap(),
            }
        }
        if matches!(kind, CallbackKind::ToolCall | CallbackKind::ToolResult) {
            match self.ran.lock().unwrap().first() {
                Some(ran) => writeln!(text, "  ran {ran:?}").unwrap(),
                None => writeln!(text, "  ran nothing").unwrap(),
            }
            let asked = self.model.asked.lock().unwrap();
            let results = asked.iter().flat_map(|prompt| &prompt.messages).flat_map(|message| &message.parts);
            let mut result = results.filter_map(|part| match part {
                flow::Part::ToolResult(result) => Some(result.content.join("|")),
                _ => None,
            });
            writeln!(text, "  sent {:?}", result.next_back().unwrap_or_default()).unwrap();
        }
        write!(text, "  shown {:?}", report.text).unwrap();
        match &report.status {
            TurnStatus::Completed => text.push('\n'),
            TurnStatus::Rejected { reason, .. } => writeln!(text, ", rejected: {reason}").unwrap(),
            TurnStatus::Failed { message, .. } => writeln!(text, ", failed: {message}").unwrap(),
            other => panic!("{other:?}"),
        }
        for event in &events {
            match event {
                EventKind::ExtensionCallback(report) if report.callback == kind => {
                    writeln!(text, "  report {}", outcome(&report.outcome)).unwrap();
                }
                EventKind::ExtensionWithheld { callback, bytes, reason, .. } if *callback == kind => {
                    writeln!(text, "  withheld {bytes}: {reason}").unwrap();
                }
                EventKind::ExtensionWithheld { callback, .. } => panic!("{callback:?} withheld something"),
                _ => {}
            }
        }
        without_lines(&text)
    }
}

/// The line numbers of the guest's own source do not matter here, and change with it.
fn without_lines(text: &str) -> String {
    let mut parts = text.split("src/script.rs:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "src/script.rs:…" + part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':')
    })
}

fn outcome(outcome: &CallbackOutcome) -> String {
    match outcome {
        CallbackOutcome::Passed => "passed".into(),
        CallbackOutcome::Changed => "changed".into(),
        CallbackOutcome::Skipped(why) => format!("skipped: {why}"),
        CallbackOutcome::NotPermitted(why) => format!("not permitted: {why}"),
        CallbackOutcome::Ignored(why) => format!("ignored: {why}"),
        CallbackOutcome::Failed(failure) => format!("failed ({}): {}", failure.cause.as_str(), failure.message),
    }
}

/// What the callback is called with: `RAW`, with the script in a line of its own.
fn texts(kind: CallbackKind, script: &str) -> (String, Says) {
    let raw = if script.is_empty() { RAW.to_owned() } else { format!("{RAW}\n{script}") };
    let answer = match kind {
        CallbackKind::InputMessages => return (raw, Says::Text("fine".into())),
        CallbackKind::PlainText | CallbackKind::LlmOutput => Says::Text(raw),
        CallbackKind::Tag => Says::Text(format!("<do>{raw}</do>")),
        CallbackKind::TtsrTriggered if script.is_empty() => Says::Text(format!("{raw}~")),
        CallbackKind::TtsrTriggered => Says::Text(format!("{raw}\n~")),
        CallbackKind::ToolCall | CallbackKind::ToolResult => Says::Call(raw),
    };
    ("hello".into(), answer)
}

/// An engine that compiles each guest once.
fn engine(max_instances: u32) -> Sandbox {
    static CACHE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = CACHE.get_or_init(|| tempfile::tempdir().unwrap()).path().join("compiled");
    Sandbox::new(&EngineOptions { max_instances, cache_dir: Some(folder), instance_wait: Duration::from_millis(20) })
        .unwrap()
}

async fn run(fault: &Fault, kind: CallbackKind, closed: bool) -> String {
    // An engine with one instance, in which a call of another session runs.
    let small;
    let mut busy = None;
    let sandbox = if fault.no_instance {
        small = engine(1);
        busy = Some(busy_session(&small).await);
        &small
    } else {
        static ENGINE: OnceLock<Sandbox> = OnceLock::new();
        ENGINE.get_or_init(|| engine(64))
    };
    let plugin = sandbox.load(plugin(fault, kind, closed)).unwrap();
    let host = SandboxHost::with_clock(vec![plugin], store(), Arc::new(Still::default())).unwrap();
    let rules = if kind == CallbackKind::TtsrTriggered {
        rules()
    } else {
        rules::RuleSet::build(Vec::new(), rules::RuleSettings::default(), "").0
    };
    let mut scene = Scene::new(host, rules);
    for _ in 0..fault.fails_before {
        let (input, answer) = texts(kind, "!error no");
        scene.turn(kind, &input, &answer).await;
    }
    let (mut input, answer) = texts(kind, &fault.script);
    if fault.spends_turn {
        input = "!loop".into();
    }
    let came = scene.turn(kind, &input, &answer).await;
    busy.iter().for_each(JoinHandle::abort);
    came
}

/// A call that has the only instance until it is aborted.
async fn busy_session(sandbox: &Sandbox) -> JoinHandle<()> {
    let mut source = source("other", Guest::text("(loop $l (br $l)) (i32.const ANSWER)").component());
    (source.limits.text_time, source.limits.turn_time) = (Duration::from_secs(600), Duration::from_secs(600));
    let host = SandboxHost::new(vec![sandbox.load(source).unwrap()], store()).unwrap();
    let other = crate::support::open(&host, "other", &Arc::default());
    let task = tokio::spawn(async move { drop(crate::support::say(&other, "x").await) });
    while sandbox.instances().in_use == 0 {
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test]
async fn the_fault_matrix() {
    let file: File = toml::from_str(&std::fs::read_to_string(corpus("faults.toml")).unwrap()).unwrap();
    let mut found = String::new();
    let mut count = 0;
    for fault in &file.fault {
        for kind in CallbackKind::ALL {
            // The callbacks around calls have a time of their own.
            let tools = matches!(kind, CallbackKind::ToolCall | CallbackKind::ToolResult);
            let spent = fault.spends_turn && (tools || kind == CallbackKind::InputMessages);
            let silent = fault.variant.is_some() && kind == CallbackKind::TtsrTriggered;
            for closed in [false, true] {
                if spent || silent || (closed && kind == CallbackKind::TtsrTriggered) {
                    continue;
                }
                let policy = match (closed, kind) {
                    (false, _) => "skip",
                    (true, CallbackKind::InputMessages | CallbackKind::ToolCall) => "reject",
                    (true, _) => "withhold",
                };
                let what = format!("{}: {} {policy}", fault.name, kind.as_str());
                let came = run(fault, kind, closed).await;
                let is_seen = |line: &&str| {
                    let ran = kind == CallbackKind::ToolCall && line.starts_with("  ran");
                    ran || line.starts_with("  sent") || line.starts_with("  shown")
                };
                let seen = came.lines().filter(is_seen);
                let raw = seen.filter(|line| line.contains(RAW)).count();
                if fault.no_instance && kind != CallbackKind::TtsrTriggered {
                    assert_eq!(raw, 0, "no guard is skipped, whatever its policy is: {what}\n{came}");
                } else if kind != CallbackKind::TtsrTriggered {
                    assert_eq!(raw > 0, !closed, "{what}\n{came}");
                    assert_eq!(came.contains("  withheld "), closed, "{what}\n{came}");
                }
                writeln!(found, "{what}\n{came}").unwrap();
                count += 1;
            }
        }
    }
    assert!(count > 90, "only {count} entries");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(corpus("expected.txt"), &found).unwrap();
    }
    let expected = std::fs::read_to_string(corpus("expected.txt")).unwrap();
    for (found, expected) in found.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}
