//! Operator files and plugin manifests: as typed, as used, with diagnostics that show the place.
//!
//! | file | as typed | as used |
//! |---|---|---|
//! | `tidegate.toml` | `typed::OperatorFile` | [`Operator`] |
//! | `policy.toml` | `typed::PolicyFile` | [`Policy`] |
//! | `plugin.toml` | `typed::ManifestFile` | [`Manifest`] |
//! | both together | | [`ConfiguredPlugin`] |
//! | `[events]` of it, `thread_events.toml` | `typed::CatalogueFile` | [`events::Catalogue`] |
//! | `[errors]` of it, `errors.toml` | `typed::ErrorsFile` | [`flow::RetryTable`] |
//! | `[limits]` of it, `thread_limits.toml` | `typed::ThreadLimitsFile` | [`thread_limits::ThreadLimits`] |
//! | `agents/NAME.md` | `typed::AgentFile` | [`agents::Agent`] |
//! | rule files, in [`RuleFolder`]s | `rules::RuleSpec` | `rules::Rule`, kept by [`RuleFiles`] |
//!
//! A file goes through three steps: the TOML reader (all its syntax errors), the generated JSON Schema (unknown keys,
//! types, ranges, missing keys; the same schema that editors are given), and what no schema can say. Each step reports
//! all it finds, and a later one runs only when the earlier found nothing.
//!
//! Files are read, never written; no network. Of the environment only the place of the user's configuration folder is read
//! ([`rule_sources::user_folder`]).
#![forbid(unsafe_code)]

mod addition;
pub mod agents;
mod check;
mod compaction;
mod diagnostic;
mod digest;
mod document;
mod duration;
pub mod errors;
pub mod events;
mod gateway;
mod guidance;
mod in_force;
mod join;
mod kinds;
mod layer_files;
mod layer_reader;
mod layers;
mod leaves;
mod listening;
mod manifest;
mod mask;
mod merge;
mod misplaced;
mod misspelt;
mod operator;
mod operator_files;
mod operator_layers;
mod permission;
mod plugin;
mod policy;
mod presence;
mod prompt_text;
mod rule;
mod rule_files;
mod rule_folders;
pub mod rule_sources;
mod schema;
mod serve;
mod sources;
mod state;
mod switch;
mod table_settings;
mod terminal;
pub mod thread_limits;
mod transcript;
mod trust_request;
mod turn;
mod typed;
mod yaml;

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

pub use compaction::CompactionSettings;
pub use diagnostic::{Diagnostics, in_one_line, render};
pub use digest::file_digest;
use flow::{Diagnostic, DiagnosticCode as Code, Location, SourceFile};
pub use gateway::{GatewayLimits, GatewayRoute, GatewaySettings, GatewayToken, RouteKey};
pub use guidance::Guidance;
pub use in_force::{SettingInForce, SettingOrigin};
pub use kinds::by_kind;
pub use listening::ServerCertificate;
pub use manifest::{BuildKind, EventDecl, LimitRequests, Manifest, SUPPORTED_API, SettingDecl, ToolGuidance};
pub use misplaced::misplaced;
pub use operator::{Operator, PluginEntry, PluginLimits, Provider, ToolSettings, TrustedFiles, operator_file};
pub use operator_files::{FoundFiles, OperatorFiles, SETTINGS_VARIABLE};
pub use operator_layers::{Layer, LayerKind};
pub use permission::{BadPermission, PermissionRule};
pub use plugin::{ConfiguredPlugin, duplicate};
pub use policy::Policy;
pub use presence::is_there;
pub use prompt_text::{MAX_PROMPT_BYTES, prompt_digest};
pub use rule_files::{
    ChangeKind, Demands, FileChange, FileStamp, FolderReport, FolderState, Look, MAX_RULE_BYTES, RuleFile, RuleFiles,
    RuleFolder, list_rule_files,
};
pub use rule_folders::{NamedFolder, OnProblem, RuleFolders};
pub use schema::{
    agent_schema, error_schema, event_schema, manifest_schema, operator_schema, policy_schema, thread_limit_schema,
};
pub use serve::{ServeLimits, ServeSettings, ServeToken, is_user};
pub use state::{PlacedFile, RedisPlace, StatePlace, StateSettings};
pub use switch::{SwitchError, Switched, switch_plugin};
pub use terminal::TerminalSettings;
pub use transcript::TranscriptSettings;
pub use trust_request::{JudgedSettings, RequestedKey, TrustRequest};
pub use turn::TurnSettings;
pub use typed::{OnTimeout, WithoutStore};
pub use yaml::read as yaml_tree;

/// The name of the operator's file in a workspace.
pub const OPERATOR_FILE: &str = "tidegate.toml";

/// The name of a plugin's manifest in its folder.
pub const MANIFEST_FILE: &str = "plugin.toml";

/// The most bytes a file of ours may have: 4 MiB. Nobody types more; a wrong path must not fill the memory.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Reads a text file; `help` says what to do when it is not there.
fn read(file: &Path, help: &str) -> Result<Arc<SourceFile>, Diagnostics> {
    match text_of(file) {
        Ok(text) => Ok(SourceFile::new(file, text)),
        Err(cause) => {
            let message = format!("cannot read `{}`: {cause}", file.display());
            Err(Diagnostic::error(Code::ConfigUnreadable, message).help(help).into())
        }
    }
}

/// The text of a file, or why it cannot be read.
fn text_of(file: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| error.to_string();
    let found = std::fs::metadata(file).map_err(failed)?;
    if !found.is_file() && !found.is_dir() {
        // Reading a pipe waits for somebody who writes.
        return Err("it is not a file".to_owned());
    }
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(failed)?;
    // It can grow meanwhile.
    let size = opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if size as u64 > MAX_FILE_BYTES {
        return Err(format!("its size exceeds the limit of {MAX_FILE_BYTES} bytes"));
    }
    Ok(text)
}
