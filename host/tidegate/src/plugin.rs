//! Plugins: what is loaded, what a manifest declares, and the sandbox that plugins run in.
//!
//! [`Host::plugins`](crate::Host::plugins) adds, removes and switches plugins while sessions are open.

pub use crate::host::loaded::{Loaded, PluginInfo};
pub use crate::plugins::Plugins;
pub use config::{
    BuildKind, ConfiguredPlugin, LimitRequests, MANIFEST_FILE, Manifest, PluginEntry, PluginLimits, SettingDecl,
    SwitchError, Switched, ToolGuidance, file_digest, switch_plugin,
};
pub use flow::ports::PluginSummary;
pub use flow::{
    Callback, CallbackKind, InvalidPluginId, InvalidTagPattern, OnFailure, OutputMode, Power, ProvidedTool, Registered,
    Registration, SettingKind, SettingValue, TagPattern, TextOptions, TextStream, TextUnit,
};
pub use sandbox::{
    DuplicatePlugin, EngineCounts, EngineError, EngineOptions, EngineReport, InstanceCounts, LoadError, LoadProblem,
};
