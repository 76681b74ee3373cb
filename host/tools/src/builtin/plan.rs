//! `plan`: shows the user what the model is going to do, and how far it is. It changes nothing else.

use flow::{PlanEntry, PlanStatus, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::said;
use crate::Failure;
use crate::text::count;

pub(crate) const ABOUT: &str = "Shows the user your plan for a task of several steps. Call it before you begin, and again when the status of \
                                an entry changes. Each call replaces the whole plan. Do not use it for a task of one or two steps.";

/// The most entries of a plan: more are no overview.
const MAX_ENTRIES: usize = 50;

/// The most characters of an entry.
const MAX_CONTENT: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// All entries of the plan, in order. An empty list removes the plan.
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// What is to be done, in one short sentence.
    content: String,
    /// `in_progress` for what you are working on, which is at most one entry.
    status: Status,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Arguments {
    /// The plan of a call that does not fail.
    pub(crate) fn entries(&self) -> Vec<PlanEntry> {
        let entry = |entry: &Entry| PlanEntry {
            content: entry.content.split_whitespace().collect::<Vec<_>>().join(" "),
            status: match entry.status {
                Status::Pending => PlanStatus::Pending,
                Status::InProgress => PlanStatus::InProgress,
                Status::Completed => PlanStatus::Completed,
            },
        };
        self.entries.iter().map(entry).collect()
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ToolOutput, Failure> {
    let entries = arguments.entries();
    if entries.len() > MAX_ENTRIES {
        return Err(Failure(format!("the plan has {} entries, and {MAX_ENTRIES} are shown; join some", entries.len())));
    }
    for (number, entry) in (1..).zip(&entries) {
        let length = entry.content.chars().count();
        if length == 0 {
            return Err(Failure(format!("entry {number} has no content")));
        }
        if length > MAX_CONTENT {
            return Err(Failure(format!(
                "entry {number} has {length} characters, and {MAX_CONTENT} are shown; shorten it"
            )));
        }
    }
    let working = entries.iter().filter(|entry| entry.status == PlanStatus::InProgress).count();
    if working > 1 {
        return Err(Failure(format!(
            "{working} entries are `in_progress`, and at most one is what you are working on; make the others `pending` or `completed`"
        )));
    }
    if entries.is_empty() {
        return Ok(said("the plan is removed"));
    }
    let done = entries.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
    Ok(said(format!("the user sees the plan: {}, {done} completed", count(entries.len(), "step"))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_short_and_an_error_says_which_entry_is_not() {
        let plan = |contents: Vec<String>| {
            let entry = |content| Entry { content, status: Status::Pending };
            run(&Arguments { entries: contents.into_iter().map(entry).collect() }).map(|output| output.content)
        };
        let entries = |count: usize| vec!["one".to_owned(); count];
        assert_eq!(plan(entries(0)).unwrap(), "the plan is removed");
        assert_eq!(plan(entries(1)).unwrap(), "the user sees the plan: 1 step, 0 completed");
        assert!(plan(entries(MAX_ENTRIES)).is_ok());
        assert!(plan(entries(MAX_ENTRIES + 1)).unwrap_err().0.contains("51 entries"));
        assert!(plan(vec!["é".repeat(MAX_CONTENT)]).is_ok());
        let long = vec!["one".to_owned(), "é".repeat(MAX_CONTENT + 1)];
        assert!(plan(long).unwrap_err().0.starts_with("entry 2 has 501 characters"));
        assert_eq!(plan(vec![" \n".to_owned()]).unwrap_err().0, "entry 1 has no content");
    }

    #[test]
    fn at_most_one_entry_is_what_the_model_works_on() {
        let plan = |statuses: &[Status]| {
            let entry = |status: &Status| Entry { content: "one".to_owned(), status: *status };
            run(&Arguments { entries: statuses.iter().map(entry).collect() }).map(|output| output.content)
        };
        let (pending, working, done) = (Status::Pending, Status::InProgress, Status::Completed);
        assert_eq!(plan(&[done, working, pending]).unwrap(), "the user sees the plan: 3 steps, 1 completed");
        assert!(plan(&[working, pending, working]).unwrap_err().0.starts_with("2 entries are `in_progress`"));
    }
}
