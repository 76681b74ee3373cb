//! All rules of a host: which of them are used, which are not and why, and the automata they run on.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use flow::{Diagnostic, DiagnosticCode as Code, Severity};

use crate::group::{Groups, watches_text, watches_thinking, watches_tool};
use crate::required;
use crate::shadow::Shadow;
use crate::{Bucket, Rule, RuleLayer, RuleSettings, Scope};

/// The rules of a host, shared by its sessions. Immutable but for the automata's rows.
#[derive(Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
    states: Vec<RuleState>,
    by_name: HashMap<String, u32>,
    /// Positions of the rules that watch streams.
    active: Vec<u32>,
    groups: OnceLock<Groups>,
    settings: RuleSettings,
    workspace: String,
}

/// Whether a rule is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleState {
    /// The rule is in use.
    Active,
    /// It has `enabled = false`, or the settings exclude it; the string gives the reason.
    Disabled(String),
    /// A rule of the same name from a higher layer is used instead; the string names it.
    Shadowed(String),
    /// It can never fire; the string gives the reason.
    Unreachable(String),
}

/// One rule as `rules list` shows it.
#[derive(Clone, Debug)]
pub struct RuleInfo<'a> {
    /// The rule itself, as it was read.
    pub rule: &'a Rule,
    /// Whether it is used.
    pub state: &'a RuleState,
    /// Its scopes, written in full.
    pub scopes: Vec<String>,
    /// The interrupt mode that counts for it.
    pub interrupt: crate::InterruptMode,
    /// The repeat mode that counts for it.
    pub repeat: crate::RepeatMode,
    /// The gap that counts for it.
    pub gap: u32,
}

impl RuleInfo<'_> {
    /// The maximum number of bytes that a match of the rule can hold back; `None` if only the settings bound it.
    pub fn longest_match(&self) -> Option<u32> {
        longest(self.rule)
    }
}

impl RuleSet {
    /// Decides which rules are used. `workspace` is the absolute path that relative file globs are
    /// tried against. Rules of one name: a required one wins, then the highest layer, within a layer the first.
    pub fn build(rules: Vec<Rule>, settings: RuleSettings, workspace: &str) -> (Arc<Self>, Vec<Diagnostic>) {
        let mut rules = rules;
        // Stable: plugins keep the order they were given in.
        rules.sort_by_key(|rule| layer_rank(&rule.source.layer));
        let mut by_name = required::winners(&rules, &settings);
        let (mut found, mut states) = (Vec::new(), Vec::with_capacity(rules.len()));
        for (at, rule) in rules.iter().enumerate() {
            let winner = by_name.get(&rule.name).filter(|winner| **winner as usize != at);
            states.push(state_of(rule, winner.map(|winner| &rules[*winner as usize]), &settings, &mut found));
        }
        by_name.retain(|_, at| !matches!(states[*at as usize], RuleState::Disabled(_)));
        let active: Vec<u32> = (0..rules.len() as u32)
            .filter(|at| settings.enabled && states[*at as usize] == RuleState::Active)
            .filter(|at| rules[*at as usize].bucket == Bucket::Stream)
            .collect();
        let groups = OnceLock::new();
        let set = Self { rules, states, by_name, active, groups, settings, workspace: workspace.to_owned() };
        found.extend(set.shadows().iter().map(Shadow::diagnostic));
        (Arc::new(set), found)
    }

    /// All rules that were given, used or not, highest layer first.
    pub fn rules(&self) -> impl Iterator<Item = RuleInfo<'_>> {
        self.with_states().map(|(rule, state)| RuleInfo {
            rule,
            state,
            scopes: rule.scopes.iter().map(Scope::to_text).collect(),
            interrupt: rule.interrupt.unwrap_or(self.settings.interrupt_mode),
            repeat: rule.repeat.unwrap_or(self.settings.repeat_mode),
            gap: rule.gap.unwrap_or(self.settings.repeat_gap),
        })
    }

    /// The rule of this name that is used.
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        self.position(name).map(|at| &self.rules[at as usize])
    }

    /// The stream rule of this name that watches.
    pub fn active(&self, name: &str) -> Option<&Rule> {
        let at = self.position(name).filter(|at| self.active.contains(at))?;
        Some(&self.rules[at as usize])
    }

    /// The stream rules that watch.
    pub fn active_rules(&self) -> impl Iterator<Item = &Rule> {
        self.active.iter().map(|at| &self.rules[*at as usize])
    }

    /// Bodies of the rules that join the system prompt, with their names.
    pub fn always_apply(&self) -> impl Iterator<Item = &Rule> {
        self.in_bucket(Bucket::AlwaysApply)
    }

    /// The rules of the rulebook, which the system prompt lists by description.
    pub fn rulebook(&self) -> impl Iterator<Item = &Rule> {
        self.in_bucket(Bucket::Rulebook)
    }

    /// The settings it was built with.
    pub fn settings(&self) -> &RuleSettings {
        &self.settings
    }

    /// The workspace it was built for.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// Compiles what is still to be compiled. The first gate does it otherwise, which then takes a few milliseconds longer.
    pub fn prepare(&self) {
        self.groups();
    }

    pub(crate) fn groups(&self) -> &Groups {
        self.groups.get_or_init(|| Groups::new(&self.rules, &self.active))
    }

    /// A warning about the cache budget with the remedy, in one line; `None` if it suffices. Rules fire at the right
    /// byte in any case: without cache budget each byte costs many times as much, but nothing is rescanned.
    pub fn engine_trouble(&self) -> Option<String> {
        self.groups().all().iter().find_map(|group| group.trouble(&self.rules))
    }

    pub(crate) fn with_states(&self) -> impl Iterator<Item = (&Rule, &RuleState)> {
        self.rules.iter().zip(&self.states)
    }

    pub(crate) fn position(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn at(&self, position: u32) -> &Rule {
        &self.rules[position as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    fn in_bucket(&self, bucket: Bucket) -> impl Iterator<Item = &Rule> {
        let used = move |(rule, state): &(&Rule, &RuleState)| rule.bucket == bucket && **state == RuleState::Active;
        self.with_states().filter(used).map(|(rule, _)| rule)
    }
}

pub(crate) fn layer_rank(layer: &RuleLayer) -> u8 {
    match layer {
        RuleLayer::Code => 0,
        RuleLayer::Project => 1,
        RuleLayer::User => 2,
        RuleLayer::Plugin(_) => 3,
        RuleLayer::Builtin => 4,
    }
}

/// Why a rule is switched off, if it is: such a rule owns no name. One that cannot fire still does.
pub(crate) fn disabled(rule: &Rule, settings: &RuleSettings) -> Option<&'static str> {
    if !rule.enabled {
        return Some("the rule says `enabled = false`");
    }
    if !settings.builtin_rules && rule.source.layer == RuleLayer::Builtin {
        return Some("the setting `builtin_rules` is false");
    }
    let named = settings.disabled_rules.iter().any(|name| name.trim() == rule.name);
    named.then_some("the setting `disabled_rules` names it")
}

/// `winner`: the other rule of this name that is used instead.
fn state_of(rule: &Rule, winner: Option<&Rule>, settings: &RuleSettings, found: &mut Vec<Diagnostic>) -> RuleState {
    if let Some(why) = disabled(rule, settings) {
        return RuleState::Disabled(why.into());
    }
    if let Some(winner) = winner {
        return RuleState::Shadowed(winner.source.to_string());
    }
    if !settings.enabled && rule.bucket == Bucket::Stream {
        return RuleState::Disabled("the setting `enabled` of stream rules is false".into());
    }
    if let Some(why) = &rule.never {
        return RuleState::Unreachable(why.clone());
    }
    if let Some((reason, all)) = unreachable(rule) {
        let severity = if all { Severity::Error } else { Severity::Warning };
        let found_one = rule.diagnostic(severity, Code::RuleUnreachable, reason.clone()).help(GLOB_HELP);
        found.push(match rule.location(&["globs", "scope"]) {
            Some(location) => found_one.at(location, ""),
            None => found_one,
        });
        if all {
            return RuleState::Unreachable(reason);
        }
    }
    RuleState::Active
}

const GLOB_HELP: &str = "only tool calls have files: scope the rule to `tool`, or remove `globs` and `field`";

/// Streams in a rule's scope on which it can never fire, and whether no other is left.
fn unreachable(rule: &Rule) -> Option<(String, bool)> {
    if rule.bucket != Bucket::Stream {
        return None;
    }
    let scoped = |wanted: fn(&Scope) -> bool| rule.scopes.iter().any(wanted);
    let (text, thinking) = (scoped(|s| matches!(s, Scope::Text)), scoped(|s| matches!(s, Scope::Thinking)));
    let dead = [(text && !watches_text(rule), "text"), (thinking && !watches_thinking(rule), "thinking")];
    let names: BTreeMap<&str, ()> = dead.iter().filter(|(dead, _)| *dead).map(|(_, name)| (*name, ())).collect();
    if names.is_empty() {
        return None;
    }
    let names: Vec<&str> = names.into_keys().collect();
    let tool = rule.scopes.iter().any(|s| matches!(s, Scope::Tool { .. })) && reaches_a_tool(rule);
    Some((format!("it can never fire on {}: `globs` asks for a file", names.join(" and ")), !tool))
}

fn reaches_a_tool(rule: &Rule) -> bool {
    let named =
        rule.scopes.iter().find_map(|s| if let Scope::Tool { name, .. } = s { Some(name.as_deref()) } else { None });
    named.is_some_and(|name| watches_tool(rule, name))
}

fn longest(rule: &Rule) -> Option<u32> {
    rule.conditions
        .iter()
        .chain(&rule.all)
        .map(|p| p.max_hidden())
        .try_fold(0, |most, len| len.map(|len| most.max(len)))
}
