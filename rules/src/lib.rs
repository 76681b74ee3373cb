//! Stream rules: what watches a model's tokens as they arrive, and stops it when it writes what a rule forbids.
//!
//! A [`Rule`] comes from a file ([`parse_rule_file`]), a manifest ([`RuleSpec`]) or the built-in pack ([`builtin`]). A
//! [`RuleSet`] puts all rules of a host together and is shared. A [`RuleSession`] remembers what was injected, and gives
//! a [`Gate`] for each attempt: fed with the chunks of the model's answer, it reports which rules fire and which bytes
//! are allowed to be shown. The gate gives matches, the session judges them; only the turn acts.
//!
//! This crate does no I/O and reads no clock.
//!
//! ```
//! use flow::{Action, StreamKind};
//! use tidegate_rules::{RuleLayer, RuleSet, RuleSession, RuleSettings, RuleOrigin, parse_rule_file};
//!
//! let file = "+++\ncondition = 'chmod 777'\n+++\nGive the owner what is needed, and nobody else.\n";
//! let source = RuleOrigin { layer: RuleLayer::Project, path: "rules/no-open-files.md".into() };
//! let (rule, diagnostics) = parse_rule_file("no-open-files", &source, file);
//! assert!(diagnostics.is_empty());
//!
//! let (set, _) = RuleSet::build(rule.into_iter().collect(), RuleSettings::default(), "/workspace");
//! let mut session = RuleSession::new(set);
//! session.begin_turn();
//! let mut gate = session.gate();
//! gate.block_start(0, &StreamKind::Text);
//!
//! // "chmod 7" may become a match, so it waits.
//! let fed = gate.piece(0, "Run chmod 7");
//! assert_eq!((fed.matches.len(), fed.safe), (0, 4));
//!
//! let fed = gate.piece(0, "77 on it");
//! assert_eq!((fed.matches[0].evidence.text.as_str(), fed.safe), ("chmod 777", 4));
//!
//! let judgement = session.judge(&fed.matches);
//! assert_eq!(judgement.action, Action::Interrupt);
//! assert!(session.reminder(&fed.matches).contains("and nobody else"));
//! // Only when the reminder has gone to the model is the rule used up. It is watched all the same.
//! session.injected(&judgement.rules);
//! assert!(!session.acts("no-open-files"));
//! ```
#![forbid(unsafe_code)]

mod book;
mod builder;
mod builtin;
mod calls;
mod command_lines;
mod conditions;
mod cost;
mod dialect;
mod duplicate;
mod effect;
pub mod engine;
mod example;
mod fields;
mod file;
mod fold;
mod front_matter;
mod gate;
mod glob;
mod group;
mod hosts;
mod idiom;
pub mod json;
mod keys;
mod lines;
mod never;
mod places;
mod prose;
mod reach;
mod remind;
mod required;
mod rule;
mod scope;
mod sections;
mod session;
mod set;
mod settings;
mod shadow;
mod spec;
mod tail;
mod unnamed;
mod unread;
mod values;
mod waits;
mod watch;
mod yaml;

pub use book::READ_RULE;
pub use builtin::{BUILTIN_FILES, builtin, builtin_origin};
pub use conditions::shown as shown_condition;
pub use duplicate::{AGAIN, Duplicate, FIRST};
pub use example::{Example, check_examples};
pub use file::{asks_to_be_required, parse_rule_file, parse_rule_source};
pub use flow::{Diagnostic, DiagnosticCode, RuleLayer, RuleOrigin, Severity, SourceFile};
pub use fold::Fold;
pub use gate::{Fed, Gate};
pub use glob::{Glob, Globs, InvalidScope};
pub use places::RulePlaces;
pub use required::UnmetRule;
pub use rule::{Bucket, Requirement, Rule};
pub use scope::Scope;
pub use session::{InjectionRecord, Judgement, RuleMemory, RuleSession, TurnSpent};
pub use set::{RuleInfo, RuleSet, RuleState};
pub use settings::{ContextMode, Hold, InterruptMode, OnBudget, RepeatMode, RuleSettings};
pub use shadow::Shadow;
pub use spec::{RuleAction, RuleSpec, Strings};
pub use values::toml_type;
