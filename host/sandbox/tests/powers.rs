//! The cases of `tests/corpus/powers`, each on the real host and on the SDK's host in memory.
#![allow(clippy::unwrap_used, reason = "a test may")]

// The guest's own code, run natively.
#[allow(dead_code, unreachable_pub, clippy::needless_pass_by_value, reason = "a crate of its own, read as a module")]
#[path = "../../../tests/guests/conformance/src/lib.rs"]
mod guest;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{Extensions, ProgressLine};
use flow::{EventCatalogue, EventType, Message};
use serde::Deserialize;
use store::emission::{DeclaredTypes, OwnType};
use tidegate_sandbox::{SandboxHost, Setting};
use tidegate_sdk::testing::Harness;
use tidegate_sdk::{TextAnswer, TextPlace, ToolAnswer};

use crate::support::{Stage, Still, open, patient, sandbox, say, source, store};

/// The time of a new host in memory.
const START_MS: u64 = 1_767_225_600_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    ttl_s: Option<u64>,
    #[serde(default)]
    history: Vec<usize>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    say: Option<String>,
    tool: Option<String>,
    progress: Option<Vec<String>>,
    gives: Option<String>,
    fails: Option<String>,
    #[serde(default)]
    has: Vec<String>,
    #[serde(default)]
    not: Vec<String>,
    advance_ms: Option<u64>,
}

/// The result of a call of `on_plain_text` or of the tool, or the message of its failure.
type Said = Result<String, String>;

/// `seen` of the guest, as its manifest declares it, and `deployment` of a catalogue.
fn event_types() -> DeclaredTypes {
    let schema = serde_json::json!({"type": "object", "required": ["what"]});
    let own = OwnType { plugin: "conformance".parse().unwrap(), name: "seen".into(), payload_schema: schema };
    let mut deployment = EventType::new("custom", "droppable", false);
    (deployment.declared, deployment.payload_schema) = (true, serde_json::json!({"type": "object"}));
    let catalogue = EventCatalogue::new([("deployment".to_owned(), deployment)].into());
    DeclaredTypes::new(&catalogue, [own]).unwrap()
}

struct Real {
    extensions: Arc<dyn Extensions>,
    clock: Arc<Still>,
}

impl Real {
    fn new(case: &Case, component: &[u8]) -> Self {
        let mut source = patient(source("conformance", component.to_vec()));
        source.settings.insert("unit".into(), Setting::Text("whole".into()));
        if let Some(ttl) = case.ttl_s {
            source.limits.state_ttl = Duration::from_secs(ttl);
        }
        let clock = Arc::new(Still(START_MS.into()));
        let host =
            SandboxHost::with_clock(vec![sandbox().load(source).unwrap()], store(), Arc::clone(&clock) as _).unwrap();
        let history = case.history.iter().map(|length| Arc::new(Message::user("a".repeat(*length)))).collect();
        let stage = Arc::new(Stage { history, event_types: Some(event_types()), ..Stage::default() });
        Self { extensions: open(&host, "s1", &stage), clock }
    }

    async fn say(&self, script: &str) -> Said {
        match say(&self.extensions, script).await {
            Ok(flow::TextAnswer::Replace(text)) => Ok(text),
            Ok(other) => panic!("{script}: {other:?}"),
            Err(failure) => Err(failure.message),
        }
    }

    /// Calls the tool; its result, and its progress.
    async fn tool(&self, script: &str) -> (Said, Vec<String>) {
        let arguments = serde_json::json!({"script": script}).to_string();
        let call = flow::ToolCall { id: flow::CallId::new("call-1"), name: "run".into(), arguments };
        let lines = Mutex::new(Vec::new());
        let progress = |line: ProgressLine<'_>| lines.lock().unwrap().push(line.message.to_owned());
        let said = match self.extensions.call_tool(0, &call, &progress).await {
            Ok(output) if output.is_error => Err(format!("rejected: {}", output.content)),
            Ok(output) => Ok(output.content),
            Err(no_answer) => Err(crate::support::failure(no_answer).message),
        };
        (said, lines.into_inner().unwrap())
    }
}

fn memory(case: &Case) -> Harness<guest::Conformance> {
    let mut harness = Harness::new().with_setting("unit", "whole");
    harness.session().extension = "conformance".into();
    harness = harness.with_event_type("conformance.seen").with_event_type("deployment");
    if let Some(ttl) = case.ttl_s {
        harness = harness.with_standard_ttl(Duration::from_secs(ttl));
    }
    harness.history().extend(case.history.iter().map(|length| tidegate_sdk::Message::user("a".repeat(*length))));
    harness
}

fn say_in_memory(harness: &mut Harness<guest::Conformance>, script: &str) -> Said {
    match harness.plain_text_at(script, &TextPlace::default()) {
        Ok(TextAnswer::Replace(text)) => Ok(text),
        Ok(other) => panic!("{script}: {other:?}"),
        Err(error) => Err(error.into_message()),
    }
}

fn tool_in_memory(harness: &mut Harness<guest::Conformance>, script: &str) -> (Said, Vec<String>) {
    match harness.call_tool("run", serde_json::json!({"script": script})) {
        Ok(run) => match run.answer {
            ToolAnswer::Text(text) => (Ok(text), run.progress),
            ToolAnswer::Rejected(why) => (Err(format!("rejected: {why}")), run.progress),
            other => panic!("{script}: {other:?}"),
        },
        // The harness has no progress of a call that failed.
        Err(error) => (Err(error.into_message()), Vec::new()),
    }
}

impl Step {
    fn check(&self, said: &Said, place: &str) {
        let shown: String = said.as_ref().unwrap_or_else(|error| error).chars().take(300).collect();
        match said {
            Ok(text) => {
                assert!(self.fails.is_none(), "{place}: it succeeded: {shown}");
                assert!(self.gives.as_ref().is_none_or(|gives| gives == text), "{place}: {shown}");
                assert!(self.has.iter().all(|part| text.contains(part)), "{place}: {shown}");
                assert!(!self.not.iter().any(|part| text.contains(part)), "{place}: {shown}");
            }
            Err(error) => {
                assert!(self.fails.as_ref().is_some_and(|part| error.contains(part)), "{place}: it failed: {shown}");
            }
        }
    }
}

#[tokio::test]
async fn the_real_host_and_the_one_that_authors_test_with_behave_alike() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let file: File = toml::from_str(&std::fs::read_to_string(root.join("corpus/powers/cases.toml")).unwrap()).unwrap();
    assert!(file.case.len() >= 10, "only {} cases were read", file.case.len());
    let options = tidegate_build::Options::default();
    let component = tidegate_build::build(&root.join("guests/conformance"), &options, &mut |_| {}).unwrap().bytes;
    for case in &file.case {
        let (real, mut memory) = (Real::new(case, &component), memory(case));
        for (number, step) in case.steps.iter().enumerate() {
            let place = format!("{}, step {number}", case.name);
            if let Some(ms) = step.advance_ms {
                real.clock.0.fetch_add(ms, Ordering::SeqCst);
                memory.advance(Duration::from_millis(ms));
            }
            if let Some(script) = &step.tool {
                let (real, memory) = (real.tool(script).await, tool_in_memory(&mut memory, script));
                step.check(&real.0, &place);
                assert!(real == memory, "{place}: the hosts differ; in memory: {:.300}", format!("{memory:?}"));
                assert!(step.progress.as_ref().is_none_or(|lines| *lines == real.1), "{place}: {:?}", real.1);
            }
            let Some(script) = &step.say else { continue };
            let (real, memory) = (real.say(script).await, say_in_memory(&mut memory, script));
            step.check(&real, &place);
            assert!(real == memory, "{place}: the hosts differ; in memory: {:.300}", format!("{memory:?}"));
        }
    }
}
