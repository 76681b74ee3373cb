//! Tool calls of a message: what their events change.

use flow::{CallId, Event, EventKind};
use serde_json::Value;

use super::state::{Effect, Thread};
use crate::message::{ChatMessage, ToolEntry, ToolStatus};

impl Thread {
    pub(super) fn call_event(&mut self, event: &Event) -> Effect {
        match &event.kind {
            EventKind::ToolConfirmationRequested { call, tool, arguments, .. } => {
                self.on_call(event, call, tool, arguments, |entry| entry.status = ToolStatus::Asking)
            }
            EventKind::ToolConfirmationResolved { call, .. } => self.on_known(event, call, |entry| {
                if entry.status == ToolStatus::Asking {
                    entry.status = ToolStatus::Proposed;
                }
            }),
            EventKind::ToolCallStart { call, tool, arguments } => self.on_call(event, call, tool, arguments, |entry| {
                entry.status = ToolStatus::Running;
                entry.started_ms = Some(event.at_ms);
                if !is_same_json(&entry.arguments, arguments) {
                    entry.arguments = arguments.into();
                }
            }),
            EventKind::ToolCallProgress { call, message, percent } => self.on_known(event, call, |entry| {
                entry.summarise(message);
                entry.percent = *percent;
            }),
            EventKind::ToolCallResult { call, tool, output, diff, is_error, duration_ms, waited_ms, .. } => self
                .on_call(event, call, tool, "{}", |entry| {
                    let ran = duration_ms.is_some() || entry.started_ms.is_some();
                    let is_timed = entry.status == ToolStatus::Running;
                    entry.status = match (ran, *is_error) {
                        (false, _) => ToolStatus::NotRun,
                        (true, true) => ToolStatus::Failed,
                        (true, false) => ToolStatus::Done,
                    };
                    let measured = entry.started_ms.take().map(|start| event.at_ms.saturating_sub(start));
                    entry.duration_ms = duration_ms.or(measured.filter(|_| is_timed));
                    entry.waited_ms = *waited_ms;
                    entry.percent = None;
                    entry.summarise(output);
                    entry.output = Some(output.into());
                    entry.diff = diff.as_ref().map(Into::into);
                }),
            _ => Effect::Nothing,
        }
    }

    /// Changes a call of the step's answer. An answer whose record is missing has had it too.
    fn on_call(
        &mut self,
        event: &Event,
        call: &CallId,
        tool: &str,
        arguments: &str,
        change: impl FnOnce(&mut ToolEntry),
    ) -> Effect {
        if let Some(index) = self.reopened(event, call) {
            let changed = self.change_call(index, call.as_str(), change);
            return if changed { self.changed_at(index) } else { Effect::Nothing };
        }
        self.enter(event.place);
        let message = self.answer_mut(event);
        if !message.complete {
            message.finish(None);
        }
        if find(message, call.as_str()).is_none() {
            message.calls.push(ToolEntry::new(call, tool, arguments));
        }
        if let Some(entry) = find(message, call.as_str()).and_then(|index| message.calls.get_mut(index)) {
            change(entry);
        }
        Effect::Message
    }

    /// The message of a call that the end of a process has interrupted: such calls run before the first step of a later turn.
    fn reopened(&self, event: &Event, call: &CallId) -> Option<usize> {
        if event.place.step > 0 {
            return None;
        }
        let index = self.messages.iter().rposition(|message| find(message, call.as_str()).is_some())?;
        let message = self.messages.get(index)?;
        let entry = message.calls.get(find(message, call.as_str())?)?;
        let is_open = !matches!(entry.status, ToolStatus::Done | ToolStatus::Failed | ToolStatus::NotRun);
        is_open.then_some(index)
    }

    /// Changes a call that is known.
    fn on_known(&mut self, event: &Event, call: &CallId, change: impl FnOnce(&mut ToolEntry)) -> Effect {
        let index = self.reopened(event, call).or_else(|| self.answer_index(event.place));
        let Some(index) = index else { return Effect::Nothing };
        let known = self.messages.get(index).is_some_and(|message| find(message, call.as_str()).is_some());
        let changed = known && self.change_call(index, call.as_str(), change);
        if changed { self.changed_at(index) } else { Effect::Nothing }
    }

    /// A message that is not the turn's is visible in every mode.
    fn changed_at(&self, index: usize) -> Effect {
        if index < self.settled { Effect::Turn } else { Effect::Message }
    }

    /// Changes a call of a message. Returns whether there is one.
    pub(super) fn change_call(&mut self, index: usize, call: &str, change: impl FnOnce(&mut ToolEntry)) -> bool {
        let Some(message) = self.message_mut(index) else { return false };
        let found = find(message, call).and_then(|index| message.calls.get_mut(index));
        found.map(change).is_some()
    }

    /// The turn of a message has ended: its calls do not run. Returns whether one of them would have.
    pub(super) fn cancel_calls(&mut self, index: usize) -> bool {
        let open = |entry: &ToolEntry| !entry.status.is_final();
        let any = self.messages.get(index).is_some_and(|message| message.calls.iter().any(open));
        let Some(message) = Some(index).filter(|_| any).and_then(|index| self.message_mut(index)) else { return false };
        for at in 0..message.calls.len() {
            if let Some(entry) = message.calls.get_mut(at).filter(|entry| open(entry)) {
                // When it started stays: a result can follow in another process, of a call that may have had its effect.
                (entry.status, entry.percent) = (ToolStatus::Cancelled, None);
            }
        }
        true
    }
}

/// The index of a call.
fn find(message: &ChatMessage, call: &str) -> Option<usize> {
    message.calls.iter().position(|entry| &*entry.call == call)
}

/// Whether both are the same JSON, however it is written.
fn is_same_json(one: &str, two: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    one == two || read(one).is_some_and(|one| Some(one) == read(two))
}
