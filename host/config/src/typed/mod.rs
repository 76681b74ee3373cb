//! Our files as people type them: the shapes serde reads and the schemas describe.
//!
//! Doc comments here are what an editor shows beside a key. Numbers are in the units that their names end with. What
//! a schema cannot say is checked when these become what is used (`crate::operator`, `crate::manifest`).

mod addition;
mod agent;
mod errors;
mod events;
mod gateway;
mod manifest;
mod operator;
mod policy;
mod rules;
mod serve;
mod thread_limits;

pub(crate) use addition::{AdditionFile, ConditionsFile, ContextMatchFile, StateValueFile};
pub(crate) use agent::{AgentFile, AgentLimitsFile};
pub(crate) use errors::{
    ClassFile, ErrorsFile, FallbackWord, OneOrMany, PolicyFile, RetryFile, StatusFile, StatusWord,
};
pub(crate) use events::{AggregateWord, CatalogueFile, EmitFile, EventTypeFile, LevelFile};
pub use events::{Durability, Fallback};
pub use gateway::WithoutStore;
pub(crate) use gateway::{GatewayFile, GatewayLimitsFile, RouteFile, TokenFile};
pub(crate) use manifest::{EventFile, LimitsRequest, ManifestFile, OnFailureWord, SettingFile};
pub use operator::OnTimeout;
pub(crate) use operator::{
    CompactionFile, LimitsFile, OperatorFile, PluginFile, PriorityFile, PromptFile, ProviderFile, StateFile,
    TerminalFile, ToolsFile, TranscriptFile, TurnFile,
};
pub(crate) use policy::MachinePolicyFile;
pub(crate) use rules::RulesFile;
pub(crate) use serve::{ServeFile, ServeLimitsFile, ServeTokenFile};
pub(crate) use thread_limits::{AmountFile, ApprovalFile, CountFile, PriceFile, SessionLimitsFile, ThreadLimitsFile};
