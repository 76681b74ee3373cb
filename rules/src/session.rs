//! What one session remembers of rules: which were injected when, what waits, and what a turn has spent.

mod kept;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use flow::{Action, RuleMatch, StreamKind};

pub use self::kept::{RuleMemory, TurnSpent};
use crate::gate::{Gate, RuleMode};
use crate::unread;
use crate::{Bucket, ContextMode, OnBudget, RepeatMode, Rule, RuleSet, RuleState};

/// The records and budgets of one session. Cheap: what is large is shared in the [`RuleSet`].
#[derive(Clone, Debug)]
pub struct RuleSession {
    set: Arc<RuleSet>,
    /// The agent's name, which rules may be limited to.
    agent: String,
    /// By rule name: when it was last injected.
    records: HashMap<String, InjectionRecord>,
    /// Rules with a reminder that waits for delivery.
    reserved: HashSet<String>,
    /// Turns completed in the session.
    completed: u64,
    /// The matches that extensions were notified of in this turn.
    told: HashSet<(StreamKind, String)>,
    interrupts: u32,
    /// Those of them that only rules asked for that nobody trusts.
    untrusted_interrupts: u32,
    rule_interrupts: HashMap<String, u32>,
    /// How often rules have reminded the model of what they found in text or thinking in this turn: each time asks it once more.
    prose_reminders: HashMap<String, u32>,
    /// Rules whose use-up of a budget was reported in this turn.
    reported: HashSet<String>,
    /// By lower-case name of a tool: the arguments that its schema declares as files.
    path_fields: Arc<HashMap<String, Vec<String>>>,
}

/// That a rule was injected, in the form that a resumed session needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectionRecord {
    /// The rule's name.
    pub rule: String,
    /// [`Rule::content_hash`] at that time: an edited rule counts as new.
    pub hash: u64,
    /// Turns that had been completed.
    pub turn: u64,
}

/// What is to be done about matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The strongest of `actions`.
    pub action: Action,
    /// The action for each match, in the given order.
    pub actions: Vec<Action>,
    /// For each match: its rule was used before and its repeat mode does not let it act now, so the match is only reported.
    pub again: Vec<bool>,
    /// For each match: the first of its stream and rule in the turn, so that extensions are notified.
    pub first: Vec<bool>,
    /// Rules with a due reminder, each once: with an interrupt all that matched, else those that remind or block.
    /// They are reserved until [`RuleSession::injected`] or [`RuleSession::release`].
    pub rules: Vec<String>,
    /// For an interrupt: what becomes of the partial answer. Of several rules that stop it together, the one that leaves
    /// least of it has its way: `discard` before `rewind` before `keep`.
    pub context: ContextMode,
    /// Rules that would have interrupted, or reminded after the answer, but that have used up a budget of the turn: each the first time.
    pub over_budget: Vec<String>,
}

impl RuleSession {
    /// A session of the agent `main` in which nothing has been injected.
    pub fn new(set: Arc<RuleSet>) -> Self {
        Self::of_agent(set, "main")
    }

    /// A session of the agent of this name: rules with `agents` that do not name it stay out.
    pub fn of_agent(set: Arc<RuleSet>, agent: &str) -> Self {
        Self {
            set,
            agent: agent.to_owned(),
            records: HashMap::new(),
            reserved: HashSet::new(),
            completed: 0,
            told: HashSet::new(),
            interrupts: 0,
            untrusted_interrupts: 0,
            rule_interrupts: HashMap::new(),
            prose_reminders: HashMap::new(),
            reported: HashSet::new(),
            path_fields: Arc::default(),
        }
    }

    /// The name of its agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The rules it goes by.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.set
    }

    /// Goes by other rules from now on (rules were edited). Records of rules that are gone or were edited are dropped.
    pub fn replace_rules(&mut self, set: Arc<RuleSet>) {
        self.set = set;
        let records = std::mem::take(&mut self.records);
        self.restore(records.into_values(), self.completed);
    }

    /// The arguments that name files, for tools that say so themselves ([`flow::ToolSpec::declared_paths`]). Of any other
    /// tool an argument names a file when its key is or ends with `path`, or it is in a list whose key is or ends
    /// with `paths`.
    pub fn declare_paths<'t>(&mut self, tools: impl IntoIterator<Item = &'t flow::ToolSpec>) {
        let declared = tools.into_iter().map(|tool| (tool.name.to_lowercase(), tool.declared_paths()));
        self.path_fields = Arc::new(declared.filter(|(_, fields)| !fields.is_empty()).collect());
    }

    /// A turn begins: its budgets are full.
    pub fn begin_turn(&mut self) {
        self.told.clear();
        self.reserved.clear();
        self.rule_interrupts.clear();
        self.prose_reminders.clear();
        self.reported.clear();
        (self.interrupts, self.untrusted_interrupts) = (0, 0);
    }

    /// A turn has ended, whichever way. What waited to be delivered in it never will be.
    pub fn end_turn(&mut self) {
        self.completed += 1;
        self.reserved.clear();
    }

    /// Whether a match of this rule would be acted on now, budgets aside. A rule that its repeat mode keeps from acting is
    /// still watched.
    pub fn acts(&self, rule: &str) -> bool {
        let waits = self.reserved.contains(rule);
        self.set.rule(rule).is_some_and(|rule| !waits && rule.watches_agent(&self.agent) && !self.is_used_up(rule))
    }

    /// Turns that have ended.
    pub fn completed_turns(&self) -> u64 {
        self.completed
    }

    /// Interrupts of this turn so far.
    pub fn interrupts(&self) -> u32 {
        self.interrupts
    }

    /// The watch for one attempt. A rule that does not act because of its repeat mode is still watched: its matches
    /// hold nothing back and are judged [`Action::Pass`], so that a further violation is never silent.
    pub fn gate(&self) -> Gate {
        let mut modes = vec![RuleMode::default(); self.set.len()];
        for ((rule, state), mode) in self.set.with_states().zip(&mut modes) {
            let takes_part = rule.bucket == Bucket::Stream && rule.watches_agent(&self.agent);
            if *state == RuleState::Active && takes_part {
                mode.watched = self.set.settings().enabled;
                mode.stops_prose = matches!(self.action(rule, false), Action::Interrupt | Action::Stop);
                mode.is_secret = rule.secret && mode.stops_prose;
                mode.guards = self.unread_action(rule) != Action::Pass;
            }
        }
        Gate::new(&self.set, &self.path_fields, modes)
    }

    /// Decides what is done about the matches of one byte. Counts an interrupt when that is the decision.
    pub fn judge(&mut self, matches: &[RuleMatch]) -> Judgement {
        let set = Arc::clone(&self.set);
        let (mut actions, mut over_budget) = (Vec::with_capacity(matches.len()), Vec::new());
        let mut again = Vec::with_capacity(matches.len());
        for found in matches {
            let tool = found.stream.is_tool();
            let rule = set.rule(&found.rule);
            again.push(rule.is_some_and(|rule| self.is_used_up(rule)));
            let action = rule.map_or(Action::Pass, |rule| {
                if found.evidence.unread {
                    return self.unread_action(rule);
                }
                let wish = self.wish(rule, tool);
                let is_over = match wish {
                    Action::Interrupt => self.is_spent(rule),
                    Action::Remind => !tool && self.has_reminded_enough(rule),
                    Action::Pass | Action::Block | Action::Stop => false,
                };
                if is_over && !self.is_used_up(rule) && self.reported.insert(rule.name.clone()) {
                    over_budget.push(rule.name.clone());
                }
                match self.action(rule, tool) {
                    // Its reminder waits already, on a sibling call or as a message to come.
                    Action::Remind if self.reserved.contains(&rule.name) => Action::Pass,
                    Action::Remind if is_over => Action::Pass,
                    action => action,
                }
            });
            actions.push(action);
        }
        let action = actions.iter().copied().max_by_key(|a| strength(*a)).unwrap_or(Action::Pass);
        let mut rules: Vec<String> = Vec::new();
        for ((found, own), again) in matches.iter().zip(&actions).zip(&again) {
            let stops = matches!(action, Action::Interrupt | Action::Stop);
            let due = *own != Action::Pass || (stops && !again);
            if due && !rules.contains(&found.rule) {
                rules.push(found.rule.clone());
            }
        }
        self.reserved.extend(rules.iter().cloned());
        if action == Action::Remind {
            let prose =
                matches.iter().zip(&actions).filter(|(found, own)| **own == Action::Remind && !found.stream.is_tool());
            prose.for_each(|(found, _)| *self.prose_reminders.entry(found.rule.clone()).or_default() += 1);
        }
        let stopping = || matches.iter().zip(&actions).filter(|(_, a)| **a == Action::Interrupt).map(|(m, _)| &m.rule);
        let default = set.settings().context_mode;
        let contexts = stopping().map(|name| set.rule(name).and_then(|rule| rule.context).unwrap_or(default));
        let context = contexts.min_by_key(|mode| what_stays(*mode)).unwrap_or(default);
        if action == Action::Interrupt {
            self.interrupts += 1;
            let is_untrusted = |name: &String| set.rule(name).is_some_and(|rule| rule.untrusted);
            self.untrusted_interrupts += u32::from(stopping().all(is_untrusted));
            for name in rules.iter().filter(|name| stopping().any(|n| n == *name)) {
                *self.rule_interrupts.entry(name.clone()).or_default() += 1;
            }
        }
        let first = matches.iter().map(|m| self.told.insert((m.stream.clone(), m.rule.clone()))).collect();
        Judgement { action, actions, again, first, rules, context, over_budget }
    }

    /// The hidden message after an interrupt: one block for each rule that matched.
    pub fn reminder(&self, matches: &[RuleMatch]) -> String {
        crate::remind::interrupt(&self.set, matches)
    }

    /// What is put before a tool's result (or sent after an answer) for rules that do not interrupt.
    pub fn tool_reminder(&self, matches: &[RuleMatch]) -> String {
        crate::remind::remind(&self.set, matches)
    }

    /// Whether a text of the conversation contains a reminder of this rule.
    pub fn holds_reminder(text: &str, rule: &str) -> bool {
        crate::remind::reminds_of(text, rule)
    }

    /// The reminders of these rules went to the model: only now is `once` spent. Gives the records to keep, one for
    /// each rule.
    pub fn injected(&mut self, rules: &[String]) -> Vec<InjectionRecord> {
        let mut kept: Vec<InjectionRecord> = Vec::new();
        for name in rules {
            self.reserved.remove(name);
            let Some(rule) = self.set.rule(name).filter(|_| !kept.iter().any(|known| known.rule == *name)) else {
                continue;
            };
            let record = InjectionRecord { rule: name.clone(), hash: rule.content_hash(), turn: self.completed };
            self.records.insert(name.clone(), record.clone());
            kept.push(record);
        }
        kept
    }

    /// Reminders of these rules wait for delivery: until then the rules do not fire again.
    pub fn reserve(&mut self, rules: &[String]) {
        self.reserved.extend(rules.iter().cloned());
    }

    /// Reminders of these rules will not be delivered: the rules may fire again.
    pub fn release(&mut self, rules: &[String]) {
        for name in rules {
            self.reserved.remove(name);
        }
    }

    /// The reminder of this rule left the model's context (by compaction): it may fire again.
    /// Tells whether it had been injected.
    pub fn rearm(&mut self, rule: &str) -> bool {
        self.records.remove(rule).is_some()
    }

    /// Names of the rules that have been injected, as far as their records count.
    pub fn reminded(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(String::as_str)
    }

    /// Takes up what an earlier run of the session kept. Records of rules that are gone or were edited are dropped; of
    /// several records of a rule the latest counts.
    pub fn restore(&mut self, records: impl IntoIterator<Item = InjectionRecord>, completed_turns: u64) {
        self.completed = completed_turns;
        for record in records {
            if self.set.rule(&record.rule).is_some_and(|rule| rule.content_hash() == record.hash) {
                let known = self.records.entry(record.rule.clone()).or_insert_with(|| record.clone());
                known.turn = known.turn.max(record.turn);
            }
        }
    }

    /// Whether the rule's reminder was given, and its repeat mode does not let it act again yet.
    fn is_used_up(&self, rule: &Rule) -> bool {
        let settings = self.set.settings();
        let Some(record) = self.records.get(&rule.name) else { return false };
        match rule.repeat.unwrap_or(settings.repeat_mode) {
            RepeatMode::Once => true,
            RepeatMode::AfterGap => {
                let gap = u64::from(rule.gap.unwrap_or(settings.repeat_gap));
                self.completed.saturating_sub(record.turn) < gap
            }
            RepeatMode::Always => false,
        }
    }

    /// The action for a match of the rule, ignoring budgets.
    fn wish(&self, rule: &Rule, tool: bool) -> Action {
        rule.requests(rule.interrupt.unwrap_or(self.set.settings().interrupt_mode), tool)
    }

    /// The action for a tool call that the rule cannot read. No budget applies, because the model is not asked again.
    fn unread_action(&self, rule: &Rule) -> Action {
        let required = self.set.is_required(rule);
        if self.is_used_up(rule) && !required {
            return Action::Pass;
        }
        unread::action(self.wish(rule, true), required).unwrap_or(Action::Pass)
    }

    fn action(&self, rule: &Rule, tool: bool) -> Action {
        if self.is_used_up(rule) {
            return Action::Pass;
        }
        match (self.wish(rule, tool), self.set.settings().on_budget) {
            (Action::Interrupt, OnBudget::Pass) if self.is_spent(rule) && !rule.secret => Action::Pass,
            // A secret is not shown for want of a budget.
            (Action::Interrupt, _) if self.is_spent(rule) => Action::Stop,
            (wish, _) => wish,
        }
    }

    /// Whether the rule has reminded the model after so many answers of the turn as there can be interrupts, and of one at least.
    fn has_reminded_enough(&self, rule: &Rule) -> bool {
        let most = self.set.settings().max_interrupts_per_turn.max(1);
        self.prose_reminders.get(&rule.name).is_some_and(|times| *times >= most)
    }

    fn is_spent(&self, rule: &Rule) -> bool {
        let own = self.rule_interrupts.get(&rule.name).copied().unwrap_or(0);
        // A file that comes with the workspace must not use up what the operator's guards need.
        let counted = if rule.untrusted { self.interrupts } else { self.interrupts - self.untrusted_interrupts };
        counted >= self.set.settings().max_interrupts_per_turn || rule.max_interrupts.is_some_and(|max| own >= max)
    }
}

/// For choosing among contexts: the least leaves least.
fn what_stays(mode: ContextMode) -> u8 {
    match mode {
        ContextMode::Discard => 0,
        ContextMode::Rewind => 1,
        ContextMode::Keep => 2,
    }
}

fn strength(action: Action) -> u8 {
    match action {
        Action::Pass => 0,
        Action::Remind => 1,
        Action::Block => 2,
        Action::Interrupt => 3,
        Action::Stop => 4,
    }
}
