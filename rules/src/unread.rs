//! Tool calls that rules cannot see: arguments that the decoder gives up on, files that it does not read, and command lines that
//! cannot be read as commands.
//!
//! A rule that blocks calls must not let a call through that it could not read. Such a call counts as a match of
//! every rule that guards it; [`Evidence::unread`] distinguishes these matches from those of a condition.

use flow::{Action, Evidence, RuleMatch, StreamKind};

use crate::gate::RuleMode;
use crate::group::Group;
use crate::{Rule, RuleSet, Scope};

/// What could not be read of a call.
#[derive(Debug)]
pub(crate) enum Unread<'a> {
    /// The arguments, from some place on.
    Arguments(&'a str),
    /// The files of the call; only rules with file globs depend on them.
    Files(&'a str),
    /// The end of the arguments, or they are no object. The tool refuses them, and only what rules about secrets watch must not be kept.
    End(&'a str),
    /// Commands of its command line; only rules about commands depend on them.
    Commands(&'a str),
}

/// The matches of the rules that guard the call. `live` is by position in the group: which rules can still fire.
pub(crate) fn matches(
    unread: &Unread<'_>,
    group: &Group,
    live: &[bool],
    modes: &[RuleMode],
    set: &RuleSet,
    stream: &StreamKind,
) -> Vec<RuleMatch> {
    let guarding = group.rules.iter().zip(live).filter(|(at, live)| **live && modes[**at as usize].guards);
    let rules = guarding.map(|(at, _)| set.at(*at));
    let (rules, why): (Vec<&Rule>, _) = match unread {
        Unread::Arguments(why) => (rules.collect(), why),
        Unread::End(why) => (rules.filter(|rule| rule.secret).collect(), why),
        Unread::Files(why) => (rules.filter(|rule| asks_for_file(rule)).collect(), why),
        Unread::Commands(why) => (rules.filter(|rule| rule.watches_commands()).collect(), why),
    };
    let to_match = |rule: &Rule| RuleMatch {
        rule: rule.name.clone(),
        stream: stream.clone(),
        evidence: Evidence {
            pattern: String::new(),
            text: format!("the arguments cannot be read: {why}"),
            start: 0,
            end: 0,
            line: 1,
            field: None,
            path: None,
            unread: true,
        },
    };
    rules.into_iter().map(to_match).collect()
}

fn asks_for_file(rule: &Rule) -> bool {
    !rule.globs.is_empty() || rule.scopes.iter().any(|scope| matches!(scope, Scope::Tool { glob: Some(_), .. }))
}

/// The action for a call that a rule cannot read, where `wish` is the action for a match of the rule. `None`: the
/// rule never blocks calls and is not required.
pub(crate) fn action(wish: Action, required: bool) -> Option<Action> {
    match wish {
        _ if required => Some(Action::Stop),
        Action::Stop => Some(Action::Stop),
        // The answer is kept: it is enough that this call does not run.
        Action::Interrupt | Action::Block => Some(Action::Block),
        Action::Remind | Action::Pass => None,
    }
}
