//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acp;
mod agents;
mod chat;
mod chat_lists;
mod chat_questions;
mod chat_resized;
mod chat_screens;
mod cli;
mod continued;
mod ends;
mod guard;
mod import;
mod injection;
mod keys;
mod limits;
mod metrics;
mod network;
mod plugins;
mod policy;
mod redacted;
mod replay;
mod rule_files;
mod rule_reports;
mod rules;
mod secrets;
mod sessions;
mod shown;
mod shown_prompts;
mod snapshots;
mod sources;
mod start;
mod state;
mod support;
mod trust;
mod watch;
