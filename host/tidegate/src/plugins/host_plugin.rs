//! A plugin of a host in the version that is loaded, and how two versions differ.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use config::{ConfiguredPlugin, FileStamp, Operator, PluginEntry};
use flow::{Diagnostic, DiagnosticCode as Code, PluginId, Registered, RegistrationAction};
use sandbox::Interface;
use turn::sources::ExtensionChange;

use crate::host::load;
use crate::plugins::stale;
use crate::{Engine, HostError};

/// A plugin of a host.
#[derive(Clone)]
pub(crate) struct HostPlugin {
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

/// What the file system reports of the files of a plugin.
#[derive(Clone, Debug)]
pub(crate) struct Files {
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

    /// Why nothing but the program changes it while the program runs; `None`: it does not guard. What the model runs can write its
    /// files, and the operator's, and must not end what guards against it.
    pub(crate) fn guards(&self) -> Option<&'static str> {
        if self.plugin.entry.required {
            return Some("it is required");
        }
        let mut callbacks = self.component.iter().flat_map(|component| &component.registration().callbacks);
        let guards = callbacks.any(Registered::guards);
        guards.then_some("it withholds what it did not check, or has what was shown kept")
    }

    /// What is wrong with it and does not keep it from being used.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Diagnostic> {
        stale::warning(&self.plugin).into_iter().chain(self.lacks_migration())
    }

    /// A warning for a plugin whose state can be of an older format that nothing migrates.
    fn lacks_migration(&self) -> Option<Diagnostic> {
        let (manifest, component) = (&self.plugin.manifest, self.component.as_ref()?);
        let keeps_state = component.imports().contains(&Interface::State);
        let place = manifest.state_version_place.clone().filter(|_| keeps_state && !component.migrates())?;
        let version = manifest.state_version;
        let message = format!("its `state_version` is {version}, and its component exports no `migration`");
        let warning = Diagnostic::warning(Code::PluginNoMigration, message).about_plugin(&manifest.id);
        let help = "export it (`Migrate` in the SDK): otherwise calls of the plugin fail in each session with state of an older version";
        Some(warning.at(place, "state of older versions cannot be used").help(help))
    }

    /// Its files as they are now, where they may have changed since it was loaded.
    pub(crate) fn touched(&self) -> Option<Files> {
        let now = Files::of(&self.plugin.entry, self.plugin.manifest.component.as_ref());
        let settled = now.settled_since(&self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        (!settled).then_some(now)
    }

    /// Whether its files are others than those that it was loaded from. Nothing of them is looked at, and files that cannot be read are others.
    pub(crate) fn has_other_files(&self) -> bool {
        let manifest = fs::read_to_string(self.plugin.entry.folder.join(config::MANIFEST_FILE));
        let is_other = |component: &PathBuf| config::file_digest(component).ok().as_deref() != self.digest();
        manifest.ok().as_deref() != Some(&*self.plugin.manifest.source.text)
            || self.plugin.manifest.component.as_ref().is_some_and(is_other)
    }

    /// The files were read, and are those that it was loaded from. It is the only thing that is remembered of a look: files that
    /// could not be used, or were loaded for a change that was refused, are read again at the next one.
    pub(crate) fn is_loaded_from(&self, files: Files) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// Why a newer version cannot be used, where there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        self.has_manifest_of(other) && self.has_component_of(other) && self.has_configuration_of(other)
    }

    /// What is different from the version before it, as the reason of a reload.
    fn difference(&self, prior: &Self) -> &'static str {
        match (self.has_component_of(prior), self.has_manifest_of(prior)) {
            (false, true) => "its component changed",
            (true, false) => "its manifest changed",
            (false, false) => "its component and its manifest changed",
            (true, true) => "its configuration changed",
        }
    }

    pub(crate) fn has_manifest_of(&self, other: &Self) -> bool {
        self.plugin.manifest.source.text == other.plugin.manifest.source.text
    }

    pub(crate) fn has_component_of(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }

    fn has_configuration_of(&self, other: &Self) -> bool {
        is_same_entry(&self.plugin.entry, &other.plugin.entry) && self.plugin.limits == other.plugin.limits
    }

    /// The SHA-256 of its component, where it has one.
    pub(crate) fn digest(&self) -> Option<&str> {
        self.component.as_ref().map(sandbox::Plugin::digest)
    }
}

/// Whether two entries are equal, wherever in a file they are.
pub(crate) fn is_same_entry(a: &PluginEntry, b: &PluginEntry) -> bool {
    let bare = |entry: &PluginEntry| {
        let settings = entry.settings.iter().map(|(name, (value, _))| (name.clone(), (value.clone(), None)));
        PluginEntry { place: None, settings: settings.collect(), ..entry.clone() }
    };
    bare(a) == bare(b)
}

/// What is different for a session that used the plugins `before` of the host's `known_before`, and uses `after` of `known` from now
/// on. Of `known_before`, those count that the session can have used at some time.
pub(crate) fn changes(
    before: &[HostPlugin],
    known_before: &[HostPlugin],
    after: &[HostPlugin],
    known: &[HostPlugin],
) -> Vec<ExtensionChange> {
    let same = |one: &HostPlugin, all: &[HostPlugin]| all.iter().find(|other| other.serial == one.serial).cloned();
    let change = |host_plugin: &HostPlugin, action, reason: &str| ExtensionChange {
        plugin: host_plugin.loaded.id().clone(),
        version: host_plugin.loaded.plugin.manifest.version.clone(),
        action,
        reason: reason.to_owned(),
    };
    // One that the session did not use last can have state in it too.
    let gone = known_before.iter().filter(|one| same(one, known).is_none());
    let gone = gone.map(|one| change(one, RegistrationAction::Unregister, "the host does not have it any more"));
    let disabled = before.iter().filter(|one| same(one, known).is_some() && same(one, after).is_none());
    let disabled = disabled.map(|one| change(one, RegistrationAction::Disable, "it is disabled"));
    let came = after.iter().filter_map(|one| match same(one, before) {
        Some(prior) if Arc::ptr_eq(&prior.loaded, &one.loaded) => None,
        Some(prior) => Some(change(one, RegistrationAction::Reload, one.loaded.difference(&prior.loaded))),
        None if same(one, known_before).is_some() => Some(change(one, RegistrationAction::Enable, "it is enabled")),
        None => Some(change(one, RegistrationAction::Register, "it is new")),
    });
    gone.chain(disabled).chain(came).collect()
}
