//! The messages of one thread: what each event changes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flow::{
    Annotation, AnswerBlock, CallId, Event, EventKind, InputId, Message, Origin, Part, PluginId, Role, RunPosition,
};
use flow::{Partial, Retained, StreamKind};
use serde::{Deserialize, Serialize};

use crate::answer::{End, end, seen};
use crate::command::OutgoingId;
use crate::list::{List, Shared};
use crate::message::{
    Author, Block, BlockKind, ChatImage, ChatMessage, MessageId, Note, ToolEntry, ToolStatus, TurnError,
};
use crate::text::Str;

/// How much an event changed, from a delta to a whole turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    /// Text was added to a block that is not complete.
    Delta,
    /// Blocks of a message that is not complete were completed or changed.
    Block,
    /// A message was completed, or a complete one changed.
    Message,
    /// The turn ended, and no message changed by that.
    Settled,
    /// Messages changed that are visible in every mode.
    Turn,
}

impl Effect {
    fn or(self, other: Self) -> Self {
        if self == Self::Nothing { other } else { self }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Thread {
    pub(super) messages: List<Shared<ChatMessage>>,
    /// Messages of turns that have ended, from the first.
    pub(super) settled: usize,
    pub(super) next_seq: u64,
    /// The answer of the current step.
    pub(super) answer: Option<Answer>,
    /// Messages that were given, by their ids.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) given: Shared<BTreeMap<MessageId, usize>>,
}

fn is_none(given: &Shared<BTreeMap<MessageId, usize>>) -> bool {
    given.is_empty()
}

/// Where the answers of one step are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    turn: u32,
    step: u32,
    /// Answers of the step before this one.
    number: u32,
    /// Its message, once there is one.
    pub(super) index: Option<usize>,
    /// Shown bytes that earlier attempts have left, including those of `carried`.
    kept: usize,
    /// The start of what the events call its shown text, which is in the message before.
    carried: Str,
}

impl Thread {
    pub(super) fn with_messages(messages: Vec<ChatMessage>) -> Self {
        let given = messages.iter().enumerate().map(|(index, message)| (message.id.clone(), index)).collect();
        let messages: List<_> = messages.into_iter().map(Shared::new).collect();
        Self { settled: messages.len(), messages, given: Shared::new(given), ..Self::default() }
    }

    pub(super) fn clear(&mut self) {
        *self = Self { next_seq: self.next_seq, ..Self::default() };
    }

    pub(super) fn process(&mut self, event: &Event) -> Effect {
        if event.seq < self.next_seq {
            return Effect::Nothing;
        }
        self.next_seq = event.seq.saturating_add(1);
        match &event.kind {
            EventKind::InputReceived { id, message } if !message.hidden => {
                let (input, images) = (id.as_ref().map(own), ChatImage::of(message));
                let message = ChatMessage { input, images, ..said(event, &message.plain_text()) };
                self.join(event, message)
            }
            EventKind::SteeringMessage { id, text, hidden: false, .. } => {
                let input = id.as_ref().map(own);
                self.join(event, ChatMessage { input, steered: true, ..said(event, text) })
            }
            EventKind::CustomMessage { text, hidden: false, .. } => {
                let id = MessageId::new(format!("host-{}", event.seq));
                self.join(event, ChatMessage::new(id, Author::Host, text))
            }
            _ => {
                let effect = self.take(event);
                // A message of a turn that has ended is visible in every mode.
                let index = self.answer.as_ref().and_then(|answer| answer.index);
                let visible = index.is_some_and(|index| index < self.settled);
                if visible && !matches!(effect, Effect::Nothing | Effect::Settled) { Effect::Turn } else { effect }
            }
        }
    }

    /// Takes an event that is not the user's.
    fn take(&mut self, event: &Event) -> Effect {
        match &event.kind {
            EventKind::TurnStart | EventKind::ThreadResumed { .. } => self.end_turn(Some("the process ended")),
            EventKind::TurnFinish { status } => {
                let cancelled = (*status == flow::TurnStatus::Cancelled).then(|| "cancelled".to_owned());
                let why = TurnError::of(status).map(|error| error.message.to_string()).or(cancelled);
                self.end_turn(why.as_deref())
            }
            EventKind::HistoryReplaced { messages } if self.messages.is_empty() => self.history(event, messages),
            EventKind::CognitionOutDelta { text, .. } => self.grown(event, BlockKind::Text, text),
            EventKind::CognitionReasoningDelta { text } => self.grown(event, BlockKind::Reasoning, text),
            EventKind::CognitionOut { text, author, shown, partial, retained, blocks, annotations, .. } => {
                let ended = Ended {
                    seen: seen(text, shown.as_deref(), partial.as_ref()),
                    partial: partial.as_ref(),
                    retained: *retained,
                    author,
                    blocks,
                    annotations,
                };
                self.answered(event, &ended)
            }
            EventKind::StepStart { .. } | EventKind::StepFinish { .. } => self.end_answer(None),
            _ => self.call_event(event),
        }
    }

    /// The message of the step's answer, which is made if there is none.
    pub(super) fn answer_mut(&mut self, event: &Event) -> &mut ChatMessage {
        let answer = self.answer_at(event.place);
        let (number, known) = (answer.number, answer.index);
        let RunPosition { turn, step, .. } = event.place;
        let index = known.unwrap_or_else(|| {
            let number = if number == 0 { String::new() } else { format!(".{number}") };
            self.add(event, ChatMessage { id: MessageId::new(format!("{turn}.{step}{number}")), ..Default::default() })
        });
        if let Some(answer) = &mut self.answer {
            answer.index = Some(index);
        }
        self.message_mut(index).unwrap_or_else(|| unreachable!("the index of a message"))
    }

    pub(super) fn message_mut(&mut self, index: usize) -> Option<&mut ChatMessage> {
        self.messages.get_mut(index).map(Shared::make_mut)
    }

    /// An event of another step than the current one: the answer before it is over, although nothing said so.
    pub(super) fn enter(&mut self, place: RunPosition) -> Effect {
        let other = self.answer.as_ref().is_some_and(|one| (one.turn, one.step) != (place.turn, place.step));
        if other { self.end_answer(None) } else { Effect::Nothing }
    }

    /// What follows a complete answer in its step is another answer.
    fn next_answer(&mut self, place: RunPosition) {
        let index = self.answer_index(place);
        let complete = index.and_then(|index| self.messages.get(index)).is_some_and(|message| message.complete);
        let answer = self.answer_at(place);
        if complete {
            let (turn, step) = (place.turn, place.step);
            *answer = Answer { turn, step, number: answer.number + 1, ..Answer::default() };
        }
    }

    /// The index of the message of the step's answer.
    pub(super) fn answer_index(&self, place: RunPosition) -> Option<usize> {
        let answer = self.answer.as_ref().filter(|answer| (answer.turn, answer.step) == (place.turn, place.step));
        answer.and_then(|answer| answer.index)
    }

    /// The index of the message of the step's answer, where its last block is of this kind and continues.
    pub(super) fn open_block(&self, place: RunPosition, kind: BlockKind) -> Option<usize> {
        let index = self.answer_index(place)?;
        let message = self.messages.get(index).filter(|message| !message.complete)?;
        message.blocks.last().filter(|block| block.continues(kind)).map(|_| index)
    }

    fn answer_at(&mut self, place: RunPosition) -> &mut Answer {
        let current = self.answer.take().filter(|answer| (answer.turn, answer.step) == (place.turn, place.step));
        let new = || Answer { turn: place.turn, step: place.step, ..Answer::default() };
        self.answer.insert(current.unwrap_or_else(new))
    }

    /// Adds a message, in the place of a given one that has its id.
    fn add(&mut self, event: &Event, message: ChatMessage) -> usize {
        let RunPosition { turn, step, .. } = event.place;
        let message = ChatMessage { turn, step, at_ms: event.at_ms, ..message };
        let given = self.given.get(&message.id).copied();
        match given.and_then(|index| Some((index, self.messages.get_mut(index)?))) {
            Some((index, slot)) => {
                *slot = Shared::new(message);
                index
            }
            None => {
                self.messages.push(Shared::new(message));
                self.messages.len() - 1
            }
        }
    }

    fn join(&mut self, event: &Event, message: ChatMessage) -> Effect {
        let index = match self.delivered_before(&message).and_then(|index| Some((index, self.message_mut(index)?))) {
            // Its process ended before it was in the conversation, and the next one has delivered it again, perhaps with another text.
            Some((index, known)) => {
                let RunPosition { turn, step, .. } = event.place;
                *known = ChatMessage { id: known.id.clone(), turn, step, at_ms: event.at_ms, ..message };
                index
            }
            None => self.add(event, message),
        };
        if index < self.settled { Effect::Turn } else { Effect::Message }
    }

    /// Where among the last messages, which are the user's, the input of a message is already.
    fn delivered_before(&self, message: &ChatMessage) -> Option<usize> {
        message.input.as_ref()?;
        let last = self.messages.iter().enumerate().rev().take_while(|(_, one)| one.author == Author::User);
        last.into_iter().find(|(_, one)| one.input == message.input).map(|(index, _)| index)
    }

    fn grown(&mut self, event: &Event, kind: BlockKind, text: &str) -> Effect {
        if text.is_empty() {
            return Effect::Nothing;
        }
        let ended = self.enter(event.place);
        self.next_answer(event.place);
        let completed = self.answer_mut(event).grow(kind, text);
        match (ended, completed) {
            (Effect::Nothing, true) => Effect::Block,
            (Effect::Nothing, false) => Effect::Delta,
            (ended, _) => ended,
        }
    }

    fn answered(&mut self, event: &Event, ended: &Ended<'_>) -> Effect {
        let before = self.enter(event.place);
        self.next_answer(event.place);
        let answer = self.answer_at(event.place);
        let end = end(ended.partial, ended.retained, answer.kept);
        let (is_new, carried) = (answer.index.is_none(), answer.carried.clone());
        let seen = ended.seen.map_or_else(|| self.shown_so_far(event.place, &carried).into(), Cow::Borrowed);
        let own = seen.strip_prefix(&*carried).unwrap_or(&seen);
        if is_new && own.is_empty() && (end != End::Accepted || ended.is_bare()) {
            return before;
        }
        let message = self.answer_mut(event);
        let corrected = message.correct(own);
        match end {
            End::Accepted => {
                ended.accept(message);
                message.finish(None);
                Effect::Message
            }
            End::Continues { kept, why } => {
                let voided = message.void_after(kept.saturating_sub(carried.len()), why);
                self.answer_at(event.place).kept = kept;
                if corrected || voided { before.or(Effect::Block) } else { before }
            }
            End::Stays { carried: bytes, why } => {
                message.finish(Some(why));
                let bytes = seen.floor_char_boundary(bytes);
                let answer = self.answer_at(event.place);
                let number = answer.number + 1;
                let carried = Str::from(&seen[..bytes]);
                *answer = Answer { number, index: None, kept: bytes, carried, ..answer.clone() };
                Effect::Message
            }
        }
    }

    /// What the deltas of the step's answer have shown, after what the message before it has.
    fn shown_so_far(&self, place: RunPosition, carried: &str) -> String {
        let message = self.answer_index(place).and_then(|index| self.messages.get(index));
        carried.to_owned() + &message.map(|message| message.text()).unwrap_or_default()
    }

    /// The answer of the step is over.
    fn end_answer(&mut self, why: Option<&str>) -> Effect {
        let index = self.answer.as_ref().and_then(|answer| answer.index);
        match index.and_then(|index| self.messages.get_mut(index)).filter(|message| !message.complete) {
            Some(message) => {
                message.make_mut().finish(why);
                Effect::Message
            }
            None => Effect::Nothing,
        }
    }

    /// The turn is over: nothing of it goes on.
    fn end_turn(&mut self, why: Option<&str>) -> Effect {
        let mut changed = self.end_answer(why) != Effect::Nothing;
        for index in self.settled..self.messages.len() {
            changed |= self.cancel_calls(index);
        }
        let settled = std::mem::replace(&mut self.settled, self.messages.len()) != self.messages.len();
        match (changed, settled) {
            (true, _) => Effect::Turn,
            (false, true) => Effect::Settled,
            (false, false) => Effect::Nothing,
        }
    }

    /// The conversation that a thread begins with. It is the model's: reasoning in it was not shown.
    fn history(&mut self, event: &Event, messages: &[std::sync::Arc<Message>]) -> Effect {
        for (number, message) in messages.iter().enumerate().filter(|(_, message)| !message.hidden) {
            let author = match (message.role, &message.origin) {
                (Role::System, _) => continue,
                (Role::Tool, _) => {
                    self.results(message);
                    continue;
                }
                (Role::User, Origin::Host) => Author::Host,
                (Role::User, _) => Author::User,
                (Role::Assistant, _) => Author::Assistant,
            };
            let id = MessageId::of_history(event.seq, number);
            let calls = message.tool_calls().map(|call| ToolEntry::new(&call.id, &call.name, &call.arguments));
            let (calls, images) = (calls.collect(), ChatImage::of(message));
            self.add(event, ChatMessage { calls, images, ..ChatMessage::new(id, author, &message.plain_text()) });
        }
        self.settled = self.messages.len();
        if self.settled > 0 { Effect::Turn } else { Effect::Nothing }
    }

    fn results(&mut self, message: &Message) {
        let Some(last) = self.messages.len().checked_sub(1) else { return };
        let results = message.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            Part::Text(_) | Part::Image(_) | Part::Thinking { .. } | Part::ToolCall(_) => None,
        });
        for result in results {
            let text = result.content.concat();
            self.change_call(last, result.call.as_str(), |call| {
                call.status = if result.is_error { ToolStatus::Failed } else { ToolStatus::Done };
                call.summarise(&text);
                call.output = Some(text.as_str().into());
            });
        }
    }
}

/// A message of the user.
fn said(event: &Event, text: &str) -> ChatMessage {
    ChatMessage::new(MessageId::new(format!("in-{}", event.seq)), Author::User, text)
}

fn own(id: &InputId) -> OutgoingId {
    OutgoingId::new(id.as_str())
}

/// What the record of an answer says.
struct Ended<'e> {
    seen: Option<&'e str>,
    partial: Option<&'e Partial>,
    retained: Retained,
    author: &'e Origin,
    blocks: &'e [AnswerBlock],
    annotations: &'e [(PluginId, Annotation)],
}

impl Ended<'_> {
    /// There is nothing to show of it.
    fn is_bare(&self) -> bool {
        self.annotations.is_empty() && self.calls().next().is_none()
    }

    fn calls(&self) -> impl Iterator<Item = (&CallId, &str, &str)> {
        self.blocks.iter().filter(|block| block.complete).filter_map(|block| match &block.kind {
            StreamKind::Tool { call, name } => Some((call, name.as_str(), block.shown_arguments().unwrap_or_default())),
            StreamKind::Text | StreamKind::Thinking => None,
        })
    }

    fn accept(&self, message: &mut ChatMessage) {
        if let Origin::Plugin(plugin) = self.author {
            message.extension = Some(plugin.as_str().into());
        }
        message.calls = self.calls().map(|(call, tool, arguments)| ToolEntry::new(call, tool, arguments)).collect();
        let note = |(by, note): &(PluginId, Annotation)| Note::new(by.as_str(), &note.key, note.value.clone());
        message.notes = self.annotations.iter().map(note).collect();
        // An answer that consists of calls has no block.
        if message.blocks.last().is_some_and(|block: &Block| block.text.is_empty()) {
            message.complete_block();
        }
    }
}
