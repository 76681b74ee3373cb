//! The guests and plugins that the benches run, built and loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use flow::ports::{Clock, EventSink, Extensions, SessionInfo, SessionView, StateStore};
use flow::{EventKind, Message, PluginId, Power, Registration, RunPosition, SessionId, ToolSpec};
use guard::{Caller, Segments};
use sandbox::{ComponentSource, EngineOptions, Plugin, PluginSource, Sandbox};
use store::{MemoryStore, StoreOptions};

/// The top folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Builds a guest from its source, or finds it built.
pub(crate) fn build(folder: &str) -> Vec<u8> {
    let folder = root().join(folder);
    tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes
}

/// Copies plugins of this repository, built, to a folder. Returns the tables for its `tidegate.toml`, with all powers granted.
pub(crate) fn place_plugins(place: &Path, names: &[&str]) -> String {
    let entry = |name: &&str| {
        let (from, to) = (root().join("plugins").join(name), place.join(name));
        std::fs::create_dir_all(&to).unwrap();
        std::fs::copy(from.join("plugin.toml"), to.join("plugin.toml")).unwrap();
        std::fs::write(to.join("component.wasm"), build(&format!("plugins/{name}"))).unwrap();
        let grants = match *name {
            "mask-secrets" | "redact-secrets" => r#"["state"]"#,
            "session-notes" => r#"["state", "prompt", "provide-tools"]"#,
            _ => r#"["state", "prompt"]"#,
        };
        format!("[[plugin]]\npath = \"{name}\"\ngrants = {grants}\n\n")
    };
    names.iter().map(entry).collect()
}

/// An engine with capacity for `instances`, with a pool: what is measured without one is something else.
pub(crate) fn sandbox(instances: u32) -> Sandbox {
    let sandbox = Sandbox::new(&EngineOptions { max_instances: instances, ..EngineOptions::default() }).unwrap();
    assert_eq!(sandbox.report(), &sandbox::EngineReport::default(), "address space for the pool is there");
    sandbox
}

/// A store in memory, as a host without settings has it.
pub(crate) fn store() -> Arc<dyn StateStore> {
    Arc::new(MemoryStore::new(StoreOptions::default(), Arc::new(system::SystemClock)))
}

/// Loads a component with all powers granted.
pub(crate) fn load(sandbox: &Sandbox, id: &str, component: Vec<u8>) -> Plugin {
    let id: PluginId = id.parse().unwrap();
    let mut source = PluginSource::new(id, ComponentSource::Bytes(component.into()));
    source.asked = Power::ALL.iter().copied().collect();
    source.granted = Power::ALL.iter().copied().collect();
    sandbox.load(source).unwrap()
}

/// A new turn whenever it is asked for: a plugin has a time limit for all its calls of one turn.
fn turn() -> u32 {
    static TURN: AtomicU32 = AtomicU32::new(1);
    TURN.fetch_add(1, Ordering::Relaxed)
}

/// The stage that splits a model's text for these extensions, at the start of a message, without subscribers.
pub(crate) fn splitter(registered: Arc<[Registration]>, own: Arc<dyn Extensions>, clock: Arc<dyn Clock>) -> Segments {
    Segments::new(Arc::new(Caller::new(registered, own, Arc::new(turn::Hub::new(clock)))))
}

/// A session as plugins see it, with nothing in it, whose events go nowhere.
#[derive(Debug)]
pub(crate) struct EmptyStage;

impl EventSink for EmptyStage {
    fn emit(&self, _kind: EventKind) {}
}

impl SessionView for EmptyStage {
    fn info(&self) -> SessionInfo {
        SessionInfo {
            id: SessionId::new("s"),
            place: RunPosition { turn: turn(), step: 1, attempt: 1 },
            provider: "bench".into(),
            model: "bench".into(),
            workspace: String::new(),
            agent: "main".into(),
        }
    }

    fn history_len(&self) -> usize {
        0
    }

    fn history(&self, _from: usize, _count: usize) -> Vec<(u64, Arc<Message>)> {
        Vec::new()
    }

    fn tools(&self) -> Vec<ToolSpec> {
        Vec::new()
    }
}
