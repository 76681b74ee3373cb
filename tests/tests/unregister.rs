//! Case 11: a plugin that is unregistered while its callback runs. The callback finishes; then the plugin and its state are gone.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::{
    EventKind, Host, Metrics, Operator, PreparedCall, SessionOptions, SourceFile, ToolCall, ToolSpec, Tools,
};
use tidegate_kit::{EchoTools, ScriptedModel, live, say};

/// Tools whose list, once armed, is not there before the test says so: the callback that asks for it runs until then.
struct Gate {
    armed: AtomicBool,
    asked: mpsc::Sender<()>,
    open: Mutex<mpsc::Receiver<()>>,
}

impl Tools for Gate {
    fn specs(&self) -> Vec<ToolSpec> {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.asked.send(()).unwrap();
            self.open.lock().unwrap().recv().unwrap();
        }
        Vec::new()
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        EchoTools.prepare(call)
    }
}

/// A host with the guest that runs scripts.
async fn host(folder: &Path, metrics: &Metrics) -> Host {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/conformance");
    std::fs::copy(source.join("plugin.toml"), folder.join("plugin.toml")).unwrap();
    let built = tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    std::fs::write(folder.join(tidegate_build::COMPONENT_FILE), built.bytes).unwrap();
    let toml = format!(
        "[rules]\nbuiltin_rules = false\n[[plugin]]\npath = {:?}\n\
         grants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n\
         [plugin.settings]\nonly = [\"on_plain_text\"]\nunit = \"whole\"\nmode = \"observe\"\n",
        folder.display().to_string()
    );
    let operator =
        Operator::of_source(&SourceFile::new("tidegate.toml", toml)).unwrap_or_else(|wrong| panic!("{wrong}"));
    let builder = Host::builder(operator).cache_dir(None).max_instances(4).user_rules(None);
    builder.metrics(metrics).open().await.unwrap()
}

async fn in_another_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_callback_that_runs_finishes_before_its_plugin_is_gone() {
    let (folder, metrics) = (tempfile::tempdir().unwrap(), Metrics::new());
    let host = host(folder.path(), &metrics).await;
    let (asked, was_asked) = mpsc::channel();
    let (open, opened) = mpsc::channel();
    let gate = Arc::new(Gate { armed: AtomicBool::new(false), asked, open: Mutex::new(opened) });
    let (text, script) = live();
    let model = ScriptedModel::new([script, say("!state-keys")]);
    let options = SessionOptions::new(folder.path()).model(Arc::<ScriptedModel>::clone(&model));
    let session = host.session(options.tools(Arc::<Gate>::clone(&gate)).without_builtin_tools()).await.unwrap();

    let turn = session.prompt("go");
    // The tools were listed for the request.
    while model.asked() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    gate.armed.store(true, Ordering::SeqCst);
    text.send("!tools\n!state-set late 1").unwrap();
    drop(text);
    in_another_thread(move || was_asked.recv().unwrap()).await;
    // The callback runs.
    host.plugins().unregister(&"conformance".parse().unwrap()).await.unwrap();
    assert!(host.plugins().list().is_empty());
    open.send(()).unwrap();
    assert!(turn.report().await.text.ends_with("\n()"), "the callback was stopped, or its write was refused");
    let stored = host.state_admin().show(session.id()).await.unwrap().unwrap();
    assert_eq!(stored.summary.plugins[0].keys, 1, "its state is there until the turn ends");

    let mut turn = session.prompt("go");
    let mut changes = Vec::new();
    while let Some(event) = turn.next().await {
        match event.kind {
            EventKind::ExtensionUnregistered { plugin, .. } => changes.push(format!("unregistered {plugin}")),
            EventKind::ExtensionCallback(report) => changes.push(format!("{report:?}")),
            _ => {}
        }
    }
    assert_eq!(changes, ["unregistered conformance"], "and no callback");
    assert_eq!(turn.report().await.text, "!state-keys");
    let stored = host.state_admin().show(session.id()).await.unwrap();
    assert!(stored.is_none_or(|stored| stored.summary.plugins.is_empty()), "its state is deleted");
    let counted = "extension_registration_total{action=\"unregister\",extension_id=\"conformance\"} 1";
    let text = metrics.prometheus();
    assert!(text.lines().any(|line| line == counted), "{text}");
}
