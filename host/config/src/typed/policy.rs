//! `policy.toml` as typed.

use std::collections::BTreeMap;

use flow::PermissionMode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::operator::PluginFile;

/// The policy of a machine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "policy.toml")]
pub(crate) struct MachinePolicyFile {
    /// The servers that anything is sent to, as `https://HOST` or `http://HOST:PORT`: those of providers, of the state of plugins
    /// (`redis://HOST:PORT`; with Sentinels, each of them as `redis+sentinel://HOST:PORT`, which permits the servers that they name; of a
    /// Cluster, each node of the URL as `redis+cluster://HOST:PORT`, which permits the other ones) and of telemetry. Default: any.
    #[schemars(inner(length(min = 1)))]
    pub(crate) addresses: Option<Vec<String>>,
    /// The environment variables that `api_key_env`, `url_env` and `password` of `[state]` can name, the usual variables of vendors included. Default: any.
    #[schemars(inner(length(min = 1)))]
    pub(crate) key_env: Option<Vec<String>>,
    /// Tools: the most that calls are permitted.
    pub(crate) tools: PolicyToolsFile,
    /// Plugins that each host loads and requires, before all others. An entry of `tidegate.toml` for the same folder or the same id has no
    /// effect.
    pub(crate) plugin: Vec<PluginFile>,
    /// Rules that each host requires.
    pub(crate) rules: PolicyRulesFile,
}

/// Tools: the most that calls are permitted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyToolsFile {
    /// The most that calls are permitted, with the keys of `[tools.permission]` of `tidegate.toml`: `deny` and `ask` whatever is set or
    /// answered elsewhere; `allow` leaves the decision to the other files.
    pub(crate) permission: BTreeMap<String, PermissionMode>,
}

/// Rules that each host requires.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyRulesFile {
    /// Folders, relative to this file, whose rules are all required.
    #[schemars(inner(length(min = 1)))]
    pub(crate) required_folders: Vec<String>,
}
