//! The agent host as a library: what an editor, a server or a script links.
//!
//! A [`Host`] is opened once from what the operator decided: it loads the plugins, builds the rules, and connects the
//! provider. From it come sessions; a session runs turns and tells what happens as a stream of events.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate::{CancellationToken, Host, Message, Operator, SessionId};
//!
//! let operator = Operator::load("tidegate.toml".as_ref())?;
//! let host = Host::builder(operator, ".").open().await?;
//! let mut session = host.session(SessionId::new("first"))?;
//! let mut events = session.subscribe();
//! let report = session.run(vec![Message::user("Rename the function")], &CancellationToken::new()).await;
//! while let Some(event) = events.try_next() {
//!     println!("{}", tidegate::transcript::record(&event, "first"));
//! }
//! println!("{:?}: {}", report.status, report.text);
//! # Ok(()) }
//! ```
//!
//! Limits: one turn at a time in a session, any number of sessions side by side. Everything a plugin, a model or a file
//! can get wrong is an error or an event with its cause; nothing of it panics.
#![forbid(unsafe_code)]

mod assemble;
mod clock;
mod confirm;
mod doctor;
mod error;
mod guidance;
mod host;
mod live;
mod load;
mod loaded;
mod rule_checks;
mod rulebook;
mod stale;

pub use assemble::tool_specs;
pub use clock::SystemClock;
pub use config::{
    Diagnostics, KeySource, Operator, PermissionMode, PermissionRule, PluginEntry, Power, ProviderKind,
    render as render_diagnostic,
};
pub use confirm::Nobody;
pub use doctor::{Check, Health, remedy};
pub use error::HostError;
pub use flow::{
    Action, Argument, CallFailure, CallId, Callback, CallbackKind, CallbackOutcome, CallbackReport, Confirmation,
    DecidedBy, Diagnostic, DiagnosticCode, ErrorClass, Event, EventKind, Evidence, FailureCause, HoldOutcome, Label,
    Location, Message, OnFailure, Partial, Place, PluginId, Position, Preview, Registered, Registration, RuleMatch,
    RuleRecord, SessionId, Severity, SourceFile, StreamKind, Subject, ToolCall, ToolSpec, TurnStatus, Usage,
};
pub use host::{Host, HostBuilder};
pub use loaded::{Loaded, PluginInfo};
pub use rules::{
    Bucket as RuleBucket, Glob as RuleGlob, Layer as RuleLayer, RepeatMode, RuleAction, RuleSet, RuleState,
    Source as RuleSource,
};
pub use turn::ports::{BoxFuture, Clock, Confirm, KeptRules, Question, RuleRecords};
pub use turn::{CancellationToken, MemoryRecords, RuleMetrics, Session, Subscription, TurnReport, transcript};
