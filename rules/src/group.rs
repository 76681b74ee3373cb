//! Rules that watch the same stream, run together on one automaton.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::engine::{Automaton, CacheBudget, Pattern};
use crate::fold::Fold;
use crate::scope::tool_key;
use crate::{Rule, Scope};

/// What a pattern is to its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// One of `condition`: any of them.
    Any,
    /// One of `all`, by its number.
    All(u32),
    /// One of `unless`.
    Unless,
}

/// The rules that watch one stream.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) automaton: Arc<Automaton>,
    /// By pattern number: the rule's position in `rules`, and the pattern's role.
    pub(crate) slots: Vec<(u32, Role)>,
    /// Positions in the rule set.
    pub(crate) rules: Vec<u32>,
    /// Patterns that match before the first byte.
    pub(crate) at_once: Vec<u32>,
    /// By pattern number: whether what it matches is a secret.
    pub(crate) secrets: Vec<bool>,
    /// The rules among them that see the stream folded. Their patterns run there alone.
    pub(crate) folded: Vec<FoldedGroup>,
}

/// The rules of a group that see the stream folded in the same way.
#[derive(Debug)]
pub(crate) struct FoldedGroup {
    pub(crate) fold: Fold,
    pub(crate) group: Arc<Group>,
    /// By position in `group`: the position in the group of the stream.
    pub(crate) locals: Vec<u32>,
}

/// All groups of a rule set. Streams that the same rules watch share one; the automata of all share one cache budget.
#[derive(Debug)]
pub(crate) struct Groups {
    text: Option<Arc<Group>>,
    thinking: Option<Arc<Group>>,
    any_tool: Option<Arc<Group>>,
    tools: HashMap<String, Option<Arc<Group>>>,
}

impl Groups {
    /// Puts the rules at the positions `active` together by the streams they watch.
    pub(crate) fn new(rules: &[Rule], active: &[u32]) -> Self {
        let (budget, mut known) = (CacheBudget::shared(), HashMap::<Vec<u32>, Arc<Group>>::new());
        let mut group = |watches: &dyn Fn(&Rule) -> bool| {
            let members: Vec<u32> = active.iter().copied().filter(|at| watches(&rules[*at as usize])).collect();
            if members.is_empty() {
                return None;
            }
            let group = known.entry(members.clone()).or_insert_with(|| Arc::new(Group::new(rules, members, &budget)));
            Some(Arc::clone(group))
        };
        let names = active.iter().flat_map(|at| rules[*at as usize].scopes.iter()).filter_map(|scope| match scope {
            Scope::Tool { name: Some(name), .. } => Some(tool_key(name).to_owned()),
            _ => None,
        });
        let tools = names.map(|name| (name.clone(), group(&|rule| watches_tool(rule, Some(&name))))).collect();
        Self {
            text: group(&watches_text),
            thinking: group(&watches_thinking),
            any_tool: group(&|rule| watches_tool(rule, None)),
            tools,
        }
    }

    pub(crate) fn text(&self) -> Option<&Arc<Group>> {
        self.text.as_ref()
    }

    pub(crate) fn thinking(&self) -> Option<&Arc<Group>> {
        self.thinking.as_ref()
    }

    /// The rules for calls of the tool `name` (lower-case).
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Group>> {
        self.tools.get(tool_key(name)).unwrap_or(&self.any_tool).as_ref()
    }

    /// Each group once.
    pub(crate) fn all(&self) -> Vec<&Arc<Group>> {
        let every = [&self.text, &self.thinking, &self.any_tool].into_iter().chain(self.tools.values()).flatten();
        let every =
            every.flat_map(|group| std::iter::once(group).chain(group.folded.iter().map(|folded| &folded.group)));
        let mut out: Vec<&Arc<Group>> = Vec::new();
        for group in every {
            if !out.iter().any(|known| Arc::ptr_eq(known, group)) {
                out.push(group);
            }
        }
        out
    }
}

impl Group {
    fn new(rules: &[Rule], members: Vec<u32>, budget: &Arc<CacheBudget>) -> Self {
        let fold_of = |at: &u32| rules[*at as usize].fold;
        let folds: BTreeSet<Fold> = members.iter().map(fold_of).filter(|fold| !fold.is_none()).collect();
        let folded = |fold: Fold| {
            let own = members.iter().zip(0..).filter(|(at, _)| fold_of(at) == fold);
            let (at, locals): (Vec<u32>, Vec<u32>) = own.map(|(at, local)| (*at, local)).unzip();
            FoldedGroup { fold, group: Arc::new(Self::of(rules, at, fold, budget)), locals }
        };
        let folded = folds.into_iter().map(folded).collect();
        Self { folded, ..Self::of(rules, members, Fold::default(), budget) }
    }

    /// The group of these rules, with the patterns of those that have this fold.
    fn of(rules: &[Rule], members: Vec<u32>, fold: Fold, budget: &Arc<CacheBudget>) -> Self {
        let (mut patterns, mut slots): (Vec<Arc<Pattern>>, Vec<(u32, Role)>) = (Vec::new(), Vec::new());
        let of_fold = members.iter().map(|at| &rules[*at as usize]).enumerate().filter(|(_, rule)| rule.fold == fold);
        for (local, rule) in of_fold {
            let any = rule.conditions.iter().map(|p| (p, Role::Any));
            let all = rule.all.iter().zip(0..).map(|(p, n)| (p, Role::All(n)));
            let unless = rule.unless.iter().map(|p| (p, Role::Unless));
            for (pattern, role) in any.chain(all).chain(unless) {
                patterns.push(Arc::clone(pattern));
                slots.push((local as u32, role));
            }
        }
        let is_secret =
            |(local, role): &(u32, Role)| *role != Role::Unless && rules[members[*local as usize] as usize].secret;
        let secrets = slots.iter().map(is_secret).collect();
        let at_once = patterns.iter().zip(0..).filter(|(p, _)| p.matches_empty()).map(|(_, n)| n).collect();
        Self {
            automaton: Automaton::with_budget(patterns, budget),
            slots,
            rules: members,
            at_once,
            secrets,
            folded: Vec::new(),
        }
    }
}

impl Group {
    /// Whether a condition of a rule about secrets matches in a text.
    pub(crate) fn is_secret(&self, text: &str) -> bool {
        let patterns = self.automaton.patterns().iter().zip(&self.secrets);
        patterns.filter(|(_, secret)| **secret).any(|(pattern, _)| pattern.is_in(text))
            || self.folded.iter().any(|folded| folded.group.is_secret(text))
    }

    /// What an operator should know of the memory of its automaton, in a line; none if all is well.
    pub(crate) fn trouble(&self, rules: &[Rule]) -> Option<String> {
        let stats = self.automaton.stats();
        if stats.uncached_bytes == 0 && stats.freezes == 0 {
            return None;
        }
        let work = self.automaton.live_states();
        let all: u64 = work.iter().sum();
        let (most, slot) = work.iter().zip(&self.slots).max_by_key(|(work, _)| **work)?;
        let (rule, share) = (&rules[self.rules[slot.0 as usize] as usize].name, most * 100 / all.max(1));
        Some(format!(
            "the cache of the stream rules is full ({} of {} KiB, cleared {} times): {} bytes were matched without it, which \
             is correct but much slower{}. Of these {} rules `{rule}` has the largest \
             share, {share} %: make the counts `{{…}}` in it smaller, or disable the rule",
            stats.budget_used >> 10,
            stats.budget >> 10,
            stats.clears,
            stats.uncached_bytes,
            if stats.frozen { ", and still are" } else { "" },
            self.rules.len(),
        ))
    }
}

/// Whether a rule can fire on the words for the user: those have no files.
pub(crate) fn watches_text(rule: &Rule) -> bool {
    rule.globs.is_empty() && rule.scopes.iter().any(|scope| matches!(scope, Scope::Text))
}

/// Whether a rule can fire on reasoning.
pub(crate) fn watches_thinking(rule: &Rule) -> bool {
    rule.globs.is_empty() && rule.scopes.iter().any(|scope| matches!(scope, Scope::Thinking))
}

/// Whether a rule can fire on calls of the tool `name`; no name = tools that no scope names.
pub(crate) fn watches_tool(rule: &Rule, name: Option<&str>) -> bool {
    rule.scopes.iter().any(|scope| match scope {
        Scope::Tool { name: None, .. } => true,
        Scope::Tool { name: Some(own), .. } => name.is_some_and(|name| tool_key(name) == tool_key(own)),
        _ => false,
    })
}
