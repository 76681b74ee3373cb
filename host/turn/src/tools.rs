//! Stage: runs the tool calls of an accepted answer, one after the other, and gives their results.
//!
//! A call that may not run has a result too: it says why, so that the model can do something else. Reminders of rules
//! that do not interrupt stand before the tool's own content, which is not altered.

use std::sync::Arc;
use std::time::Instant;

use flow::{Confirmation, EventKind, Permission, RuleMatch, StreamKind, ToolCall, ToolOutput, ToolResult};

use crate::events::Hub;
use crate::ports::{Confirm, EventSink, Tools};

/// What running calls needs.
pub(crate) struct Runner<'a> {
    pub(crate) hub: &'a Arc<Hub>,
    pub(crate) tools: &'a dyn Tools,
    pub(crate) confirm: &'a dyn Confirm,
}

/// What stream rules say beside a call.
pub(crate) struct Beside {
    /// The call does not run; this is its result.
    pub(crate) refusal: Option<String>,
    /// This stands before its result.
    pub(crate) reminder: Option<String>,
}

impl Runner<'_> {
    /// Runs one call.
    pub(crate) async fn run(&self, call: &ToolCall, beside: Beside) -> ToolResult {
        self.hub.emit(EventKind::ToolCallStart {
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let began = Instant::now();
        let Beside { refusal, reminder } = beside;
        let output = match refusal {
            Some(reminder) => refused(reminder),
            None => match self.permitted(call).await {
                Ok(()) => self.execute(call).await,
                Err(reason) => refused(reason),
            },
        };
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ToolOutput { content, diff, is_error } = output;
        self.hub.emit(EventKind::ToolCallResult {
            call: call.id.clone(),
            tool: call.name.clone(),
            output: content.clone(),
            reminder: reminder.clone(),
            diff,
            is_error,
            duration_ms,
        });
        ToolResult { call: call.id.clone(), content: reminder.into_iter().chain([content]).collect(), is_error }
    }

    async fn execute(&self, call: &ToolCall) -> ToolOutput {
        let hub = Arc::clone(self.hub);
        let id = call.id.clone();
        let progress = move |message: &str| {
            hub.emit(EventKind::ToolCallProgress { call: id.clone(), message: message.to_owned() });
        };
        self.tools.run(call, &progress).await
    }

    /// Whether the call may run, asking where somebody must be asked.
    async fn permitted(&self, call: &ToolCall) -> Result<(), String> {
        let reason = match self.tools.permission(call) {
            Permission::Allow => return Ok(()),
            Permission::Deny { reason } => return Err(reason),
            Permission::Ask { reason } => reason,
        };
        self.hub.emit(EventKind::ToolConfirmationRequested {
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            reason: reason.clone(),
        });
        let decision = self.confirm.confirm(call, &reason).await;
        let call = call.id.clone();
        self.hub.emit(EventKind::ToolConfirmationResolved { call, decision: decision.clone() });
        match decision {
            Confirmation::Approved => Ok(()),
            Confirmation::Denied { reason } => Err(reason),
        }
    }
}

/// Takes the rules that forbid this call out of `noted`. A sibling that broke the same rule is forbidden by itself.
pub(crate) fn take_blocks(call: &ToolCall, noted: &mut Vec<RuleMatch>) -> Vec<RuleMatch> {
    let mut mine: Vec<RuleMatch> = Vec::new();
    noted.retain(|found| {
        let is_mine = concerns(found, call);
        if is_mine && !mine.iter().any(|other| other.rule == found.rule) {
            mine.push(found.clone());
        }
        !is_mine
    });
    mine
}

/// Takes the rules to remind of with this call out of `noted`: each rule is told with one call of the batch only.
pub(crate) fn take_reminders(call: &ToolCall, noted: &mut Vec<RuleMatch>) -> Vec<RuleMatch> {
    let mine = take_blocks(call, noted);
    noted.retain(|found| {
        let other_call = matches!(found.stream, StreamKind::Tool { .. });
        !(other_call && mine.iter().any(|one| one.rule == found.rule))
    });
    mine
}

fn concerns(found: &RuleMatch, call: &ToolCall) -> bool {
    matches!(&found.stream, StreamKind::Tool { call: id, .. } if *id == call.id)
}

fn refused(reason: String) -> ToolOutput {
    ToolOutput { content: reason, diff: None, is_error: true }
}
