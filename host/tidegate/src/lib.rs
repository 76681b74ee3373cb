//! The agent host as a library: what an editor, a server or a script links.
//!
//! A [`Host`] is opened once from what the operator decided: it loads the plugins and connects the provider. From it come
//! [`Session`]s, any number of them, each in its own workspace; a session runs turns and reports what happens as a stream of
//! events.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate::{EventKind, Host, Operator, SessionOptions};
//!
//! let operator = Operator::load("tidegate.toml".as_ref())?;
//! let host = Host::builder(operator).open().await?;
//! let session = host.session(SessionOptions::new(".")).await?;
//! let mut turn = session.prompt("Rename the function");
//! while let Some(event) = turn.next().await {
//!     if let EventKind::CognitionOutDelta { text, .. } = &event.kind {
//!         print!("{text}");
//!     }
//! }
//! let report = turn.report().await;
//! println!("\n{:?}", report.status);
//! # Ok(()) }
//! ```
//!
//! Text in [`EventKind::CognitionOutDelta`] has passed the rules and is never taken back, unless the event that ends the answer
//! reports that.
//!
//! | to | use |
//! |---|---|
//! | run many hosts on one engine | [`HostBuilder::engine`] |
//! | bring a model, tools, files, a confirmation handler, a conversation | [`SessionOptions`] |
//! | send input while a turn runs | [`Session::steer`], [`Session::queue`], [`Session::interrupt`], [`Session::cancel`] |
//! | change what waits | [`Session::waiting`], [`Session::edit`], [`Session::remove`], [`Session::take_back`], [`Session::receipt`] |
//! | limit what a session takes, and decide about more | [`SessionOptions::limits`], [`Session::decide_limit`] |
//! | continue a session that was suspended | [`Session::resume`] |
//! | answer questions about tool calls, of child agents too | [`SessionOptions::confirm`], [`Session::pending_questions`], [`Session::answer`] |
//! | watch a session from several places | [`Session::subscribe`] |
//! | show a chat | [`Chat`]; its primitives are in [`chat`] |
//! | show it in another process, also after a connection was lost | [`Session::subscribe_from`], [`carry_out`] |
//! | change plugins while sessions are open | [`Host::plugins`], [`Session::disable_plugin`], [`HostBuilder::follow`] |
//! | count what all sessions do, for Prometheus | [`HostBuilder::metrics`] |
//! | export traces and metrics to OpenTelemetry | `Telemetry`, with the feature `otel` |
//!
//! One turn runs at a time in a session; prompts queue. Everything a plugin, a model or a file can get wrong is an error or an event
//! with its cause, never a panic. Sessions need a Tokio runtime.
#![forbid(unsafe_code)]

mod admission;
mod agents;
mod approvals;
mod assemble;
mod child_events;
mod command_variables;
mod confirm;
mod context_check;
mod custom_events;
mod desired;
mod doctor;
mod engine;
mod error;
mod event_size;
mod expiry;
mod fired_rules;
mod fork;
mod front_end;
mod guidance;
mod host;
mod host_plugin;
mod interrupted;
mod live;
mod live_plugins;
mod load;
mod loaded;
mod looks;
mod options;
mod plugin_tools;
mod plugins;
mod policy;
mod questions;
mod recent;
mod rule_checks;
mod rulebook;
mod session;
mod session_plugins;
mod shown_prompts;
mod stale;
mod stored;

mod toolbox;
mod transcripts;
mod trouble;
mod trust;
mod turns;

/// The example of the page about OpenTelemetry is compiled as a test.
#[cfg(all(doctest, feature = "otel"))]
#[doc = include_str!("../../otel/README.md")]
struct OtelPage;

/// The examples of the page for authors of front ends are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../FRONT_ENDS.md")]
struct FrontEndsPage;

pub use agents::ChildSessions;
pub use approvals::LimitDecisionError;
pub use assemble::{state_folder, tool_specs};
/// Primitives for front ends: what a chat shows of a session, made of its events by pure state machines.
pub use chat;
pub use child_events::{ChildEvent, ChildEventKind, ChildEvents};
pub use config::agents::{Agent, AgentLayer, Agents};
pub use config::errors::defaults as default_errors;
pub use config::events::defaults as default_thread_events;
pub use config::rule_sources::BuiltRules;
pub use config::thread_limits::defaults as default_thread_limits;
pub use config::{
    BadPermission, BuildKind, CompactionSettings, ConfiguredPlugin, Diagnostics, EventDecl, FoundFiles, JudgedSettings,
    Layer, LayerKind, LimitRequests, MANIFEST_FILE, Manifest, NamedFolder, OPERATOR_FILE, OnProblem, OnTimeout,
    Operator, OperatorFiles, PermissionRule, PluginEntry, PluginLimits, Policy, Provider, RequestedKey, RuleFolders,
    SettingDecl, SettingInForce, SettingOrigin, StatePlace, StateSettings, SwitchError, Switched, ToolGuidance,
    ToolSettings, TranscriptSettings, TrustRequest, TrustedFiles, TurnSettings, by_kind as findings_by_kind,
    file_digest, render as render_diagnostic, switch_plugin,
};
pub use confirm::Nobody;
pub use doctor::{Check, Health, remedy};
pub use engine::Engine;
pub use error::HostError;
pub use expiry::swept_state;
pub use fired_rules::{FiredRule, FiredRules};
pub use flow::ports::{
    AnswerLog, AnsweredElsewhere, BoxFuture, Clock, Confirm, EmitError, FileKind, FileStatus, Files, JournalError,
    KeptRules, Model, ModelStream, PluginSummary, PreparedCall, Progress, ProgressLine, Question, RuleRecords,
    SessionList, SessionState, SessionSummary, ShownSession, StateAdmin, StateBatch, StateChange, StateEntry,
    StateError, StateLifetime, StateStore, StoredState, SweptState, TerminalCommand, TerminalEnd, TerminalExit,
    Terminals, Tools, TtsrEvent,
};
pub use flow::text::normal_path;
pub use flow::{
    Action, AdditionId, Ambiguous, Annotation, Answer, AnswerBlock, Argument, BlockId, BlockOrigin, BreakerScope,
    BreakerState, CallFailure, CallId, Callback, CallbackKind, CallbackOutcome, CallbackReport, Called, Classified,
    CompactionCause, CompactionMethod, Condition, Confirmation, ContextMatch, DecidedBy, Delta, Diagnostic,
    DiagnosticCode, ErrorClass, ErrorFacts, ErrorMetadata, ErrorPattern, Event, EventKind, Evidence, ExtensionPrompt,
    FailureCause, FailureKind, HoldOutcome, Image, ImageError, InputId, InputWay, InvalidMessagePattern,
    InvalidPluginId, InvalidTagPattern, InvalidTurnRange, KeptText, KeySource, Label, LeftOut, Limit, LimitDecision,
    LimitRequest, Limits, Location, MAX_IMAGE_BYTES, MAX_MARKS, Message, MessagePattern, ModelError, NamedSizes,
    NotAVariable, OnFailure, Origin, OutputMode, Part, Partial, Permission, PermissionMode, PluginId, Position, Power,
    Preview, Prompt, PromptAddition, PromptText, ProvidedTool, ProviderKind, QuestionId, Receipt, Registered,
    Registration, RegistrationAction, Retained, RetryHeader, RetryPolicy, RetryTable, RetryWait, Role, RuleLayer,
    RuleMatch, RuleOrigin as RuleSource, RuleRecord, RunPosition, SPANS, SessionId, SettingKind, SettingValue,
    Severity, SourceFile, Spend, StateTest, StateValue, StepEnd, StopReason, StreamKind, Subject, SuspendReason,
    SystemBlock, TagPattern, TextOptions, TextStream, TextUnit, ThreadMode, ToolArguments, ToolCall, ToolOutcome,
    ToolOutput, ToolReport, ToolResult, ToolSpec, TurnRange, TurnStatus, Usage, Withdrawal, exact, is_hidden, is_mark,
};
pub use fork::ForkedState;
pub use front_end::{Chat, carry_out};
pub use host::{Host, HostBuilder};
pub use interrupted::Interrupted;
pub use loaded::{Loaded, PluginInfo};
pub use metrics::{
    InstanceNumbers, METRICS, MetricInfo, MetricKind, MetricPoint, MetricValue, Metrics, SessionMetrics,
};
#[cfg(feature = "metrics-server")]
pub use metrics::{MetricsServer, ServeError};
pub use options::{SessionOptions, new_session_id};
#[cfg(feature = "otel")]
pub use otel::{LostTelemetry, OtelError, Telemetry};
pub use plugins::Plugins;
pub use policy::{POLICY_FILE, machine_policy};
pub use providers::{ProviderError, RecordingError};
pub use recent::{Backlog, NoBacklog, Reconnection, Snapshot};
/// The records of sessions, as transcripts and `--output stream-json` have them.
pub use record;
pub use rules::engine::{Pattern as RulePattern, PatternError};
pub use rules::{
    Bucket as RuleBucket, ContextMode, Example as RuleExample, Fold as RuleFold, Glob as RuleGlob, Globs as RuleGlobs,
    Hold, InterruptMode, InvalidScope, OnBudget, RepeatMode, Requirement, Rule, RuleAction, RuleInfo, RulePlaces,
    RuleSet, RuleSettings, RuleSpec, RuleState, Scope as RuleScope, Shadow, Strings as RuleStrings, UnmetRule,
};
pub use sandbox::{
    DuplicatePlugin, EngineCounts, EngineError, EngineOptions, EngineReport, InstanceCounts, LoadError, LoadProblem,
};
/// For what an embedder logs: the text with `***` in the place of each secret.
pub use secrets::without_secrets;
pub use session::{Input, NewInput, Session, TurnRunning, WhenBusy};
pub use store::{
    DiskStore, DroppedLine, ForkedFrom, LastRecord, MemoryStore, RedisOptions, RedisStore, Repair, SpawnedBy,
    StoreOptions, TranscriptError, TranscriptHeader, TranscriptList, TranscriptReader, TranscriptStore,
    TranscriptSummary, UnreadableTranscript,
};
pub use system::{SystemClock, environment};
pub use tools::{DiskFiles, ToolsError, looks_secret};
pub use trouble::Troubles;
pub use trust::{SettingsReader, TrustError, TrustRecord, TrustStore, WorkspaceSettings};
pub use turn::rebuild::{OpenCalls, Rebuild, RebuildError, Resumed};
pub use turn::{
    AnswerError, Budget, CancellationToken, Compaction, EditError, FlushMode, MemoryRecords, NotWaiting, RuleMetrics,
    Spent, Subscription, TriggerSubscription, TurnReport, WaitingInput, estimated_tokens,
};
pub use turns::Turn;
