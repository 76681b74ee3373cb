//! The parts of `plugin.toml` that a callback can notice.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::Setting;

/// The other keys are between the plugin and the host: `tidegate plugin show` checks them.
#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    pub(super) id: String,
    #[serde(default = "first_state_version")]
    pub(super) state_version: u32,
    #[serde(default)]
    pub(super) on_failure: Policy,
    #[serde(default)]
    pub(super) keep: Keep,
    #[serde(default)]
    capabilities: BTreeMap<String, toml::Value>,
    #[serde(default)]
    events: BTreeMap<String, toml::Value>,
    #[serde(default)]
    settings: BTreeMap<String, Declared>,
    #[serde(default)]
    pub(super) limits: Limits,
}

fn first_state_version() -> u32 {
    1
}

/// What happens when a callback that registers no policy fails.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Policy {
    #[default]
    Skip,
    Withhold,
}

/// Which text is kept of what a callback changes that registers nothing about it.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Keep {
    #[default]
    Original,
    Shown,
}

/// A setting that is declared.
#[derive(Debug, Deserialize)]
struct Declared {
    #[serde(rename = "type")]
    kind: Kind,
    default: Option<toml::Value>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Text,
    Number,
    Boolean,
    Texts,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Limits {
    pub(super) output_kib: Option<usize>,
    pub(super) tool_output_kib: Option<usize>,
    pub(super) state_ttl_s: Option<u64>,
    pub(super) state_mib: Option<usize>,
}

impl Manifest {
    /// Reads `plugin.toml`.
    ///
    /// # Panics
    /// It is no valid TOML, or a key that matters here has a wrong value.
    #[track_caller]
    pub(super) fn read(text: &str) -> Self {
        let own: Self = toml::from_str(text).unwrap_or_else(|error| panic!("plugin.toml cannot be used: {error}"));
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let is_id = (1..=64).contains(&own.id.len()) && own.id.chars().all(fits);
        assert!(is_id, "plugin.toml: id {:?} is not 1 to 64 letters, digits and hyphens", own.id);
        own
    }

    /// The powers that are requested.
    pub(super) fn powers(&self) -> BTreeSet<String> {
        self.capabilities.keys().cloned().collect()
    }

    /// The names of the event types that are declared, as events have them.
    pub(super) fn event_types(&self) -> BTreeSet<String> {
        self.events.keys().map(|name| format!("{}.{name}", self.id)).collect()
    }

    /// The settings that have a default, with it.
    ///
    /// # Panics
    /// A default is not of its setting's type.
    #[track_caller]
    pub(super) fn defaults(&self) -> BTreeMap<String, Setting> {
        let defaults = self.settings.iter().filter_map(|(key, declared)| Some((key, declared.default.as_ref()?)));
        let read = defaults.map(|(key, value)| match setting(value) {
            Some(value) => (key.clone(), value),
            None => panic!("plugin.toml: the default of setting `{key}` is not a {:?}", self.settings[key].kind),
        });
        read.inspect(|(key, value)| self.check(key, value)).collect()
    }

    /// Checks that a setting is declared with the type of this value.
    ///
    /// # Panics
    /// It is not.
    #[track_caller]
    pub(super) fn check(&self, key: &str, value: &Setting) {
        let Some(declared) = self.settings.get(key) else {
            let known: Vec<&str> = self.settings.keys().map(String::as_str).collect();
            panic!("plugin.toml declares no setting `{key}`; it declares: {}", known.join(", "));
        };
        let fits = matches!(
            (declared.kind, value),
            (Kind::Text, Setting::Text(_))
                | (Kind::Number, Setting::Number(_))
                | (Kind::Boolean, Setting::Boolean(_))
                | (Kind::Texts, Setting::Texts(_))
        );
        assert!(fits, "plugin.toml declares setting `{key}` as {:?}, and its value is {value:?}", declared.kind);
    }

    /// The settings that must be given and are not.
    pub(super) fn missing(&self, given: &BTreeMap<String, Setting>) -> Vec<&str> {
        self.settings.keys().filter(|key| !given.contains_key(*key)).map(String::as_str).collect()
    }
}

fn setting(value: &toml::Value) -> Option<Setting> {
    match value {
        toml::Value::String(text) => Some(Setting::Text(text.clone())),
        toml::Value::Integer(number) => Some(Setting::Number(*number as f64)),
        toml::Value::Float(number) => Some(Setting::Number(*number)),
        toml::Value::Boolean(yes) => Some(Setting::Boolean(*yes)),
        toml::Value::Array(texts) => {
            let texts = texts.iter().map(|text| text.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().map(Setting::Texts)
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}
