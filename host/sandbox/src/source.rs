//! A plugin before it is loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use flow::{CallbackKind, KeptText, PluginId, Power};

use crate::limits::GuestLimits;
use crate::setting::Settings;

/// Where a component is.
#[derive(Clone, Debug)]
pub enum ComponentSource {
    /// The bytes of a component, not read from a file.
    Bytes(Arc<[u8]>),
    /// In a file.
    File(PathBuf),
}

/// A plugin before it is loaded: its manifest and the operator's settings.
#[derive(Clone, Debug)]
pub struct PluginSource {
    /// The plugin's id, unique in the host.
    pub id: PluginId,
    /// Its version, human-readable.
    pub version: String,
    /// The component's file or bytes.
    pub component: ComponentSource,
    /// The SHA-256 that the component must have, as lower-case hexadecimal digits; nothing of another one runs.
    pub sha256: Option<String>,
    /// Powers that the manifest asks for.
    pub asked: BTreeSet<Power>,
    /// Powers that the operator grants.
    pub granted: BTreeSet<Power>,
    /// Callbacks that the manifest declares; `None` where it has no list of them.
    pub declared: Option<BTreeSet<CallbackKind>>,
    /// Its settings, defaults filled in.
    pub settings: Settings,
    /// What it may use up.
    pub limits: GuestLimits,
    /// The format of what it keeps in `state`, from 1. State of an older format is migrated by the component's export `migration`.
    pub state_version: u32,
    /// Its failure refuses the turn.
    pub required: bool,
    /// Priorities that the operator gives instead of those it registers (0 to 100).
    pub priorities: BTreeMap<CallbackKind, u8>,
    /// Whether callbacks for which it registers nothing else fail closed (true) or are skipped (false), according to
    /// its manifest.
    pub fails_closed: Option<bool>,
    /// Whether all callbacks that can fail closed do (true), or none does (false), according to the operator.
    pub operator_fails_closed: Option<bool>,
    /// What is kept of what callbacks change for which it registers nothing else, according to its manifest.
    pub keep: Option<KeptText>,
    /// What is kept of what its callbacks change, according to the operator.
    pub operator_keep: Option<KeptText>,
    /// Its own words are in what is reported of it, also where it guards.
    pub full_diagnostics: bool,
}

impl PluginSource {
    /// A plugin that asks for nothing and is granted nothing, with default limits.
    pub fn new(id: PluginId, component: ComponentSource) -> Self {
        Self {
            id,
            version: String::new(),
            component,
            sha256: None,
            asked: BTreeSet::new(),
            granted: BTreeSet::new(),
            declared: None,
            settings: Settings::new(),
            limits: GuestLimits::default(),
            state_version: 1,
            required: false,
            priorities: BTreeMap::new(),
            fails_closed: None,
            operator_fails_closed: None,
            keep: None,
            operator_keep: None,
            full_diagnostics: false,
        }
    }
}
