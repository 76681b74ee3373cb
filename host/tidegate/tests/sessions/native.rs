//! Native extensions: callbacks of the program, in the chains of plugins, and what their failures cost.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::diagnostic::Health;
use tidegate::event::CallbackOutcome;
use tidegate::metrics::Metrics;
use tidegate::model::Model;
use tidegate::native::{
    AskedCall, CallAnswer, CallError, GivenResult, InputAnswer, ModelOutput, Native, NativeCall, NativeExtension,
    OutputAnswer, ResultAnswer, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace,
};
use tidegate::plugin::{Callback, CallbackKind, OutputMode, Registered, TagPattern, TextUnit};
use tidegate::record::Shown;
use tidegate::rule::{RuleSpec, TtsrEvent};
use tidegate::{Event, EventKind, Host, HostError, Message, PluginId, Session, SessionOptions, TurnStatus};

use super::support::{Answer, Scripted, builder, texts};

fn id(id: &str) -> PluginId {
    id.parse().unwrap()
}

fn lines() -> Registered {
    Callback::PlainText(TextUnit::Line.into()).into()
}

/// What `on_plain_text` does with a line.
struct Lines<F>(F);

impl<F: Fn(&str) -> Result<TextAnswer, CallError> + Send + Sync + 'static> NativeExtension for Lines<F> {
    fn on_plain_text(&self, _: &NativeCall, text: &str, _: &TextPlace) -> Result<TextAnswer, CallError> {
        (self.0)(text)
    }
}

async fn session_of(host: &Host, model: &Arc<Scripted>, options: SessionOptions) -> Session {
    host.session(options.model(Arc::clone(model) as Arc<dyn Model>)).await.unwrap()
}

/// Runs turns to their end. Returns the status and the text of the last one, and all events.
async fn turns(session: &Session, count: usize) -> (TurnStatus, String, Vec<Event>) {
    let mut events = session.subscribe();
    let mut last = (TurnStatus::Cancelled, String::new());
    for _ in 0..count {
        let report = session.prompt("go").report().await;
        last = (report.status, report.text);
    }
    (last.0, last.1, std::iter::from_fn(|| events.try_next()).collect())
}

/// The outcomes of the calls of an extension, with the kinds of failures.
fn outcomes(events: &[Event], plugin: &str) -> Vec<String> {
    let of = |event: &Event| match &event.kind {
        EventKind::ExtensionCallback(report) if report.plugin == id(plugin) => {
            let cause = match &report.outcome {
                CallbackOutcome::Failed(failure) => format!(" {}", failure.cause.as_str()),
                _ => String::new(),
            };
            Some(format!("{} {}{cause}", report.callback.as_str(), report.outcome.as_str()))
        }
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// Has all callbacks, and notes each call with the position of its session.
struct All(Arc<Mutex<Vec<String>>>);

impl All {
    fn note(&self, call: &NativeCall, what: &str) {
        self.0.lock().unwrap().push(format!(
            "{what} in turn {} with {}",
            call.session().place.turn,
            call.session().model
        ));
    }
}

impl NativeExtension for All {
    fn on_input_messages(&self, call: &NativeCall, messages: &[Message]) -> Result<InputAnswer, CallError> {
        self.note(call, "input");
        Ok(InputAnswer::Replace(vec![Message::user(format!("{} please", messages[0].plain_text()))]))
    }

    fn on_plain_text(&self, call: &NativeCall, text: &str, _: &TextPlace) -> Result<TextAnswer, CallError> {
        self.note(call, "text");
        Ok(TextAnswer::Replace(text.to_uppercase()))
    }

    fn on_tag(&self, call: &NativeCall, tag: &Tag, _: &TagPlace) -> Result<TagAnswer, CallError> {
        self.note(call, &tag.name);
        Ok(TagAnswer::Replace("(a note)".into()))
    }

    fn on_llm_output(&self, call: &NativeCall, output: &ModelOutput) -> Result<OutputAnswer, CallError> {
        self.note(call, &format!("output of {} bytes", output.text.len()));
        Ok(OutputAnswer::default())
    }

    fn ttsr_triggered(&self, call: &NativeCall, event: &TtsrEvent) -> Result<(), CallError> {
        self.note(call, &event.matches[0].rule);
        Ok(())
    }

    fn on_tool_call(&self, call: &NativeCall, _: &AskedCall) -> Result<CallAnswer, CallError> {
        self.note(call, "call");
        Ok(CallAnswer::Deny { reason: "not today".into(), shown: None })
    }

    fn on_tool_result(&self, call: &NativeCall, _: &GivenResult) -> Result<ResultAnswer, CallError> {
        self.note(call, "result");
        Ok(ResultAnswer::default())
    }
}

#[tokio::test]
async fn all_callbacks_are_called_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let all = Native::new(id("all"), All(Arc::clone(&seen)))
        .version("1.2.3")
        .on(Callback::InputMessages)
        .on(lines())
        .on(Callback::Tag(vec![TagPattern::Exact("note".into())]))
        .on(Callback::LlmOutput(OutputMode::Observe))
        .on(Callback::TtsrTriggered)
        .on(Callback::ToolCall)
        .on((Callback::ToolResult, 90));
    let rule = RuleSpec::new("no-todo", "Finish the work.").condition("TODO").scope("text");
    let host = builder("retry_delay_ms = 0\n").extension(all).rule(rule).open().await.unwrap();
    let model = Scripted::new([
        Answer::Text("a TODO"),
        Answer::Call("list_dir", r#"{"path":"."}"#),
        Answer::Text("so <note>x</note> it is"),
    ]);
    let session = session_of(&host, &model, SessionOptions::new(folder.path())).await;
    let (status, text, events) = turns(&session, 1).await;
    assert_eq!((status, text.as_str()), (TurnStatus::Completed, "SO (a note) IT IS"));
    assert_eq!(texts(&session.history())[0], "go please");
    session.close();
    session.closed().await;
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    seen.dedup();
    let expected = ["call", "input", "no-todo", "note", "output of 0 bytes", "output of 23 bytes", "text"];
    assert_eq!(seen, expected.map(|what| format!("{what} in turn 1 with scripted")));
    let registered = events.iter().find_map(|event| match &event.kind {
        EventKind::ExtensionRegistered { plugin, version, callbacks, .. } => {
            Some((plugin.clone(), version.clone(), callbacks.len()))
        }
        _ => None,
    });
    assert_eq!(registered, Some((id("all"), "1.2.3".to_owned(), 7)));
    let outcomes = outcomes(&events, "all");
    for outcome in [
        "on_input_messages changed",
        "on_plain_text changed",
        "on_tag changed",
        "on_llm_output passed",
        "on_tool_call changed",
        "on_tool_result skipped",
    ] {
        assert!(outcomes.iter().any(|one| one == outcome), "{outcome}: {outcomes:?}");
    }
    let denied = events
        .iter()
        .any(|event| matches!(&event.kind, EventKind::ToolCallResult { output, .. } if output.contains("not today")));
    assert!(denied);
    // It is listed as plugins are, and a check calls it.
    let loaded = host.loaded(folder.path()).await.unwrap();
    let info = &loaded.plugins()[0];
    assert_eq!((&info.id, info.version.as_str(), info.callbacks.len()), (&id("all"), "1.2.3", 7));
    assert_eq!(loaded.chain(CallbackKind::ToolResult), [(id("all"), 90)]);
    let checks = host.doctor(folder.path()).await;
    let checked = |what: &str| checks.iter().any(|check| check.what == what && check.health == Health::Good);
    assert!(checked("plugin all") && checked("callback all on_tag"), "{checks:?}");
}

#[tokio::test]
async fn priorities_decide_the_order_and_a_session_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let adds = |name: &'static str, word: &'static str, priority: u8| {
        let lines = Lines(move |text: &str| Ok(TextAnswer::Replace(format!("{text}{word}"))));
        Native::new(id(name), lines).on((Callback::PlainText(TextUnit::Line.into()), priority))
    };
    let host =
        builder("").extension(adds("b", "b", 50)).extension(adds("c", "c", 50)).extension(adds("a", "a", 90)).open();
    let host = host.await.unwrap();
    let model = Scripted::new([Answer::Text("x"), Answer::Text("x")]);
    let own = session_of(&host, &model, SessionOptions::new(folder.path()).extension(adds("d", "d", 60))).await;
    assert_eq!(turns(&own, 1).await.1, "xadbc");
    let other = session_of(&host, &model, SessionOptions::new(folder.path())).await;
    assert_eq!(turns(&other, 1).await.1, "xabc");
}

#[tokio::test]
async fn a_failure_costs_the_call_and_follows_its_policy() {
    type Fails = fn(&str) -> Result<TextAnswer, CallError>;
    let cases: [(Fails, &str); 3] = [
        (|text| panic!("not {text}"), "panic"),
        (|text| Err(format!("not {text}").into()), "returned_error"),
        (|_| Ok(TextAnswer::Replace("x".repeat(9 << 20))), "size_limit"),
    ];
    for (fails, cause) in cases {
        let folder = tempfile::tempdir().unwrap();
        let host = builder("").open().await.unwrap();
        let native = |registered: Registered| Native::new(id("odd"), Lines(fails)).on(registered);
        for (native, shown) in
            [(native(lines()), "secret"), (native(lines().closed()), "[withheld: odd did not check this]")]
        {
            let model = Scripted::new([Answer::Text("secret")]);
            let session = session_of(&host, &model, SessionOptions::new(folder.path()).extension(native)).await;
            let (status, text, events) = turns(&session, 1).await;
            assert_eq!((status, text.as_str()), (TurnStatus::Completed, shown), "{cause}");
            assert_eq!(outcomes(&events, "odd"), [format!("on_plain_text error {cause}")]);
            let quoted = format!("{events:?}").contains("not secret");
            assert_eq!(quoted, shown == "secret" && cause != "size_limit", "only one that does not guard is quoted");
        }
        let model = Scripted::new([Answer::Text("secret")]);
        let options = SessionOptions::new(folder.path()).extension(native(lines()).required());
        let (status, ..) = turns(&session_of(&host, &model, options).await, 1).await;
        let TurnStatus::Failed { message, .. } = status else { panic!("{status:?}") };
        assert!(message.contains("odd: on_plain_text failed") && !message.contains("secret"), "{message}");
    }
}

/// Answers that cannot be used, with the reason of the extension.
struct Ignored;

impl NativeExtension for Ignored {
    fn on_plain_text(&self, _: &NativeCall, text: &str, _: &TextPlace) -> Result<TextAnswer, CallError> {
        Ok(TextAnswer::Ignored(format!("not {text}")))
    }

    fn on_llm_output(&self, _: &NativeCall, output: &ModelOutput) -> Result<OutputAnswer, CallError> {
        let ignored = vec![format!("not {}", output.text)];
        Ok(OutputAnswer { replace: Some("other".into()), ignored, ..OutputAnswer::default() })
    }
}

/// They reach the log of one that does not guard, and in no case what is shown to everybody.
#[tokio::test]
async fn the_reasons_of_one_that_guards_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let host = builder("").open().await.unwrap();
    let rewrite = || Registered::from(Callback::LlmOutput(OutputMode::Rewrite));
    for (native, is_quoted) in [
        (Native::new(id("odd"), Ignored).on(lines()).on(rewrite()), true),
        (Native::new(id("odd"), Ignored).on(lines()).on(rewrite().closed()), false),
        (Native::new(id("odd"), Ignored).on(lines()).on(rewrite()).required(), false),
        (Native::new(id("odd"), Ignored).on(lines()).on(rewrite().closed()).full_diagnostics(), true),
    ] {
        let model = Scripted::new([Answer::Text("secret")]);
        let session = session_of(&host, &model, SessionOptions::new(folder.path()).extension(native)).await;
        let (.., events) = turns(&session, 1).await;
        assert_eq!(format!("{events:?}").contains("not secret"), is_quoted, "{events:#?}");
        let shown = events.iter().filter_map(|event| Shown::of(event, "s")).map(|line| line.json().to_string());
        assert!(!shown.collect::<String>().contains("not secret"));
    }
}

#[tokio::test]
async fn one_that_fails_repeatedly_is_skipped_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let host = builder("")
        .extension(Native::new(id("odd"), Lines(|_: &str| Err("no".into()))).on(lines()))
        .open()
        .await
        .unwrap();
    let model = Scripted::new(["a", "b", "c", "d"].map(Answer::Text));
    let session = session_of(&host, &model, SessionOptions::new(folder.path())).await;
    let (_, text, events) = turns(&session, 4).await;
    assert_eq!(text, "d");
    let expected = ["error returned_error", "error returned_error", "error returned_error", "not_permitted"];
    assert_eq!(outcomes(&events, "odd"), expected.map(|outcome| format!("on_plain_text {outcome}")));
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.kind, EventKind::ExtensionBreaker { plugin, .. } if *plugin == id("odd")))
    );
}

/// The call ends when the test says so: no time decides.
#[tokio::test]
async fn one_that_does_not_return_does_not_keep_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let (release, wait): (Sender<()>, Receiver<()>) = channel();
    let wait = Mutex::new(wait);
    let stuck = Lines(move |_: &str| {
        let _ended = wait.lock().unwrap().recv();
        Ok(TextAnswer::Pass)
    });
    let stuck = Native::new(id("stuck"), stuck).on(lines().closed()).time_limit(Duration::from_millis(20));
    let host = builder("").extension(stuck).open().await.unwrap();
    let model = Scripted::new([Answer::Text("secret")]);
    let session = session_of(&host, &model, SessionOptions::new(folder.path())).await;
    let (status, text, events) = turns(&session, 1).await;
    assert_eq!((status, text.as_str()), (TurnStatus::Completed, "[withheld: stuck did not check this]"));
    assert_eq!(outcomes(&events, "stuck"), ["on_plain_text error timeout"]);
    drop(release);
}

#[tokio::test]
async fn what_cannot_be_used_refuses_the_host_or_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let pass = || Native::new(id("same"), Lines(|_: &str| Ok(TextAnswer::Pass)));
    let taken = "its id is that of a plugin, or of another native extension";
    for (natives, why) in [
        (vec![pass()], "it is registered for no callback"),
        (
            vec![pass().on((Callback::InputMessages, 101))],
            "on_input_messages has priority 101; priorities go from 0 to 100",
        ),
        (vec![pass().on(Callback::Tag(Vec::new()))], "on_tag is registered for no tag"),
        (vec![pass().on(lines()), pass().on(lines())], taken),
    ] {
        let is_wrong = |error: &HostError| {
            assert!(matches!(error, HostError::NativeExtension { .. }) && error.to_string().contains(why), "{error}");
        };
        let with = natives.iter().cloned().fold(builder(""), |builder, one| builder.extension(one));
        is_wrong(&with.open().await.unwrap_err());
        let host = builder("").open().await.unwrap();
        let options = SessionOptions::new(folder.path()).model(Scripted::new([]) as Arc<dyn Model>);
        let options = natives.into_iter().fold(options, SessionOptions::extension);
        is_wrong(&host.session(options).await.unwrap_err());
    }
    let host = builder("").extension(pass().on(lines())).open().await.unwrap();
    let options = SessionOptions::new(folder.path()).model(Scripted::new([]) as Arc<dyn Model>);
    let error = host.session(options.extension(pass().on(lines()))).await.unwrap_err();
    assert!(error.to_string().contains(taken), "{error}");
}

/// An extension of a session is counted as those of the host are, and once however many sessions have it.
#[tokio::test]
async fn the_breakers_of_a_sessions_own_are_in_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Metrics::new();
    let host = builder("").metrics(&metrics).open().await.unwrap();
    let odd = Native::new(id("odd"), Lines(|_: &str| Err("no".into()))).on(lines());
    let value = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("extension_breaker_state") && line.contains("odd"))?;
        line.rsplit(' ').next().map(str::to_owned)
    };
    for _ in 0..3 {
        let model = Scripted::new(["a", "b", "c"].map(Answer::Text));
        let session = session_of(&host, &model, SessionOptions::new(folder.path()).extension(odd.clone())).await;
        turns(&session, 3).await;
        session.close();
        session.closed().await;
    }
    // No session is open: what remains is the breaker of all sessions.
    let text = metrics.prometheus();
    assert!(value(&text).is_some_and(|value| value != "0"), "{text}");
}
