//! A turn whose first lines are not kept any more: what the state of a chat shows of it.

use chat::{
    ArgumentState, Author, BlockKind, ChatMessage, ChatSession, ChatState, PreviewState, Question, SavedChat,
    ToolEntry, ToolStatus,
};
use record::{Argument, Preview};
use serde_json::{Value, json};

use super::act::{Act, Asked, Called, Ended, Ending, Said};
use super::turn::Turn;

/// How much of a turn a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Has {
    Nothing,
    /// Everything up to the calls of this step.
    AnswersTo(u32),
}

impl Turn {
    /// The last turn that a chat shows, and what it shows of it. What the shown stream does not have is left out: arguments of calls that
    /// neither ran nor were asked about, and why a call did not run.
    pub(crate) fn restored(saved: &SavedChat, turn: Option<u32>, has: Has, acts: &mut Vec<Act>) -> Option<Self> {
        let mut chat = ChatSession::default();
        let _changed = chat.restore(saved.clone());
        let state = chat.snapshot();
        let last = state.messages.messages().map(|message| message.turn).max()?;
        let mut restored = Self::new(turn.unwrap_or(last));
        restored.first = saved.next_seq();
        restored.show(&state, has, acts);
        let _changed = restored.log.restore(saved.log().clone());
        if !state.steering.is_executing() || restored.number < last {
            let error = state.error.as_ref().filter(|_| restored.number == last);
            let (status, why) = match error {
                Some(error) => (error.status.to_string(), Some(error.message.to_string())),
                None => end_of(&state, restored.number),
            };
            restored.end(status, why, acts);
        }
        Some(restored)
    }

    fn show(&mut self, state: &ChatState, has: Has, acts: &mut Vec<Act>) {
        let number = self.number;
        for message in state.messages.messages().filter(|message| message.turn == number) {
            let is_new = match has {
                Has::Nothing => true,
                Has::AnswersTo(step) => message.step > step,
            };
            match message.author {
                Author::User if is_new => acts.push(said(&message)),
                Author::Assistant => {
                    if is_new {
                        self.show_blocks(&message, acts);
                    }
                    for entry in message.calls.iter() {
                        self.show_call(&message, entry, acts);
                    }
                }
                _ => {}
            }
        }
        // Those of children are answered elsewhere.
        let own = state.questions.questions().iter().filter(|question| question.child.is_none());
        own.filter(|question| question.turn == number).for_each(|question| self.show_question(question, acts));
    }

    fn show_blocks(&mut self, message: &ChatMessage, acts: &mut Vec<Act>) {
        self.enter(message.step, acts);
        for block in message.blocks.iter().filter(|block| block.void.is_none()) {
            self.add(block.kind, block.text.to_string(), acts);
        }
        let is_text = message.blocks.last().is_some_and(|block| block.kind == BlockKind::Text);
        if message.complete || !is_text {
            self.end_part(acts);
        }
        if message.complete && message.partial.is_some() {
            acts.push(Act::Left);
        }
    }

    fn show_call(&mut self, message: &ChatMessage, entry: &ToolEntry, acts: &mut Vec<Act>) {
        let call = format!("{}.{}.{}", message.turn, message.step, entry.call);
        let was_shown = entry.waited_ms.is_some() || entry.duration_ms.is_some() || entry.started_ms.is_some();
        let input = arguments(&entry.arguments);
        let (result, is_shown) = match entry.status {
            // Its question follows, where one is open.
            ToolStatus::Proposed | ToolStatus::Asking => return,
            ToolStatus::Running => {
                self.calls.show(&call, &entry.tool, &input, acts);
                return self.calls.run(&call);
            }
            ToolStatus::Done => (Ending::Done(output(entry)), true),
            ToolStatus::Failed => (Ending::Failed(output(entry)), true),
            ToolStatus::NotRun if entry.waited_ms.is_some() => (Ending::Denied, true),
            ToolStatus::NotRun => (Ending::NotRun, false),
            _ => (Ending::Cancelled, was_shown),
        };
        let tool = entry.tool.to_string();
        acts.push(Act::Called(Called { call: call.clone(), tool, input: is_shown.then_some(input) }));
        let diff = entry.diff.as_ref().map(ToString::to_string).filter(|_| entry.duration_ms.is_some());
        let (duration_ms, waited_ms) = (entry.duration_ms, entry.waited_ms);
        self.calls.end(Ended { call, result, diff, duration_ms, waited_ms }, acts);
    }

    fn show_question(&mut self, question: &Question, acts: &mut Vec<Act>) {
        let call = format!("{}.{}.{}", question.turn, question.step, question.call);
        self.calls.show(&call, &question.tool, &arguments(&question.arguments), acts);
        let asked = Asked {
            question: question.id.as_str().to_owned(),
            call,
            tool: question.tool.to_string(),
            reason: question.reason.to_string(),
            preview: preview(&question.preview),
            always: question.always.as_ref().map(ToString::to_string),
            expires_ms: question.expires_ms,
        };
        self.calls.ask(asked, acts);
    }
}

/// Returns the status of a turn that is over and why it broke off, as its messages have it: nothing else of an earlier turn is kept, or of one
/// whose process has ended.
fn end_of(state: &ChatState, turn: u32) -> (String, Option<String>) {
    let mut own =
        state.messages.messages().filter(|message| message.turn == turn && message.author == Author::Assistant);
    let Some(last) = own.next_back() else {
        return ("interrupted".to_owned(), Some("the turn has no answer".to_owned()));
    };
    let has_open_call = last.calls.iter().any(|call| call.status == ToolStatus::Cancelled);
    match last.partial.as_deref() {
        Some("cancelled") => ("cancelled".to_owned(), None),
        Some(why) => ("interrupted".to_owned(), Some(why.to_owned())),
        None if has_open_call => {
            ("interrupted".to_owned(), Some("the turn ended before the result of a call".to_owned()))
        }
        None => ("completed".to_owned(), None),
    }
}

fn preview(shown: &PreviewState) -> Preview {
    let argument = |one: &ArgumentState| {
        let mut argument = Argument::default();
        (argument.name, argument.value) = (one.name.to_string(), one.value.to_string());
        argument
    };
    let mut preview = Preview::default();
    preview.arguments = shown.arguments.iter().map(argument).collect();
    preview.diff = shown.diff.as_ref().map(ToString::to_string);
    preview.notes = shown.notes.iter().map(ToString::to_string).collect();
    preview
}

fn said(message: &ChatMessage) -> Act {
    let id = message.input.as_ref().map_or(message.id.as_str(), |id| id.as_str()).to_owned();
    let said = Said { id, text: message.text() };
    if message.steered { Act::Steered(said) } else { Act::Said(said) }
}

/// Reads arguments as `tool_call_start` has them.
fn arguments(text: &str) -> Value {
    let read = serde_json::from_str(text).ok().filter(Value::is_object);
    read.unwrap_or_else(|| json!({"raw": text}))
}

fn output(entry: &ToolEntry) -> String {
    entry.output.as_ref().map(ToString::to_string).unwrap_or_default()
}
