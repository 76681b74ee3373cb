//! The test kit: the ports of a turn as tests play them.
//!
//! These replace the real parts only where exact timing, exact chunking or a fault is wanted. Everything here panics
//! where a test uses it wrongly. The crate depends on no sandbox and no HTTP, so that the light crates can use it.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    missing_debug_implementations,
    reason = "a test fails by panicking; closures have no debug form"
)]

mod approvals;
mod clock;
mod events;
mod journal;
pub mod judge;
mod model;
mod plugins;
mod random;
mod ready;
mod scene;
mod tools;

pub use approvals::Decisions;
pub use clock::{Frozen, Leaping, Still, TokioClock};
pub use events::{assert_rebuilt, assert_valid, drain, kept_on_screen, listing, reports, said, shown};
pub use journal::AtOnce;
pub use model::{CUTS, RANDOM, Script, ScriptedModel, blocks, calls, live, pieces, say, text, tool};
pub use plugins::{KeptState, Plugin, Plugins};
pub use random::Random;
pub use ready::ready;
pub use scene::{Edited, Scene, parts, rule_set, session};
pub use tools::{EchoTools, Fetch, Nobody};
