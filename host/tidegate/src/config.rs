//! The operator's settings: what an [`Operator`](crate::Operator) consists of, the files that it is read from, and the policy of the
//! machine that nothing in those files goes beyond.

pub use crate::host::policy::{POLICY_FILE, machine_policy};
pub use config::errors::defaults as default_errors;
pub use config::events::defaults as default_thread_events;
pub use config::thread_limits::defaults as default_thread_limits;
pub use config::{
    CompactionSettings, FoundFiles, GatewayLimits, GatewayRoute, GatewaySettings, GatewayToken, Layer, LayerKind,
    NamedFolder, OPERATOR_FILE, OnProblem, OnTimeout, OperatorFiles, PlacedFile, Policy, Provider, RedisPlace,
    RouteKey, RuleFolders, SETTINGS_VARIABLE, ServeLimits, ServeSettings, ServeToken, ServerCertificate,
    SettingInForce, SettingOrigin, StatePlace, StateSettings, TerminalSettings, ToolSettings, TranscriptSettings,
    TurnSettings, WithoutStore, is_user,
};
