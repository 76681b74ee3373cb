//! Tool calls: the question, the decision, the start, progress and the result of a call become one entry.

use record::{ToolCallProgress, ToolCallResult, ToolCallStart, ToolConfirmationRequested, ToolConfirmationResolved};

use super::{Collector, Place};
use crate::report::{ToolCall, What};

impl Collector {
    pub(super) fn asked(&mut self, place: Place, asked: ToolConfirmationRequested) -> Option<What> {
        let arguments = Some(asked.input.to_string());
        let ToolConfirmationRequested { call_id, tool, reason, .. } = asked;
        self.opened(place, ToolCall { call_id, tool, arguments, question: Some(reason), ..ToolCall::default() })
    }

    pub(super) fn decided(&mut self, decision: ToolConfirmationResolved) -> Option<What> {
        if let Some(call) = self.call(&decision.call_id) {
            call.decision = Some(decision);
        }
        None
    }

    /// A call starts: the one that a person was asked about, or a new one. Providers repeat ids in later answers.
    pub(super) fn started(&mut self, place: Place, start: ToolCallStart) -> Option<What> {
        let arguments = Some(start.input.to_string());
        if let Some(call) = self.call(&start.call_id).filter(|call| !call.started && call.tool == start.tool) {
            (call.started, call.arguments) = (true, arguments);
            return None;
        }
        let ToolCallStart { call_id, tool, .. } = start;
        self.opened(place, ToolCall { call_id, tool, arguments, started: true, ..ToolCall::default() })
    }

    pub(super) fn progress(&mut self, progress: ToolCallProgress) -> Option<What> {
        let percent = progress.progress.map(|percent| format!(" ({percent} %)")).unwrap_or_default();
        if let Some(call) = self.call(&progress.call_id) {
            call.progress.push(progress.message + &percent);
        }
        None
    }

    /// A call ends. One that never ran has nothing but its result.
    pub(super) fn result(&mut self, result: ToolCallResult) -> Option<What> {
        let id = result.call_id.clone();
        let Some(call) = self.call(&id) else {
            let (call_id, tool) = (id, result.tool.clone());
            return Some(What::Tool(ToolCall { call_id, tool, result: Some(result), ..ToolCall::default() }));
        };
        call.result = Some(result);
        self.open.remove(&id);
        None
    }

    fn opened(&mut self, place: Place, call: ToolCall) -> Option<What> {
        let at = self.log(place).entries.len();
        self.open.insert(call.call_id.clone(), (place, at));
        Some(What::Tool(call))
    }

    fn call(&mut self, id: &str) -> Option<&mut ToolCall> {
        let &(place, at) = self.open.get(id)?;
        match self.log(place).entries.get_mut(at).map(|entry| &mut entry.what) {
            Some(What::Tool(call)) => Some(call),
            _ => None,
        }
    }
}
