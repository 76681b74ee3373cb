//! The memory of a rule session as a value, for sessions that several owners continue concurrently.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{InjectionRecord, RuleSession};

/// The memory of a [`RuleSession`] between answers: when rules were injected, and the spent part of the turn's budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleMemory {
    /// The records of injections, sorted by the rules' names.
    pub records: Vec<InjectionRecord>,
    /// The number of turns that have ended.
    pub completed: u64,
    /// The spent budgets of the turn after those.
    pub spent: TurnSpent,
}

/// The spent part of the budgets of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnSpent {
    /// The number of answers that were stopped.
    pub interrupts: u32,
    /// The number of answers that were stopped by untrusted rules only.
    pub untrusted: u32,
    /// The number of interrupts of each rule.
    pub by_rule: BTreeMap<String, u32>,
    /// The number of answers after which each rule has reminded the model of text or thinking.
    pub reminders: BTreeMap<String, u32>,
}

impl RuleMemory {
    /// Merges the memories of two owners: `self` and `other` both continued `base`. No record of either is lost, and both count as spent.
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
                // Budgets spent in a turn that both have left do not count.
                let none = TurnSpent::default();
                let before = if base.completed == self.completed { &base.spent } else { &none };
                self.spent.plus(&other.spent, before)
            }
        };
        let records = records.into_values().cloned().collect();
        Self { records, completed: self.completed.max(other.completed), spent }
    }

    /// Returns the memory as it was after this many turns, for a conversation that branches off there.
    #[must_use]
    pub fn until(&self, completed: u64) -> Self {
        let records = self.records.iter().filter(|record| record.turn <= completed).cloned().collect();
        let spent = if completed < self.completed { TurnSpent::default() } else { self.spent.clone() };
        Self { records, completed: completed.min(self.completed), spent }
    }
}

impl TurnSpent {
    /// Adds up two of these, each of which contains what was spent `before`.
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
    /// Returns the memory, without reminders that wait for delivery.
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

    /// Replaces the memory. Records of rules that are gone or were edited are dropped.
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
