//! The plugins that a host is to have: what the operator's file and the embedder ask for, and what is loaded where that has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use config::{FileStamp, Operator, PluginEntry};
use flow::PluginId;

use crate::HostError;
use crate::host::load;
use crate::host::loaded::Shared;
use crate::plugins::host_plugin::{HostPlugin, LoadedPlugin, is_same_entry};

/// Reads the operator's settings again, with everything that wins over the file. The error is one line.
pub(crate) type ReadOperator = Arc<dyn Fn() -> Result<Operator, String> + Send + Sync>;

/// What the operator and the embedder want.
#[derive(Clone)]
pub(crate) struct Desired {
    operator: Operator,
    follow: Option<Follow>,
    /// Registered by the embedder, in this order after those of the operator.
    added: Vec<PluginEntry>,
    /// By folder: entries of the operator that the embedder has changed, each with the entry as it was.
    changed: BTreeMap<PathBuf, (PluginEntry, PluginEntry)>,
    /// Folders of entries of the operator that the embedder has unregistered.
    removed: BTreeSet<PathBuf>,
    disabled: BTreeSet<PluginId>,
    next_serial: u64,
    /// Why the operator's file cannot be used, as it was last reported.
    pub(crate) problem: Option<String>,
}

/// The operator's files, where they are followed: those that were read, and those that would be read if they were there.
#[derive(Clone)]
struct Follow {
    read: ReadOperator,
    files: Vec<(PathBuf, FileStamp)>,
}

impl Follow {
    fn new(read: ReadOperator, operator: &Operator) -> Self {
        let read_from = operator.layers.iter().map(|layer| &layer.source.path);
        let files = read_from.chain(&operator.absent).map(|path| (path.clone(), FileStamp::of_path(path)));
        Self { read, files: files.collect() }
    }

    /// Whether nothing can have happened to the files since the last look.
    fn is_settled(&mut self) -> bool {
        let mut settled = true;
        for (path, seen) in &mut self.files {
            let now = FileStamp::of_path(path);
            settled &= now.settled_since(seen) || (now.is_absent() && seen.is_absent());
            *seen = now;
        }
        settled
    }
}

impl Desired {
    /// What `shared` is made of, with nothing that the embedder asks for yet. `follow` reads the operator's settings again where their
    /// file was edited.
    pub(crate) fn new(shared: &Shared, follow: Option<ReadOperator>) -> Self {
        let operator = shared.operator.clone();
        let follow = follow.map(|read| Follow::new(read, &operator));
        Self {
            operator,
            follow,
            added: Vec::new(),
            changed: BTreeMap::new(),
            removed: BTreeSet::new(),
            disabled: BTreeSet::new(),
            problem: None,
            next_serial: shared.host_plugins.iter().map(|host_plugin| host_plugin.serial + 1).max().unwrap_or(0),
        }
    }

    /// Looks at the files, and loads what differs from `before`; `None` where nothing does, or where it cannot be used.
    pub(crate) fn look(&mut self, before: &Arc<Shared>, problems: &mut Vec<String>) -> Option<Shared> {
        // Where the workspace names a plugin, its files were trusted together with the settings: others may be trusted by now.
        let is_touched = |one: &HostPlugin| one.loaded.plugin.entry.trusted.is_some() && one.loaded.touched().is_some();
        let is_touched = before.host_plugins.iter().any(is_touched);
        let loaded = match self.reread(before, is_touched, problems) {
            // The edited file counts as a whole, or not at all.
            Some(edited) => {
                // They are true only of a file that is used.
                let mut notes = Vec::new();
                let operator = self.with_fixed_parts(edited, &mut notes);
                let mut next = Self { operator, ..self.clone() };
                next.drop_overridden(&mut notes);
                let loaded = next.load(before, problems);
                if loaded.is_ok() {
                    problems.append(&mut notes);
                    *self = Self { problem: None, ..next };
                }
                loaded
            }
            None => self.load(before, problems),
        };
        loaded.unwrap_or_else(|error| {
            self.refuse("used", &error.in_one_line(), problems);
            None
        })
    }

    /// Registers a plugin after all others.
    pub(crate) fn add(&mut self, entry: PluginEntry) {
        // Where the operator's file names the folder too, that entry stays removed.
        self.added.push(entry);
    }

    /// Puts an entry in the place of the one with its folder.
    pub(crate) fn replace(&mut self, entry: PluginEntry) {
        match self.added.iter_mut().find(|added| added.folder == entry.folder) {
            Some(added) => *added = entry,
            None => {
                let own = self.operator.plugins.iter().find(|own| own.folder == entry.folder).unwrap_or(&entry);
                self.changed.insert(entry.folder.clone(), (own.clone(), entry));
            }
        }
    }

    /// Unregisters the plugin of this folder.
    pub(crate) fn remove(&mut self, host_plugin: &HostPlugin) {
        let folder = &host_plugin.loaded.plugin.entry.folder;
        self.added.retain(|added| added.folder != *folder);
        self.changed.remove(folder);
        self.disabled.remove(host_plugin.loaded.id());
        let mut own = self.operator.plugins.iter().chain(&self.operator.disabled);
        if own.any(|entry| entry.folder == *folder) {
            self.removed.insert(folder.clone());
        }
    }

    /// Whether the operator's file switches the plugin of this entry off.
    pub(crate) fn is_switched_off(&self, entry: &PluginEntry) -> bool {
        self.operator.disabled.iter().any(|off| off.folder == entry.folder)
    }

    /// Switches a plugin on or off.
    pub(crate) fn set_enabled(&mut self, plugin: &PluginId, enabled: bool) {
        if enabled {
            self.disabled.remove(plugin);
        } else {
            self.disabled.insert(plugin.clone());
        }
    }

    /// The operator's settings where one of their files was edited; `None` where none was, or they cannot be read, which is a problem.
    /// `is_touched`: files that were trusted with them may have changed.
    fn reread(&mut self, before: &Shared, is_touched: bool, problems: &mut Vec<String>) -> Option<Operator> {
        let follow = self.follow.as_mut()?;
        // What kept an edited file from being used can be gone although the file is the same.
        let is_settled = follow.is_settled() && self.problem.is_none();
        if is_settled && !is_touched {
            return None;
        }
        let read = Arc::clone(&follow.read);
        let layers = &self.operator.layers;
        if let Some(gone) = layers.iter().map(|layer| &layer.source.path).find(|path| !path.exists()) {
            // Without a file there would be no plugins, and what they kept would be deleted.
            let why = format!("{} is not there", gone.display());
            self.refuse("read", &why, problems);
            return None;
        }
        match read() {
            Ok(operator) if self.is_as_read(&operator) => {
                self.problem = None;
                None
            }
            Ok(operator) => {
                if let Some((changed, guards)) = self.changed_guard(&operator, before) {
                    let folder = changed.folder.display();
                    let why = format!(
                        "the plugin in {folder} guards ({guards}), so its entry stays as it is until the program is restarted"
                    );
                    self.refuse("used", &why, problems);
                    return None;
                }
                Some(operator)
            }
            // What changed is a plugin, which is reported as such.
            Err(_) if is_settled => None,
            Err(found) => {
                self.refuse("read", &found, problems);
                None
            }
        }
    }

    /// Whether the files say what they said, and what was trusted with them is the same.
    fn is_as_read(&self, now: &Operator) -> bool {
        let trusted = |operator: &Operator| -> Vec<_> {
            operator.plugins.iter().map(|entry| (entry.folder.clone(), entry.trusted.clone())).collect()
        };
        now.layers == self.operator.layers && trusted(now) == trusted(&self.operator)
    }

    /// Where the operator edits an entry, it counts, and not what the embedder had made of it: a power that is revoked must be gone.
    fn drop_overridden(&mut self, problems: &mut Vec<String>) {
        let own = &self.operator.plugins;
        let is_edited = |folder: &PathBuf, before: &PluginEntry| {
            own.iter().any(|entry| entry.folder == *folder && !is_same_entry(entry, before))
        };
        self.changed.retain(|folder, (before, _)| {
            let edited = is_edited(folder, before);
            if edited {
                let folder = folder.display();
                problems.push(format!(
                    "the entry of the plugin in {folder} was edited; it replaces what the program had changed of it"
                ));
            }
            !edited
        });
    }

    /// The entry of a plugin that guards, and why it does, which an edited file removes, switches off or changes.
    fn changed_guard(&self, edited: &Operator, before: &Shared) -> Option<(&PluginEntry, &'static str)> {
        let is_kept = |guard: &PluginEntry| edited.plugins.iter().any(|entry| is_same_wish(entry, guard));
        let guards = |entry: &PluginEntry| {
            let mut loaded = before.host_plugins.iter().map(|host_plugin| &host_plugin.loaded);
            loaded.find(|loaded| loaded.plugin.entry.folder == entry.folder)?.guards()
        };
        let changed = self.operator.plugins.iter().filter(|entry| !is_kept(entry));
        changed.filter_map(|entry| Some((entry, guards(entry)?))).next()
    }

    /// An edited file with the parts that stay as they were: those that the host was opened with, and those that decide what the
    /// model is allowed to do.
    fn with_fixed_parts(&self, edited: Operator, problems: &mut Vec<String>) -> Operator {
        let own = &self.operator;
        let parts = [
            ("[provider]", edited.provider != own.provider),
            ("[state]", edited.state != own.state),
            ("[transcript]", edited.transcript != own.transcript),
            ("[compaction]", edited.compaction != own.compaction),
            ("[turn]", edited.turn != own.turn),
            ("[tools]", edited.tools != own.tools),
            ("[rules]", edited.rules != own.rules || !edited.rule_folders.is_same(&own.rule_folders)),
        ];
        let changed: Vec<&str> = parts.into_iter().filter(|(_, changed)| *changed).map(|(part, _)| part).collect();
        if !changed.is_empty() {
            problems.push(format!("changes of {} take effect when the program is restarted", changed.join(", ")));
        }
        Operator {
            provider: own.provider.clone(),
            state: own.state.clone(),
            transcript: own.transcript.clone(),
            compaction: own.compaction,
            turn: own.turn,
            tools: own.tools.clone(),
            rules: own.rules.clone(),
            rule_folders: own.rule_folders.clone(),
            ..edited
        }
    }

    /// The operator's file cannot be read, or not be used: reported once.
    fn refuse(&mut self, what: &str, error: &str, problems: &mut Vec<String>) {
        let problem =
            format!("the configuration was edited and cannot be {what}, so the one before remains in force: {error}");
        if self.problem.as_ref() != Some(&problem) {
            problems.push(problem.clone());
        }
        self.problem = Some(problem);
    }

    /// All entries, in order of registration.
    fn entries(&self) -> Vec<PluginEntry> {
        let own = self.operator.plugins.iter().filter(|entry| !self.removed.contains(&entry.folder));
        let own = own.map(|entry| self.changed.get(&entry.folder).map_or(entry, |(_, changed)| changed));
        own.chain(&self.added).cloned().collect()
    }

    /// Loads what differs from `before`; `None` where nothing does.
    ///
    /// # Errors
    /// A plugin that is new, or whose entry has changed, cannot be used.
    pub(crate) fn load(
        &mut self,
        before: &Arc<Shared>,
        problems: &mut Vec<String>,
    ) -> Result<Option<Shared>, HostError> {
        let operator = Operator { plugins: self.entries(), ..self.operator.clone() };
        let same_limits = operator.limits == before.operator.limits;
        let mut host_plugins: Vec<HostPlugin> = Vec::new();
        for entry in &operator.plugins {
            let is_prior = |host_plugin: &&HostPlugin| host_plugin.loaded.plugin.entry.folder == entry.folder;
            let prior = before.host_plugins.iter().find(is_prior);
            let (loaded, prior) = match prior {
                Some(prior) => {
                    let as_before = same_limits && is_same_wish(&prior.loaded.plugin.entry, entry);
                    (renewed(&operator, entry, prior, as_before, before, problems)?, Some(prior))
                }
                None => {
                    let loaded = LoadedPlugin::load(&operator, entry, before.basis.engine.as_ref())?;
                    let moved = moved(&loaded, &operator, &before.host_plugins);
                    (Arc::new(loaded), moved)
                }
            };
            load::refuse_duplicate(&host_plugins, &loaded.plugin)?;
            let serial = prior.map_or(self.next_serial, |prior| prior.serial);
            self.next_serial = self.next_serial.max(serial + 1);
            let enabled = entry.required || !self.disabled.contains(loaded.id());
            host_plugins.push(HostPlugin { serial, enabled, loaded });
        }
        let is_off = |host_plugin: &&HostPlugin| {
            let folder = &host_plugin.loaded.plugin.entry.folder;
            operator.disabled.iter().any(|entry| entry.folder == *folder)
                && !self.removed.contains(folder)
                && host_plugins.iter().all(|other| other.serial != host_plugin.serial)
        };
        let off = before
            .host_plugins
            .iter()
            .filter(is_off)
            .map(|host_plugin| HostPlugin { enabled: false, ..host_plugin.clone() });
        host_plugins.extend(off.collect::<Vec<_>>());
        if let Some(error) = load::tool_clash(&host_plugins) {
            if !self.is_as_before(before) {
                return Err(error);
            }
            let problem = format!("changed plugins were not reloaded: {}", error.in_one_line());
            let is_changed = |prior: &&HostPlugin| {
                let now = host_plugins.iter().find(|host_plugin| host_plugin.serial == prior.serial);
                now.is_some_and(|now| !Arc::ptr_eq(&now.loaded, &prior.loaded))
            };
            let reported =
                before.host_plugins.iter().filter(is_changed).map(|prior| prior.loaded.note_problem(Some(&problem)));
            if reported.fold(false, |any, new| any | new) {
                problems.push(problem);
            }
            return Ok(None);
        }
        let is_same = |(a, b): (&HostPlugin, &HostPlugin)| {
            a.serial == b.serial && a.enabled == b.enabled && Arc::ptr_eq(&a.loaded, &b.loaded)
        };
        let unchanged = host_plugins.len() == before.host_plugins.len()
            && host_plugins.iter().zip(&before.host_plugins).all(is_same);
        if unchanged && is_same_beside_plugins(&operator, &before.operator) {
            return Ok(None);
        }
        Shared::new(Arc::clone(&before.basis), operator, host_plugins).map(Some)
    }

    /// Whether the plugins are wanted as they were, so that only their files can differ.
    fn is_as_before(&self, before: &Shared) -> bool {
        let (now, then) = (self.entries(), &before.operator.plugins);
        now.len() == then.len()
            && now.iter().zip(then).all(|(a, b)| is_same_entry(a, b))
            && self.operator.limits == before.operator.limits
    }
}

/// The plugin that `loaded` is in another folder: one that has its id, and whose own folder nothing names any more.
fn moved<'r>(loaded: &LoadedPlugin, operator: &Operator, before: &'r [HostPlugin]) -> Option<&'r HostPlugin> {
    let is_named = |folder: &PathBuf| operator.plugins.iter().any(|entry| entry.folder == *folder);
    before.iter().find(|prior| prior.loaded.id() == loaded.id() && !is_named(&prior.loaded.plugin.entry.folder))
}

/// The plugin of an entry: as it was where neither its files nor its entry have changed, or where the new files cannot be used.
///
/// # Errors
/// The entry has changed, and the plugin cannot be used with it.
fn renewed(
    operator: &Operator,
    entry: &PluginEntry,
    prior: &HostPlugin,
    as_before: bool,
    before: &Shared,
    problems: &mut Vec<String>,
) -> Result<Arc<LoadedPlugin>, HostError> {
    let keep = || Ok(Arc::clone(&prior.loaded));
    let mut refuse = |problem: String| {
        if prior.loaded.note_problem(Some(&problem)) {
            problems.push(problem);
        }
        keep()
    };
    let touched = prior.loaded.touched();
    if touched.is_none() && as_before {
        return keep();
    }
    let id = prior.loaded.id();
    if let Some(why) = prior.loaded.guards()
        && touched.is_some()
        && prior.loaded.has_other_files()
    {
        return refuse(kept_guard(&prior.loaded, entry, why)?);
    }
    match LoadedPlugin::load(operator, entry, before.basis.engine.as_ref()) {
        Ok(new) if new.is_same_as(&prior.loaded) => {
            prior.loaded.note_problem(None);
            touched.into_iter().for_each(|files| prior.loaded.is_loaded_from(files));
            keep()
        }
        Ok(new) if new.id() == id => match prior.loaded.guards() {
            // They have changed since.
            Some(why) if !(new.has_manifest_of(&prior.loaded) && new.has_component_of(&prior.loaded)) => {
                refuse(kept_guard(&prior.loaded, entry, why)?)
            }
            Some(_) | None => {
                problems.extend(replaced_component(&new, &prior.loaded));
                Ok(Arc::new(new))
            }
        },
        Ok(new) => {
            let (new, file) = (new.id(), entry.folder.join(config::MANIFEST_FILE));
            refuse(format!(
                "plugin `{id}` was not reloaded: the id in {} is now `{new}`. Restart the program to use it under that id.",
                file.display()
            ))
        }
        Err(error) if as_before => {
            let version = &prior.loaded.plugin.manifest.version;
            let error = error.in_one_line();
            refuse(format!("plugin `{id}` was not reloaded, and version {version} stays in use: {error}"))
        }
        Err(error) => Err(error),
    }
}

/// What is reported of a plugin that guards, for the reason `why`, and whose files are others now: it stays as it is.
///
/// # Errors
/// The entry has changed too: who changed it has not seen these files.
fn kept_guard(prior: &LoadedPlugin, entry: &PluginEntry, why: &'static str) -> Result<String, HostError> {
    let id = prior.id();
    if !is_same_wish(&prior.plugin.entry, entry) {
        return Err(HostError::GuardChanged { plugin: id.clone(), reason: why });
    }
    Ok(format!(
        "plugin `{id}` was not reloaded: it guards ({why}), so changed files of it are used when the program is restarted"
    ))
}

/// What is reported of a component that changed although its manifest did not: its version and what it asks for are as they were, and it is
/// other code all the same.
fn replaced_component(new: &LoadedPlugin, prior: &LoadedPlugin) -> Option<String> {
    let is_replaced = new.has_manifest_of(prior) && !new.has_component_of(prior);
    let digest = new.digest().filter(|_| is_replaced)?;
    Some(format!(
        "the component of `{}` changed, and its manifest did not: the one with the SHA-256 {digest} is used from now on",
        new.id()
    ))
}

/// Whether two entries want the same of a plugin, whichever of its files are trusted.
fn is_same_wish(a: &PluginEntry, b: &PluginEntry) -> bool {
    let bare = |entry: &PluginEntry| PluginEntry { trusted: None, ..entry.clone() };
    is_same_entry(&bare(a), &bare(b))
}

/// Whether all but the plugins is the same, wherever in the file it is.
fn is_same_beside_plugins(a: &Operator, b: &Operator) -> bool {
    a.layers == b.layers
}
