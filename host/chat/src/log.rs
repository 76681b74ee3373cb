//! The messages of a thread, as a front end shows them, from events alone.

mod calls;
mod change;
mod edit;
mod shown;
mod state;

use std::fmt;
use std::sync::Arc;

use flow::{Event, RunPosition};
use serde::{Deserialize, Serialize, Serializer};

pub use self::change::{BlockChange, LogChange, MessageChange, MessagePart, ThreadChange};
use self::state::{Effect, Thread};
use crate::list::{List, Shared};
use crate::message::{Block, BlockKind, Changed, ChatMessage, ChildThread, MessageId};

/// When a message becomes visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RenderMode {
    /// When its turn has ended.
    AtEnd,
    /// When it is complete; its tool calls change afterwards.
    Message,
    /// Block by block, each when it is complete.
    Block,
    /// With every delta.
    #[default]
    Streaming,
}

impl RenderMode {
    /// Whether a change of this size changes what is visible.
    fn sees(self, effect: Effect) -> bool {
        match effect {
            Effect::Nothing => false,
            Effect::Delta => self == Self::Streaming,
            Effect::Block => matches!(self, Self::Streaming | Self::Block),
            Effect::Message => self != Self::AtEnd,
            Effect::Settled => self == Self::AtEnd,
            Effect::Turn => true,
        }
    }
}

/// Makes the messages that are shown of the one that events gave: none, one, or several. It is called when messages are read, and must
/// give the same result for the same message. Of several with one id, the second is shown as `ID/2`, and so on.
pub type Transform = Arc<dyn Fn(&ChatMessage) -> Vec<ChatMessage> + Send + Sync>;

/// Settings of a [`MessageLog`].
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct LogOptions {
    /// When a message becomes visible.
    pub render_mode: RenderMode,
    /// Replaces the default, which shows each message as it is.
    pub transform: Option<Transform>,
    /// Messages from before the first event, such as those of a stored session. Events about a message with one of their ids replace it.
    pub initial_messages: Vec<ChatMessage>,
}

impl LogOptions {
    /// Sets when a message becomes visible.
    #[must_use]
    pub fn render_mode(mut self, mode: RenderMode) -> Self {
        self.render_mode = mode;
        self
    }

    /// Sets what is shown of a message: an `Option` changes or leaves it out, a `Vec` splits it. See [`Transform`].
    #[must_use]
    pub fn transform<I>(mut self, transform: impl Fn(&ChatMessage) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item = ChatMessage>,
    {
        self.transform = Some(Arc::new(move |message| transform(message).into_iter().collect()));
        self
    }

    /// Sets the messages from before the first event.
    #[must_use]
    pub fn initial_messages(mut self, messages: impl IntoIterator<Item = ChatMessage>) -> Self {
        self.initial_messages = messages.into_iter().collect();
        self
    }
}

impl fmt::Debug for LogOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogOptions").field("render_mode", &self.render_mode).finish_non_exhaustive()
    }
}

/// The messages of a thread and of its children, from their events.
///
/// Every delta costs the same, however long the conversation is; a snapshot shares everything with the log.
#[derive(Clone, Default)]
pub struct MessageLog {
    state: LogState,
    render_mode: RenderMode,
    transform: Option<Transform>,
}

/// What a log has learnt from events, whatever its options are: what a front end that reconnects is sent, as JSON or in memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogState {
    own: Thread,
    children: List<Shared<Child>>,
}

impl LogState {
    /// The same where the thread is at another event.
    pub(crate) fn at(mut self, next_seq: u64) -> Self {
        self.own.next_seq = next_seq;
        self
    }

    /// The same as the shown stream alone gives it.
    pub(crate) fn shown(self) -> Self {
        let of_child = |child: &Shared<Child>| Child { thread: child.thread.clone(), log: child.log.clone().shown() };
        let children = self.children.iter().map(|child| Shared::new(of_child(child))).collect();
        Self { own: self.own.shown(), children }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Child {
    thread: ChildThread,
    log: Thread,
}

impl MessageLog {
    /// A log with these settings.
    pub fn new(options: LogOptions) -> Self {
        let LogOptions { render_mode, transform, initial_messages } = options;
        let own = Thread::with_messages(initial_messages);
        Self { state: LogState { own, children: List::default() }, render_mode, transform }
    }

    /// Takes the next event of the thread. An event that the log has had already changes nothing.
    pub fn process(&mut self, event: &Event) -> Changed {
        self.render_mode.sees(self.state.own.process(event)).into()
    }

    /// Takes the next event of a child of the thread. It changes the child's messages, and nothing of the thread's own.
    pub fn process_child(&mut self, child: &ChildThread, event: &Event) -> Changed {
        let children = &mut self.state.children;
        let known = children.iter().position(|one| one.thread.id == child.id);
        let index = known.unwrap_or_else(|| {
            children.push(Shared::new(Child { thread: child.clone(), log: Thread::default() }));
            children.len() - 1
        });
        let Some(found) = children.get_mut(index) else { return Changed::No };
        let effect = found.make_mut().log.process(event);
        Changed::from(known.is_none() || self.render_mode.sees(effect))
    }

    /// The message whose last block the next delta of this kind at `place` is added to, as its index, where nothing else changes and that is
    /// visible; otherwise `None`. With it, a copy of the messages elsewhere follows a stream without snapshots.
    pub fn adds_to(&self, place: RunPosition, kind: BlockKind) -> Option<usize> {
        let index = self.state.own.open_block(place, kind)?;
        (self.render_mode == RenderMode::Streaming).then_some(index)
    }

    /// Continues the messages of a child from what a log of the child's own has learnt. Where this log has as many of its events, nothing
    /// changes.
    pub fn restore_child(&mut self, child: &ChildThread, state: &LogState) -> Changed {
        let children = &mut self.state.children;
        let restored = Shared::new(Child { thread: child.clone(), log: state.own.clone() });
        let known = children.iter().position(|one| one.thread.id == child.id);
        match known {
            None => children.push(restored),
            Some(at) => match children.get_mut(at) {
                Some(known) if known.log.next_seq < state.own.next_seq => *known = restored,
                Some(_) | None => return Changed::No,
            },
        }
        Changed::Yes
    }

    /// Removes all messages. Events about a message that was removed and is not complete start it again.
    pub fn clear(&mut self) -> Changed {
        let before = self.state.own.messages.len() + self.state.children.len();
        self.state.own.clear();
        self.state.children = List::default();
        Changed::from(before > 0)
    }

    /// Takes a snapshot, in constant time.
    pub fn snapshot(&self) -> LogSnapshot {
        LogSnapshot(self.clone())
    }

    /// What the log has learnt, to continue from in another one.
    pub fn state(&self) -> &LogState {
        &self.state
    }

    /// Continues from what another log has learnt, with the settings of this one. Of a child that both know, the log that has more
    /// of its events is kept; one that the other does not know stays.
    pub fn restore(&mut self, state: LogState) -> Changed {
        let before = std::mem::replace(&mut self.state, state);
        for own in before.children.iter() {
            let children = &mut self.state.children;
            let known =
                (0..children.len()).find(|at| children.get(*at).is_some_and(|one| one.thread.id == own.thread.id));
            match known {
                None => children.push(own.clone()),
                Some(at) => {
                    if let Some(other) = children.get_mut(at).filter(|other| other.log.next_seq < own.log.next_seq) {
                        *other = own.clone();
                    }
                }
            }
        }
        Changed::from(self.state != before)
    }

    /// The number of the next event of the thread that is not in the log: where a front end that reconnects continues.
    pub fn next_seq(&self) -> u64 {
        self.state.own.next_seq
    }

    /// Whether a message is visible, or was removed from the log.
    pub(crate) fn has_passed(&self, id: &MessageId) -> bool {
        let own = &self.state.own;
        let index =
            (0..own.messages.len()).rev().find(|index| own.messages.get(*index).is_some_and(|one| one.id == *id));
        index.is_none_or(|index| self.render_mode != RenderMode::AtEnd || index < own.settled)
    }

    /// Messages of the user from the event `seq` on, each with the number of its event.
    pub(crate) fn inputs_since(&self, seq: u64) -> Vec<(u64, Shared<ChatMessage>)> {
        let number = |message: &ChatMessage| message.id.as_str().strip_prefix("in-")?.parse::<u64>().ok();
        let numbered = self.state.own.messages.iter().rev().filter_map(|message| Some((number(message)?, message)));
        let mut inputs: Vec<_> = numbered.take_while(|(number, _)| *number >= seq).collect();
        inputs.reverse();
        inputs.into_iter().map(|(number, message)| (number, message.clone())).collect()
    }

    fn visible<'l>(&'l self, thread: &'l Thread) -> impl DoubleEndedIterator<Item = Shared<ChatMessage>> + 'l {
        thread.messages.iter().enumerate().flat_map(|(index, message)| {
            let message = self.part(message, index < thread.settled);
            let (as_it_is, made) = match (&self.transform, message) {
                (None, message) => (message, Vec::new()),
                (Some(transform), message) => (None, message.map(|one| own_ids(transform(&one))).unwrap_or_default()),
            };
            as_it_is.into_iter().chain(made.into_iter().map(Shared::new))
        })
    }

    /// What is visible of a message.
    fn part(&self, message: &Shared<ChatMessage>, settled: bool) -> Option<Shared<ChatMessage>> {
        match self.render_mode {
            RenderMode::AtEnd => settled.then(|| message.clone()),
            RenderMode::Streaming => Some(message.clone()),
            _ if message.complete || settled => Some(message.clone()),
            RenderMode::Message => None,
            RenderMode::Block => {
                let blocks: List<Block> = message.blocks.iter().filter(|block| block.complete).cloned().collect();
                let part = ChatMessage { blocks, ..ChatMessage::clone(message) };
                Some(Shared::new(part)).filter(|part| !part.blocks.is_empty())
            }
        }
    }
}

/// Gives each of the messages that a transform has made of one an id of its own. The ids of the log have no slash.
fn own_ids(mut made: Vec<ChatMessage>) -> Vec<ChatMessage> {
    for index in 1..made.len() {
        let (before, rest) = made.split_at_mut(index);
        if let Some(message) = rest.first_mut().filter(|message| before.iter().any(|one| one.id == message.id)) {
            message.id = MessageId::new(format!("{}/{}", message.id.as_str(), index + 1));
        }
    }
    made
}

impl fmt::Debug for MessageLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageLog").field("state", &self.state).finish_non_exhaustive()
    }
}

/// The messages at one moment. A clone takes constant time. As JSON it is the list of its messages.
#[derive(Clone, Debug, Default)]
pub struct LogSnapshot(MessageLog);

impl LogSnapshot {
    /// The visible messages, the oldest first; reversed, the latest.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = Shared<ChatMessage>> + '_ {
        self.0.visible(&self.0.state.own)
    }

    /// The visible message with an id.
    pub fn get(&self, id: &MessageId) -> Option<Shared<ChatMessage>> {
        self.messages().rev().find(|message| message.id == *id)
    }

    /// The children, in the order of their first events.
    pub fn children(&self) -> impl Iterator<Item = &ChildThread> {
        self.0.state.children.iter().map(|child| &child.thread)
    }

    /// The visible messages of a child; none where it is not known.
    pub fn child_messages(&self, id: &str) -> impl DoubleEndedIterator<Item = Shared<ChatMessage>> + '_ {
        let child = self.0.state.children.iter().find(|child| &*child.thread.id == id);
        child.into_iter().flat_map(|child| self.0.visible(&child.log))
    }
}

impl PartialEq for LogSnapshot {
    fn eq(&self, other: &Self) -> bool {
        let children = |one: &Self| one.children().cloned().collect::<Vec<_>>();
        self.messages().eq(other.messages())
            && children(self) == children(other)
            && self.children().all(|child| self.child_messages(&child.id).eq(other.child_messages(&child.id)))
    }
}

impl Serialize for LogSnapshot {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.messages())
    }
}
