//! A workspace with a plugin, a host that follows its files, and sessions whose model says scripts for the plugin.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use tempfile::TempDir;
use tidegate::event::StreamKind;
use tidegate::model::{Delta, Model, ModelError, ModelStream, StopReason};
use tidegate::plugin::EngineOptions;
use tidegate::prompt::Prompt;
use tidegate::{BoxFuture, Engine, EventKind, Host, HostBuilder, Operator, PluginId, Session, SessionOptions};

/// The component of the guest that does what the text it is given says.
pub(crate) fn component() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/conformance");
    BYTES
        .get_or_init(|| tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes)
}

pub(crate) fn manifest() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/conformance/plugin.toml")).unwrap()
}

/// One engine for all tests: each sets address space aside.
fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        Engine::new(&EngineOptions { cache_dir: None, max_instances: 64, ..EngineOptions::default() }).unwrap()
    })
}

/// Says a script for the plugin, one a turn, and keeps what it was sent.
#[derive(Default)]
pub(crate) struct Says {
    pub(crate) scripts: Mutex<VecDeque<String>>,
    pub(crate) prompts: Mutex<Vec<String>>,
}

struct Text(VecDeque<Delta>);

impl Model for Says {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "says"
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let system: Vec<&str> = prompt.system.iter().map(|block| block.text.as_str()).collect();
        self.prompts.lock().unwrap().push(system.join("\n"));
        let text = self.scripts.lock().unwrap().pop_front().unwrap();
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

/// A workspace with a plugin in it, and the operator's file that names it.
pub(crate) struct Place(pub(crate) TempDir);

impl Place {
    /// `entry`: what the operator says of the plugin, besides where it is and what it is granted.
    pub(crate) fn new(entry: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.plugin()).unwrap();
        fs::write(place.plugin().join("component.wasm"), component()).unwrap();
        place.write_manifest(&manifest());
        place.write_operator(&Self::entry(entry));
        place
    }

    pub(crate) fn entry(more: &str) -> String {
        format!(
            "[rules]\nbuiltin_rules = false\nuser_rules = false\n\
             [[plugin]]\npath = \"plugin\"\ngrants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n{more}\n\
             [plugin.settings]\nonly = [\"on_plain_text\"]\nunit = \"whole\"\n"
        )
    }

    pub(crate) fn plugin(&self) -> std::path::PathBuf {
        self.0.path().join("plugin")
    }

    pub(crate) fn write_manifest(&self, text: &str) {
        fs::write(self.plugin().join("plugin.toml"), text).unwrap();
    }

    pub(crate) fn write_operator(&self, text: &str) {
        fs::write(self.operator_file(), text).unwrap();
    }

    /// Dates all files as written long ago: nothing can have changed without a sign.
    pub(crate) fn settle(&self) {
        for file in [self.operator_file(), self.plugin().join("plugin.toml"), self.plugin().join("component.wasm")] {
            let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
            if let Ok(file) = fs::File::options().write(true).open(file) {
                file.set_modified(long_ago).unwrap();
            }
        }
    }

    pub(crate) fn operator_file(&self) -> std::path::PathBuf {
        self.0.path().join("tidegate.toml")
    }

    /// A host that follows the operator's file.
    pub(crate) async fn host(&self) -> Host {
        self.builder().open().await.unwrap()
    }

    pub(crate) fn builder(&self) -> HostBuilder {
        let file = self.operator_file();
        let operator = Operator::load(&file).unwrap_or_else(|wrong| panic!("{wrong}"));
        let builder = Host::builder(operator).engine(engine()).user_rules(None);
        builder.follow(move || Operator::load(&file).map_err(|wrong| wrong.in_one_line()))
    }

    pub(crate) async fn session(&self, host: &Host) -> Run {
        let model = Arc::new(Says::default());
        let session = host.session(SessionOptions::new(self.0.path()).model(Arc::<Says>::clone(&model))).await.unwrap();
        Run { session, model }
    }
}

/// A session and what its model says.
pub(crate) struct Run {
    pub(crate) session: Session,
    pub(crate) model: Arc<Says>,
}

impl Run {
    /// One turn: what is shown of the script, and what changed.
    pub(crate) async fn turn(&self, script: &str) -> (String, Vec<String>) {
        self.model.scripts.lock().unwrap().push_back(script.to_owned());
        let mut turn = self.session.prompt("go");
        let mut changes = Vec::new();
        while let Some(event) = turn.next().await {
            changes.extend(match event.kind {
                EventKind::ExtensionRegistered { plugin, version, action, .. } => {
                    Some(format!("{action} {plugin} {version}"))
                }
                EventKind::ExtensionUnregistered { plugin, action, .. } => Some(format!("{action} {plugin}")),
                EventKind::ExtensionState { operation, .. } if operation == "clear" => Some(operation),
                EventKind::Notice { message } => Some(message),
                _ => None,
            });
        }
        (turn.report().await.text, changes)
    }

    /// One turn in which nothing changes.
    pub(crate) async fn say(&self, script: &str) -> String {
        let (text, changes) = self.turn(script).await;
        assert_eq!(changes, [""; 0], "{script}");
        text
    }
}

/// What `!count` says in the first turn of an instance: it is called with the input and the output before.
pub(crate) const NEW: &str = "3";
/// The same in its second turn.
pub(crate) const KEPT: &str = "6";

pub(crate) fn id(plugin: &str) -> PluginId {
    plugin.parse().unwrap()
}

/// The first turn registers the plugin.
pub(crate) async fn started(place: &Place, host: &Host) -> Run {
    let run = place.session(host).await;
    let first = run.turn("!state-set k kept").await;
    assert_eq!(first, ("()".to_owned(), vec!["register conformance 0.1.0".to_owned()]));
    run
}
