//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent_files;
mod capabilities;
mod codes;
mod corpus;
mod error_fields;
mod error_files;
mod error_project;
mod event_catalogue;
mod event_conditions;
mod event_fields;
mod event_files;
mod event_layers;
mod event_reference;
mod guides;
mod in_force;
mod operator_layers;
mod pages;
mod project_rules;
mod reference;
mod rule_files;
mod schema;
mod support;
mod tables;
mod thread_limits;
mod trust;
mod unreadable;
mod values;
