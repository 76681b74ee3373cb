//! Tool calls that rules cannot see: arguments that the decoder gives up on, files that it does not read, and command lines that
//! cannot be read as commands.
//!
//! A rule that blocks calls must not let a call through that it could not read. Such a call counts as a match of
//! every rule that guards it; [`Evidence::unread`] distinguishes these matches from those of a condition.

use std::cell::Cell;

use commands::Unnamed;
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
    /// The end of the arguments, or they are no object. The turn refuses such a call, and only what rules about secrets watch must not be kept.
    End(&'a str),
    /// Commands of its command line; only rules about commands depend on them.
    Commands(&'a str),
    /// The names of commands of its command line; rules about commands depend on them that can be about one of these. The list is that of
    /// all commands; what can still be done to find out is shared by all rules.
    Names(&'a [Unnamed], &'a str, &'a Cell<usize>),
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
    let why_of = |rule: &Rule| match unread {
        Unread::Arguments(why) => Some((*why).to_owned()),
        Unread::End(why) => rule.secret.then(|| (*why).to_owned()),
        Unread::Files(why) => asks_for_file(rule).then(|| (*why).to_owned()),
        Unread::Commands(why) => rule.watches_commands().then(|| (*why).to_owned()),
        Unread::Names(unnamed, list, budget) => {
            let one = rule.watches_commands().then(|| rule.could_mean(unnamed, list, budget)).flatten();
            // The text of a command can have secrets of other rules in it.
            let name = |one: &Unnamed| one.variable.as_ref().map(|name| format!(" (`{name}`)")).unwrap_or_default();
            one.map(|one| format!("the name of a command{} is only known when it runs", name(one)))
        }
    };
    let to_match = |(rule, why): (&Rule, String)| RuleMatch {
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
    rules.filter_map(|rule| Some((rule, why_of(rule)?))).map(to_match).collect()
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
