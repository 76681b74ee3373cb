//! The events of a conversation's thread: the same as those that a session's loop emits about its turns.

use std::sync::{MutexGuard, PoisonError};

use flow::{CallId, Charged, EventKind, RunPosition, StepEnd, StopReason, StreamKind, ThreadMode, TurnStatus, Usage};
use gateway::{Answer, Asked};
use serde_json::Map;

use super::Conversation;

/// The state of the thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// Whether it has records of earlier processes.
    pub(super) is_continued: bool,
    /// Whether its first event of this process was emitted.
    has_begun: bool,
    /// Whether a turn is open.
    in_turn: bool,
    /// The number of steps of the turn.
    step: u32,
    /// The number of steps of this process.
    steps: u32,
    turns: u32,
    usage: Usage,
    started_ms: u64,
}

impl Conversation {
    /// Records the content of a request that goes to the model, as it is sent.
    pub(crate) fn ask(&self, asked: &Asked, (provider, model): (&str, &str), continues_turn: bool) {
        let mut thread = self.thread();
        self.begin_thread(&mut thread, provider, model);
        if !continues_turn || !thread.in_turn {
            if std::mem::replace(&mut thread.in_turn, true) {
                self.emit(EventKind::TurnFinish { status: TurnStatus::Completed });
            }
            thread.turns += 1;
            thread.step = 0;
            self.set_place(0);
            self.emit(EventKind::TurnStart);
        }
        for (tool, result) in &asked.results {
            self.emit(EventKind::ToolCallResult {
                call: result.call.clone(),
                tool: tool.clone(),
                output: result.content.join("\n"),
                reminder: None,
                diff: None,
                is_error: result.is_error,
                duration_ms: None,
                waited_ms: None,
                original: None,
                annotations: Vec::new(),
            });
        }
        for message in &asked.messages {
            let message = std::sync::Arc::new(message.clone());
            self.emit(EventKind::InputReceived { id: None, message: std::sync::Arc::clone(&message) });
            self.emit(EventKind::CognitionIn { message });
        }
        (thread.step, thread.steps) = (thread.step + 1, thread.steps + 1);
        self.set_place(thread.step);
        self.emit(EventKind::StepStart { number: thread.steps });
    }

    /// Records an event of an exchange. The calls of an answer are made by the client, as it has received them.
    pub(crate) fn happened(&self, event: EventKind) {
        let calls: Vec<(CallId, String, String)> = match &event {
            EventKind::CognitionOut { partial: None, blocks, .. } => {
                let call = |block: &flow::AnswerBlock| match &block.kind {
                    StreamKind::Tool { call, name } => {
                        Some((call.clone(), name.clone(), block.arguments.clone().unwrap_or_default()))
                    }
                    _ => None,
                };
                blocks.iter().filter_map(call).collect()
            }
            _ => Vec::new(),
        };
        self.emit(event);
        for (call, tool, arguments) in calls {
            self.emit(EventKind::ToolCallStart { call, tool, arguments });
        }
    }

    /// Ends the exchange. `answer`: the complete answer as its client has received it.
    pub(crate) fn answered(&self, answer: Option<&Answer>) {
        let mut thread = self.thread();
        if !thread.in_turn {
            // The model was not asked: an extension has answered or refused the request.
            return;
        }
        let (usage, end) = match answer {
            Some(answer) => (answer.usage, StepEnd::Answered(answer.stop.clone().unwrap_or(StopReason::EndTurn))),
            None => (Usage::default(), StepEnd::Cancelled),
        };
        thread.usage.add(usage);
        let charged = Charged::default();
        self.emit(EventKind::StepFinish { usage, spend: None, charged, end, context_tokens: None });
        let status = match answer {
            None => Some(TurnStatus::Cancelled),
            Some(answer) if answer.calls().next().is_none() => Some(TurnStatus::Completed),
            // The results of its calls follow.
            Some(_) => None,
        };
        if let Some(status) = status {
            thread.in_turn = false;
            self.emit(EventKind::TurnFinish { status });
        }
    }

    /// Records that the conversation leaves the process.
    pub(super) fn end_thread(&self) {
        let thread = self.thread();
        if thread.has_begun {
            let duration_ms = self.0.clock.now_ms().saturating_sub(thread.started_ms);
            let (turns, usage) = (thread.turns, thread.usage);
            self.emit(EventKind::ThreadCompleted { turns, usage, spend: None, duration_ms });
        }
    }

    fn begin_thread(&self, thread: &mut Thread, provider: &str, model: &str) {
        if std::mem::replace(&mut thread.has_begun, true) {
            return;
        }
        thread.started_ms = self.0.clock.now_ms();
        let (provider, model) = (provider.to_owned(), model.to_owned());
        self.emit(if thread.is_continued {
            EventKind::ThreadResumed { by: "request".to_owned(), suspended: None, provider, model }
        } else {
            EventKind::ThreadStarted {
                session: self.0.id.clone(),
                agent: self.0.options.session.agent.clone(),
                provider,
                model,
                workspace: self.0.loaded.settings.workspace.clone(),
                mode: ThreadMode::default(),
                inputs: Map::new(),
            }
        });
    }

    fn set_place(&self, step: u32) {
        let turn = u32::try_from(self.completed_turns()).unwrap_or(u32::MAX).saturating_add(1);
        self.0.hub.set_place(RunPosition { turn, step, attempt: u32::from(step > 0) });
    }

    fn thread(&self) -> MutexGuard<'_, Thread> {
        self.0.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
