//! Rules on trial: what each one is, whether it can fire, what it fires on, and what it would have done in old sessions.
//!
//! Nothing here asks a model, runs a tool or loads a component. All of it drives the same engine that a turn drives.
//!
//! | question | answer |
//! |---|---|
//! | which rules are there, and which of them count? | [`Catalogue::entries`] |
//! | are these files good rules? | [`check()`] |
//! | does this rule fire on that, and why not? | [`probe()`] |
//! | what is this rule, in all detail? | [`explain()`] |
//! | what would rules have done in these sessions? | [`replay()`] |
#![forbid(unsafe_code)]

mod arguments;
mod catalogue;
mod check;
mod explain;
mod feed;
mod input;
mod probe;
mod promise;
mod replay;
mod tools;

use rules::Rule;

pub use arguments::UnknownArguments;
pub use catalogue::{Catalogue, NotFound, RuleEntry, RuleStatus, Subject};
pub use check::{Checked, Unreadable, check};
pub use explain::{ExampleResult, Explained, Explanation, Part, ScopeReach, Value, explain};
pub use feed::Held;
pub use input::{BadInput, Input};
pub use probe::{Probe, Why, probe};
pub use promise::REPEAT_LEGEND;
pub use replay::{Agreement, BadLine, Fire, Replay, ReplayError, RuleTally, Then, Tokens, Trial, Where, replay};
pub use tools::UnknownTool;

/// A rule of which something is changed.
fn changed(rule: &Rule, change: impl FnOnce(&mut Rule)) -> Rule {
    let mut rule = rule.clone();
    change(&mut rule);
    rule
}
