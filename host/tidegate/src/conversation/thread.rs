//! The events of a conversation's thread: the same as those that a session's loop emits about its turns.

use std::sync::{MutexGuard, PoisonError};

use flow::{CallId, Charged, EventKind, RunPosition, StepEnd, StopReason, StreamKind, ThreadMode, TurnStatus, Usage};
use gateway::{Answer, Asked};
use serde::Deserialize;
use serde_json::Map;

use super::Conversation;

/// The state of the thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// Whether it has records of earlier processes.
    pub(super) is_continued: bool,
    /// Whether its first event of this process was emitted.
    has_begun: bool,
    /// The number of the open turn.
    turn: Option<u32>,
    /// The number of steps of the turn.
    step: u32,
    /// The number of steps of the turn that have not finished. Concurrent exchanges have one step each.
    open_steps: u32,
    /// Whether the client has received the complete answer of the latest step of the turn.
    is_answered: bool,
    /// The number of steps of this process.
    steps: u32,
    turns: u32,
    usage: Usage,
    started_ms: u64,
}

/// The fields of a record that determine the state of its thread.
#[derive(Debug, Deserialize)]
pub(super) struct Recorded {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    turn: u32,
    #[serde(default)]
    step: u32,
}

impl Thread {
    /// Returns the state after these records. A turn without `turn_finish` is still open: its client can be running a tool.
    pub(super) fn of_records(records: impl Iterator<Item = Recorded>) -> Self {
        let mut thread = Self::default();
        for Recorded { kind, turn, step } in records {
            thread.is_continued = true;
            match kind.as_str() {
                "thread_started" | "thread_resumed" => (thread.steps, thread.turns) = (0, 0),
                "turn_start" => {
                    (thread.turn, thread.step, thread.is_answered) = (Some(turn), 0, false);
                    thread.turns += 1;
                }
                "step_start" => {
                    (thread.step, thread.is_answered) = (step, false);
                    thread.steps += 1;
                }
                "step_finish" => thread.is_answered = true,
                "turn_finish" => thread.turn = None,
                _ => {}
            }
        }
        if thread.turn.is_none() {
            // `thread_resumed` follows, after which counting starts at 0.
            (thread.steps, thread.turns) = (0, 0);
        }
        thread
    }
}

/// One exchange as part of a turn.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The number of its turn; `None` if it has not started one or is not recorded.
    turn: Option<u32>,
    /// Whether its request went to the model.
    has_asked: bool,
    /// Why its request was not sent to the model.
    refusal: Option<String>,
}

impl Part {
    /// Notes that the request is not sent to the model.
    pub(super) fn refused(&mut self, why: &str) {
        self.refusal = Some(why.to_owned());
    }
}

impl Conversation {
    /// Starts the turn of an exchange, unless the exchange continues the open turn. Must be called before any callback of the exchange, so that
    /// the reports of callbacks belong to the turn.
    pub(super) fn begin_part(&self, part: &mut Part, (provider, model): (&str, &str), continues_turn: bool) {
        if part.turn.is_some() {
            return;
        }
        let mut thread = self.thread();
        let turn = self.turn_number();
        part.turn = Some(turn);
        if continues_turn && thread.turn == Some(turn) {
            if !std::mem::replace(&mut thread.has_begun, true) {
                thread.started_ms = self.0.clock.now_ms();
            }
            return;
        }
        self.supersede(&mut thread);
        self.begin_thread(&mut thread, provider, model);
        (thread.turn, thread.step, thread.is_answered) = (Some(turn), 0, false);
        thread.turns += 1;
        self.set_place(turn, 0);
        self.emit(EventKind::TurnStart);
    }

    /// Finishes the open turn because another one starts. It is completed if its client has received its latest answer.
    fn supersede(&self, thread: &mut Thread) {
        let Some(turn) = thread.turn.take() else { return };
        self.set_place(turn, thread.step);
        for _ in 0..std::mem::take(&mut thread.open_steps) {
            let (usage, charged, end) = (Usage::default(), Charged::default(), StepEnd::Cancelled);
            self.emit(EventKind::StepFinish { usage, spend: None, charged, end, context_tokens: None });
        }
        let status = if thread.is_answered { TurnStatus::Completed } else { TurnStatus::Cancelled };
        self.emit(EventKind::TurnFinish { status });
    }

    /// Records the content of a request that goes to the model, as it is sent.
    pub(super) fn ask(&self, part: &mut Part, asked: &Asked) {
        part.has_asked = true;
        let mut thread = self.thread();
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
        (thread.open_steps, thread.is_answered) = (thread.open_steps + 1, false);
        if let Some(turn) = part.turn {
            self.set_place(turn, thread.step);
        }
        self.emit(EventKind::StepStart { number: thread.steps });
    }

    /// Records an event of an exchange. The client runs the calls of an accepted answer. They are recorded with the arguments that the model
    /// wrote: those that the client has received can contain secrets that a plugin has unmasked for it.
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

    /// Ends the exchange. `answer`: the complete answer as its client has received it. Emits nothing if another turn has started since: that has
    /// finished the turn of the exchange.
    pub(super) fn answered(&self, part: &Part, answer: Option<&Answer>) {
        let mut thread = self.thread();
        let (usage, end) = match answer {
            Some(answer) => (answer.usage, StepEnd::Answered(answer.stop.clone().unwrap_or(StopReason::EndTurn))),
            None => (Usage::default(), StepEnd::Cancelled),
        };
        if part.turn.is_none() {
            return;
        }
        thread.usage.add(usage);
        if thread.turn != part.turn {
            return;
        }
        if part.has_asked {
            thread.open_steps = thread.open_steps.saturating_sub(1);
            thread.is_answered = answer.is_some();
            let charged = Charged::default();
            self.emit(EventKind::StepFinish { usage, spend: None, charged, end, context_tokens: None });
        }
        let status = match (&part.refusal, answer) {
            (Some(why), _) => Some(TurnStatus::Failed { class: flow::ErrorClass::Permanent, message: why.clone() }),
            (None, None) => Some(TurnStatus::Cancelled),
            (None, Some(answer)) if answer.calls().next().is_none() => Some(TurnStatus::Completed),
            // The results of its calls follow.
            (None, Some(_)) => None,
        };
        if let Some(status) = status {
            thread.turn = None;
            thread.open_steps = 0;
            self.emit(EventKind::TurnFinish { status });
        }
    }

    /// Records that the conversation leaves the process, unless a turn is open: its next request continues it, in this process or another one.
    pub(super) fn end_thread(&self) {
        let thread = self.thread();
        if thread.has_begun && thread.turn.is_none() {
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

    /// Returns the number of the current turn.
    fn turn_number(&self) -> u32 {
        u32::try_from(self.completed_turns()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn set_place(&self, turn: u32, step: u32) {
        self.0.hub.set_place(RunPosition { turn, step, attempt: u32::from(step > 0) });
    }

    fn thread(&self) -> MutexGuard<'_, Thread> {
        self.0.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
