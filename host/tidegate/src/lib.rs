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
//! Text in [`EventKind::CognitionOutDelta`] has passed the rules and is never taken back, unless the [`EventKind::CognitionOut`] that
//! ends the answer has `partial`: then text after its `kept_bytes` can be void, which [`Chat`] works out. Other events have text that was
//! stopped: [`Session::subscribe_shown`] leaves it out.
//!
//! | to | use |
//! |---|---|
//! | run many hosts on one engine | [`HostBuilder::engine`] |
//! | bring a model, tools, files, a confirmation handler, a conversation | [`SessionOptions`] |
//! | send input while a turn runs | [`Session::send`], [`Session::cancel`] |
//! | change what goes in and out with code of its own | [`native`], [`HostBuilder::extension`], [`SessionOptions::extension`] |
//! | stop the model by rules without files | [`HostBuilder::rule`], [`SessionOptions::rule`] |
//! | let another model answer | [`Session::set_model`] |
//! | change what waits, and see what became of it | [`Session::inbox`] |
//! | limit what a session takes, and decide about more | [`SessionOptions::limits`], [`Session::decide_limit`] |
//! | continue a session that was suspended | [`Session::resume`] |
//! | answer questions about tool calls ([`question`]), of child agents too | [`SessionOptions::confirm`], [`Session::pending_questions`], [`Session::answer`] |
//! | guard exchanges between other agents and their models, as a gateway does | [`gateway`], [`Host::conversation`] |
//! | watch a session from several places | [`Session::subscribe_shown`]; with what was not shown, [`Session::subscribe`] |
//! | show a chat | [`Chat`]; its primitives are in [`chat`] |
//! | show it in another process, also after a connection was lost | [`Session::subscribe_from`], [`carry_out`] |
//! | change plugins while sessions are open | [`Host::plugins`], [`Session::disable_plugin`], [`HostBuilder::follow`] |
//! | count what all sessions do, for Prometheus | [`HostBuilder::metrics`] |
//! | export traces and metrics to OpenTelemetry | `metrics::Telemetry`, with the feature `otel` |
//!
//! What every embedder meets is here, at the root. The rest is in modules by subject: [`event`], [`gateway`], [`input`], [`question`], [`tool`],
//! [`model`], [`rule`], [`plugin`], [`native`], [`limit`], [`state`], [`transcript`] and those listed below.
//!
//! | feature | adds |
//! |---|---|
//! | `wasm` | plugins with a component, and with it the engine of WebAssembly; on by default |
//! | `redis` | state of plugins in a Redis server, which several hosts share |
//! | `metrics-server` | an HTTP endpoint for [`metrics`] |
//! | `otel` | the export of traces and metrics to OpenTelemetry |
//! | `clap` | some values as arguments of a command line |
//!
//! The others are off by default; the program `tidegate` has `redis` and `metrics-server`. Without `wasm`, plugins of rules and prompts, native
//! extensions and rules work as with it; a plugin with a component refuses the host, with an error that names the feature.
//!
//! One turn runs at a time in a session; prompts queue. Everything a plugin, a model or a file can get wrong is an error or an event
//! with its cause, never a panic. Sessions need a Tokio runtime.
#![forbid(unsafe_code)]

pub mod agent;
pub mod config;
pub mod diagnostic;
pub mod event;
pub mod gateway;
pub mod input;
pub mod limit;
pub mod message;
pub mod metrics;
pub mod model;
pub mod native;
pub mod plugin;
pub mod prompt;
pub mod question;
pub mod rule;
pub mod state;
pub mod text;
pub mod tool;
pub mod transcript;
pub mod trust;

mod agents;
mod conversation;
mod doctor;
mod error;
mod front_end;
mod host;
mod live_rules;
mod plugins;
mod session;

/// The example of the page about OpenTelemetry is compiled as a test.
#[cfg(all(doctest, feature = "otel"))]
#[doc = include_str!("../../telemetry/OPENTELEMETRY.md")]
struct OtelPage;

/// The examples of the page for authors of front ends are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../FRONT_ENDS.md")]
struct FrontEndsPage;

/// The example of the page for embedders is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../EMBEDDING.md")]
struct EmbeddingPage;

/// Primitives for front ends: what a chat shows of a session, made of its events by pure state machines.
pub use ::chat;
pub use ::config::Operator;
pub use ::flow::ports::{BoxFuture, Clock};
pub use ::flow::{Event, EventKind, Message, PluginId, SessionId, TurnStatus};
/// The records of sessions, as transcripts and `--output stream-json` have them.
pub use ::record;
pub use ::system::{SystemClock, environment};
pub use ::turn::{CancellationToken, Subscription, TurnReport};
pub use error::HostError;
pub use front_end::{Chat, CommandError, carry_out, carry_out_command};
pub use host::engine::Engine;
pub use host::{Host, HostBuilder};
pub use session::Session;
pub use session::options::{SessionOptions, new_session_id};
pub use session::turn_handle::Turn;
