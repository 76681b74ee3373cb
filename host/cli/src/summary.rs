//! `--summary`: what a session took.

use std::collections::BTreeMap;

use tidegate::diagnostic::Troubles;
use tidegate::model::Usage;
use tidegate::rule::RuleMetrics;
use tidegate::{Event, EventKind, Session, TurnReport};

use crate::matches::{self, Matches};
use crate::print::raw_sentence;
use crate::say::{count, note};
use crate::style::{self, err};
use crate::usage::PluginUsage;

/// Counted while turns run.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    plugins: PluginUsage,
    discarded: u64,
    tools: u32,
    troubles: Troubles,
    matches: Matches,
    /// What plugins keep, or what happened, could not be saved.
    pub(crate) state_lost: bool,
    /// By turn: what went wrong beside the turn's status.
    problems: BTreeMap<u32, Vec<String>>,
}

impl Summary {
    pub(crate) fn take(&mut self, event: &Event) {
        let problems = match &event.kind {
            EventKind::TurnStart => {
                self.troubles.begin_turn();
                self.matches.begin_turn();
                Vec::new()
            }
            EventKind::ExtensionCallback(report) => {
                self.troubles.take(report).map(|(line, _)| line).into_iter().collect()
            }
            EventKind::ExtensionTool(report) => {
                self.troubles.take_tool(report).map(|(line, _)| line).into_iter().collect()
            }
            // All of them, and not one for each rule: whoever reads the object decides about each.
            EventKind::RuleFired { found, action, first, again } => {
                let _has_line = self.matches.should_report(found, *action, *first, *again);
                let is_problem = self.matches.is_let_through(found, *action);
                let what =
                    || format!("rule {} {}: {:?}", found.rule, matches::done(*action, *again), found.evidence.text);
                is_problem.then(what).into_iter().collect()
            }
            EventKind::ContextCompactionEnd { error: Some(_), .. } | EventKind::ChildThreadFailed { .. } => {
                vec![raw_sentence(&event.kind)]
            }
            EventKind::Notice { message } => vec![message.clone()],
            EventKind::JournalFailed { message, .. } | EventKind::StateLost { message } => {
                self.state_lost = true;
                vec![message.clone()]
            }
            EventKind::RulesReloaded { notices, .. } => notices.clone(),
            EventKind::ContextCompactionEnd { left_out, .. } if !left_out.is_empty() => {
                vec![raw_sentence(&event.kind)]
            }
            // What it checked or added is missing from here on.
            EventKind::ExtensionUnregistered { plugin, action, reason } => {
                vec![format!("plugin {plugin} left the session ({action}): {reason}")]
            }
            _ => Vec::new(),
        };
        if !problems.is_empty() {
            self.problems.entry(event.place.turn).or_default().extend(problems);
        }
        self.count(event);
    }

    /// Takes what went wrong up to the end of a turn, counted from 1, in addition to its status: a line each, in order. What is reported
    /// when the session begins belongs to no turn, and is a problem of the first.
    pub(crate) fn take_problems(&mut self, turn: u32) -> Vec<String> {
        let later = self.problems.split_off(&turn.saturating_add(1));
        std::mem::replace(&mut self.problems, later).into_values().flatten().collect()
    }

    fn count(&mut self, event: &Event) {
        self.plugins.take(event);
        match &event.kind {
            EventKind::TtsrInjection { discarded_bytes, .. } => self.discarded += discarded_bytes,
            EventKind::ToolCallResult { .. } => self.tools += 1,
            _ => {}
        }
    }

    pub(crate) fn print(&self, reports: &[TurnReport], session: &Session, rules: &BTreeMap<String, RuleMetrics>) {
        let mut usage = Usage::default();
        reports.iter().for_each(|report| usage.add(report.usage));
        let steps: u32 = reports.iter().map(|report| report.place.step).sum();
        let interrupts: u32 = reports.iter().map(|report| report.interrupts).sum();
        let tokens = |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        let (provider, model) = session.model();
        let (compiled, loaded) = session.loaded().compiled_and_loaded();
        note(err(style::STRONG, "Summary"));
        note(format_args!("  model       {model} ({provider})"));
        let (turns, steps) = (count(reports.len() as u64, "turn", "turns"), count(steps, "step", "steps"));
        note(format_args!("  ran         {turns}, {steps}, {}", count(self.tools, "tool call", "tool calls")));
        note(format_args!("  tokens      {} in, {} out", tokens(usage.input), tokens(usage.output)));
        note(format_args!("  interrupts  {interrupts}, {} bytes discarded", self.discarded));
        if !rules.is_empty() {
            note(err(style::DIM, &format!("  {}", row("rule", &RULE_COLUMNS.map(str::to_owned)))));
        }
        for (rule, numbers) in rules {
            note(format_args!("  {}", row(rule, &cells(numbers))));
        }
        note(format_args!("  components  {compiled} compiled, {loaded} from the cache"));
        for line in self.plugins.lines(&session.loaded().plugins()) {
            note(format_args!("  {line}"));
        }
    }
}

/// What is told of each rule.
const RULE_COLUMNS: [&str; 9] =
    ["fires", "interrupts", "reminders", "blocks", "stops", "passes", "again", "tokens lost", "ms lost"];

fn cells(of: &RuleMetrics) -> [String; 9] {
    let about = if of.tokens_estimated { "~" } else { "" };
    let counts = [of.fires, of.interrupts, of.reminders, of.blocks, of.stops, of.passes, of.again];
    let [fires, interrupts, reminders, blocks, stops, passes, again] = counts.map(|count| count.to_string());
    let (tokens, ms) = (format!("{about}{}", of.tokens_discarded), of.added_latency_ms.to_string());
    [fires, interrupts, reminders, blocks, stops, passes, again, tokens, ms]
}

/// Each number stands right under its column's name.
fn row(name: &str, cells: &[String; 9]) -> String {
    let cells = cells.iter().zip(RULE_COLUMNS).map(|(cell, column)| format!("  {cell:>width$}", width = column.len()));
    format!("{name:<28}{}", cells.collect::<String>())
}

#[cfg(test)]
mod tests {
    use tidegate::event::{RunPosition, StreamKind};
    use tidegate::rule::{Action, Evidence, RuleMatch};

    use super::*;

    #[test]
    fn each_match_that_is_let_through_is_a_problem_and_a_pending_reminder_is_none() {
        let mut summary = Summary::default();
        let mut take = |rule: &str, action, first, again| {
            let evidence = Evidence {
                pattern: String::new(),
                text: "x".into(),
                start: 0,
                end: 1,
                line: 1,
                field: None,
                path: None,
                unread: false,
            };
            let found = RuleMatch { rule: rule.into(), stream: StreamKind::Text, evidence };
            let kind = EventKind::RuleFired { found, action, first, again };
            summary.take(&Event::new(0, 0, RunPosition { turn: 1, step: 1, attempt: 1 }, kind));
        };
        for (rule, action) in [("guard", Action::Interrupt), ("hint", Action::Remind)] {
            take(rule, action, true, false);
            take(rule, Action::Pass, true, false);
        }
        take("guard", Action::Pass, false, false);
        take("once", Action::Pass, true, true);
        take("once", Action::Pass, false, true);
        let problems = summary.take_problems(1);
        let begins =
            ["rule guard matched without an action", "rule guard matched", "rule once matched again", "rule once"];
        assert_eq!(problems.len(), begins.len(), "{problems:?}");
        for (problem, begin) in problems.iter().zip(begins) {
            assert!(problem.starts_with(begin), "{problem}");
        }
        assert!(summary.take_problems(2).is_empty());
    }

    #[test]
    fn numbers_stand_under_their_names() {
        let of = RuleMetrics {
            fires: 3,
            interrupts: 2,
            tokens_discarded: 41,
            tokens_estimated: true,
            ..RuleMetrics::default()
        };
        let (head, line) = (row("rule", &RULE_COLUMNS.map(str::to_owned)), row("no-such-words", &cells(&of)));
        assert_eq!(head.len(), line.len());
        for (column, cell) in [("fires", "3"), ("interrupts", "2"), ("blocks", "0"), ("tokens lost", "~41")] {
            let end = head.find(column).map_or(0, |at| at + column.len());
            assert!(line[..end].ends_with(&format!(" {cell}")), "{column}\n{head}\n{line}");
        }
    }
}
