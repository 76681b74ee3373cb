//! Stream rules: what watches a model's tokens as they arrive, and stops it when it writes what a rule forbids.
//!
//! A [`Rule`] comes from a file ([`parse_rule_file`]), a manifest ([`RuleSpec`]) or the built-in pack ([`builtin`]). A
//! [`RuleSet`] puts all rules of a host together and is shared. A [`Session`] remembers what was injected, and gives
//! a [`Gate`] for each attempt: fed with the pieces of the model's answer, it tells which rules fire and which bytes may
//! be shown. The gate gives matches, the session judges them; only the turn acts.
//!
//! This crate does no I/O and reads no clock.
#![forbid(unsafe_code)]

mod builtin;
mod calls;
mod diagnostic;
mod dialect;
pub mod engine;
mod example;
mod file;
mod gate;
mod group;
pub mod json;
mod remind;
mod rule;
mod scope;
mod session;
mod set;
mod settings;
mod spec;
mod watch;

pub use builtin::{BUILTIN_FILES, builtin};
pub use diagnostic::{Diagnostic, Severity};
pub use example::{Example, check_examples};
pub use file::parse_rule_file;
pub use gate::{Fed, Gate};
pub use rule::{Bucket, Layer, Rule, Source};
pub use scope::{Glob, Scope};
pub use session::{Judgement, Record, Session};
pub use set::{RuleInfo, RuleSet, RuleState};
pub use settings::{ContextMode, Hold, InterruptMode, OnBudget, RepeatMode, Settings};
pub use spec::{RuleAction, RuleSpec, Strings};
