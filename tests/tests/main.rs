//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod child_agents;
mod embedding;
mod event_types;
mod every_event;
mod interleavings;
mod kept;
mod pass_through;
mod plugin_changes;
mod plugin_tools;
mod providers;
mod reconnect;
mod registries;
mod resume;
mod rule_turns;
mod schema;
mod slow_notices;
mod turn;
mod unregister;
