//! Why a host cannot be opened.

use config::Diagnostics;

/// Why a host cannot be opened. Each says what failed, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A file of the operator's or of a plugin is wrong; each fault with its place.
    #[error("{0}")]
    Config(#[from] Diagnostics),
    /// The provider cannot be used.
    #[error(transparent)]
    Provider(#[from] providers::ProviderError),
    /// A plugin cannot be loaded.
    #[error(transparent)]
    Plugin(#[from] sandbox::LoadError),
    /// The sandbox cannot run on this machine.
    #[error(transparent)]
    Sandbox(#[from] sandbox::EngineError),
    /// A session with this id is open.
    #[error(transparent)]
    Session(#[from] flow::SessionInUse),
    /// The tools cannot be set up.
    #[error(transparent)]
    Tools(#[from] tools::ToolsError),
    /// The operator's file chooses no provider.
    #[error("no provider is chosen: set `kind` under `[provider]` in tidegate.toml ({known})")]
    NoProvider {
        /// The kinds there are.
        known: String,
    },
    /// The operator's file chooses no model.
    #[error("no model is chosen: set `model` under `[provider]` in tidegate.toml")]
    NoModel,
    /// A recording is to answer, and none is named.
    #[error("no recording is named: set `recording` under `[provider]` in tidegate.toml")]
    NoRecording,
    /// What a recording answers is to be recorded.
    #[error("a recording cannot be recorded: choose another provider, or do not record")]
    RecordsRecording,
    /// Something is missing, or does not fit together; the text says what to do.
    #[error("{0}")]
    Setup(String),
}
