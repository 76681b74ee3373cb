//! AG-UI, the protocol of agents and user interfaces: what `HttpAgent` of `@ag-ui/client` and CopilotKit read, and what they send.
//!
//! A run is a turn, or the part of a turn up to where it waits for a person. Text that a rule made void is taken back with a snapshot of the
//! messages, because no event takes a message back.

mod event;
mod interrupt;
mod messages;
mod post;

use chat::BlockKind;
use serde_json::{Value, json};

pub(crate) use self::event::Event;
use self::event::{Kind, Outcome, Usage};
use self::interrupt::{decided, interrupt};
use self::messages::Messages;
pub(crate) use self::post::Request;
use super::Act;
use super::act::{Called, Ended, Finished, Part};
use super::calls::Open;

/// The version of the protocol.
const VERSION: &str = "1.0";

/// Makes the events of a run.
#[derive(Debug)]
pub(crate) struct AgUi {
    thread: String,
    run: String,
    messages: Messages,
    /// The name of the step that is open.
    step: Option<String>,
    steps: u32,
    /// The part of the answer that is open.
    part: Option<Part>,
    /// The time of the line at hand.
    now: u64,
}

/// What a run is called, and which messages its client has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) thread: String,
    pub(crate) run: String,
    pub(crate) messages: Vec<Value>,
    /// It continues what an earlier run of the client has begun.
    pub(crate) is_continued: bool,
}

impl AgUi {
    /// Begins a run. `now` is in milliseconds since 1970-01-01 UTC.
    pub(crate) fn begin(run: Run, now: u64, events: &mut Vec<Event>) -> Self {
        let Run { thread, run, messages, is_continued } = run;
        let begun = Self { thread, run, messages: Messages::of(messages), step: None, steps: 0, part: None, now };
        let (thread_id, run_id) = (begun.thread.clone(), begun.run.clone());
        begun.push(Kind::RunStarted { thread_id, run_id, protocol_version: VERSION }, events);
        if is_continued {
            // The run has results of calls that an earlier one has begun.
            begun.snapshot(events);
        }
        begun
    }

    /// What follows happened at this time.
    pub(crate) fn at(&mut self, now: u64) {
        self.now = now;
    }

    /// Adds the events of an act.
    pub(crate) fn take(&mut self, act: Act, events: &mut Vec<Event>) {
        match act {
            Act::Said(said) | Act::Steered(said) => self.said(said.id, said.text, events),
            Act::StepStarted => self.start_step(events),
            Act::PartStarted(part) => self.start(part, events),
            Act::PartGrew(part, text) => self.grow(part, text, events),
            Act::PartEnded(part) => self.end(part, events),
            Act::Voided => {
                self.messages.void();
                self.snapshot(events);
            }
            Act::Left => self.messages.keep(),
            Act::Called(called) => self.called(called, events),
            // The end of the run says it.
            Act::Asked(_) => {}
            Act::Answered(answered) => self.custom("tool_confirmation_resolved", decided(&answered), events),
            Act::Ended(ended) => self.over(ended, events),
            Act::StepFinished => self.finish_step(events),
            Act::Aside(aside) => self.custom(&aside.name, aside.payload, events),
            Act::Finished(finished) => self.finish(*finished, events),
        }
    }

    /// Ends the run where the turn waits for a person.
    pub(crate) fn pause(&mut self, open: &[Open], events: &mut Vec<Event>) {
        self.finish_step(events);
        self.snapshot(events);
        let outcome = Outcome::Interrupt { interrupts: open.iter().map(interrupt).collect() };
        self.finished(outcome, Vec::new(), events);
    }

    /// Ends the run, which cannot be carried out.
    pub(crate) fn fail(&mut self, code: &str, message: &str, events: &mut Vec<Event>) {
        if let Some(part) = self.part.take() {
            self.end(part, events);
        }
        self.finish_step(events);
        let (message, code) = (message.to_owned(), code.to_owned());
        self.push(Kind::RunError { message, code, usage: Vec::new() }, events);
    }

    /// The messages that the client has at the end.
    #[cfg(test)]
    pub(crate) fn into_messages(self) -> Vec<Value> {
        self.messages.all()
    }

    fn push(&self, kind: Kind, events: &mut Vec<Event>) {
        events.push(Event { kind, timestamp: self.now });
    }

    fn snapshot(&self, events: &mut Vec<Event>) {
        self.push(Kind::MessagesSnapshot { messages: self.messages.all() }, events);
    }

    fn custom(&self, name: &str, value: Value, events: &mut Vec<Event>) {
        self.push(Kind::Custom { name: format!("tidegate.{name}"), value }, events);
    }

    /// A message of the user, also of another front end.
    fn said(&mut self, message_id: String, text: String, events: &mut Vec<Event>) {
        if self.messages.has(&message_id) {
            return;
        }
        self.messages.said(&message_id, &text);
        self.push(Kind::TextMessageStart { message_id: message_id.clone(), role: "user" }, events);
        if !text.is_empty() {
            self.push(Kind::TextMessageContent { message_id: message_id.clone(), delta: text }, events);
        }
        self.push(Kind::TextMessageEnd { message_id }, events);
    }

    fn start_step(&mut self, events: &mut Vec<Event>) {
        self.messages.keep();
        self.steps += 1;
        let step_name = format!("step {}", self.steps);
        self.step = Some(step_name.clone());
        self.push(Kind::StepStarted { step_name }, events);
    }

    fn finish_step(&mut self, events: &mut Vec<Event>) {
        if let Some(step_name) = self.step.take() {
            self.push(Kind::StepFinished { step_name }, events);
        }
    }

    fn start(&mut self, part: Part, events: &mut Vec<Event>) {
        self.part = Some(part.clone());
        let Part { id, kind } = part;
        // The client has it from a run that it has left, and would add the text to that.
        if self.messages.restart(&id) {
            self.snapshot(events);
        }
        if kind == BlockKind::Reasoning {
            self.messages.begin(&id, "reasoning");
            self.push(Kind::ReasoningStart { message_id: id.clone() }, events);
            self.push(Kind::ReasoningMessageStart { message_id: id, role: "reasoning" }, events);
        } else {
            self.messages.begin(&id, "assistant");
            self.push(Kind::TextMessageStart { message_id: id, role: "assistant" }, events);
        }
    }

    fn grow(&mut self, Part { id: message_id, kind }: Part, delta: String, events: &mut Vec<Event>) {
        self.messages.grow(&message_id, &delta);
        if kind == BlockKind::Reasoning {
            self.push(Kind::ReasoningMessageContent { message_id, delta }, events);
        } else {
            self.push(Kind::TextMessageContent { message_id, delta }, events);
        }
    }

    fn end(&mut self, Part { id: message_id, kind }: Part, events: &mut Vec<Event>) {
        self.part = None;
        if kind == BlockKind::Reasoning {
            self.push(Kind::ReasoningMessageEnd { message_id: message_id.clone() }, events);
            self.push(Kind::ReasoningEnd { message_id }, events);
        } else {
            self.push(Kind::TextMessageEnd { message_id }, events);
        }
    }

    fn called(&mut self, Called { call, tool, input }: Called, events: &mut Vec<Event>) {
        let arguments = input.as_ref().map(Value::to_string);
        if let Some(known) = self.messages.arguments(&call) {
            let read = known.as_str().and_then(|known| serde_json::from_str::<Value>(known).ok());
            // A person has edited them, and no event replaces arguments.
            if let Some(arguments) = arguments.filter(|_| read != input) {
                *known = arguments.into();
                self.snapshot(events);
            }
            return;
        }
        let parent = self.messages.parent();
        self.messages.call(&call, &tool, arguments.as_deref().unwrap_or_default(), parent.as_deref());
        let start = Kind::ToolCallStart { tool_call_id: call.clone(), tool_call_name: tool, parent_message_id: parent };
        self.push(start, events);
        if let Some(delta) = arguments {
            self.push(Kind::ToolCallArgs { tool_call_id: call.clone(), delta }, events);
        }
        self.push(Kind::ToolCallEnd { tool_call_id: call }, events);
    }

    fn over(&mut self, Ended { call, result, diff, duration_ms, waited_ms }: Ended, events: &mut Vec<Event>) {
        if self.messages.has_result(&call) {
            return;
        }
        let (message_id, content) = (format!("{call}.result"), result.text().to_owned());
        self.messages.result(&message_id, &call, &content);
        let tool_call_id = call.clone();
        self.push(Kind::ToolCallResult { message_id, tool_call_id, content, role: "tool" }, events);
        if let Some(diff) = diff {
            let value = json!({"call_id": call, "diff": diff, "duration_ms": duration_ms, "waited_ms": waited_ms});
            self.custom("tool_call_diff", value, events);
        }
    }

    fn finish(&self, finished: Finished, events: &mut Vec<Event>) {
        let Finished { status, error, usage, model, .. } = finished;
        let usage = Usage::of(model, &usage);
        match status.as_str() {
            "completed" => self.finished(Outcome::Success, usage, events),
            // Nobody is asked, and nothing has failed: the rule that fired is an event of its own.
            "cancelled" | "stopped_by_rule" => self.finished(Outcome::Cancelled, usage, events),
            _ => {
                let message = error.unwrap_or_else(|| status.clone());
                self.push(Kind::RunError { message, code: status, usage }, events);
            }
        }
    }

    fn finished(&self, outcome: Outcome, usage: Vec<Usage>, events: &mut Vec<Event>) {
        let (thread_id, run_id) = (self.thread.clone(), self.run.clone());
        self.push(Kind::RunFinished { thread_id, run_id, outcome, usage }, events);
    }
}
