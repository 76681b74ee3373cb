//! Each callback and each answer it may give, each power and each kind of damage, by the guest `conformance`: the test that
//! includes this module decides which component it is.

use std::sync::Arc;
use std::time::Duration;

use super::component;
use crate::support::{Leaping, Stage, failure, open, patient, sandbox, say, source, store};
use flow::ports::{BoxFuture, ExtensionHost as _, Extensions, SessionInfo, SessionView, TtsrEvent};
use flow::{
    Action, Annotation, CallFailure, CallId, EventKind, Evidence, FailureCause, InputAnswer, Message, ModelOutput,
    NoAnswer, Origin, OutputAnswer, Part, RuleMatch, RunPosition, SessionId, StopReason, StreamKind, Tag, TagAnswer,
    TagPlace, TextAnswer, TextPlace, TextStream, ToolCall, ToolSpec, Usage,
};
use tidegate_sandbox::{PluginSource, SandboxHost, Setting};

fn conformance() -> PluginSource {
    let mut source = source("conformance", component());
    source.settings.insert("unit".into(), Setting::Text("whole".into()));
    source.settings.insert("number".into(), Setting::Number(1.5));
    source.settings.insert("yes".into(), Setting::Boolean(true));
    source.settings.insert("list".into(), Setting::Texts(vec!["a".into(), "b".into()]));
    source
}

fn host(source: PluginSource) -> SandboxHost {
    SandboxHost::new(vec![sandbox().load(source).unwrap()], store()).unwrap()
}

fn session() -> (Arc<dyn Extensions>, Arc<Stage>) {
    let stage = Arc::new(Stage { turn: 5.into(), ..Stage::default() });
    (open(&host(conformance()), "s1", &stage), stage)
}

fn patient_session() -> (Arc<dyn Extensions>, Arc<Stage>) {
    let stage = Arc::new(Stage { turn: 5.into(), ..Stage::default() });
    // Minutes pass between two looks at the clock, so that no breaker opens.
    let plugin = sandbox().load(patient(conformance())).unwrap();
    let host = SandboxHost::with_clock(vec![plugin], store(), Arc::new(Leaping::default())).unwrap();
    (open(&host, "s1", &stage), stage)
}

/// What the guest says to a script in `on_plain_text`.
async fn ask(extensions: &Arc<dyn Extensions>, script: &str) -> String {
    match say(extensions, script).await.unwrap() {
        TextAnswer::Replace(text) => text,
        other => panic!("{script}: {other:?}"),
    }
}

async fn input(extensions: &Arc<dyn Extensions>, script: &str) -> Result<InputAnswer, CallFailure> {
    extensions.input_messages(0, &[Message::user("first"), Message::user(script)]).await.map_err(failure)
}

#[tokio::test]
async fn every_answer_to_input_messages() {
    let (extensions, _) = session();
    let own = |text: &str| vec![Message::text(flow::Role::User, Origin::Plugin("conformance".parse().unwrap()), text)];
    assert_eq!(input(&extensions, "nothing to do").await, Ok(InputAnswer::Pass));
    assert_eq!(input(&extensions, "!drop").await, Ok(InputAnswer::Replace(vec![])));
    assert_eq!(input(&extensions, "!reply hello").await, Ok(InputAnswer::Reply("hello".into())));
    assert_eq!(input(&extensions, "!reject no").await, Ok(InputAnswer::Reject("no".into())));
    match input(&extensions, "!finish done").await.unwrap() {
        InputAnswer::Finish(Some(messages)) => assert_eq!(messages[0].plain_text(), "done"),
        other => panic!("{other:?}"),
    }
    match input(&extensions, "!replace new").await.unwrap() {
        InputAnswer::Replace(messages) => {
            assert_eq!(messages[0].plain_text(), "new");
            assert_eq!(messages[0].role, own("new")[0].role);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(extensions.input_messages(0, &[]).await, Ok(InputAnswer::Pass));
}

#[tokio::test]
async fn messages_that_pass_through_a_guest_lose_nothing() {
    let (extensions, _) = session();
    let call = ToolCall { id: CallId::new("c1"), name: "shell".into(), arguments: "{\"a\":1}".into() };
    let result = flow::ToolResult { call: CallId::new("c1"), content: vec!["x".into(), "".into()], is_error: true };
    let thinking = |text: &str, redacted| Part::Thinking {
        text: text.into(),
        signature: Some("sig".into()),
        redacted,
        shown: None,
    };
    let messages = [
        Message {
            role: flow::Role::Assistant,
            origin: Origin::Model,
            parts: vec![thinking("hm", false), thinking("", true), Part::ToolCall(call)],
            hidden: true,
        },
        Message { role: flow::Role::Tool, origin: Origin::Host, parts: vec![Part::ToolResult(result)], hidden: false },
        Message::text(flow::Role::System, Origin::Plugin("other".parse().unwrap()), "ä\0ß"),
        Message::user("!echo"),
    ];
    assert_eq!(extensions.input_messages(0, &messages).await, Ok(InputAnswer::Replace(messages.to_vec())));
}

#[tokio::test]
async fn every_answer_to_plain_text() {
    let (extensions, _) = session();
    assert_eq!(say(&extensions, "text").await, Ok(TextAnswer::Pass));
    assert_eq!(say(&extensions, "").await, Ok(TextAnswer::Pass));
    assert_eq!(ask(&extensions, "!replace ünï").await, "ünï");
    assert_eq!(ask(&extensions, "!drop").await, "");
    let at = RunPosition { turn: 41, step: 42, attempt: 43 };
    let inside = vec!["outer".into(), "inner".into()];
    let place = TextPlace { at, stream: TextStream::Thinking, unit: 7, inside };
    let told = extensions.plain_text(0, "!subject", &place).await.unwrap();
    let TextAnswer::Replace(told) = told else { panic!("{told:?}") };
    for part in ["unit: 7", "\"outer\", \"inner\"", "Thinking", "turn: 41", "step: 42", "attempt: 43"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[tokio::test]
async fn every_answer_to_a_tag() {
    let (extensions, _) = session();
    let tag = |content: &str| Tag {
        name: "do".into(),
        attributes: vec![("a".into(), "1".into()), ("bare".into(), String::new())],
        open: "<do a=\"1\" bare>".into(),
        content: content.into(),
        close: "</do>".into(),
    };
    let place = TagPlace { at: RunPosition { turn: 41, step: 42, attempt: 43 }, inside: vec!["outer".into()] };
    let call = async |content: &str| extensions.tag(0, &tag(content), &place).await.unwrap();
    assert_eq!(call("x").await, TagAnswer::Keep);
    assert_eq!(call("!content in").await, TagAnswer::Content("in".into()));
    assert_eq!(call("!replace all").await, TagAnswer::Replace("all".into()));
    let TagAnswer::Replace(told) = call("!subject").await else { panic!() };
    for part in ["\"do\"", "\"a\", \"1\"", "\"bare\", \"\"", "\"outer\"", "turn: 41", "attempt: 43"] {
        assert!(told.contains(part), "{told}");
    }
}

fn output(text: &str) -> ModelOutput {
    let call = ToolCall { id: CallId::new("c9"), name: "grep".into(), arguments: "{}".into() };
    let usage = Usage { input: Some(u64::MAX), output: Some(2), cache_read: Some(77), cache_write: None };
    ModelOutput {
        at: RunPosition { turn: 41, step: 42, attempt: 43 },
        text: text.into(),
        tool_calls: vec![call],
        stop: StopReason::Pause,
        usage,
    }
}

#[tokio::test]
async fn every_answer_to_llm_output() {
    let (extensions, _) = session();
    let call = async |text: &str| extensions.llm_output(0, &output(text)).await.unwrap();
    assert_eq!(call("x").await, OutputAnswer::default());
    assert_eq!(call("!replace new").await.replace.as_deref(), Some("new"));
    let told = call("!subject").await.replace.unwrap();
    for part in ["\"c9\"", "\"grep\"", "Pause", &u32::MAX.to_string(), "cache_read: Some(77)", "step: 42"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let noted = call("!annotate key {\"a\": [1]}\n!annotate bad {\n!pass").await;
    assert_eq!(noted.annotations, [Annotation { key: "key".into(), value: serde_json::json!({"a": [1]}) }]);
    assert_eq!(noted.ignored.len(), 1);
    assert!(noted.ignored[0].starts_with("annotation `bad`: not valid JSON"), "{:?}", noted.ignored);
    let many = call("!annotate-many 40").await;
    assert_eq!((many.annotations.len(), many.ignored.len()), (32, 8));
    let long = "k".repeat(129);
    let long = call(&format!("!annotate {long} 1\n!annotate  1")).await;
    assert_eq!((long.annotations.len(), long.ignored.len()), (0, 2));
}

#[tokio::test]
async fn an_observer_may_note_but_not_replace() {
    let mut source = conformance();
    source.settings.insert("mode".into(), Setting::Text("observe".into()));
    let extensions = open(&host(source), "s1", &Arc::default());
    let answer = extensions.llm_output(0, &output("!annotate k 1\n!replace new")).await.unwrap();
    assert_eq!(answer.replace, None);
    assert_eq!(answer.annotations.len(), 1);
    assert_eq!(answer.ignored, ["a `replace` by an extension that registered to observe"]);
}

/// A rule fired on this text.
fn event(text: &str) -> TtsrEvent {
    TtsrEvent {
        matches: vec![RuleMatch {
            rule: "no-unwrap".into(),
            stream: StreamKind::Tool { call: CallId::new("c"), name: "edit".into() },
            evidence: Evidence {
                pattern: "unwrap".into(),
                text: text.into(),
                start: 3,
                end: 9,
                line: 2,
                field: Some("new_text".into()),
                path: Some("src/a.rs".into()),
                unread: false,
            },
        }],
        action: Action::Interrupt,
        place: RunPosition { turn: 1, step: 1, attempt: 4 },
    }
}

#[tokio::test]
async fn ttsr_triggered_is_told_what_happened() {
    let (extensions, stage) = session();
    assert_eq!(extensions.ttsr_triggered(0, &event("!subject")).await, Ok(()));
    let events = stage.events.lock().unwrap().clone();
    let [EventKind::ExtensionLog { message, .. }] = &events[..] else { panic!("{events:?}") };
    for part in ["no-unwrap", "edit", "unwrap", "new_text", "src/a.rs", "nterrupt", "4"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let failure = failure(extensions.ttsr_triggered(0, &event("!error gone")).await.unwrap_err());
    assert_eq!((failure.cause, failure.message.as_str()), (FailureCause::Returned, "gone"));
}

#[tokio::test]
async fn secrets_in_what_an_extension_logs_and_in_its_failures_are_masked() {
    let (extensions, stage) = session();
    assert!(say(&extensions, "!log as postgres://bob:hunter2@db").await.is_ok());
    let events = stage.events.lock().unwrap().clone();
    let [EventKind::ExtensionLog { message, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(message, "as postgres://bob:***@db");
    for (script, cause) in [
        ("!error no login with password=hunter2x", FailureCause::Returned),
        ("!panic no login with password=hunter2x", FailureCause::Panic),
    ] {
        let failure = say(&extensions, script).await.unwrap_err();
        assert_eq!(failure.cause, cause);
        assert!(failure.message.ends_with("no login with password=***"), "{}", failure.message);
    }
}

#[tokio::test]
async fn every_kind_of_damage_has_its_cause_and_the_guest_is_made_anew() {
    let (extensions, _) = patient_session();
    for (script, cause, words) in [
        ("!error sorry", FailureCause::Returned, "sorry"),
        ("!panic at the disco", FailureCause::Panic, "at the disco"),
        ("!abort", FailureCause::Trap, "without a message"),
        ("!loop", FailureCause::Timeout, "took longer than 1000 ms"),
        ("!recurse", FailureCause::Trap, "out of bounds memory access"),
        ("!memory all", FailureCause::Memory, "the limit is 33554432"),
        ("!size 5000", FailureCause::Size, "returned 5120000 bytes, the limit is 4194304"),
    ] {
        assert_eq!(ask(&extensions, "!count").await, "1", "before {script}");
        assert_eq!(ask(&extensions, "!count").await, "2", "before {script}");
        let failure = say(&extensions, script).await.unwrap_err();
        assert_eq!(failure.cause, cause, "{script}: {failure} {:?}", failure.frames);
        assert!(failure.message.contains(words), "{script}: {failure}");
    }
    let failure = say(&extensions, "!panic here").await.unwrap_err();
    assert!(failure.message.starts_with("panicked at ") && failure.message.contains(".rs:"), "{failure}");
    assert!(failure.frames.iter().any(|frame| frame.contains("script::run")), "{:?}", failure.frames);
    assert!(!failure.frames[0].contains("panic"), "an author's own code comes first: {:?}", failure.frames);
}

#[tokio::test]
async fn state_is_a_transaction_and_outlives_the_instance() {
    let (extensions, stage) = patient_session();
    assert_eq!(ask(&extensions, "!state-set k one\n!state-get k").await, "()\nSome(\"one\")");
    let failure = say(&extensions, "!state-set k two\n!state-set more x\n!abort").await.unwrap_err();
    assert_eq!(failure.cause, FailureCause::Trap);
    assert_eq!(ask(&extensions, "!state-get k\n!state-keys").await, "Some(\"one\")\n[\"k\"]");
    let failed = say(&extensions, "!state-delete k\n!error no").await.unwrap_err();
    assert_eq!(failed.cause, FailureCause::Returned);
    assert_eq!(ask(&extensions, "!state-get k").await, "Some(\"one\")");
    assert_eq!(ask(&extensions, "!state-delete k\n!state-delete k\n!state-keys").await, "true\nfalse\n[]");
    assert_eq!(ask(&extensions, "!state-set a 1\n!state-set b 2\n!state-clear").await, "()\n()\n2");
    let refused = ask(&extensions, "!state-fill big 1025").await;
    assert!(refused.starts_with("refused: ") && refused.contains("1049600 bytes"), "{refused}");
    let operations: Vec<_> = stage
        .events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            EventKind::ExtensionState { operation, key, .. } => Some(format!("{operation} {key}")),
            _ => None,
        })
        .collect();
    assert_eq!(operations, ["set k", "delete k", "clear "], "only what was committed");
}

#[tokio::test]
async fn sessions_share_nothing() {
    let host = host(patient(conformance()));
    let stage = Arc::new(Stage::default());
    let (one, two) = (open(&host, "one", &stage), open(&host, "two", &stage));
    assert_eq!(ask(&one, "!state-set k one\n!count").await, "()\n1");
    assert_eq!(ask(&two, "!state-get k\n!count").await, "None\n1");
    one.settle(Duration::ZERO).await.unwrap();
    drop(one);
    let again = open(&host, "one", &stage);
    assert_eq!(ask(&again, "!state-get k\n!count").await, "Some(\"one\")\n1", "state is of the session, memory is not");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_share_nothing_under_load() {
    let host = Arc::new(host(patient(conformance())));
    let tasks: Vec<_> = (0..32)
        .map(|n| {
            let host = Arc::clone(&host);
            tokio::spawn(async move {
                let extensions = open(&host, &format!("s{n}"), &Arc::default());
                for round in 1..50 {
                    let script = format!("!state-get k\n!state-set k s{n}r{round}\n!count");
                    let before = if round == 1 { "None".into() } else { format!("Some(\"s{n}r{}\")", round - 1) };
                    assert_eq!(ask(&extensions, &script).await, format!("{before}\n()\n{round}"));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Lets a notice run for a moment. Returns whether it has ended.
async fn has_ended(notice: &mut BoxFuture<'_, Result<(), NoAnswer>>) -> bool {
    tokio::select! {
        biased;
        _ = notice => true,
        () = tokio::task::yield_now() => false,
    }
}

/// On a machine that has something else to do, a notice can end before another callback is called at all: it gets more time then.
#[tokio::test]
async fn a_slow_notice_delays_no_other_callback() {
    'time: for millis in [300, 3_000, 30_000] {
        let mut source = patient(conformance());
        source.limits.time = Duration::from_millis(millis);
        let extensions = open(&host(source), "s1", &Arc::default());
        ask(&extensions, "!count").await;
        let slow = event("!loop");
        let mut notice = extensions.ttsr_triggered(0, &slow);
        for call in 2..=20 {
            if has_ended(&mut notice).await {
                continue 'time;
            }
            assert_eq!(ask(&extensions, "!count").await, call.to_string(), "it has an instance of its own");
        }
        assert_eq!(failure(notice.await.unwrap_err()).cause, FailureCause::Timeout);
        return;
    }
    panic!("no callback was called in 30 s");
}

#[tokio::test]
async fn a_notice_writes_as_if_it_had_run_between_two_calls() {
    for millions in [30, 300, 3_000] {
        if writes_of_a_notice_follow_those_of_calls(millions).await {
            return;
        }
    }
    panic!("each notice ended before three calls");
}

/// A notice adds to a list that another callback adds to while it works. Returns `false` where the notice has ended before.
async fn writes_of_a_notice_follow_those_of_calls(millions: u32) -> bool {
    let (extensions, stage) = patient_session();
    let slow = event(&format!("!state-append list n\n!work {millions}"));
    let mut notice = extensions.ttsr_triggered(0, &slow);
    for _ in 0..3 {
        if has_ended(&mut notice).await {
            return false;
        }
        assert_eq!(ask(&extensions, "!state-append list t").await, "()");
    }
    notice.await.unwrap();
    assert_eq!(ask(&extensions, "!state-get list").await, "Some(\"tttn\")", "nothing is lost");
    let commits =
        stage.events.lock().unwrap().iter().filter(|one| matches!(one, EventKind::ExtensionState { .. })).count();
    assert_eq!(commits, 4, "what was repeated was committed once");
    true
}

#[tokio::test]
async fn calls_into_one_plugin_of_a_session_are_serial() {
    let (extensions, _) = patient_session();
    let add = async || ask(&extensions, "!work 1\n!count").await.parse::<u32>().unwrap();
    let (a, b, c) = tokio::join!(add(), add(), add());
    let mut counts = [a, b, c];
    counts.sort_unstable();
    assert_eq!(counts, [1, 2, 3]);
}

#[tokio::test]
async fn session_tools_and_settings_can_be_seen() {
    let stage = Stage {
        turn: 5.into(),
        history: (0..300).map(|n| Arc::new(Message::user(format!("m{n}")))).collect(),
        tools: vec![ToolSpec { name: "grep".into(), description: "d".into(), parameters: serde_json::json!({"x": 1}) }],
        ..Stage::default()
    };
    let extensions = open(&host(patient(conformance())), "s1", &Arc::new(stage));
    let info = ask(&extensions, "!session").await;
    for part in ["\"conformance\"", "\"s1\"", "5", "2", "3", "\"recording\"", "\"/w\"", "\"helper\""] {
        assert!(info.contains(part), "{part}: {info}");
    }
    let history = ask(&extensions, "!history 298 9").await;
    assert!(history.contains("\"m298\"") && history.contains("\"m299\"") && !history.contains("\"m297\""), "{history}");
    let most = ask(&extensions, "!history 0 1000").await;
    assert!(most.contains("\"m255\"") && !most.contains("\"m256\""));
    assert_eq!(ask(&extensions, "!history 300 1").await, "[]");
    let tools = ask(&extensions, "!tools").await;
    assert!(tools.contains("grep") && tools.contains("{\\\"x\\\":1}"), "{tools}");
    let settings = ask(&extensions, "!settings").await;
    for part in ["\"unit\"", "\"whole\"", "1.5", "true", "[\"a\", \"b\"]"] {
        assert!(settings.contains(part), "{part}: {settings}");
    }
    assert_eq!(ask(&extensions, "!setting none").await, "None");
}

/// A session that cannot say what tools there are.
struct Broken(Stage);

impl SessionView for Broken {
    fn info(&self) -> SessionInfo {
        self.0.info()
    }

    fn history_len(&self) -> usize {
        self.0.history_len()
    }

    fn history(&self, from: usize, count: usize) -> Vec<(u64, Arc<Message>)> {
        self.0.history(from, count)
    }

    fn tools(&self) -> Vec<ToolSpec> {
        panic!("no tools here")
    }
}

#[tokio::test]
async fn a_panic_of_the_host_under_a_guest_is_a_failure_of_the_call() {
    let host = host(conformance());
    let extensions =
        host.open(&SessionId::new("s"), Arc::new(Broken(Stage::default())), Arc::new(Stage::default())).await.unwrap();
    // On the caller's stack, and on one of its own.
    for text in [true, false] {
        assert_eq!(ask(&extensions, "!count").await, "1");
        let failure = if text {
            say(&extensions, "!tools").await.unwrap_err()
        } else {
            input(&extensions, "!tools").await.unwrap_err()
        };
        let words = "the host panicked while it served this call: no tools here";
        assert_eq!((failure.cause, failure.message.as_str()), (FailureCause::Host, words));
    }
    assert_eq!(ask(&extensions, "!count").await, "1");
}

#[test]
fn what_happens_while_registering() {
    let start = |script: &str| {
        let mut source = conformance();
        source.settings.insert("start".into(), Setting::Text(script.into()));
        sandbox().load(source).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(start("!log hello"), Ok(()));
    let state = start("!state-must-set k v").unwrap_err();
    assert!(state.contains("not during register"), "{state}");
    assert!(start("!panic bad start").unwrap_err().contains("(panic): panicked at"));
    assert!(start("!loop").unwrap_err().contains("(timeout): took longer than 100 ms"));
    assert!(start("!error no key").unwrap_err().contains("(returned_error): "));
}
