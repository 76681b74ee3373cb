//! Manifest and operator's entry put together: what a plugin may do, how much it may take, what its settings are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use flow::{CallbackKind, Label, PluginId, Power, SettingValue};

use crate::check::suggest;
use crate::{
    Code, Diagnostic, Diagnostics, LimitRequests, Manifest, Operator, PluginEntry, PluginLimits, TrustedFiles, digest,
};

/// A plugin ready to be loaded.
#[derive(Clone, Debug)]
pub struct ConfiguredPlugin {
    /// What its author says.
    pub manifest: Arc<Manifest>,
    /// What the operator says.
    pub entry: PluginEntry,
    /// What it may take: the operator's limits for it, or what it asks for clipped by `[limits]`.
    pub limits: PluginLimits,
    /// Its settings: the operator's values, and defaults for the others.
    pub settings: BTreeMap<String, SettingValue>,
}

impl ConfiguredPlugin {
    /// Whether it may use `power`: it asks for it and was granted it.
    pub fn may(&self, power: Power) -> bool {
        self.manifest.capabilities.contains_key(&power) && self.entry.grants.contains(&power)
    }

    /// The priority that the operator sets for a callback, where one is set.
    pub fn priority(&self, callback: CallbackKind) -> Option<u8> {
        self.entry.priorities.get(&callback).copied()
    }
}

impl Operator {
    /// Reads the manifests of all plugins that are switched on, in order of registration.
    ///
    /// # Errors
    /// A manifest cannot be read or is wrong, two plugins have one id, a power that is asked for is not granted (or the
    /// reverse), a setting is unknown, of another type, or missing. All of it is reported together.
    pub fn load_plugins(&self) -> Result<Vec<ConfiguredPlugin>, Diagnostics> {
        let (plugins, refused) = self.load_each_plugin();
        if refused.is_empty() {
            return Ok(plugins);
        }
        Err(Diagnostics(refused.into_iter().flat_map(|(_, found)| found.0).collect()))
    }

    /// As [`Operator::load_plugins`], but one plugin that is wrong does not cost the others: what is wrong comes back
    /// with them, each with the plugin's folder.
    pub fn load_each_plugin(&self) -> (Vec<ConfiguredPlugin>, Vec<(PathBuf, Diagnostics)>) {
        let (mut plugins, mut refused): (Vec<ConfiguredPlugin>, Vec<_>) = (Vec::new(), Vec::new());
        for entry in &self.plugins {
            let loaded = self.load_plugin(entry).and_then(|plugin| match duplicate(&plugins, &plugin) {
                Some(error) => Err(error.into()),
                None => Ok(plugin),
            });
            match loaded {
                Ok(plugin) => plugins.push(plugin),
                Err(found) => refused.push((entry.folder.clone(), found)),
            }
        }
        (plugins, refused)
    }

    /// Reads the manifest of one plugin and holds the operator's entry against it.
    ///
    /// # Errors
    /// As [`Operator::load_plugins`], for one plugin.
    pub fn load_plugin(&self, entry: &PluginEntry) -> Result<ConfiguredPlugin, Diagnostics> {
        let file = entry.folder.join(crate::MANIFEST_FILE);
        let help = match &entry.place {
            Some(_) => "`path` is a folder with a `plugin.toml`, relative to this file",
            None => "name the folder that contains the plugin's `plugin.toml`, or that file",
        };
        let source = crate::read(&file, help);
        let source = source.map_err(|mut error| {
            // Nothing can be shown of a file that is not there: show who asked for it.
            if let (Some(first), Some(place)) = (error.0.first_mut(), &entry.place) {
                let label = Label { location: place.clone(), text: "named here".to_owned() };
                first.labels.insert(0, label);
            }
            error
        })?;
        let is_other = |files: &TrustedFiles| files.manifest.as_ref() != Some(&digest::of_text(&source.text));
        if entry.trusted.as_ref().is_some_and(is_other) {
            let message = format!("`{}` is not the manifest that was trusted with the workspace", file.display());
            let error = Diagnostic::error(Code::PluginComponentChanged, message);
            return Err(at_entry(error, entry).help("`tidegate trust` shows what changed, and trusts it").into());
        }
        let manifest = Manifest::of_source(&source)?;
        let mut found = Vec::new();
        check_grants(&mut found, &manifest, entry);
        let settings = settings(&mut found, &manifest, entry);
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
        let limits = self.limits.for_plugin(&manifest.limits, &entry.limits);
        Ok(ConfiguredPlugin { manifest: Arc::new(manifest), entry: entry.clone(), limits, settings })
    }
}

impl PluginLimits {
    /// The operator's own word for this plugin, else the smaller of what is asked for and what anybody may take.
    pub fn for_plugin(&self, asked: &LimitRequests, set: &LimitRequests) -> Self {
        fn one<T: Ord + Copy>(most: T, asked: Option<T>, set: Option<T>) -> T {
            set.unwrap_or_else(|| asked.map_or(most, |asked| asked.min(most)))
        }
        Self {
            callback: one(self.callback, asked.callback, set.callback),
            text: one(self.text, asked.text, set.text),
            turn: one(self.turn, asked.turn, set.turn),
            tool: one(self.tool, asked.tool, set.tool),
            memory_bytes: one(self.memory_bytes, asked.memory_bytes, set.memory_bytes),
            output_bytes: one(self.output_bytes, asked.output_bytes, set.output_bytes),
            tool_output_bytes: one(self.tool_output_bytes, asked.tool_output_bytes, set.tool_output_bytes),
            state_ttl: one(self.state_ttl, asked.state_ttl, set.state_ttl),
            state_bytes: one(self.state_bytes, asked.state_bytes, set.state_bytes),
        }
    }
}

fn at_entry(diagnostic: Diagnostic, entry: &PluginEntry) -> Diagnostic {
    match &entry.place {
        Some(place) => diagnostic.at(place.clone(), "this plugin"),
        None => diagnostic,
    }
}

/// The error where one of the plugins `before` has the id of `plugin`.
pub fn duplicate<'p>(
    before: impl IntoIterator<Item = &'p ConfiguredPlugin>,
    plugin: &ConfiguredPlugin,
) -> Option<Diagnostic> {
    let id: &PluginId = &plugin.manifest.id;
    let first = before.into_iter().find(|other| other.manifest.id == *id)?;
    let error = Diagnostic::error(Code::PluginDuplicateId, "another plugin has the same id").about_plugin(id);
    let error = at_entry(error, &plugin.entry).help("remove one of them; ids are unique");
    Some(match &first.entry.place {
        Some(place) => error.at(place.clone(), "the first"),
        None => error,
    })
}

fn check_grants(found: &mut Vec<Diagnostic>, manifest: &Manifest, entry: &PluginEntry) {
    let id = &manifest.id;
    for (power, why) in &manifest.capabilities {
        if !entry.grants.contains(power) {
            let word = power.as_str();
            let message = format!("requests the power `{word}`, which is not granted: {why}");
            let error = Diagnostic::error(Code::PluginPowerNotGranted, message).about_plugin(id);
            let help = match &entry.place {
                Some(_) => format!("to grant it, add \"{word}\" to `grants` of this `[[plugin]]`"),
                None => format!("grant it where the plugin is added; on the command line: `--grant {word}`"),
            };
            found.push(at_entry(error, entry).help(help));
        }
    }
    for power in entry.grants.iter().filter(|power| !manifest.capabilities.contains_key(power)) {
        let word = power.as_str();
        let message = format!("is granted the power `{word}` and does not request it");
        let error = Diagnostic::error(Code::PluginPowerNotRequested, message).about_plugin(id);
        found.push(at_entry(error, entry).help(format!("remove \"{word}\" from `grants`")));
    }
}

fn settings(found: &mut Vec<Diagnostic>, manifest: &Manifest, entry: &PluginEntry) -> BTreeMap<String, SettingValue> {
    let id = &manifest.id;
    let known: Vec<&str> = manifest.settings.keys().map(String::as_str).collect();
    let mut values = BTreeMap::new();
    for (name, (value, place)) in &entry.settings {
        let at = |error: Diagnostic| match place {
            Some(place) => error.about_plugin(id).at(place.clone(), ""),
            None => error.about_plugin(id),
        };
        found.push(match manifest.settings.get(name) {
            None => {
                let error = Diagnostic::error(Code::PluginUnknownSetting, format!("has no setting `{name}`"));
                at(error).help(suggest(name, &known, "settings"))
            }
            Some(decl) if decl.kind != value.kind() => {
                let message = format!("the setting `{name}` must be {}", decl.kind.noun());
                let error = at(Diagnostic::error(Code::PluginSettingType, message));
                error.at(decl.place.clone(), "declared here").help(decl.description.clone())
            }
            Some(_) => {
                values.insert(name.clone(), value.clone());
                continue;
            }
        });
    }
    for (name, decl) in &manifest.settings {
        match &decl.default {
            _ if entry.settings.contains_key(name) => {}
            Some(default) => drop(values.insert(name.clone(), default.clone())),
            None => {
                let message = format!("needs a value for its setting `{name}`");
                let error = Diagnostic::error(Code::PluginSettingMissing, message).about_plugin(id);
                let error = at_entry(error, entry).at(decl.place.clone(), "declared without a default");
                let how = match &entry.place {
                    Some(_) => format!("add `{name} = …` under `[plugin.settings]`"),
                    None => {
                        format!("set it where the plugin is added; on the command line: `--set {id}.{name}=VALUE`")
                    }
                };
                found.push(error.help(format!("{how}: {}", decl.description)));
            }
        }
    }
    values
}
