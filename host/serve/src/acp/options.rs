//! What a user can set in a session: what becomes of questions about tools, and which extensions work.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate::{Host, PluginId, Session};

use super::sdk::v1;

/// The option of the mode.
pub(super) const MODE: &str = "mode";

/// The option of the model.
pub(super) const MODEL: &str = "model";

/// What precedes an extension's id in the id of its option.
pub(super) const EXTENSION: &str = "extension.";

/// What becomes of calls whose permission is `ask`. Calls that the operator has allowed or denied are not affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The user is asked.
    #[default]
    Ask,
    /// They run without a question, except for those that a person has to approve each time, such as a write to a file that other programs
    /// execute.
    Approve,
    /// They do not run, without a question.
    Deny,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Ask, Self::Approve, Self::Deny];

    fn id(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ask => "Ask",
            Self::Approve => "Approve",
            Self::Deny => "Deny",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Ask => "Ask before each tool call whose permission is `ask`",
            Self::Approve => {
                "Run tool calls whose permission is `ask` without a question, except writes to guarded paths, and commands \
                 that are long or have several lines"
            }
            Self::Deny => "Refuse tool calls whose permission is `ask` without a question",
        }
    }

    /// The mode with an id.
    pub(super) fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.id() == id)
    }
}

/// What the user has set in a session. Its handler of questions reads the mode.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings(Arc<Mutex<Set>>);

#[derive(Debug, Default)]
struct Set {
    mode: Mode,
    /// Extensions that the session does without.
    disabled: BTreeSet<PluginId>,
}

impl Settings {
    pub(super) fn mode(&self) -> Mode {
        self.with(|set| set.mode)
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        self.with(|set| set.mode = mode);
    }

    /// The extensions that the session does without.
    pub(super) fn disabled(&self) -> BTreeSet<PluginId> {
        self.with(|set| set.disabled.clone())
    }

    pub(super) fn set_enabled(&self, plugin: PluginId, enabled: bool) {
        self.with(|set| if enabled { set.disabled.remove(&plugin) } else { set.disabled.insert(plugin) });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Set) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The modes, for clients that do not know options.
pub(super) fn modes(mode: Mode) -> v1::SessionModeState {
    let entry = |mode: Mode| v1::SessionMode::new(mode.id(), mode.name()).description(mode.about().to_owned());
    v1::SessionModeState::new(mode.id(), Mode::ALL.map(entry).to_vec())
}

/// The mode as an update.
pub(super) fn mode_update(mode: Mode) -> v1::SessionUpdate {
    v1::SessionUpdate::CurrentModeUpdate(v1::CurrentModeUpdate::new(mode.id()))
}

/// All options of a session. `boolean`: the client takes switches.
pub(super) fn all(host: &Host, session: &Session, settings: &Settings, boolean: bool) -> Vec<v1::SessionConfigOption> {
    let entry =
        |mode: Mode| v1::SessionConfigSelectOption::new(mode.id(), mode.name()).description(mode.about().to_owned());
    let mode = v1::SessionConfigOption::select(MODE, "Questions", settings.mode().id(), Mode::ALL.map(entry).to_vec())
        .description("What becomes of tool calls that need a confirmation".to_owned())
        .category(v1::SessionConfigOptionCategory::Mode);
    let names = models(host, session).into_iter().map(|name| v1::SessionConfigSelectOption::new(name.clone(), name));
    let model = v1::SessionConfigOption::select(MODEL, "Model", session.model().1, names.collect::<Vec<_>>())
        .description("The model that answers; it can be changed while no turn runs".to_owned())
        .category(v1::SessionConfigOptionCategory::Model);
    let disabled = settings.disabled();
    let switches =
        host.plugins().list().into_iter().filter(|plugin| plugin.enabled && !plugin.required).map(|plugin| {
            let (id, name) = (format!("{EXTENSION}{}", plugin.id), format!("Extension {}", plugin.id));
            let is_on = !disabled.contains(&plugin.id);
            let option = if boolean {
                v1::SessionConfigOption::boolean(id, name, is_on)
            } else {
                let entries = ["on", "off"].map(|word| v1::SessionConfigSelectOption::new(word, word));
                v1::SessionConfigOption::select(id, name, if is_on { "on" } else { "off" }, entries.to_vec())
            };
            option
                .description(plugin.description)
                .category(v1::SessionConfigOptionCategory::Other("_extensions".to_owned()))
        });
    [mode, model].into_iter().chain(switches).collect()
}

/// The models that the user can choose: those that the operator names, and that of the session.
pub(super) fn models(host: &Host, session: &Session) -> Vec<String> {
    let (own, mut all) = (session.model().1, host.models());
    if !all.contains(&own) {
        all.insert(0, own);
    }
    all
}

/// Whether a value switches something on; `None`: it is none of the values of a switch.
pub(super) fn is_on(value: &v1::SessionConfigOptionValue) -> Option<bool> {
    match value {
        v1::SessionConfigOptionValue::Boolean { value } => Some(*value),
        v1::SessionConfigOptionValue::ValueId { value } => match &*value.0 {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
