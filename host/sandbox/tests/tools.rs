//! Tools that plugins provide, by a guest compiled from Rust: what is listed, how calls end, and every way to misbehave.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use flow::ports::{Extensions, ProgressLine};
use flow::{
    BreakerState, CallFailure, CallId, Called, EventKind, FailureCause, NoAnswer, Power, ToolCall, ToolOutcome,
    ToolOutput,
};
use tidegate_sandbox::{LoadProblem, PluginSource, SandboxHost, Setting};

use crate::support::{Leaping, Stage, Still, open, sandbox, say, source, store};

fn component() -> Vec<u8> {
    static COMPONENT: OnceLock<Vec<u8>> = OnceLock::new();
    let build = || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/conformance");
        tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes
    };
    COMPONENT.get_or_init(build).clone()
}

/// The guest, with so much time that a busy machine does not decide.
fn provider() -> PluginSource {
    let mut source = crate::support::patient(source("conformance", component()));
    source.settings.insert("unit".into(), Setting::Text("whole".into()));
    source
}

fn session(source: PluginSource) -> (Arc<dyn Extensions>, Arc<Stage>) {
    let stage = Arc::new(Stage::default());
    let plugin = sandbox().load(source).unwrap();
    // Minutes pass between two looks at the clock, so that no breaker opens.
    let host = SandboxHost::with_clock(vec![plugin], store(), Arc::new(Leaping::default())).unwrap();
    (open(&host, "s1", &stage), stage)
}

fn call(script: &str) -> ToolCall {
    let arguments = serde_json::json!({"script": script}).to_string();
    ToolCall { id: CallId::new("c1"), name: "run".into(), arguments }
}

async fn run(extensions: &Arc<dyn Extensions>, script: &str) -> Result<ToolOutput, NoAnswer> {
    extensions.call_tool(0, &call(script), &|_| {}).await
}

/// The result of a call that is done.
async fn done(extensions: &Arc<dyn Extensions>, script: &str) -> String {
    let output = run(extensions, script).await.unwrap();
    assert!(!output.is_error, "{script}: {output:?}");
    output.content
}

async fn failure(extensions: &Arc<dyn Extensions>, script: &str) -> CallFailure {
    let failure = crate::support::failure(run(extensions, script).await.unwrap_err());
    assert_eq!(failure.called, Called::Tool("run".into()));
    failure
}

/// How the calls ended, as they were reported.
fn outcomes(stage: &Stage) -> Vec<ToolOutcome> {
    let events = stage.events.lock().unwrap();
    let report = |event: &EventKind| match event {
        EventKind::ExtensionTool(report) => {
            assert_eq!((report.plugin.as_str(), report.tool.as_str()), ("conformance", "run"));
            assert_eq!(report.call, CallId::new("c1"));
            Some(report.outcome.clone())
        }
        _ => None,
    };
    events.iter().filter_map(report).collect()
}

fn refused(settings: &[(&str, Setting)]) -> LoadProblem {
    let mut source = provider();
    source.settings.extend(settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    sandbox().load(source).unwrap_err().problem
}

#[test]
fn the_tools_are_known_when_the_plugin_is_loaded() {
    let mut source = provider();
    let tools = ["get_one|Reads.|{\"type\": \"object\"}", "set-2|Writes.|{\"type\": \"object\", \"properties\": {}}"];
    source.settings.insert("tools".into(), Setting::Texts(tools.map(str::to_owned).to_vec()));
    let plugin = sandbox().load(source).unwrap();
    let listed: Vec<_> =
        plugin.registration().tools.iter().map(|one| (one.spec.name.as_str(), one.read_only)).collect();
    assert_eq!(listed, [("get_one", true), ("set-2", false)]);
    assert_eq!(plugin.registration().tools[1].spec.parameters["properties"], serde_json::json!({}));
    assert_eq!(plugin.tools().len(), 2);
}

#[test]
fn a_plugin_provides_tools_only_with_the_power() {
    let mut source = provider();
    source.granted.remove(&Power::ProvideTools);
    let said = sandbox().load(source.clone()).unwrap_err().to_string();
    for part in ["plugin `conformance`", "the power `provide-tools`", "not granted", "tidegate.toml", "grants = ["] {
        assert!(said.contains(part), "{part}: {said}");
    }
    source.asked.remove(&Power::ProvideTools);
    let said = sandbox().load(source).unwrap_err().to_string();
    for part in ["exports `tool-provider`, and so needs the power `provide-tools`", "[capabilities]\nprovide-tools ="] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn an_invalid_tool_refuses_the_load_and_is_named() {
    let long = format!("{}|d|{{}}", "n".repeat(65));
    let wordy = format!("a|{}|{{\"type\": \"object\"}}", "d".repeat(4097));
    let large = format!("a|d|{{\"type\": \"object\", \"title\": \"{}\"}}", "t".repeat(64 << 10));
    for (tools, expected) in [
        (vec!["|d|{}"], "provides the invalid tool ``: a name has 1 to 64"),
        (vec!["a b|d|{}"], "provides the invalid tool `a b`: a name has 1 to 64"),
        (vec!["ä|d|{}"], "a name has 1 to 64"),
        (vec![&*long], "a name has 1 to 64"),
        (vec!["a||{}"], "provides the invalid tool `a`: its description has 0 bytes"),
        (vec![&*wordy], "its description has 4097 bytes"),
        (vec!["a|d|{"], "`parameters` is not valid JSON"),
        (vec!["a|d|[]"], "write `\"type\": \"object\"`"),
        (vec!["a|d|{\"type\": \"object\", \"required\": 1}"], "is not a valid JSON Schema: at `/required`"),
        (vec![&*large], "the limit is 65536"),
        (vec!["a|d|{\"type\": \"object\"}", "a|d|{\"type\": \"object\"}"], "the invalid tool `a`: it is listed twice"),
        (vec![], "provides 0 tools"),
    ] {
        let texts = tools.iter().map(|one| (*one).to_owned()).collect();
        let said = refused(&[("tools", Setting::Texts(texts))]).to_string();
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let many = (0..65).map(|n| format!("t{n}|d|{{\"type\": \"object\"}}")).collect();
    let said = refused(&[("tools", Setting::Texts(many))]).to_string();
    assert!(said.contains("provides 65 tools") && said.contains("1 to 64"), "{said}");
}

#[test]
fn listing_tools_that_fails_refuses_the_load() {
    let script = |text: &str| [("listing", Setting::Text(text.to_owned()))];
    assert!(matches!(refused(&script("!panic no list")), LoadProblem::ListTools { cause: FailureCause::Panic, .. }));
    let said = refused(&script("!abort")).to_string();
    assert!(said.starts_with("could not list its tools (trap): "), "{said}");
    // State refuses, as it does while registering.
    let said = refused(&script("!state-must-set k v")).to_string();
    assert!(said.contains("not during register"), "{said}");
    let mut source = provider();
    source.limits.time = Duration::from_millis(50);
    source.settings.insert("listing".into(), Setting::Text("!loop".into()));
    let problem = sandbox().load(source).unwrap_err().problem;
    assert!(matches!(problem, LoadProblem::ListTools { cause: FailureCause::Timeout, .. }), "{problem}");
}

#[tokio::test]
async fn a_call_has_its_arguments_its_result_and_its_report() {
    let (extensions, stage) = session(provider());
    assert_eq!(done(&extensions, "!replace ünï").await, "ünï");
    assert_eq!(done(&extensions, "").await, "");
    let subject = done(&extensions, "!subject").await;
    assert!(subject.contains("\"c1\"") && subject.contains("\"run\"") && subject.contains("!subject"), "{subject}");
    let rejected = run(&extensions, "!reject no such note").await.unwrap();
    assert_eq!(rejected, ToolOutput { content: "no such note".into(), diff: None, is_error: true });
    let failed = failure(&extensions, "!error the disk is full").await;
    assert_eq!((failed.cause, failed.message.as_str()), (FailureCause::Returned, "the disk is full"));
    let outcomes = outcomes(&stage);
    assert_eq!(outcomes[..3], [ToolOutcome::Done, ToolOutcome::Done, ToolOutcome::Done]);
    assert_eq!(outcomes[3], ToolOutcome::Rejected("no such note".into()));
    assert_eq!(outcomes[4], ToolOutcome::Failed(failed));
}

#[tokio::test]
async fn arguments_that_the_guest_cannot_read_are_for_the_model_to_correct() {
    let (extensions, _) = session(provider());
    let call = ToolCall { arguments: "{\"script\": 3}".into(), ..call("") };
    let output = extensions.call_tool(0, &call, &|_| {}).await.unwrap();
    assert!(output.is_error && output.content.starts_with("the arguments of `run` are not valid: "), "{output:?}");
}

#[tokio::test]
async fn a_call_is_a_transaction_in_the_instance_of_the_callbacks() {
    let (extensions, stage) = session(provider());
    done(&extensions, "!state-must-set k 1").await;
    let said = async |script: &str| match say(&extensions, script).await.unwrap() {
        flow::TextAnswer::Replace(text) => text,
        other => panic!("{script}: {other:?}"),
    };
    assert_eq!(said("!state-get k\n!count").await, "Some(\"1\")\n2", "a callback sees what the tool wrote");
    // A rejected call that wrote nothing keeps its instance; one that wrote loses its writes and the instance.
    run(&extensions, "!reject why").await.unwrap();
    assert_eq!(said("!count").await, "4");
    run(&extensions, "!state-must-set k 2\n!reject why").await.unwrap();
    assert_eq!(said("!state-get k\n!count").await, "Some(\"1\")\n1");
    failure(&extensions, "!state-must-set k 3\n!error why").await;
    extensions.take_state_reads(0);
    assert_eq!(done(&extensions, "!state-get k\n!count").await, "Some(\"1\")\n1");
    let events = stage.events.lock().unwrap();
    let reads = events.iter().rev().find_map(|event| match event {
        EventKind::ExtensionTool(report) => Some(report.state_reads),
        _ => None,
    });
    assert_eq!(reads, Some(1), "the report of a tool has what its call read");
}

#[tokio::test]
async fn each_kind_of_damage_has_its_cause_and_leaves_the_plugin_usable() {
    let mut source = provider();
    source.limits.tool_time = Duration::from_millis(300);
    source.limits.tool_bytes = 2 << 10;
    let (extensions, stage) = session(source);
    for (script, cause, words) in [
        ("!loop", FailureCause::Timeout, "took longer than 300 ms"),
        ("!abort", FailureCause::Trap, "trapped"),
        ("!panic on purpose", FailureCause::Panic, "on purpose"),
        ("!recurse", FailureCause::Trap, ""),
        ("!memory 64", FailureCause::Memory, "the limit is 33554432"),
        ("!size 3", FailureCause::Size, "returned 3072 bytes, the limit is 2048"),
    ] {
        let failed = failure(&extensions, &format!("!state-must-set k {script}\n{script}")).await;
        assert_eq!(failed.cause, cause, "{script}: {failed}");
        assert!(failed.to_string().starts_with("conformance: tool `run` failed ("), "{failed}");
        assert!(failed.message.contains(words), "{script}: {failed}");
        assert_eq!(done(&extensions, "!state-get k\n!count").await, "None\n1", "{script}");
    }
    assert_eq!(done(&extensions, "!size 2").await.len(), 2048, "the limit itself is allowed");
    assert_eq!(outcomes(&stage).iter().filter(|one| matches!(one, ToolOutcome::Failed(_))).count(), 6);
}

#[tokio::test]
async fn a_tool_uses_up_nothing_of_the_time_of_callbacks() {
    let mut source = provider();
    source.limits.turn_time = Duration::from_millis(1);
    let (extensions, _) = session(source);
    // Far more than a callback would be given for the whole turn.
    assert_eq!(done(&extensions, "!work 20\n!replace done").await, "done");
    assert_eq!(say(&extensions, "text").await.unwrap(), flow::TextAnswer::Pass);
}

#[tokio::test]
async fn progress_is_shown_while_the_tool_runs_and_is_limited() {
    let (extensions, stage) = session(provider());
    let lines = Mutex::new(Vec::new());
    let progress = |line: ProgressLine<'_>| lines.lock().unwrap().push(line.message.to_owned());
    let script = "!progress one\n!progress two\n!replace done";
    extensions.call_tool(0, &call(script), &progress).await.unwrap();
    assert_eq!(std::mem::take(&mut *lines.lock().unwrap()), ["one", "two"]);
    // Also of a call that fails afterwards.
    extensions.call_tool(0, &call("!progress last words\n!abort"), &progress).await.unwrap_err();
    assert_eq!(std::mem::take(&mut *lines.lock().unwrap()), ["last words"]);
    extensions.call_tool(0, &call("!progress-long 3\n!progress-flood 100000"), &progress).await.unwrap();
    let shown = std::mem::take(&mut *lines.lock().unwrap());
    assert_eq!((shown.len(), shown[0].len(), shown[255].as_str()), (256, 1024, "line 254"));
    let logged = |event: &EventKind| matches!(event, EventKind::ExtensionLog { message, .. } if message.starts_with("progress: 99745 lines over 256 were dropped, 1 lines were cut to 1024 bytes"));
    assert!(stage.events.lock().unwrap().iter().any(logged), "{:?}", stage.events);
    // Outside of a tool there is nothing to report about.
    assert_eq!(say(&extensions, "!progress x\n!replace y").await.unwrap(), flow::TextAnswer::Replace("y".into()));
}

#[tokio::test]
async fn a_call_that_is_dropped_stops_the_guest_and_undoes_its_writes() {
    let (extensions, stage) = session(provider());
    done(&extensions, "!state-must-set k before").await;
    let script = call("!state-must-set k within\n!progress started\n!loop");
    let started = tokio::sync::Notify::new();
    let progress = |_: ProgressLine<'_>| started.notify_one();
    tokio::select! {
        biased;
        () = started.notified() => {}
        ended = extensions.call_tool(0, &script, &progress) => panic!("{ended:?}"),
    }
    assert_eq!(done(&extensions, "!state-get k\n!count").await, "Some(\"before\")\n1", "the lane is free again");
    assert_eq!(outcomes(&stage)[1], ToolOutcome::Stopped);
}

#[tokio::test]
async fn tools_that_fail_repeatedly_are_not_called_and_callbacks_are() {
    let stage = Arc::new(Stage::default());
    let plugin = sandbox().load(provider()).unwrap();
    let host = SandboxHost::with_clock(vec![plugin], store(), Arc::new(Still::default())).unwrap();
    let extensions = open(&host, "s1", &stage);
    for _ in 0..3 {
        failure(&extensions, "!error why").await;
    }
    let NoAnswer::NotPermitted(why) = run(&extensions, "!replace x").await.unwrap_err() else {
        panic!("it was called")
    };
    assert!(why.contains("failed 3 times"), "{why}");
    assert_eq!(outcomes(&stage)[3], ToolOutcome::NotPermitted(why));
    let answer = say(&extensions, "!replace checked").await.unwrap();
    assert_eq!(answer, flow::TextAnswer::Replace("checked".into()), "a model cannot switch off a guard with its tools");
    let opened: Vec<_> = stage.events.lock().unwrap().iter().filter_map(breaker_opened).collect();
    assert_eq!(opened, ["tool `run`"]);
}

#[tokio::test]
async fn callbacks_that_fail_repeatedly_leave_the_tools_usable() {
    let stage = Arc::new(Stage::default());
    let plugin = sandbox().load(provider()).unwrap();
    let host = SandboxHost::with_clock(vec![plugin], store(), Arc::new(Still::default())).unwrap();
    let extensions = open(&host, "s1", &stage);
    for _ in 0..3 {
        say(&extensions, "!error why").await.unwrap_err();
    }
    assert!(crate::support::skipped(&extensions, "!replace x").await.is_some());
    assert_eq!(done(&extensions, "!replace done").await, "done");
    let opened: Vec<_> = stage.events.lock().unwrap().iter().filter_map(breaker_opened).collect();
    assert_eq!(opened, ["on_plain_text"]);
}

/// What was called when a breaker opened.
fn breaker_opened(event: &EventKind) -> Option<String> {
    match event {
        EventKind::ExtensionBreaker { called, state: BreakerState::Open, .. } => Some(called.to_string()),
        _ => None,
    }
}
