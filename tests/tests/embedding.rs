//! A host as its embedder makes it: the clock reaches the plugins, and hosts of one process share an engine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tempfile::TempDir;
use tidegate::diagnostic::SourceFile;
use tidegate::event::StreamKind;
use tidegate::metrics::Metrics;
use tidegate::model::{Delta, Model, ModelError, ModelStream, StopReason};
use tidegate::plugin::EngineOptions;
use tidegate::prompt::Prompt;
use tidegate::{BoxFuture, Clock, Engine, Host, Operator, SessionOptions};
use tidegate_kit::Frozen;

/// A folder with the guest that does what the text it is given says, and its manifest.
fn plugin() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let build = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/conformance");
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(source.join("plugin.toml"), folder.path().join("plugin.toml")).unwrap();
        let built = tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
        std::fs::write(folder.path().join(tidegate_build::COMPONENT_FILE), built.bytes).unwrap();
        folder
    };
    FOLDER.get_or_init(build).path()
}

fn operator() -> Operator {
    let path = plugin().display().to_string();
    let toml = format!(
        "[rules]\nbuiltin_rules = false\n[[plugin]]\npath = {path:?}\ngrants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n\
         [plugin.settings]\nonly = [\"on_plain_text\"]\nunit = \"whole\"\n"
    );
    Operator::of_source(&SourceFile::new("tidegate.toml", toml)).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// Answers with texts, one a request.
struct Says(Mutex<VecDeque<&'static str>>);

struct Text(VecDeque<Delta>);

impl Model for Says {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "says"
    }

    fn start<'a>(&'a self, _: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let text = self.0.lock().unwrap().pop_front().unwrap().to_owned();
        let deltas = [
            Delta::Start { model: None },
            Delta::BlockStart { block: 0, kind: StreamKind::Text },
            Delta::Piece { block: 0, text },
            Delta::BlockEnd { block: 0 },
            Delta::Stop { reason: StopReason::EndTurn },
        ];
        Box::pin(async move { Ok(Box::new(Text(deltas.into())) as Box<dyn ModelStream>) })
    }
}

impl ModelStream for Text {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_plugins_keep_live_by_the_clock_of_the_embedder() {
    let clock = Arc::new(Frozen::default());
    let builder = Host::builder(operator()).cache_dir(None).max_instances(4).user_rules(None);
    let host = builder.clock(Arc::clone(&clock) as Arc<dyn Clock>).open().await.unwrap();
    let model = Says(Mutex::new(["!state-set-ttl k 60000 v", "!state-get k", "!state-get k"].into()));
    let folder = tempfile::tempdir().unwrap();
    let session = host.session(SessionOptions::new(folder.path()).model(Arc::new(model))).await.unwrap();
    for (now, said) in [(0, "()"), (59_999, "Some(\"v\")"), (60_001 + 59_999, "None")] {
        clock.0.store(now, Ordering::SeqCst);
        assert_eq!(session.prompt("go").report().await.text, said, "at {now} ms");
    }
}

/// A clock whose waits end when the test says so.
struct Told(Arc<tokio::sync::Notify>);

impl Clock for Told {
    fn now_ms(&self) -> u64 {
        0
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        let ended = Arc::clone(&self.0);
        Box::pin(async move { ended.notified().await })
    }
}

#[tokio::test]
async fn instances_are_dropped_when_their_session_is_idle_for_long() {
    let idle = Arc::new(tokio::sync::Notify::new());
    let builder = Host::builder(operator()).cache_dir(None).max_instances(4).user_rules(None);
    let host = builder.clock(Arc::new(Told(Arc::clone(&idle)))).open().await.unwrap();
    let model = Says(Mutex::new(["!count", "!state-set k v", "!count", "!state-get k"].into()));
    let folder = tempfile::tempdir().unwrap();
    let session = host.session(SessionOptions::new(folder.path()).model(Arc::new(model))).await.unwrap();
    let say = async || session.prompt("go").report().await.text;
    let first = say().await;
    say().await;
    let others = async || {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    // The task that waits comes to its wait, and then to what follows it: the runtime has one thread.
    others().await;
    idle.notify_waiters();
    others().await;
    assert_eq!(say().await, first, "a new instance counts from the start");
    assert_eq!(say().await, "Some(\"v\")", "what it kept is still there");
}

/// What a plugin does in one session is counted in the metrics of its host, and in those alone.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_counted_in_the_metrics_of_their_host() {
    let clock = Arc::new(Frozen::default());
    let engine = Engine::new(&EngineOptions { cache_dir: None, max_instances: 4, ..EngineOptions::default() }).unwrap();
    let (counted, others) = (Metrics::new(), Metrics::new());
    let open = |metrics: &Metrics| {
        let builder = Host::builder(operator()).engine(&engine).user_rules(None).metrics(metrics);
        builder.clock(Arc::clone(&clock) as Arc<dyn Clock>).open()
    };
    let (host, other) = (open(&counted).await.unwrap(), open(&others).await.unwrap());
    let folder = tempfile::tempdir().unwrap();
    let answers =
        ["!state-set k v\n!state-get k\n!state-get k", "!error a", "!error b", "!error c", "skipped", "tried"];
    let model = Says(Mutex::new(answers.into()));
    let session = host.session(SessionOptions::new(folder.path()).model(Arc::new(model))).await.unwrap();
    // Nobody reads its events.
    for _ in 0..5 {
        session.prompt("go").report().await;
    }
    let has = |line: &str| {
        let text = counted.prometheus();
        assert!(text.lines().any(|one| one == line), "no {line} in\n{text}");
    };
    has("extension_registration_total{action=\"register\",extension_id=\"conformance\"} 1");
    let callbacks = "extension_callback_total{callback_type=\"on_plain_text\",extension_id=\"conformance\"";
    has(&format!("{callbacks},outcome=\"changed\"}} 1"));
    has(&format!("{callbacks},outcome=\"error\"}} 3"));
    has(&format!("{callbacks},outcome=\"not_permitted\"}} 1"));
    has("extension_state_operations_total{operation=\"get\",extension_id=\"conformance\"} 2");
    has("extension_state_operations_total{operation=\"set\",extension_id=\"conformance\"} 1");
    has("extension_state_size_bytes_count{extension_id=\"conformance\"} 1");
    has("extension_breaker_state{extension_id=\"conformance\"} 2");
    has("model_request_total{model=\"says\"} 5");
    has("turn_total{status=\"completed\"} 5");
    clock.0.store(60_000, Ordering::SeqCst);
    session.prompt("go").report().await;
    has("extension_breaker_state{extension_id=\"conformance\"} 0");
    // Both hosts are on one engine, whose instances are in the metrics of both.
    let others: Vec<String> = others.prometheus().lines().map(str::to_owned).collect();
    assert!(others.iter().all(|line| line.contains("extension_instances")), "{others:?}");
    assert!(others.contains(&"extension_instances_limit 4".to_owned()) && other.metrics().is_some(), "{others:?}");
    session.close();
    session.closed().await;
    has("extension_breaker_opened_total{extension_id=\"conformance\"} 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_share_an_engine_and_the_components_on_it() {
    let engine = Engine::new(&EngineOptions { cache_dir: None, max_instances: 4, ..EngineOptions::default() }).unwrap();
    let open = || Host::builder(operator()).engine(&engine).user_rules(None).open();
    let (first, second) = (open().await.unwrap(), open().await.unwrap());
    let counts = engine.counts();
    assert_eq!((counts.compiled, counts.loaded, counts.shared), (1, 0, 1));
    let folder = tempfile::tempdir().unwrap();
    for host in [&first, &second] {
        let model = Says(Mutex::new(["!state-set k v", "!state-get k"].into()));
        let options = SessionOptions::new(folder.path()).model(Arc::new(model));
        let session = host.session(options.id(tidegate::SessionId::new("same"))).await.unwrap();
        assert_eq!(session.prompt("go").report().await.text, "()");
        assert_eq!(session.prompt("go").report().await.text, "Some(\"v\")", "what plugins keep belongs to a host");
    }
    drop((first, second));
    assert!(engine.counts().compiled == 1, "an engine outlives its hosts");
}
