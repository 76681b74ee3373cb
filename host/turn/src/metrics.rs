//! What each rule did in a session, in numbers.

use std::collections::{BTreeMap, HashSet};

use flow::{Action, RuleMatch};
use rules::Judgement;

/// The numbers of one rule, since its session was opened. A rule that never did anything has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleMetrics {
    /// Matches of it, whatever was done about them.
    pub fires: u64,
    /// Reminders of it that went to the model: in a hidden message, or with a tool's result.
    pub reminders: u64,
    /// Answers that it stopped, alone or with others.
    pub interrupts: u64,
    /// Calls that it kept from running.
    pub blocks: u64,
    /// Turns that it ended.
    pub stops: u64,
    /// Matches that were let pass: a budget was spent, its reminder was on its way already, or it was used up (`again`).
    pub passes: u64,
    /// Tokens of discarded answers. Of several rules that stopped one answer together the first has all of
    /// it, so that the rules' sum is the session's.
    pub tokens_discarded: u64,
    /// Some of `tokens_discarded` were not counted by the provider: they are a quarter of the bytes.
    pub tokens_estimated: bool,
    /// Milliseconds from the start of a discarded attempt to the start of the next, summed; of several rules
    /// together the first has it.
    pub added_latency_ms: u64,
    /// Matches of it in a turn in which its reminder had been given before.
    pub second_violations: u64,
    /// Matches of it that were only reported, because its repeat mode did not let it act again.
    pub again: u64,
    /// Streams in which bytes were held back because they might have belonged to a match of it.
    pub held: u64,
}

/// The numbers of all rules of a session.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    rules: BTreeMap<String, RuleMetrics>,
    /// Rules that were reminded of in this turn.
    reminded: HashSet<String>,
}

impl Metrics {
    pub(crate) fn all(&self) -> &BTreeMap<String, RuleMetrics> {
        &self.rules
    }

    pub(crate) fn begin_turn(&mut self) {
        self.reminded.clear();
    }

    /// Counts matches of one byte.
    pub(crate) fn count(&mut self, matches: &[RuleMatch], judgement: &Judgement) {
        for (found, (action, again)) in matches.iter().zip(judgement.actions.iter().zip(&judgement.again)) {
            self.fired(&found.rule, *action, *again);
        }
    }

    fn fired(&mut self, rule: &str, action: Action, again: bool) {
        let second = self.reminded.contains(rule);
        let of = self.of(rule);
        of.fires += 1;
        of.second_violations += u64::from(second);
        of.again += u64::from(again);
        match action {
            Action::Pass => of.passes += 1,
            // Counted when it is delivered.
            Action::Remind => {}
            Action::Interrupt => of.interrupts += 1,
            Action::Block => of.blocks += 1,
            Action::Stop => of.stops += 1,
        }
        tracing::debug!(rule, action = action.as_str(), again, "a stream rule fired");
    }

    pub(crate) fn reminded(&mut self, rule: &str) {
        self.of(rule).reminders += 1;
        self.reminded.insert(rule.to_owned());
    }

    pub(crate) fn discarded(&mut self, rule: &str, tokens: u64, estimated: bool) {
        let of = self.of(rule);
        of.tokens_discarded = of.tokens_discarded.saturating_add(tokens);
        of.tokens_estimated |= estimated && tokens > 0;
    }

    pub(crate) fn delayed(&mut self, rule: &str, ms: u64) {
        self.of(rule).added_latency_ms += ms;
    }

    pub(crate) fn held(&mut self, rules: &[String]) {
        for rule in rules {
            self.of(rule).held += 1;
        }
    }

    fn of(&mut self, rule: &str) -> &mut RuleMetrics {
        self.rules.entry(rule.to_owned()).or_default()
    }
}
