//! The conversation of a session: one copy, which the prompt, extensions and embedders borrow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::{LeftOut, Message, Origin, Part, Role, ToolResult};

use crate::context::leave_out;

/// The conversation of a session, oldest message first, hidden messages included. A clone is the same conversation.
///
/// Reading it never waits for a running turn. A message joins it when it is final: input when extensions have passed it, an
/// answer together with the results of its tool calls.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Messages>>);

/// The messages, and those that extensions may see.
#[derive(Debug, Default)]
struct Messages {
    all: Vec<Arc<Message>>,
    /// The turn in which each of them joined, from 1; 0: before the first of this process, or in place of others.
    turns: Vec<u32>,
    /// The turn that runs, or ran last.
    turn: u32,
    /// Those that are not hidden, each with its number in the session.
    visible: Vec<(u64, Arc<Message>)>,
    /// The number of the next message.
    next: u64,
    /// The last answer that did not come to its end.
    partial: Option<Arc<Message>>,
}

impl Messages {
    fn push(&mut self, message: Arc<Message>) {
        if !message.hidden {
            self.visible.push((self.next, Arc::clone(&message)));
        }
        self.next += 1;
        self.all.push(message);
        self.turns.push(self.turn);
    }

    /// Messages that remain keep their numbers.
    fn replace(&mut self, messages: Vec<Arc<Message>>) {
        let all = std::mem::take(&mut self.all);
        let turns: HashMap<*const Message, u32> =
            all.iter().map(Arc::as_ptr).zip(std::mem::take(&mut self.turns)).collect();
        let before = std::mem::take(&mut self.visible);
        let known: HashMap<*const Message, u64> =
            before.iter().map(|(number, message)| (Arc::as_ptr(message), *number)).collect();
        for message in messages {
            let number = known.get(&Arc::as_ptr(&message)).copied();
            let turn = turns.get(&Arc::as_ptr(&message)).copied();
            self.push(message);
            if let Some(last) = self.turns.last_mut() {
                *last = turn.unwrap_or(0);
            }
            if let (Some(number), Some(last)) = (number, self.visible.last_mut()) {
                last.0 = number;
            }
        }
        // The previous messages live until here, so that no new one can have the address of an old one.
        drop((before, all));
    }

    /// Leaves parts out. Messages that remain keep their numbers and their turns.
    fn reduce(&mut self, parts: &[LeftOut]) -> Result<(), &'static str> {
        let numbers: HashMap<*const Message, u64> =
            self.visible.iter().map(|(number, message)| (Arc::as_ptr(message), *number)).collect();
        let place = |message: &Arc<Message>, turn: u32| (turn, numbers.get(&Arc::as_ptr(message)).copied());
        let kept = self.all.iter().zip(&self.turns).map(|(message, turn)| (Arc::clone(message), place(message, *turn)));
        let mut kept: Vec<_> = kept.collect();
        leave_out(&mut kept, parts, &(0, None))?;
        self.visible =
            kept.iter().filter_map(|(message, (_, number))| Some(((*number)?, Arc::clone(message)))).collect();
        self.turns = kept.iter().map(|(_, (turn, _))| *turn).collect();
        self.all = kept.into_iter().map(|(message, _)| message).collect();
        Ok(())
    }
}

/// An accepted answer and the results of its calls, as they join the conversation. A call without a result is left out, and so is a
/// result without its call, which only a damaged transcript has: a provider refuses a history with either. Empty where nothing but
/// reasoning is left.
pub(crate) fn settled(mut answer: Message, mut results: Vec<ToolResult>) -> Vec<Message> {
    let mut answered = Vec::with_capacity(results.len());
    answer.parts.retain(|part| {
        let Part::ToolCall(call) = part else { return true };
        let found = results.iter().position(|result| result.call == call.id);
        answered.extend(found.map(|at| Part::ToolResult(results.remove(at))));
        found.is_some()
    });
    if answer.parts.iter().all(|part| matches!(part, Part::Thinking { .. })) {
        return Vec::new();
    }
    let mut messages = vec![answer];
    if !answered.is_empty() {
        messages.push(Message { role: Role::Tool, origin: Origin::Host, parts: answered, hidden: false });
    }
    messages
}

/// Leaves out calls without a result in the message after them, and results without their call in the message before: a provider
/// refuses a history with either. A message of which nothing but reasoning is left goes as well. Returns the messages that remain, each
/// with its index, and how many calls and results are left out.
pub(crate) fn paired(messages: &[Arc<Message>]) -> (Vec<(usize, Arc<Message>)>, usize) {
    let (mut kept, mut left_out): (Vec<(usize, Arc<Message>)>, usize) = (Vec::with_capacity(messages.len()), 0);
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        let results = messages.get(at + 1).filter(|next| next.role == Role::Tool);
        let is_answer = message.role == Role::Assistant && message.tool_calls().next().is_some();
        let is_paired = results
            .is_some_and(|next| message.tool_calls().map(|call| &call.id).eq(results_of(next).map(|one| &one.call)));
        if is_answer && is_paired {
            kept.extend([at, at + 1].map(|at| (at, Arc::clone(&messages[at]))));
            at += 2;
        } else if is_answer {
            let found: Vec<ToolResult> = results.into_iter().flat_map(|next| results_of(next)).cloned().collect();
            let before = message.tool_calls().count() + found.len();
            let settled = settled(Message::clone(message), found);
            let after: usize = settled.iter().map(|one| one.tool_calls().count() + results_of(one).count()).sum();
            left_out += before - after;
            kept.extend(settled.into_iter().enumerate().map(|(next, one)| (at + next, Arc::new(one))));
            at += 1 + usize::from(results.is_some());
        } else if message.role == Role::Tool {
            left_out += results_of(message).count();
            at += 1;
        } else {
            kept.push((at, Arc::clone(message)));
            at += 1;
        }
    }
    (kept, left_out)
}

fn results_of(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.parts.iter().filter_map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None })
}

impl History {
    /// The messages so far.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.lock().all.clone()
    }

    /// The number of messages that are not hidden.
    pub fn visible_len(&self) -> usize {
        self.lock().visible.len()
    }

    /// Up to `count` messages from position `from` on, hidden ones neither counted nor returned, each with a number that stays
    /// the same while the message is part of the session.
    pub fn visible(&self, from: usize, count: usize) -> Vec<(u64, Arc<Message>)> {
        self.lock().visible.iter().skip(from).take(count).cloned().collect()
    }

    /// Replaces the messages by those of a client that keeps the conversation. A message that is equal to the one at its place keeps its
    /// number.
    pub fn show(&self, messages: Vec<Message>) {
        let mut own = self.lock();
        let known = |(at, message): (usize, Message)| match own.all.get(at) {
            Some(known) if **known == message => Arc::clone(known),
            _ => Arc::new(message),
        };
        let messages = messages.into_iter().enumerate().map(known).collect();
        own.replace(messages);
    }

    /// Messages that follow join the conversation in this turn.
    pub(crate) fn begin_turn(&self, turn: u32) {
        self.lock().turn = turn;
    }

    /// Puts the conversation of an earlier process in place, with the turn in which each message joined it. `ends_partial`: its last
    /// message is an answer that did not come to its end.
    pub(crate) fn restore(&self, messages: &[Arc<Message>], turns: &[u32], ends_partial: bool) {
        let mut own = self.lock();
        own.replace(messages.to_vec());
        own.partial = messages.last().filter(|_| ends_partial).cloned();
        turns.clone_into(&mut own.turns);
        own.turns.resize(messages.len(), 0);
    }

    /// The index of the first message of the turns from `turn` on.
    pub(crate) fn start_of(&self, turn: u32) -> Option<usize> {
        self.lock().turns.iter().position(|own| *own >= turn.max(1))
    }

    /// The turn in which the message with this index joined.
    pub(crate) fn turn_of(&self, index: usize) -> u32 {
        self.lock().turns.get(index).copied().unwrap_or(0)
    }

    pub(crate) fn push(&self, message: Arc<Message>) {
        self.lock().push(message);
    }

    /// Adds an answer that did not come to its end.
    pub(crate) fn push_partial(&self, message: Arc<Message>) {
        let mut own = self.lock();
        own.partial = Some(Arc::clone(&message));
        own.push(message);
    }

    /// Whether the last message is an answer that did not come to its end.
    pub(crate) fn ends_partial(&self) -> bool {
        let own = self.lock();
        own.all.last().zip(own.partial.as_ref()).is_some_and(|(last, partial)| Arc::ptr_eq(last, partial))
    }

    pub(crate) fn replace(&self, messages: Vec<Arc<Message>>) {
        self.lock().replace(messages);
    }

    /// Leaves parts of the conversation out.
    ///
    /// # Errors
    /// It has no such part. Nothing has changed.
    pub(crate) fn reduce(&self, parts: &[LeftOut]) -> Result<(), &'static str> {
        self.lock().reduce(parts)
    }

    /// The messages so far, and the turn in which each of them joined.
    pub(crate) fn with_turns(&self) -> (Vec<Arc<Message>>, Vec<u32>) {
        let own = self.lock();
        (own.all.clone(), own.turns.clone())
    }

    /// Each change is made of steps that cannot panic half-way, so a poisoned lock still guards whole messages.
    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
