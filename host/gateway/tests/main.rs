//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod additions;
mod call_shapes;
mod custom_calls;
mod evasions;
mod fidelity;
mod frames;
mod histories;
mod kept_texts;
mod odd_shapes;
mod orders;
mod plugin_edges;
mod plugins;
mod refused;
mod reminders;
mod rules_fire;
mod script;
mod shapes;
mod shown;
mod trail;
mod waiting;
