//! What a session remembers of rules as a value, for sessions that several owners continue at the same time.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{InjectionRecord, RuleSession};

/// What a [`RuleSession`] remembers between answers: when rules were injected, and what the turn has spent of its budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleMemory {
    /// In order of the rules' names.
    pub records: Vec<InjectionRecord>,
    /// Turns that have ended.
    pub completed: u64,
    /// What the turn after those has spent.
    pub spent: TurnSpent,
}

/// What a turn has spent of the budgets of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnSpent {
    /// How often answers were stopped.
    pub interrupts: u32,
    /// Those of them that only rules asked for that nobody trusts.
    pub untrusted: u32,
    /// Interrupts of each rule.
    pub by_rule: BTreeMap<String, u32>,
    /// After how many answers each rule has reminded the model of text or thinking.
    pub reminders: BTreeMap<String, u32>,
}

impl RuleMemory {
    /// What two owners have made of one memory: `self` and `other` both continued `base`. No record of either is lost, and both have spent.
    #[must_use]
    pub fn merged(&self, base: &Self, other: &Self) -> Self {
        let mut records: BTreeMap<&str, &InjectionRecord> = BTreeMap::new();
        for record in self.records.iter().chain(&other.records) {
            let known = records.entry(&record.rule).or_insert(record);
            if record.turn > known.turn {
                *known = record;
            }
        }
        let spent = match self.completed.cmp(&other.completed) {
            std::cmp::Ordering::Less => other.spent.clone(),
            std::cmp::Ordering::Greater => self.spent.clone(),
            std::cmp::Ordering::Equal => {
                // What was spent in a turn that both have left does not count.
                let none = TurnSpent::default();
                let before = if base.completed == self.completed { &base.spent } else { &none };
                self.spent.plus(&other.spent, before)
            }
        };
        let records = records.into_values().cloned().collect();
        Self { records, completed: self.completed.max(other.completed), spent }
    }

    /// What of it was there after so many turns: for a conversation that branches off there.
    #[must_use]
    pub fn until(&self, completed: u64) -> Self {
        let records = self.records.iter().filter(|record| record.turn <= completed).cloned().collect();
        let spent = if completed < self.completed { TurnSpent::default() } else { self.spent.clone() };
        Self { records, completed: completed.min(self.completed), spent }
    }
}

impl TurnSpent {
    /// Both, where each contains what was spent `before`.
    fn plus(&self, other: &Self, before: &Self) -> Self {
        let sum = |one: u32, other: u32, before: u32| one.saturating_add(other).saturating_sub(before);
        let all = |one: &BTreeMap<String, u32>, other: &BTreeMap<String, u32>, before: &BTreeMap<String, u32>| {
            let of = |map: &BTreeMap<String, u32>, rule: &str| map.get(rule).copied().unwrap_or(0);
            let rules = one.keys().chain(other.keys());
            rules.map(|rule| (rule.clone(), sum(of(one, rule), of(other, rule), of(before, rule)))).collect()
        };
        Self {
            interrupts: sum(self.interrupts, other.interrupts, before.interrupts),
            untrusted: sum(self.untrusted, other.untrusted, before.untrusted),
            by_rule: all(&self.by_rule, &other.by_rule, &before.by_rule),
            reminders: all(&self.reminders, &other.reminders, &before.reminders),
        }
    }
}

impl RuleSession {
    /// What it remembers, without reminders that wait for delivery.
    pub fn memory(&self) -> RuleMemory {
        let mut records: Vec<InjectionRecord> = self.records.values().cloned().collect();
        records.sort_unstable_by(|one, other| one.rule.cmp(&other.rule));
        let sorted =
            |counts: &HashMap<String, u32>| counts.iter().map(|(rule, count)| (rule.clone(), *count)).collect();
        let spent = TurnSpent {
            interrupts: self.interrupts,
            untrusted: self.untrusted_interrupts,
            by_rule: sorted(&self.rule_interrupts),
            reminders: sorted(&self.prose_reminders),
        };
        RuleMemory { records, completed: self.completed, spent }
    }

    /// Takes up a memory in the place of its own. Records of rules that are gone or were edited are dropped.
    pub fn remember(&mut self, memory: RuleMemory) {
        let RuleMemory { records, completed, spent } = memory;
        self.records.clear();
        self.restore(records, completed);
        (self.interrupts, self.untrusted_interrupts) = (spent.interrupts, spent.untrusted.min(spent.interrupts));
        self.rule_interrupts = spent.by_rule.into_iter().collect();
        self.prose_reminders = spent.reminders.into_iter().collect();
        self.reserved = HashSet::new();
    }
}
