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
    /// The complete answer that the client has received since the latest step of the turn began.
    reply: Option<Reply>,
    /// The number of steps of this process.
    steps: u32,
    turns: u32,
    usage: Usage,
    started_ms: u64,
}

/// How an answer continues its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// The results of its calls follow.
    Calls,
    /// The turn is completed.
    Final,
}

impl Reply {
    fn of(answer: &Answer) -> Self {
        if answer.calls().next().is_some() { Self::Calls } else { Self::Final }
    }
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
    #[serde(default)]
    payload: Payload,
}

#[derive(Debug, Default, Deserialize)]
struct Payload {
    #[serde(default)]
    finish_reason: String,
}

impl Payload {
    /// Returns the answer of a step that has finished.
    fn reply(&self) -> Option<Reply> {
        match self.finish_reason.as_str() {
            "cancelled" | "error" => None,
            "tool_use" => Some(Reply::Calls),
            _ => Some(Reply::Final),
        }
    }
}

impl Thread {
    /// Returns the state after these records. A turn without `turn_finish` is still open: its client can be running a tool.
    pub(super) fn of_records(records: impl Iterator<Item = Recorded>) -> Self {
        let mut thread = Self::default();
        for Recorded { kind, turn, step, payload } in records {
            thread.is_continued = true;
            match kind.as_str() {
                "thread_started" | "thread_resumed" => (thread.steps, thread.turns) = (0, 0),
                "turn_start" => {
                    thread.begin_turn(turn);
                }
                "step_start" => {
                    (thread.step, thread.reply) = (step, None);
                    (thread.steps, thread.open_steps) = (thread.steps + 1, thread.open_steps + 1);
                }
                "step_finish" => thread.end_step(payload.reply()),
                "turn_finish" => (thread.turn, thread.open_steps) = (None, 0),
                _ => {}
            }
        }
        if thread.turn.is_none() {
            // `thread_resumed` follows, after which counting starts at 0.
            (thread.steps, thread.turns) = (0, 0);
        }
        thread
    }

    fn begin_turn(&mut self, turn: u32) {
        (self.turn, self.step, self.open_steps, self.reply) = (Some(turn), 0, 0, None);
        self.turns += 1;
    }

    /// Ends a step. What a concurrent one has answered remains.
    fn end_step(&mut self, reply: Option<Reply>) {
        self.open_steps = self.open_steps.saturating_sub(1);
        self.reply = reply.or(self.reply);
    }

    /// Returns how an exchange with this answer ends its turn; `None`: the results of calls follow.
    fn status(&self, part: &Part, reply: Option<Reply>) -> Option<TurnStatus> {
        match (&part.refusal, reply.or(self.reply.filter(|_| part.has_asked))) {
            (Some(why), _) => Some(TurnStatus::Failed { class: flow::ErrorClass::Permanent, message: why.clone() }),
            (None, None) => Some(TurnStatus::Cancelled),
            (None, Some(Reply::Final)) => Some(TurnStatus::Completed),
            (None, Some(Reply::Calls)) => None,
        }
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
    has_ended: bool,
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
                // Their exchanges ended with an earlier process.
                self.cancel_steps(&mut thread);
            }
            return;
        }
        self.supersede(&mut thread);
        self.begin_thread(&mut thread, provider, model);
        self.begin_turn(&mut thread, turn);
    }

    fn begin_turn(&self, thread: &mut Thread, turn: u32) {
        thread.begin_turn(turn);
        self.set_place(turn, 0);
        self.emit(EventKind::TurnStart);
    }

    fn cancel_steps(&self, thread: &mut Thread) {
        for _ in 0..std::mem::take(&mut thread.open_steps) {
            let (usage, charged, end) = (Usage::default(), Charged::default(), StepEnd::Cancelled);
            self.emit(EventKind::StepFinish { usage, spend: None, charged, end, context_tokens: None });
        }
    }

    /// Finishes the open turn because another one starts. It is completed if its client has received its latest answer.
    fn supersede(&self, thread: &mut Thread) {
        let Some(turn) = thread.turn.take() else { return };
        self.set_place(turn, thread.step);
        self.cancel_steps(thread);
        let status = if thread.reply.is_some() { TurnStatus::Completed } else { TurnStatus::Cancelled };
        self.emit(EventKind::TurnFinish { status });
    }

    /// Records the content of a request that goes to the model, as it is sent. Records nothing if another turn has started since.
    pub(super) fn ask(&self, part: &mut Part, asked: &Asked) {
        let mut thread = self.thread();
        match (part.turn, thread.turn) {
            // A concurrent exchange has finished it meanwhile.
            (Some(turn), None) => self.begin_turn(&mut thread, turn),
            (own, now) if own != now => return,
            _ => {}
        }
        part.has_asked = true;
        self.emit_asked(asked);
        (thread.step, thread.steps) = (thread.step + 1, thread.steps + 1);
        (thread.open_steps, thread.reply) = (thread.open_steps + 1, None);
        if let Some(turn) = part.turn {
            self.set_place(turn, thread.step);
        }
        self.emit(EventKind::StepStart { number: thread.steps });
    }

    /// Emits the results of calls and the messages of a request.
    fn emit_asked(&self, asked: &Asked) {
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
    }

    /// Records an event of an exchange, unless another turn has started since. The client runs the calls of an accepted answer. They are recorded with the arguments that the model
    /// wrote: those that the client has received can contain secrets that a plugin has unmasked for it.
    pub(super) fn happened(&self, part: &Part, event: EventKind) {
        let thread = self.thread();
        if part.turn.is_some() && !part.has_ended && thread.turn != part.turn {
            return;
        }
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
    pub(super) fn answered(&self, part: &mut Part, answer: Option<&Answer>) {
        let mut thread = self.thread();
        if part.turn.is_none() || std::mem::replace(&mut part.has_ended, true) {
            return;
        }
        let reply = answer.map(Reply::of);
        let (usage, end) = match answer {
            Some(answer) => (answer.usage, StepEnd::Answered(answer.stop.clone().unwrap_or(StopReason::EndTurn))),
            None => (Usage::default(), StepEnd::Cancelled),
        };
        thread.usage.add(usage);
        if thread.turn != part.turn {
            return;
        }
        if part.has_asked {
            thread.end_step(reply);
            let charged = Charged::default();
            self.emit(EventKind::StepFinish { usage, spend: None, charged, end, context_tokens: None });
        }
        // The turn ends with the last of its concurrent exchanges.
        let status = thread.status(part, reply).filter(|_| thread.open_steps == 0);
        if let Some(status) = status {
            thread.turn = None;
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_of_an_earlier_process_is_as_its_records_say() {
        let start = [json!({"type": "turn_start", "turn": 2}), json!({"type": "step_start", "turn": 2, "step": 1})];
        let finish = |reason: &str| json!({"type": "step_finish", "payload": {"finish_reason": reason}});
        let end = json!({"type": "turn_finish", "payload": {"status": "completed"}});
        for (more, turn, open_steps, reply) in [
            (vec![], Some(2), 1, None),
            (vec![finish("cancelled")], Some(2), 0, None),
            (vec![finish("error")], Some(2), 0, None),
            (vec![finish("tool_use")], Some(2), 0, Some(Reply::Calls)),
            (vec![start[1].clone(), finish("end_turn")], Some(2), 1, Some(Reply::Final)),
            (vec![start[1].clone(), finish("end_turn"), finish("cancelled")], Some(2), 0, Some(Reply::Final)),
            (vec![finish("end_turn"), end], None, 0, Some(Reply::Final)),
        ] {
            let all = start.iter().chain(&more).map(|one| serde_json::from_value(one.clone()).unwrap());
            let thread = Thread::of_records(all);
            assert_eq!((thread.turn, thread.open_steps, thread.reply), (turn, open_steps, reply), "{more:?}");
        }
    }
}
