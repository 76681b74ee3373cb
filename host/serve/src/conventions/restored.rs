//! A turn whose first lines are not kept any more: what the state of a chat shows of it.

use chat::{
    ArgumentState, Author, BlockKind, ChatMessage, ChatSession, ChatState, PendingLimit, PreviewState, Question,
    SavedChat, ToolEntry, ToolStatus, TurnSummary, TurnTokens,
};
use record::{Argument, LimitEscalationRequested, Preview, Tokens, ToolConfirmationRequested};
use serde_json::{Value, json};

use super::act::{Act, Asked, Called, Ended, Ending, Finished, Said};
use super::asides::limit_aside;
use super::calls::Open;
use super::turn::Turn;

/// How much of a turn a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Has {
    Nothing,
    /// Everything up to the calls of this step of this turn.
    AnswersTo(u32, u32),
}

impl Turn {
    /// A turn that a chat shows, by default the last, and what it shows of it. What the shown stream does not have is left out: arguments of
    /// calls that neither ran nor were asked about, and why a call did not run. A later turn that runs its calls is a part of it.
    pub(crate) fn restored(saved: &SavedChat, turn: Option<u32>, has: Has, acts: &mut Vec<Act>) -> Option<Self> {
        let mut chat = ChatSession::default();
        let _changed = chat.restore(saved.clone());
        let state = chat.snapshot();
        let begun = saved.turns().iter().map(|turn| turn.number);
        let last = state.messages.messages().map(|message| message.turn).chain(begun).max()?;
        let wanted = turn.unwrap_or(last);
        let first = saved.turns().iter().find(|turn| turn.number == wanted).map_or(wanted, TurnSummary::first);
        let all: Vec<&TurnSummary> = saved.turns().iter().filter(|turn| turn.first() == first).collect();
        let mut restored = Self::new(first);
        restored.first = saved.next_seq();
        restored.finished = usage_of(&all);
        restored.show(&state, &all, has, acts);
        let _changed = restored.log.restore(saved.log().clone());
        restored.runs = all.last().map_or(first, |turn| turn.number);
        if !state.steering.is_executing() || restored.runs < last {
            let recorded = all.last().and_then(|turn| Some((turn.status.as_ref()?.to_string(), turn.error.as_ref())));
            let (status, why) = match recorded {
                Some((status, error)) => (status, error.map(ToString::to_string)),
                None => ("interrupted".to_owned(), Some(broken_off(&state, restored.runs))),
            };
            restored.end(status, why, acts);
        }
        Some(restored)
    }

    fn show(&mut self, state: &ChatState, all: &[&TurnSummary], has: Has, acts: &mut Vec<Act>) {
        let is_own = |number: u32| number == self.number || all.iter().any(|turn| turn.number == number);
        let messages: Vec<_> = state.messages.messages().filter(|message| is_own(message.turn)).collect();
        // Those of children are answered elsewhere.
        let own = state.questions.questions().iter().filter(|question| question.child.is_none());
        let questions: Vec<_> = own.filter(|question| is_own(question.turn)).collect();
        for message in messages {
            self.runs = message.turn;
            let is_new = match has {
                Has::Nothing => true,
                Has::AnswersTo(turn, step) => (message.turn, message.step) > (turn, step),
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
        questions.into_iter().for_each(|question| self.show_question(question, acts));
        if let Some(limit) = state.limit.as_ref().filter(|_| all.last().is_some_and(|turn| turn.status.is_none())) {
            let requested = limit_requested(limit);
            acts.extend(limit_aside(&requested).map(Act::Aside));
            self.calls.wait(Open::Limit(requested));
        }
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
        self.calls.can_reopen(&entry.call, call.clone());
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
        let call = self.calls.id((question.turn, question.step), &question.call);
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

/// Returns the total usage of turns.
fn usage_of(turns: &[&TurnSummary]) -> Finished {
    let mut all = Finished::default();
    for turn in turns {
        let TurnTokens { input, output, cache_read, cache_write, .. } = turn.tokens;
        let mut tokens = Tokens::default();
        (tokens.input_tokens, tokens.output_tokens) = (input, output);
        (tokens.cache_read_tokens, tokens.cache_write_tokens) = (cache_read, cache_write);
        all.add(&tokens, turn.cost);
        all.is_cut_off = turn.is_cut_off;
        all.model = turn.model.as_ref().map(ToString::to_string).or(all.model);
    }
    all
}

/// Returns why a turn has no end, as its messages have it.
fn broken_off(state: &ChatState, turn: u32) -> String {
    let mut own =
        state.messages.messages().filter(|message| message.turn == turn && message.author == Author::Assistant);
    let Some(last) = own.next_back() else { return "the turn has no answer".to_owned() };
    match last.partial.as_deref() {
        Some(why) => why.to_owned(),
        None if last.calls.iter().any(|call| call.status == ToolStatus::Cancelled) => {
            "the turn ended before the result of a call".to_owned()
        }
        None => "the process ended".to_owned(),
    }
}

fn limit_requested(limit: &PendingLimit) -> LimitEscalationRequested {
    let mut requested = LimitEscalationRequested::default();
    (requested.approval_request_id, requested.limit_code) = (limit.id.to_string(), limit.code.to_string());
    (requested.current_value, requested.current_max) = (limit.current, limit.max);
    (requested.proposed_max, requested.message) = (limit.proposed, limit.message.to_string());
    requested
}

/// Returns the line that a question was asked with.
pub(super) fn requested(question: &Question) -> ToolConfirmationRequested {
    let mut asked = ToolConfirmationRequested::default();
    asked.question_id = Some(question.id.as_str().to_owned());
    (asked.call_id, asked.tool) = (question.call.to_string(), question.tool.to_string());
    (asked.input, asked.reason) = (arguments(&question.arguments), question.reason.to_string());
    (asked.preview, asked.always) = (preview(&question.preview), question.always.as_ref().map(ToString::to_string));
    asked.timeout_ms = question.expires_ms.map(|end| end.saturating_sub(question.at_ms));
    asked
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
