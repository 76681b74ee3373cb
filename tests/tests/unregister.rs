//! Case 11: a plugin that is unregistered while its callback runs. The callback finishes; then the plugin and its state are gone. And a plugin that
//! the configuration does not name any more when its session is continued.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tidegate::diagnostic::SourceFile;
use tidegate::metrics::Metrics;
use tidegate::tool::{PreparedCall, ToolCall, ToolSpec, Tools};
use tidegate::{EventKind, Host, Operator, SessionId, SessionOptions, TurnStatus};
use tidegate_kit::{EchoTools, Frozen, ScriptedModel, live, say};

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

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The sessions of a workspace, whose configuration changes between them.
struct Place {
    folder: TempDir,
    clock: Arc<Frozen>,
}

/// What a turn has reported of absent plugins, and the keys that the guest has left.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    unregistered: Vec<String>,
    notices: Vec<String>,
    keys: u64,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/conformance");
        std::fs::create_dir(folder.path().join("plugin")).unwrap();
        std::fs::copy(source.join("plugin.toml"), folder.path().join("plugin/plugin.toml")).unwrap();
        let built = tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
        std::fs::write(folder.path().join("plugin").join(tidegate_build::COMPONENT_FILE), built.bytes).unwrap();
        Self { folder, clock: Arc::new(Frozen(1_000_000_000_000.into())) }
    }

    /// Continues the session with these further lines of `[state]`, or behind it, in `tidegate.toml`.
    async fn turn(&self, toml: &str, answer: &str) -> Seen {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let toml = format!(
            "[rules]\nbuiltin_rules = false\n[transcript]\nenabled = true\nfolder = {:?}\n\
             [state]\nbackend = \"disk\"\nfolder = {:?}\n{toml}",
            path("sessions"),
            path("state")
        );
        let operator =
            Operator::of_source(&SourceFile::new("tidegate.toml", toml)).unwrap_or_else(|wrong| panic!("{wrong}"));
        let builder = Host::builder(operator).cache_dir(None).max_instances(4).user_rules(None);
        let host = builder.clock(Arc::<Frozen>::clone(&self.clock)).open().await.unwrap();
        let options = SessionOptions::new(self.folder.path()).id(SessionId::new("s"));
        let session = host.session(options.model(ScriptedModel::new([say(answer)]))).await.unwrap();
        let (mut turn, mut seen) = (session.prompt("go"), Seen::default());
        while let Some(event) = turn.next().await {
            match event.kind {
                EventKind::ExtensionUnregistered { plugin, .. } => seen.unregistered.push(plugin.to_string()),
                EventKind::Notice { message } => seen.notices.push(message),
                _ => {}
            }
        }
        assert_eq!(turn.report().await.status, TurnStatus::Completed);
        session.close();
        session.closed().await;
        let stored = host.state_admin().show(&SessionId::new("s")).await.unwrap();
        seen.keys = stored.iter().flat_map(|stored| &stored.summary.plugins).map(|plugin| plugin.keys).sum();
        seen
    }

    fn plugin(&self, more: &str) -> String {
        format!(
            "[[plugin]]\npath = {:?}\n{more}grants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n\
             [plugin.settings]\nonly = [\"on_plain_text\"]\nunit = \"whole\"\nmode = \"observe\"\n",
            self.folder.path().join("plugin").display().to_string()
        )
    }

    fn pass(&self, days: u64) {
        self.clock.0.fetch_add(days * DAY_MS, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_a_plugin_that_is_not_configured_any_more_is_deleted_after_a_while() {
    let place = Place::new();
    let nothing = |keys| Seen { keys, ..Seen::default() };
    assert_eq!(place.turn(&place.plugin(""), "!state-set-session k v").await, nothing(1));
    // It is disabled, and stays so for longer than any state of an absent plugin is kept.
    place.pass(8);
    assert_eq!(place.turn(&place.plugin("enabled = false\n"), "one").await, nothing(1));
    // It is not there any more: that is said once, with what is kept of it and for how long.
    let absent = place.turn("", "two").await;
    assert_eq!((absent.unregistered.len(), absent.keys), (0, 1));
    let [notice] = absent.notices.as_slice() else { panic!("{absent:?}") };
    for part in ["`conformance`", "7 days", "1 key"] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    place.pass(6);
    assert_eq!(place.turn("", "three").await, nothing(1));
    // It comes back, and its time begins anew.
    assert_eq!(place.turn(&place.plugin(""), "four").await, nothing(1));
    place.pass(6);
    assert_eq!(place.turn("", "five").await.notices.len(), 1);
    place.pass(6);
    assert_eq!(place.turn("", "six").await, nothing(1));
    place.pass(1);
    let gone = place.turn("", "seven").await;
    assert_eq!((gone.unregistered.as_slice(), gone.keys), (["conformance".to_owned()].as_slice(), 0));
    assert_eq!(place.turn("", "eight").await, nothing(0));
    // Its version is gone as well: it begins anew.
    assert_eq!(place.turn(&place.plugin(""), "!state-set-session k v").await, nothing(1));
    // Somebody wants no time at all.
    let at_once = place.turn("absent_days = 0\n", "nine").await;
    assert_eq!((at_once.unregistered.as_slice(), at_once.keys), (["conformance".to_owned()].as_slice(), 0));
}

/// Which plugins are disabled cannot be known where one of them cannot be read: nothing is noted and nothing deleted.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_where_a_disabled_plugin_cannot_be_read() {
    let place = Place::new();
    assert_eq!(place.turn(&place.plugin(""), "!state-set-session k v").await.keys, 1);
    let toml = format!("absent_days = 0\n{}", place.plugin("enabled = false\n"));
    let manifest = place.folder.path().join("plugin/plugin.toml");
    let moved = place.folder.path().join("plugin/moved.toml");
    std::fs::rename(&manifest, &moved).unwrap();
    let seen = place.turn(&toml, "one").await;
    assert_eq!((seen.unregistered.len(), seen.keys), (0, 1), "{seen:?}");
    std::fs::rename(&moved, &manifest).unwrap();
    assert_eq!(place.turn(&toml, "two").await, Seen { keys: 1, ..Seen::default() });
}
