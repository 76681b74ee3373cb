//! A plugin of a host in the version that is loaded, and how two versions differ.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use config::{ConfiguredPlugin, FileStamp, Operator, PluginEntry};
use flow::{PluginId, RegistrationAction};
use turn::ports::ExtensionChange;

use crate::{Engine, HostError, load};

/// A plugin of a host.
#[derive(Clone)]
pub(crate) struct Record {
    /// The number of its registration: one that was removed and came back has another.
    pub(crate) serial: u64,
    /// Whether sessions may use it.
    pub(crate) enabled: bool,
    pub(crate) loaded: Arc<LoadedPlugin>,
}

/// A plugin with its component, checked and compiled.
pub(crate) struct LoadedPlugin {
    pub(crate) plugin: ConfiguredPlugin,
    /// `None` for a plugin of rules and prompts.
    pub(crate) component: Option<sandbox::Plugin>,
    /// Its files when they were last read.
    seen: Mutex<Files>,
    /// Why a newer version cannot be used, as it was last reported.
    problem: Mutex<Option<String>>,
}

/// What the system says of the files of a plugin.
#[derive(Clone, Debug)]
struct Files {
    manifest: FileStamp,
    component: Option<FileStamp>,
}

impl Files {
    fn of(entry: &PluginEntry, component: Option<&PathBuf>) -> Self {
        let manifest = FileStamp::of_path(&entry.folder.join(config::MANIFEST_FILE));
        Self { manifest, component: component.map(|path| FileStamp::of_path(path)) }
    }

    fn settled_since(&self, before: &Self) -> bool {
        let component = match (&self.component, &before.component) {
            (Some(now), Some(before)) => now.settled_since(before),
            (now, before) => now.is_none() && before.is_none(),
        };
        component && self.manifest.settled_since(&before.manifest)
    }
}

impl LoadedPlugin {
    /// Reads the manifest, compiles the component and has it register. Blocks.
    ///
    /// # Errors
    /// The first of these that fails.
    pub(crate) fn load(operator: &Operator, entry: &PluginEntry, engine: Option<&Engine>) -> Result<Self, HostError> {
        let manifest = FileStamp::of_path(&entry.folder.join(config::MANIFEST_FILE));
        Self::of_plugin(operator.load_plugin(entry)?, manifest, engine)
    }

    /// As [`LoadedPlugin::load`], where the manifest was read since `manifest` was taken.
    pub(crate) fn of_plugin(
        plugin: ConfiguredPlugin,
        manifest: FileStamp,
        engine: Option<&Engine>,
    ) -> Result<Self, HostError> {
        let stamp = plugin.manifest.component.as_ref().map(|path| FileStamp::of_path(path));
        let component = load::component(engine, &plugin)?;
        let seen = Mutex::new(Files { manifest, component: stamp });
        Ok(Self { plugin, component, seen, problem: Mutex::default() })
    }

    pub(crate) fn id(&self) -> &PluginId {
        &self.plugin.manifest.id
    }

    /// Whether its files may have been touched since they were last asked about. From now on this is the last time.
    pub(crate) fn was_touched(&self) -> bool {
        let now = Files::of(&self.plugin.entry, self.plugin.manifest.component.as_ref());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = now.settled_since(&seen);
        *seen = now;
        !settled
    }

    /// A newer version cannot be used, for this reason; `None`: there is none. Returns whether that is to be reported.
    pub(crate) fn note_problem(&self, problem: Option<&str>) -> bool {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = known.as_deref() != problem;
        *known = problem.map(str::to_owned);
        is_new && problem.is_some()
    }

    /// Whether the other one runs the same component under the same manifest and configuration.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let digest = |one: &Self| one.component.as_ref().map(|component| component.digest().to_owned());
        self.plugin.manifest.source.text == other.plugin.manifest.source.text
            && is_same_entry(&self.plugin.entry, &other.plugin.entry)
            && self.plugin.limits == other.plugin.limits
            && digest(self) == digest(other)
    }
}

/// Whether two entries say the same, wherever in a file they are.
pub(crate) fn is_same_entry(a: &PluginEntry, b: &PluginEntry) -> bool {
    let bare = |entry: &PluginEntry| {
        let settings = entry.settings.iter().map(|(name, (value, _))| (name.clone(), (value.clone(), None)));
        PluginEntry { place: None, settings: settings.collect(), ..entry.clone() }
    };
    bare(a) == bare(b)
}

/// What is different for a session that went by the plugins `before` and goes by `after` from now on. `known_before` and `known` are
/// all plugins that the host had and has, used by the session or not.
pub(crate) fn changes(
    before: &[Record],
    known_before: &[Record],
    after: &[Record],
    known: &[Record],
) -> Vec<ExtensionChange> {
    let same = |one: &Record, all: &[Record]| -> Option<Record> {
        all.iter().find(|other| other.serial == one.serial).cloned()
    };
    let change = |record: &Record, action, reason: &str| ExtensionChange {
        plugin: record.loaded.id().clone(),
        version: record.loaded.plugin.manifest.version.clone(),
        action,
        reason: reason.to_owned(),
    };
    let left = before.iter().filter(|one| same(one, after).is_none()).map(|one| match same(one, known) {
        Some(_) => change(one, RegistrationAction::Disable, "it is disabled"),
        None => change(one, RegistrationAction::Unregister, "the host does not have it any more"),
    });
    let came = after.iter().filter_map(|one| match same(one, before) {
        Some(prior) if Arc::ptr_eq(&prior.loaded, &one.loaded) => None,
        Some(_) => Some(change(one, RegistrationAction::Reload, "its files or its configuration changed")),
        None if same(one, known_before).is_some() => Some(change(one, RegistrationAction::Enable, "it is enabled")),
        None => Some(change(one, RegistrationAction::Register, "it is new")),
    });
    left.chain(came).collect()
}
