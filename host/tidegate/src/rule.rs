//! Stream rules: what is in force, what a rule did, and what of it a conversation contains.
//!
//! [`Loaded::rules`](crate::plugin::Loaded::rules) has all of them, [`Session::rule_metrics`](crate::Session::rule_metrics) what each
//! did, and [`Session::subscribe_rules`](crate::Session::subscribe_rules) reports each that fires.

pub use crate::live_rules::fired::{FiredRule, FiredRules};
pub use config::rule_sources::BuiltRules;
pub use flow::ports::{KeptRules, RuleRecords, TtsrEvent};
pub use flow::{Action, Evidence, RuleLayer, RuleMatch, RuleOrigin, RuleRecord};
pub use rules::engine::{Pattern, PatternError};
pub use rules::{
    Bucket, ContextMode, Example, Fold, Glob, Globs, Hold, InterruptMode, InvalidScope, OnBudget, RepeatMode,
    Requirement, Rule, RuleAction, RuleInfo, RulePlaces, RuleSet, RuleSettings, RuleSpec, RuleState, Scope, Shadow,
    Strings, UnmetRule,
};
pub use turn::{MemoryRecords, RuleMetrics, TriggerSubscription};
