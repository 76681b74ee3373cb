//! The sentence about a plan: a list, of which a terminal shows each entry as a line.

use super::Sentence;
use crate::{PlanEntry, PlanUpdated};

impl PlanUpdated {
    /// What a person reads about it; the detail has a line for each entry.
    pub fn sentence(&self) -> Sentence<'_> {
        let entries = self.entries.as_deref().unwrap_or_default();
        if entries.is_empty() {
            return Sentence::new("The plan was removed");
        }
        let done = entries.iter().filter(|entry| entry.status == "completed").count();
        let lines: Vec<String> = entries.iter().map(line).collect();
        Sentence::new(format!("Plan, {done} of {} done", entries.len())).with(lines.join("\n"))
    }
}

fn line(entry: &PlanEntry) -> String {
    let mark = match entry.status.as_str() {
        "completed" => "[x]",
        "in_progress" => "[>]",
        _ => "[ ]",
    };
    format!("{mark} {}", entry.content.split_whitespace().collect::<Vec<_>>().join(" "))
}
