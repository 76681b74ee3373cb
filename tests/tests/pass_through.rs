//! Case 7 with compiled guests: where all callbacks pass, the output is the input, byte for byte.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use flow::ports::ExtensionHost as _;
use flow::{CallbackKind, CallbackOutcome, CallbackReport, Event, EventKind, Message, Power, SettingValue};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sandbox::{ComponentSource, EngineOptions, PluginSource, Sandbox, SandboxHost};
use store::{MemoryStore, StoreOptions};
use system::SystemClock;
use tidegate_kit::{CUTS, ScriptedModel, drain, rule_set, shown, text};
use turn::{CancellationToken, Session};

fn build(guest: &str) -> Arc<[u8]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(guest);
    tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes.into()
}

/// The guest for every callback, which runs no script.
fn every(component: &Arc<[u8]>, id: &str, settings: &[(&str, SettingValue)]) -> PluginSource {
    let mut source = PluginSource::new(id.parse().unwrap(), ComponentSource::Bytes(Arc::clone(component)));
    source.asked = Power::ALL.iter().copied().collect();
    source.granted = Power::ALL.iter().copied().collect();
    let texts = |all: &[&str]| SettingValue::Texts(all.iter().map(|text| (*text).to_owned()).collect());
    let tool = format!("run-{id}|Runs.|{{\"type\": \"object\"}}");
    source.settings = [("only".to_owned(), texts(&["none"])), ("tools".to_owned(), texts(&[&tool]))].into();
    source.settings.extend(settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    // Other work on the machine must not decide whether a callback is in time.
    source.limits.text_time = std::time::Duration::from_secs(60);
    source.limits.time = std::time::Duration::from_secs(60);
    source.limits.turn_time = std::time::Duration::from_secs(600);
    source
}

/// Guests of all units, with nested tags, with or without a rewriter of the whole output.
fn host(sandbox: &Sandbox, rewrite: bool) -> Arc<SandboxHost> {
    let (conformance, pass_through) = (build("conformance"), build("pass-through"));
    let word = |text: &str| SettingValue::Text(text.to_owned());
    let tags = |all: &[&str]| SettingValue::Texts(all.iter().map(|tag| (*tag).to_owned()).collect());
    let mode = word(if rewrite { "rewrite" } else { "observe" });
    let lines = PluginSource::new("lines".parse().unwrap(), ComponentSource::Bytes(pass_through));
    let whole = [
        ("unit", word("whole")),
        ("tags", tags(&["a", "c*"])),
        ("mode", mode),
        ("priority", SettingValue::Number(10.0)),
    ];
    let paragraphs = [("unit", word("paragraph")), ("tags", tags(&["a", "b"])), ("mode", word("observe"))];
    let sources = [lines, every(&conformance, "whole", &whole), every(&conformance, "paragraphs", &paragraphs)];
    let plugins = sources.map(|source| sandbox.load(source).unwrap_or_else(|error| panic!("{error}")));
    let store = MemoryStore::new(StoreOptions::default(), Arc::new(SystemClock));
    Arc::new(SandboxHost::new(plugins.into(), Arc::new(store)).unwrap())
}

/// What became of an answer.
struct Answered {
    /// What was shown of it.
    shown: String,
    /// What the conversation has of it.
    kept: Option<String>,
    callbacks: Vec<CallbackReport>,
}

/// Answers with these texts, a turn each, in one session.
async fn run(host: &Arc<SandboxHost>, inputs: &[(String, usize)]) -> Vec<Answered> {
    let model = ScriptedModel::new(inputs.iter().map(|(words, cut)| text(words, *cut)));
    let mut parts = tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {}));
    parts.extensions = Arc::<SandboxHost>::clone(host);
    let mut session = Session::open(parts).await.unwrap();
    let mut events = session.subscribe();
    let mut found = Vec::new();
    for _ in inputs {
        let before = session.history().len();
        session.run(vec![Message::user("go")], &CancellationToken::new()).await;
        let history = session.history();
        let answer = history[before..].iter().find(|message| message.role == flow::Role::Assistant);
        let kept = answer.map(|message| message.plain_text());
        let events = drain(&mut events);
        found.push(Answered {
            shown: shown(&events),
            kept,
            callbacks: events.into_iter().filter_map(report).collect(),
        });
    }
    session.close().await;
    found
}

fn report(event: Event) -> Option<CallbackReport> {
    match event.kind {
        EventKind::ExtensionCallback(report) => Some(report),
        _ => None,
    }
}

/// A plugin and one of its callbacks.
type Handler = (String, CallbackKind);

/// What every turn can call of these plugins. No rule fires, so nobody is notified of one, and the model calls no tool.
fn handlers(host: &SandboxHost) -> BTreeSet<Handler> {
    fn of_plugin(one: &flow::Registration) -> impl Iterator<Item = Handler> {
        one.callbacks.iter().map(|callback| (one.plugin.to_string(), callback.kind()))
    }
    let registrations = host.registrations();
    let unused = [CallbackKind::TtsrTriggered, CallbackKind::ToolCall, CallbackKind::ToolResult];
    registrations.iter().flat_map(of_plugin).filter(|(_, callback)| !unused.contains(callback)).collect()
}

/// Some texts with chunkings.
fn inputs() -> impl Strategy<Value = Vec<(String, usize)>> {
    let words = "([<>/a-c=\"'` \n!\\-\\[\\]é~]|<a>|</a>|<b x='1'>|</b>|<cd>|</cd>|```|<!--|-->|\n\n){0,60}";
    prop::collection::vec((words, prop::sample::select(CUTS.to_vec())), 25)
}

/// 5,000 inputs through a host of its own, whose guests are on this thread.
fn guests_that_pass_change_no_byte(rewrite: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let host = host(
        &Sandbox::new(&EngineOptions { cache_dir: None, max_instances: 16, ..EngineOptions::default() }).unwrap(),
        rewrite,
    );
    let config =
        ProptestConfig { cases: 200, max_shrink_iters: 500, failure_persistence: None, ..ProptestConfig::default() };
    let passed = RefCell::new(BTreeSet::new());
    let checked = TestRunner::new(config).run(&inputs(), |inputs| {
        for ((words, _), answered) in inputs.iter().zip(runtime.block_on(run(&host, &inputs))) {
            prop_assert_eq!(&answered.shown, words);
            // An answer of white space alone does not join the conversation.
            prop_assert_eq!(answered.kept.as_ref().unwrap_or(words), words);
            for report in answered.callbacks {
                match report.outcome {
                    CallbackOutcome::Passed => {
                        passed.borrow_mut().insert((report.plugin.to_string(), report.callback));
                    }
                    CallbackOutcome::Skipped(_) => {}
                    CallbackOutcome::Changed
                    | CallbackOutcome::NotPermitted(_)
                    | CallbackOutcome::Failed(_)
                    | CallbackOutcome::Ignored(_) => prop_assert!(false, "{report:?}"),
                }
            }
        }
        Ok(())
    });
    checked.unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!(passed.into_inner(), handlers(&host), "a callback that never ran changes no byte either");
}

#[test]
fn live_output_passes_unchanged() {
    guests_that_pass_change_no_byte(false);
}

#[test]
fn output_that_a_rewriter_could_change_passes_unchanged() {
    guests_that_pass_change_no_byte(true);
}
