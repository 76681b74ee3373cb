//! What the shown stream has of a log.

use super::state::Thread;
use crate::list::{List, Shared};
use crate::message::{Author, ChatMessage, ToolEntry, ToolStatus};

impl Thread {
    /// The log as the shown stream alone gives it.
    pub(super) fn shown(mut self) -> Self {
        let shown: Vec<_> =
            self.messages.iter().zip(0..).map(|(message, at)| self.shown_message(message, at)).collect();
        // How many are shown of those before each, and of all.
        let mut counts = vec![0];
        counts.extend(shown.iter().scan(0, |count, message| {
            *count += usize::from(message.is_some());
            Some(*count)
        }));
        let before = |index: usize| counts.get(index).or(counts.last()).copied().unwrap_or(0);
        self.settled = before(self.settled);
        if let Some(answer) = &mut self.answer {
            answer.index = answer.index.filter(|index| shown.get(*index).is_some_and(Option::is_some)).map(before);
        }
        let given = self.given.iter().map(|(id, index)| (id.clone(), before(*index))).collect();
        self.given = Shared::new(given);
        self.messages = shown.into_iter().flatten().map(Shared::new).collect();
        self
    }

    /// Returns what is shown of a message; `None`: nothing.
    fn shown_message(&self, message: &ChatMessage, at: usize) -> Option<ChatMessage> {
        if self.given.contains_key(&message.id) {
            return Some(message.clone());
        }
        // Messages of the host, and the conversation that a thread begins with, are the model's.
        if message.author == Author::Host || message.id.is_of_history() {
            return None;
        }
        // Of a call to which nothing has happened yet there is no event, and that of its start, or of its question, brings it. One of an earlier
        // turn was asked about.
        let has_event = |entry: &&ToolEntry| entry.status != ToolStatus::Proposed || at < self.settled;
        let calls = message.calls.iter().filter(has_event).map(shown_call).collect();
        let shown = ChatMessage { calls, notes: List::default(), ..message.clone() };
        let is_empty = shown.author == Author::Assistant
            && shown.blocks.is_empty()
            && shown.calls.is_empty()
            && shown.partial.is_none();
        (!is_empty).then_some(shown)
    }
}

/// Why a call did not run is not shown, because it can quote what a rule has found, and neither are its arguments, unless somebody was asked
/// about them.
fn shown_call(entry: &ToolEntry) -> ToolEntry {
    let mut shown = entry.clone();
    let has_run = entry.duration_ms.is_some();
    match entry.status {
        ToolStatus::Cancelled if entry.started_ms.is_some() => {}
        ToolStatus::Done | ToolStatus::Failed | ToolStatus::NotRun | ToolStatus::Cancelled if !has_run => {
            (shown.output, shown.summary) = (entry.output.as_ref().map(|_| "".into()), None);
        }
        _ => {}
    }
    let was_asked = entry.waited_ms.is_some() || entry.started_ms.is_some();
    if matches!(entry.status, ToolStatus::NotRun | ToolStatus::Cancelled) && !was_asked && !has_run {
        shown.arguments = "{}".into();
    }
    shown
}
