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
//! | `v0_1` | contract 0.1.0: its types, and their conversion in one place |
#![deny(unsafe_code)]

mod absent;
mod breaker;
mod breakers;
mod cache;
mod check;
mod discreet;
mod engine;
mod error;
mod events;
mod failure;
mod guest;
mod host;
mod instances;
mod interface;
mod limits;
mod load;
mod meter;
mod migration;
mod schema;
mod session;
mod setting;
mod slot;
mod state;
mod ticker;
mod tools;
mod v0_1;
mod wasm;

pub use breaker::{Change as BreakerChange, Report as BreakerReport};
pub use breakers::{Admission, HostBreakers, SessionBreakers};
pub use engine::{EngineCounts, EngineError, EngineOptions, EngineReport};
pub use error::{DuplicatePlugin, LoadError, LoadProblem};
pub use host::{SESSION_STATE_BYTES, SandboxHost};
pub use instances::InstanceCounts;
pub use interface::Interface;
pub use limits::{COMPONENT_MAX_BYTES, GuestLimits};
pub use load::{Plugin, PluginSource, Sandbox};
pub use schema::ToolSchema;
pub use setting::{Setting, Settings};
pub use tools::Tool;
pub use wasm::ComponentSource;
