//! Why a host or a session cannot be opened.

use std::path::PathBuf;

use config::Diagnostics;
use flow::ports::{JournalError, StateError};
use flow::{DiagnosticCode, PluginId, SessionId};
use store::TranscriptError;

/// Why a host or a session cannot be opened. The variants are the kinds that a front end can act upon: each names
/// what failed, and [`HostError::hint`] what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A file of the operator's or of a plugin is wrong, or a required rule is not in force; each fault with its place.
    #[error("{0}")]
    Config(#[from] Diagnostics),
    /// The provider cannot be used.
    #[error(transparent)]
    Provider(#[from] providers::ProviderError),
    /// The component of a plugin cannot be loaded.
    #[error(transparent)]
    Plugin(#[from] sandbox::LoadError),
    /// A plugin has no component at the path of its manifest; it is probably not built yet.
    #[error("plugin `{plugin}` has no component at {}", .component.display())]
    ComponentMissing {
        /// The id of the plugin.
        plugin: PluginId,
        /// Where the component should be.
        component: PathBuf,
        /// The folder of its source, if the manifest states how it is built.
        source_folder: Option<PathBuf>,
    },
    /// Two plugins have one id.
    #[error(transparent)]
    DuplicatePlugin(#[from] sandbox::DuplicatePlugin),
    /// A session asks for a plugin that the host does not have.
    #[error("there is no plugin `{plugin}`")]
    UnknownPlugin {
        /// The id that was asked for.
        plugin: PluginId,
        /// The ids of the host's plugins.
        known: Vec<PluginId>,
    },
    /// A plugin that the operator requires was to be disabled or unregistered.
    #[error("plugin `{plugin}` is required")]
    PluginRequired {
        /// The id of the plugin.
        plugin: PluginId,
    },
    /// A plugin that guards was to be configured, and its files are others than those that are in use.
    #[error("plugin `{plugin}` guards ({reason}), and its files have changed since it was loaded")]
    GuardChanged {
        /// The id of the plugin.
        plugin: PluginId,
        /// What makes it a guard.
        reason: &'static str,
    },
    /// A plugin was to be enabled or configured, and the operator's file switches it off.
    #[error("plugin `{plugin}` is switched off by the operator's file")]
    PluginOff {
        /// The id of the plugin.
        plugin: PluginId,
    },
    /// The folder of a plugin that was to be registered is that of a registered one.
    #[error("the folder is that of plugin `{plugin}`, which is registered")]
    PluginRegistered {
        /// The id of the plugin.
        plugin: PluginId,
    },
    /// The WebAssembly engine cannot run on this machine.
    #[error(transparent)]
    Engine(#[from] sandbox::EngineError),
    /// Calls of plugins wait, because a call runs in every instance: sessions that are open come first.
    #[error(
        "no session can be opened now: all {limit} instances of plugins are in use, and {waiting} calls wait for one"
    )]
    NoInstance {
        /// The most instances at once.
        limit: u64,
        /// How many calls wait.
        waiting: u64,
    },
    /// The process has nearly no file descriptors left: those that are left are for sessions that are open.
    #[error(
        "no session can be opened now: {open} of the {limit} file descriptors that the process may have are in use"
    )]
    NoDescriptors {
        /// How many are open.
        open: u64,
        /// The limit of the process.
        limit: u64,
    },
    /// No other thread can be started.
    #[error("no session can be opened now: no other thread can be started ({0})")]
    NoThreads(#[source] std::io::Error),
    /// Nearly no memory is left: what is left is for sessions that are open.
    #[error("no session can be opened now: {} MiB are left of the {} MiB of memory that {of} may have", left >> 20, limit >> 20)]
    NoMemory {
        /// Bytes that are left.
        left: u64,
        /// Bytes that there may be at most.
        limit: u64,
        /// What the limit is for.
        of: &'static str,
    },
    /// A plugin has a component, and the engine did not start.
    #[error("it is not loaded: there is no sandbox to run it in")]
    NoEngine,
    /// The state of plugins cannot be opened; [`StateError::Leased`]: a session with this id is open.
    #[error(transparent)]
    State(#[from] StateError),
    /// State is to be kept on disk, and the user has no home folder to keep it in.
    #[error("there is no folder to keep the state of plugins in")]
    NoStateFolder,
    /// The transcript of a session cannot be opened, read or continued.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
    /// Sessions are to be recorded, and the user has no home folder to keep the transcripts in.
    #[error("there is no folder to keep transcripts in")]
    NoTranscriptFolder,
    /// Money is limited by an embedder or an agent's file, and the price of the model is not known, so the limit could not be kept.
    #[error("the price of the model `{model}` is not known, so `spend` cannot be limited")]
    UnknownPrice {
        /// The model's name.
        model: String,
    },
    /// A recorded session was asked for, and sessions are not recorded.
    #[error("sessions are not recorded")]
    NotRecorded,
    /// A session continues from its transcript, and a conversation was given as well.
    #[error("the session `{id}` continues from its transcript, and another conversation was given")]
    HistoryGiven {
        /// The session's id.
        id: SessionId,
    },
    /// The session is that of a child agent, which works on one task.
    #[error("the session `{id}` belongs to a child agent, and is over")]
    ChildThread {
        /// The session's id.
        id: SessionId,
        /// The session that started the agent.
        parent: SessionId,
    },
    /// A session has state of plugins, and its transcript is not here: another host has recorded it, it was removed, or there was none.
    #[error("the session `{id}` has state of plugins and no transcript in {}: another host has recorded it, it was removed, or there was none", .folder.display())]
    TranscriptElsewhere {
        /// The session's id.
        id: SessionId,
        /// Where this host keeps transcripts.
        folder: PathBuf,
    },
    /// Transcripts are to be kept in the Redis server of the state, and the state is kept elsewhere.
    #[error("transcripts are to be kept in the Redis server of the state, and the state is kept elsewhere")]
    NoTranscriptServer,
    /// State is to be kept in Redis, and this build has no client for it.
    #[error("the state of plugins is to be kept in Redis, and this program was built without it")]
    NoRedis,
    /// State is to be kept in Redis, and the environment variable with its URL is not set.
    #[error("the environment variable `{variable}`, which contains the URL of the state store, is not set")]
    NoStateUrl {
        /// The variable's name.
        variable: String,
    },
    /// The workspace is not a folder, or a permission of a built-in tool is not valid.
    #[error(transparent)]
    Tools(#[from] tools::ToolsError),
    /// A permission has a pattern, and its tool takes none.
    #[error("the permission `{key}` has a pattern ({origin}); `{tool}` takes none")]
    Permission {
        /// The name of the tool.
        tool: String,
        /// The permission as it was written: `TOOL(PATTERN)`.
        key: String,
        /// Where it was set.
        origin: String,
    },
    /// A plugin provides a tool with a name that another tool has.
    #[error("the tool `{tool}` of the plugin `{plugin}` has the name of {owner}")]
    ToolName {
        /// The plugin that provides it.
        plugin: PluginId,
        /// The name of the tool.
        tool: String,
        /// Whose name it is.
        owner: String,
    },
    /// No provider is chosen, and no model was given.
    #[error("no provider is chosen")]
    NoProvider {
        /// The kinds of providers, joined.
        known: String,
    },
    /// A provider is chosen, and no model of it.
    #[error("no model is chosen")]
    NoModel,
    /// The provider is a recording, and no file is named.
    #[error("no recording is named")]
    NoRecording,
    /// The answers of a recording were to be recorded.
    #[error("a recording cannot be recorded")]
    RecordsRecording,
    /// A native extension cannot be used.
    #[error("the native extension `{id}` cannot be used: {why}")]
    NativeExtension {
        /// The id that it was given.
        id: PluginId,
        /// Why it cannot be used, and what to do where that does not follow.
        why: String,
    },
    /// Something can only be changed between two turns.
    #[error(transparent)]
    TurnRunning(#[from] crate::message::TurnRunning),
    /// Called outside of a Tokio runtime, which turns run on.
    #[error("there is no Tokio runtime here")]
    NoRuntime,
    /// The runtime ended while the host was opened.
    #[error("opening was aborted: {0}")]
    CutOff(#[from] tokio::task::JoinError),
}

impl HostError {
    /// What to do about it. `None` where the message, or the [`Diagnostics`] in it, contain that.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoProvider { known } => format!("set `kind` under `[provider]` in tidegate.toml ({known})"),
            Self::NoDescriptors { .. } => {
                "close sessions, or raise the limit (`ulimit -n`) before the program is started".to_owned()
            }
            Self::NoThreads(_) => {
                "close sessions, or raise the limit of threads (`ulimit -u`, `pids.max` of the container) before the program is started"
                    .to_owned()
            }
            Self::NoMemory { .. } => "close sessions, or give it more memory".to_owned(),
            Self::NoInstance { .. } => {
                "try again when fewer turns run, or raise `instances` under `[limits]` in tidegate.toml".to_owned()
            }
            Self::NoModel => "set `model` under `[provider]` in tidegate.toml".to_owned(),
            Self::NoRecording => "set `recording` under `[provider]` in tidegate.toml".to_owned(),
            Self::RecordsRecording => "choose another provider, or do not record".to_owned(),
            Self::ComponentMissing { source_folder: Some(folder), .. } => {
                format!("build it with `tidegate plugin build {}`", folder.display())
            }
            Self::ComponentMissing { source_folder: None, .. } => {
                "put it there, or correct `path` under `[component]`".to_owned()
            }
            Self::UnknownPlugin { known, .. } if known.is_empty() => {
                "the host has no plugins; add `[[plugin]]` entries to tidegate.toml".to_owned()
            }
            Self::UnknownPlugin { known, .. } => {
                let known: Vec<&str> = known.iter().map(PluginId::as_str).collect();
                format!("the plugins are {}", known.join(", "))
            }
            Self::Permission { .. } => "leave the pattern out".to_owned(),
            Self::PluginRequired { plugin } => {
                format!("set `required = false` for `{plugin}` first, under `[[plugin]]` in tidegate.toml")
            }
            Self::PluginOff { .. } => "remove `enabled = false` from its `[[plugin]]` in tidegate.toml".to_owned(),
            Self::PluginRegistered { .. } => "change it with `Plugins::configure`, or unregister it first".to_owned(),
            Self::ToolName { plugin, .. } => {
                format!(
                    "leave one of the two out: set `enabled = false` at `{plugin}`, or ask its author for another name"
                )
            }
            Self::NoRuntime => "call it from a task of a Tokio runtime".to_owned(),
            Self::State(StateError::Leased { .. }) => "to use both, open this one under another id".to_owned(),
            Self::NoStateFolder => "set `folder` under `[state]` in tidegate.toml".to_owned(),
            Self::UnknownPrice { model } => {
                format!(
                    "add `[[limits.price]]` with `id = \"{model}\"` to tidegate/tidegate.toml of your configuration folder, or limit tokens instead"
                )
            }
            Self::State(StateError::Unavailable { .. }) => {
                "start its server or make its folder writable, or choose another place under `[state]` in tidegate.toml"
                    .to_owned()
            }
            Self::Transcript(TranscriptError::Journal(JournalError::Unusable { .. })) => {
                "make the folder writable, set another `folder` under `[transcript]` in tidegate.toml, or record nothing: \
                 `enabled = false` there, or `tidegate run --no-transcript`"
                    .to_owned()
            }
            Self::NotRecorded => "set `enabled = true` under `[transcript]` in tidegate.toml".to_owned(),
            Self::NoTranscriptFolder => "set `folder` under `[transcript]` in tidegate.toml".to_owned(),
            Self::TranscriptElsewhere { id, .. } => format!(
                "set `folder` under `[transcript]` in tidegate.toml to the one that has it, choose another id, or remove the state with \
                 `tidegate state clear {id}` to use it for a new conversation"
            ),
            Self::HistoryGiven { .. } => "leave the conversation out, or choose another id".to_owned(),
            Self::ChildThread { id, parent } => {
                format!("continue `{parent}`, which started it, or a fork of `{id}` (`tidegate session fork {id}`)")
            }
            Self::NoTranscriptServer => "set `backend = \"redis\"` under `[state]` in tidegate.toml".to_owned(),
            Self::NoRedis => "set `backend = \"disk\"` under `[state]` in tidegate.toml, or build the crate `tidegate` with the feature `redis`"
                .to_owned(),
            Self::NoStateUrl { variable } => format!("set it, for example `{variable}=redis://127.0.0.1:6379`"),
            Self::Plugin(refused) if is_changed(refused) => {
                "if the new component is meant to run, set `sha256` of its `[[plugin]]` to the digest that it has; where the plugin is \
                 the workspace's, `tidegate trust` trusts it"
                    .to_owned()
            }
            Self::GuardChanged { .. } => {
                "restart the program, which uses them; or put the files back that are in use".to_owned()
            }
            Self::Config(_)
            | Self::Provider(_)
            | Self::State(_)
            | Self::Transcript(_)
            | Self::Plugin(_)
            | Self::DuplicatePlugin(_)
            | Self::Engine(_)
            | Self::NoEngine
            | Self::Tools(_)
            | Self::TurnRunning(_)
            | Self::NativeExtension { .. }
            | Self::CutOff(_) => return None,
        })
    }

    /// Returns the code of the error; of several [`Diagnostics`], that of the first. `None` for errors of the embedding
    /// program: a missing or stopped runtime.
    pub fn code(&self) -> Option<DiagnosticCode> {
        match self {
            Self::Config(found) => found.0.first().map(|first| first.code),
            Self::Provider(_) => Some(DiagnosticCode::HostProviderUnusable),
            Self::NoProvider { .. } => Some(DiagnosticCode::HostNoProvider),
            Self::NoModel => Some(DiagnosticCode::HostNoModel),
            Self::NoRecording | Self::RecordsRecording => Some(DiagnosticCode::ConfigRecording),
            Self::Engine(_) | Self::NoEngine => Some(DiagnosticCode::HostEngineUnavailable),
            Self::UnknownPlugin { .. } | Self::PluginOff { .. } => Some(DiagnosticCode::HostUnknownPlugin),
            Self::PluginRequired { .. } => Some(DiagnosticCode::HostPluginRequired),
            Self::State(StateError::Leased { .. }) => Some(DiagnosticCode::HostSessionInUse),
            Self::State(_) | Self::NoStateFolder | Self::NoRedis | Self::NoStateUrl { .. } => {
                Some(DiagnosticCode::HostStateUnavailable)
            }
            Self::Transcript(TranscriptError::Journal(JournalError::Locked { .. })) => {
                Some(DiagnosticCode::HostSessionInUse)
            }
            Self::UnknownPrice { .. } => Some(DiagnosticCode::LimitsUnknownPrice),
            Self::Transcript(_)
            | Self::NoTranscriptFolder
            | Self::NoTranscriptServer
            | Self::NotRecorded
            | Self::HistoryGiven { .. }
            | Self::TranscriptElsewhere { .. }
            | Self::ChildThread { .. } => Some(DiagnosticCode::HostTranscriptUnavailable),
            Self::ComponentMissing { .. } => Some(DiagnosticCode::PluginComponentMissing),
            Self::GuardChanged { .. } => Some(DiagnosticCode::PluginComponentChanged),
            Self::Plugin(refused) if is_changed(refused) => Some(DiagnosticCode::PluginComponentChanged),
            Self::Plugin(_) => Some(DiagnosticCode::PluginComponentRefused),
            Self::DuplicatePlugin(_) | Self::PluginRegistered { .. } => Some(DiagnosticCode::PluginDuplicateId),
            Self::ToolName { .. } => Some(DiagnosticCode::PluginToolConflict),
            Self::Permission { .. } | Self::Tools(tools::ToolsError::Pattern { .. }) => {
                Some(DiagnosticCode::ConfigInvalidPermission)
            }
            Self::Tools(tools::ToolsError::UnknownTool { .. }) => Some(DiagnosticCode::ConfigUnknownTool),
            Self::Tools(_) => Some(DiagnosticCode::HostWorkspaceUnusable),
            Self::NoInstance { .. } => Some(DiagnosticCode::HostInstances),
            Self::NoDescriptors { .. } => Some(DiagnosticCode::HostDescriptors),
            Self::NoThreads(_) => Some(DiagnosticCode::HostThreads),
            Self::NoMemory { .. } => Some(DiagnosticCode::HostMemory),
            Self::TurnRunning(_) | Self::NativeExtension { .. } | Self::NoRuntime | Self::CutOff(_) => None,
        }
    }

    /// Everything in one line, for events and reports: each diagnostic with its place, or the message with its hint.
    pub(crate) fn in_one_line(&self) -> String {
        match self {
            Self::Config(found) => found.in_one_line(),
            other => other.with_hint().lines().map(str::trim).collect::<Vec<_>>().join(" "),
        }
    }

    /// The message and the hint in one line.
    pub fn with_hint(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}: {hint}"),
            None => self.to_string(),
        }
    }
}

/// Whether a plugin is refused because its component is not the one that is pinned.
fn is_changed(refused: &sandbox::LoadError) -> bool {
    matches!(refused.problem, sandbox::LoadProblem::OtherDigest { .. })
}
