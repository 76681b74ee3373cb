//! `--summary`: what a session took.

use std::collections::BTreeMap;

use tidegate::{CallbackOutcome, Event, EventKind, Host, TurnReport, Usage};

use crate::style::{self, err};

/// Counted while turns run.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// By plugin and callback: calls, failures, and their times in nanoseconds.
    callbacks: BTreeMap<(String, &'static str), (u32, Vec<u64>)>,
    discarded: u64,
    tools: u32,
    rules: BTreeMap<String, u32>,
}

impl Summary {
    pub(crate) fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ExtensionCallback(report) if !matches!(report.outcome, CallbackOutcome::Skipped(_)) => {
                let key = (report.plugin.to_string(), report.callback.as_str());
                let (failures, times) = self.callbacks.entry(key).or_default();
                *failures += u32::from(matches!(report.outcome, CallbackOutcome::Failed(_)));
                times.push(report.nanos);
            }
            EventKind::TtsrInjection { discarded_bytes, .. } => self.discarded += discarded_bytes,
            EventKind::ToolCallResult { .. } => self.tools += 1,
            EventKind::RuleFired { found, .. } => *self.rules.entry(found.rule.clone()).or_default() += 1,
            _ => {}
        }
    }

    pub(crate) fn print(&self, reports: &[TurnReport], host: &Host) {
        let mut usage = Usage::default();
        reports.iter().for_each(|report| usage.add(report.usage));
        let steps: u32 = reports.iter().map(|report| report.place.step).sum();
        let interrupts: u32 = reports.iter().map(|report| report.interrupts).sum();
        let tokens = |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        let (provider, model) = host.model();
        let (compiled, loaded) = host.loaded().compiled_and_loaded();
        eprintln!("{}", err(style::STRONG, "Summary"));
        eprintln!("  model       {model} ({provider})");
        eprintln!("  ran         {} turns, {steps} steps, {} tool calls", reports.len(), self.tools);
        eprintln!("  tokens      {} in, {} out", tokens(usage.input), tokens(usage.output));
        eprintln!("  interrupts  {interrupts}, {} bytes thrown away", self.discarded);
        for (rule, fired) in &self.rules {
            eprintln!("  rule        {rule} fired {fired}×");
        }
        eprintln!("  components  {compiled} compiled, {loaded} from the cache");
        for ((plugin, callback), (failures, times)) in &self.callbacks {
            let failed = if *failures == 0 { String::new() } else { format!(", {failures} failed") };
            let name = format!("{plugin} {callback}");
            eprintln!("  callback    {name:<34} {:>3} calls, {:>7.1} µs median{failed}", times.len(), median(times));
        }
    }
}

fn median(nanos: &[u64]) -> f64 {
    let mut sorted = nanos.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).map_or(0.0, |nanos| *nanos as f64 / 1000.0)
}
