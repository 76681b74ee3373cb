//! Sums over a session: tokens, time, and what callbacks, tools and rules took.

use std::collections::BTreeMap;

use record::Tokens;

use crate::report::{Callback, Log, Report, Step, ToolCall, Turn, What};

/// Sums over a session.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Totals {
    /// Turns, however they ended.
    pub turns: u64,
    /// Steps of all turns.
    pub steps: u64,
    /// Requests to the model.
    pub attempts: u64,
    /// Tool calls that ran.
    pub calls: u64,
    /// The time of all turns, in milliseconds; pauses between them do not count.
    pub duration_ms: u64,
    /// Tokens, as far as the provider reports them.
    pub tokens: Tokens,
    /// The cost in US dollars of the steps whose cost is recorded; `None`: that of no step is.
    pub cost: Option<f64>,
    /// Callbacks of extensions, the longest first.
    pub callbacks: Vec<Callback>,
    /// Tools, the longest first.
    pub tools: Vec<ToolTotal>,
    /// Rules that matched, by the tokens that were discarded for them, the most first.
    pub rules: Vec<RuleTotal>,
}

/// All calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolTotal {
    /// The tool's name.
    pub tool: String,
    /// Calls, also those that did not run.
    pub calls: u64,
    /// Calls that failed or did not run.
    pub failed: u64,
    /// The time of all calls, in milliseconds, without waiting for a person.
    pub total_ms: u64,
    /// The time of the longest call, in milliseconds.
    pub max_ms: u64,
    /// The time that calls waited for a person, in milliseconds.
    pub waited_ms: u64,
}

/// All matches of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleTotal {
    /// The name of the rule.
    pub rule: String,
    /// Matches that are recorded.
    pub matches: u64,
    /// Answers that it stopped.
    pub interrupts: u64,
    /// Reminders that went to the model.
    pub reminders: u64,
    /// Tokens of the answers that were discarded for it.
    pub tokens_discarded: u64,
    /// The provider did not count some of these tokens.
    pub tokens_estimated: bool,
}

impl Report {
    /// Returns the sums over the session.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { turns: self.turns.len() as u64, ..Totals::default() };
        let steps = || self.turns.iter().flat_map(|turn| &turn.steps);
        totals.steps = steps().count() as u64;
        totals.attempts = steps().map(|step| step.attempts.len() as u64).sum();
        totals.duration_ms = self.turns.iter().map(Turn::duration_ms).fold(0, u64::saturating_add);
        totals.tokens = sum(steps());
        let costs = steps().filter_map(|step| step.finish.as_ref()?.cost);
        totals.cost = costs.fold(None, |sum, cost| Some(sum.unwrap_or(0.0) + cost));
        let mut sums = Sums::default();
        self.logs().for_each(|(_, log)| sums.add(log));
        totals.calls = sums.ran;
        totals.callbacks = sums.callbacks.into_values().collect();
        totals.callbacks.sort_by(|a, b| b.total_us.total_cmp(&a.total_us));
        totals.tools = sums.tools.into_values().collect();
        totals.tools.sort_by_key(|tool| std::cmp::Reverse(tool.total_ms));
        totals.rules = sums.rules.into_values().collect();
        totals.rules.sort_by_key(|rule| std::cmp::Reverse(rule.tokens_discarded));
        totals
    }
}

impl Turn {
    /// Returns the tokens of its steps, as far as the provider reports them.
    pub fn tokens(&self) -> Tokens {
        sum(self.steps.iter())
    }
}

fn sum<'s>(steps: impl Iterator<Item = &'s Step>) -> Tokens {
    let mut sum = Tokens::default();
    for tokens in steps.filter_map(|step| Some(&step.finish.as_ref()?.tokens)) {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = more.map(|more| sum.unwrap_or(0).saturating_add(more)).or(*sum);
        };
        add(&mut sum.input_tokens, tokens.input_tokens);
        add(&mut sum.output_tokens, tokens.output_tokens);
        add(&mut sum.cache_read_tokens, tokens.cache_read_tokens);
        add(&mut sum.cache_write_tokens, tokens.cache_write_tokens);
    }
    sum
}

#[derive(Default)]
struct Sums<'r> {
    ran: u64,
    callbacks: BTreeMap<(&'r str, &'r str), Callback>,
    tools: BTreeMap<&'r str, ToolTotal>,
    rules: BTreeMap<&'r str, RuleTotal>,
}

impl<'r> Sums<'r> {
    fn add(&mut self, log: &'r Log) {
        for one in &log.callbacks {
            let total = self.callbacks.entry((&one.extension, &one.callback));
            total.and_modify(|total| total.add(one)).or_insert_with(|| one.clone());
        }
        for entry in &log.entries {
            match &entry.what {
                What::Tool(call) => self.tool(call),
                What::Rule(fired) => {
                    let rule = self.rule(&fired.rule);
                    rule.matches += 1;
                    rule.interrupts += u64::from(fired.action == "interrupt" && !fired.again);
                }
                What::Injection(injection) => {
                    for record in &injection.records {
                        let rule = self.rule(&record.rule);
                        rule.reminders += 1;
                        rule.tokens_discarded = rule.tokens_discarded.saturating_add(record.tokens_discarded);
                        rule.tokens_estimated |= record.tokens_estimated && record.tokens_discarded > 0;
                    }
                }
                _ => {}
            }
        }
    }

    fn tool(&mut self, call: &'r ToolCall) {
        self.ran += u64::from(call.started);
        let total = self.tools.entry(&call.tool).or_default();
        if total.calls == 0 {
            total.tool.clone_from(&call.tool);
        }
        total.calls += 1;
        let Some(result) = &call.result else { return };
        total.failed += u64::from(result.error.is_some());
        let took = result.duration_ms.unwrap_or(0);
        total.total_ms = total.total_ms.saturating_add(took);
        total.max_ms = total.max_ms.max(took);
        total.waited_ms = total.waited_ms.saturating_add(result.waited_ms.unwrap_or(0));
    }

    fn rule(&mut self, name: &'r str) -> &mut RuleTotal {
        let rule = self.rules.entry(name).or_default();
        if rule.rule.is_empty() {
            name.clone_into(&mut rule.rule);
        }
        rule
    }
}
