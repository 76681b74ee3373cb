//! Which extension or rule changed which bytes of a turn, in order, with the original.

mod change;
mod input;
mod output;
mod text;

pub use self::change::{By, Candidate, Change, ChangeKind, Explanation};
use crate::figures::of;
use crate::report::{Entry, Log, Report, Turn, What};

/// Explains a turn; `None`: the last. Returns `None` if the session has no such turn.
pub fn explain(report: &Report, turn: Option<u32>) -> Option<Explanation> {
    let turn = match turn {
        Some(number) => report.turns.iter().find(|turn| turn.number == number)?,
        None => report.turns.last()?,
    };
    let mut explained = Explained { turn, dropped: report.dropped > 0, changes: Vec::new(), notes: Vec::new() };
    if report.turns.first().is_some_and(|first| first.number == turn.number) {
        // What extensions have the model read from the start is reported when the session is opened.
        let before = report.log.entries.iter().enumerate().filter(|(_, entry)| entry.at_ms <= turn.started_ms);
        for (at, entry) in before.filter(|(_, entry)| matches!(entry.what, What::Prompt(_))) {
            explained.entry((0, 0), &report.log, at, entry);
        }
    }
    explained.input();
    for (step, attempt, log) in turn.logs() {
        explained.log((step, attempt), log);
    }
    if explained.changes.is_empty() {
        explained.notes.extend(explained.unseen());
    }
    if report.dropped > 0 {
        let dropped = report.dropped;
        explained
            .notes
            .push(format!("{dropped} droppable events of the session were lost: reports of callbacks can be missing."));
    }
    Some(Explanation {
        session: report.session.clone(),
        turn: turn.number,
        status: turn.finish.as_ref().map(|finish| finish.status.clone()),
        changes: explained.changes,
        notes: explained.notes,
    })
}

/// The changes found so far.
struct Explained<'r> {
    turn: &'r Turn,
    dropped: bool,
    changes: Vec<Change>,
    notes: Vec<String>,
}

impl Explained<'_> {
    /// Returns a note if only the results of changes are in the records, and not the extensions that made them. Transcripts do not have
    /// text that is kept from the model.
    fn unseen(&self) -> Option<String> {
        let mut changed: Vec<String> = Vec::new();
        let logs = self.turn.logs().map(|(_, _, log)| log);
        for one in logs.flat_map(|log| &log.callbacks).filter(|one| one.changed > 0) {
            let name = format!("{} ({})", one.extension, one.callback);
            if !changed.contains(&name) {
                changed.push(name);
            }
        }
        let what = "Extensions changed texts before they were recorded, so the records contain the results alone";
        (!changed.is_empty()).then(|| format!("{what}: {}.", changed.join(", ")))
    }

    fn log(&mut self, place: (u32, u32), log: &Log) {
        for (at, entry) in log.entries.iter().enumerate() {
            self.entry(place, log, at, entry);
        }
    }

    fn entry(&mut self, place: (u32, u32), log: &Log, at: usize, entry: &Entry) {
        match &entry.what {
            What::Prompt(prompt) => {
                for text in &prompt.texts {
                    let change =
                        Change::new(place, ChangeKind::PromptText, By::Manifest { id: prompt.extension_id.clone() });
                    self.changes.push(change.because(&text.place).texts(None, Some(&text.text)));
                }
            }
            What::Sent(sent) if place.0 > 0 => self.joined(place, sent),
            What::Rule(fired) => {
                let again = if fired.again { ", reported only" } else { "" };
                let reason = format!("in {}: {}{again}", stream(fired), fired.action);
                let by = By::Rules { names: vec![fired.rule.clone()] };
                let mut change = Change::new(place, ChangeKind::RuleMatched, by).because(&reason);
                change.evidence = Some(fired.evidence.clone());
                self.changes.push(change);
            }
            What::Answer(answer) => self.answer(place, log, answer),
            What::Message(message) => {
                let next = log.entries[at..].iter().find_map(|entry| match &entry.what {
                    What::Injection(injection) => Some(injection.rules.clone()),
                    _ => None,
                });
                let rules = next.filter(|_| message.custom_type == "ttsr-injection");
                let by = rules.map_or(By::Host, |names| By::Rules { names });
                let change = Change::new(place, ChangeKind::Reminder, by).because(&message.custom_type);
                self.changes.push(change.texts(None, Some(&message.text)));
            }
            What::Tool(call) => self.tool(place, log, call),
            What::Withheld(withheld) => {
                let by = By::Extension { id: withheld.extension_id.clone() };
                let bytes = of(withheld.bytes, "byte", "bytes");
                let reason = format!("{bytes} in {}: {}", withheld.callback, withheld.reason);
                self.changes.push(Change::new(place, ChangeKind::Withheld, by).because(&reason));
            }
            What::CompactionEnd(end) => {
                if let Some(left_out) = end.left_out_in_words() {
                    let change = Change::new(place, ChangeKind::LeftOut, By::Host).because(&left_out);
                    return self.changes.push(change);
                }
                let Some(summary) = &end.summary else { return };
                let reason = format!("messages before turn {} are summarised", end.prune_before_turn);
                let change = Change::new(place, ChangeKind::Compacted, By::Host).because(&reason);
                self.changes.push(change.texts(None, Some(summary)));
            }
            What::HistoryReplaced(replaced) => {
                let reason = format!("by {}", of(replaced.messages.len() as u64, "message", "messages"));
                self.changes.push(Change::new(place, ChangeKind::HistoryReplaced, By::Host).because(&reason));
            }
            _ => {}
        }
    }
}

/// Names what a rule watched.
fn stream(fired: &record::RuleFired) -> String {
    match (fired.stream.as_str(), &fired.tool) {
        ("text", _) => "the answer".to_owned(),
        ("thinking", _) => "the reasoning".to_owned(),
        (_, Some(tool)) => format!("a call of {tool}"),
        (other, None) => other.to_owned(),
    }
}
