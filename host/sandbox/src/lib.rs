//! The sandbox: plugins as WebAssembly components, and the only crate that names their engine.
//!
//! [`Sandbox::load`] turns a file into a [`Plugin`], or returns the reason why not: what it imports must be asked for
//! and granted, what it exports must be what it registers. [`SandboxHost`] gives the loaded plugins to a turn: each
//! session gets its own instance of each plugin, made when it is first needed and replaced after a failure. Every
//! call has limits of time, memory and size, and every failure has a cause of its own; a callback's writes to the
//! `state` power are applied when it succeeds.
//!
//! | file | what it is for |
//! |---|---|
//! | `engine`, `ticker`, `meter`, `cache` | the engine, its time limits, the time that guests use, compiled components on disk |
//! | `load`, `check`, `error` | from a file to a plugin, or to a reason |
//! | `host`, `session`, `slot`, `guest`, `breaker`, `breakers` | sessions, calls, instances and what they know |
//! | `instances` | how many instances there may be at once, and who gets one |
//! | `tools`, `schema` | tools that plugins provide: their check, their calls, the schemas of their arguments |
//! | `limits`, `failure` | what may be used up, and the words for what went wrong |
//! | `power`, `setting`, `state`, `events` | what plugins may have |
//! | `without` | a build without the feature `wasm`: no plugin with a component is loaded |
//! | `v0_1` | contract 0.1.0: its types, and their conversion in one place |
#![deny(unsafe_code)]
// What only the engine calls is in modules that both builds have.
#![cfg_attr(not(feature = "wasm"), allow(dead_code, reason = "the engine uses it"))]

mod absent;
mod breaker;
mod breakers;
#[cfg(feature = "wasm")]
mod cache;
#[cfg(feature = "wasm")]
mod check;
#[cfg(feature = "wasm")]
mod discreet;
#[cfg(feature = "wasm")]
mod engine;
mod error;
#[cfg(feature = "wasm")]
mod events;
#[cfg(feature = "wasm")]
mod failure;
#[cfg(feature = "wasm")]
mod guest;
mod host;
#[cfg(feature = "wasm")]
mod instances;
mod interface;
mod limits;
#[cfg(feature = "wasm")]
mod load;
#[cfg(feature = "wasm")]
mod meter;
#[cfg(feature = "wasm")]
mod migration;
mod options;
mod schema;
#[cfg(feature = "wasm")]
mod session;
#[cfg(feature = "wasm")]
mod sessions;
mod setting;
#[cfg(feature = "wasm")]
mod slot;
mod source;
#[cfg(feature = "wasm")]
mod state;
#[cfg(feature = "wasm")]
mod ticker;
#[cfg(feature = "wasm")]
mod tools;
#[cfg(feature = "wasm")]
mod v0_1;
#[cfg(feature = "wasm")]
mod wasm;
#[cfg(not(feature = "wasm"))]
mod without;

pub use breaker::{Change as BreakerChange, Report as BreakerReport};
pub use breakers::{Admission, HostBreakers, SessionBreakers};
pub use error::{DuplicatePlugin, LoadError, LoadProblem};
pub use host::{SESSION_STATE_BYTES, SandboxHost};
pub use interface::Interface;
pub use limits::{COMPONENT_MAX_BYTES, GuestLimits};
#[cfg(feature = "wasm")]
pub use load::{Plugin, Sandbox};
pub use options::{EngineCounts, EngineError, EngineOptions, EngineReport, InstanceCounts};
pub use schema::{Tool, ToolSchema};
pub use setting::{Setting, Settings};
pub use source::{ComponentSource, PluginSource};
#[cfg(not(feature = "wasm"))]
pub use without::{Plugin, Sandbox};
