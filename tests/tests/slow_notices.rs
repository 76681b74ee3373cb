//! A slow `ttsr_triggered` of a compiled guest: it outlives its turn, and ends with its own limits, with its session, or when plugins change.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use tidegate::diagnostic::SourceFile;
use tidegate::event::CallbackOutcome;
use tidegate::plugin::CallbackKind;
use tidegate::rule::{Action, TtsrEvent};
use tidegate::tool::{PreparedCall, ToolCall, ToolSpec, Tools};
use tidegate::{EventKind, Host, Operator, Session, SessionOptions, Subscription, TurnStatus};
use tidegate_kit::{EchoTools, ScriptedModel, say};

/// Tools of an embedder. Their list, once armed, is not there before the test says so: the guest that asks for it runs until then.
struct Own {
    armed: AtomicBool,
    open: Mutex<mpsc::Receiver<()>>,
    told: Mutex<Vec<TtsrEvent>>,
}

impl Tools for Own {
    fn specs(&self) -> Vec<ToolSpec> {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.open.lock().unwrap().recv().unwrap();
        }
        Vec::new()
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        EchoTools.prepare(call)
    }

    fn ttsr_triggered(&self, event: &TtsrEvent) {
        self.told.lock().unwrap().push(event.clone());
        // The guest is called next.
        self.armed.store(true, Ordering::SeqCst);
    }
}

/// A session whose rule matches the script that the guest then runs.
async fn session(folder: &Path, script: &str, own: &Arc<Own>) -> (Host, Session) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/conformance");
    let plugin = folder.join("plugin");
    let rules = folder.join(".tidegate/rules");
    std::fs::create_dir_all(&rules).unwrap();
    std::fs::create_dir_all(&plugin).unwrap();
    std::fs::copy(source.join("plugin.toml"), plugin.join("plugin.toml")).unwrap();
    let built = tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    std::fs::write(plugin.join(tidegate_build::COMPONENT_FILE), built.bytes).unwrap();
    let rule = format!("+++\ncondition = '{}'\n+++\nWrite no scripts.\n", script.replace('\n', r"\n"));
    std::fs::write(rules.join("no-scripts.md"), rule).unwrap();
    // The limit of a call is ten minutes, for which no test waits.
    let toml = format!(
        "[rules]\nbuiltin_rules = false\n[[plugin]]\npath = {:?}\n\
         grants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n\
         [plugin.settings]\nonly = [\"ttsr_triggered\"]\nmode = \"observe\"\n\
         [plugin.limits]\ncallback_ms = 600000\nturn_ms = 3600000\n",
        plugin.display().to_string()
    );
    let operator =
        Operator::of_source(&SourceFile::new("tidegate.toml", toml)).unwrap_or_else(|wrong| panic!("{wrong}"));
    let host = Host::builder(operator).cache_dir(None).max_instances(8).user_rules(None).open().await.unwrap();
    let model = ScriptedModel::new([say(script), say("fine"), say("second")]);
    let options = SessionOptions::new(folder).model(model).tools(Arc::<Own>::clone(own)).without_builtin_tools();
    let session = host.session(options).await.unwrap();
    (host, session)
}

fn own() -> (Arc<Own>, mpsc::Sender<()>) {
    let (open, opened) = mpsc::channel();
    (Arc::new(Own { armed: AtomicBool::new(false), open: Mutex::new(opened), told: Mutex::default() }), open)
}

/// The reports of `ttsr_triggered` among what is queued.
fn reports(events: &mut Subscription) -> Vec<CallbackOutcome> {
    std::iter::from_fn(|| events.try_next()).filter_map(|event| report(event.kind)).collect()
}

fn report(kind: EventKind) -> Option<CallbackOutcome> {
    match kind {
        EventKind::ExtensionCallback(report) if report.callback == CallbackKind::TtsrTriggered => Some(report.outcome),
        _ => None,
    }
}

/// The guest never returns. Two turns end without it, and the session does: then the guest is stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_guest_that_never_returns_delays_no_turn_and_ends_with_the_session() {
    let (folder, (own, open)) = (tempfile::tempdir().unwrap(), own());
    let (_host, session) = session(folder.path(), "!loop", &own).await;
    // Nothing holds it up but itself.
    open.send(()).unwrap();
    let mut events = session.subscribe();
    let mut rules = session.subscribe_rules();
    for (input, answer) in [("go", "fine"), ("and more", "second")] {
        let report = session.prompt(input).report().await;
        assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, answer));
        let ended: Vec<CallbackOutcome> = reports(&mut events);
        let passed_by = |outcome: &CallbackOutcome| matches!(outcome, CallbackOutcome::Skipped(_));
        // Of the second turn there is the report that no rule fired in it.
        assert!(ended.iter().all(passed_by), "{input}: {ended:?}");
    }
    // Who subscribed, and the tools of the embedder, were told as well.
    let triggered = rules.next().await.unwrap();
    assert_eq!((triggered.action, triggered.matches[0].rule.as_str()), (Action::Interrupt, "no-scripts"));
    assert_eq!(own.told.lock().unwrap().as_slice(), [TtsrEvent::clone(&triggered)]);
    let injected = session.injected_rules();
    assert_eq!((injected.len(), injected[0].rule.as_str(), injected[0].turn), (1, "no-scripts", 0));

    session.close();
    session.closed().await;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = report(event.kind).or(last);
    }
    let stopped = CallbackOutcome::Ignored("it was stopped when the session ended, or its plugins changed".to_owned());
    assert_eq!(last, Some(stopped));
    assert!(rules.next().await.is_none(), "the subscription ends with the session");
}

/// What it writes after its turn is durable when it ends, and belongs to the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_late_guest_writes_is_durable_when_it_ends() {
    let (folder, (own, open)) = (tempfile::tempdir().unwrap(), own());
    let (host, session) = session(folder.path(), "!tools\n!state-set late 1", &own).await;
    let mut events = session.subscribe();
    assert_eq!(session.prompt("go").report().await.text, "fine");
    assert_eq!(reports(&mut events), [], "it has not ended");
    let stored = || async { host.state_admin().show(session.id()).await.unwrap() };
    assert!(stored().await.is_none_or(|stored| stored.summary.plugins.is_empty()));
    open.send(()).unwrap();
    let ended = loop {
        if let Some(outcome) = report(events.next().await.unwrap().kind) {
            break outcome;
        }
    };
    assert_eq!(ended, CallbackOutcome::Passed);
    // Its state is on the way to the store: no turn comes that would wait for it.
    while stored().await.is_none_or(|stored| stored.summary.plugins.is_empty()) {
        tokio::task::yield_now().await;
    }
    let keys: Vec<String> = stored().await.unwrap().states[0].1.entries.iter().map(|entry| entry.key.clone()).collect();
    assert_eq!(keys, ["late"]);
}
