//! A plugin's own settings, as the operator's file and the manifest give them.

use std::collections::BTreeMap;

pub use flow::SettingValue as Setting;

/// Settings by name.
pub type Settings = BTreeMap<String, Setting>;
