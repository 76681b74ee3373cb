//! One attempt under watch: its streams, each with a monitor of its own, and how much of them is allowed to be shown.
//!
//! The text blocks of an answer are one stream and its thinking blocks another, whatever lies between them: a rule
//! watches what the user reads. The arguments of each tool call are a stream of their own.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use flow::{BlockId, CallId, RuleMatch, StreamKind};

use crate::RuleSet;
use crate::calls::CallWatch;
use crate::group::Group;
use crate::prose::Prose;

/// The verdict on one byte of a stream, or on a whole chunk in which no rule fired.
#[derive(Debug, Default)]
pub struct Fed {
    /// The rules that fired at one byte. Later bytes of the chunk may contain more matches: [`Gate::more`]. Never
    /// allocates when there are none.
    pub matches: Vec<RuleMatch>,
    /// Bytes of the stream, from its start, that are allowed to be shown. Never decreases; always at a character's start.
    /// After [`Gate::finish`] it is the length of the stream, unless a rule that stops the stream has fired. Of no use for
    /// tool calls, which are used when they are complete.
    pub safe: u64,
    /// Where a rule stopped the stream: bytes of it, from its start, that belong neither to the match nor to another match
    /// in progress. What is kept of the answer without being watched again must end there.
    pub decided: u64,
    /// Bytes released in this step because [`RuleSettings::hold_max_bytes`](crate::RuleSettings) was reached, not because a match
    /// was ruled out.
    pub released: u64,
}

/// How one rule takes part in an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RuleMode {
    /// Its matches are reported, also where its repeat mode lets it do nothing about them.
    pub(crate) watched: bool,
    /// A match in prose stops the stream.
    pub(crate) stops_prose: bool,
    /// A match in prose is not shown for want of a limit, or because nothing is held back otherwise.
    pub(crate) is_secret: bool,
    /// A tool call that it watches must not run unseen.
    pub(crate) guards: bool,
}

/// The watch over one attempt (one assistant message). Created by [`RuleSession::gate`](crate::RuleSession::gate).
#[derive(Debug)]
pub struct Gate {
    set: Arc<RuleSet>,
    /// By lower-case name of a tool: the arguments that it declares to name files.
    path_fields: Arc<HashMap<String, Vec<String>>>,
    modes: Vec<RuleMode>,
    idle: bool,
    text: Prose,
    thinking: Prose,
    calls: Vec<Call>,
    /// In order of their start; the last of an id counts.
    blocks: Vec<(BlockId, Target)>,
    /// The block of text or thinking that was fed last, and whether it is thinking: mostly the next delta is of it, too.
    current: Option<(BlockId, bool)>,
}

/// The stream that a block belongs to.
#[derive(Clone, Copy, Debug)]
enum Target {
    Text,
    Thinking,
    /// Position in `calls`.
    Call(usize),
}

#[derive(Debug)]
struct Call {
    stream: StreamKind,
    watch: Option<Box<CallWatch>>,
    /// What fired and was not fetched yet, byte by byte.
    fired: VecDeque<Vec<RuleMatch>>,
}

impl Gate {
    pub(crate) fn new(
        set: &Arc<RuleSet>,
        path_fields: &Arc<HashMap<String, Vec<String>>>,
        modes: Vec<RuleMode>,
    ) -> Self {
        let prose = |group: Option<&Arc<Group>>| Prose::new(group, &modes, set);
        Self {
            idle: !modes.iter().any(|s| s.watched),
            text: prose(set.groups().text()),
            thinking: prose(set.groups().thinking()),
            calls: Vec::new(),
            blocks: Vec::new(),
            current: None,
            set: Arc::clone(set),
            path_fields: Arc::clone(path_fields),
            modes,
        }
    }

    /// Whether no rule is watched in this attempt: then nothing needs to be fed, and everything is allowed to be shown.
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// A block begins. Text and thinking continue their streams; a call that restarts is watched from its start, and
    /// its earlier matches are discarded.
    pub fn block_start(&mut self, block: BlockId, kind: &StreamKind) {
        let target = match kind {
            StreamKind::Text => Target::Text,
            StreamKind::Thinking => Target::Thinking,
            StreamKind::Tool { name, .. } => {
                self.calls.push(Call { stream: kind.clone(), watch: self.call(name), fired: VecDeque::new() });
                Target::Call(self.calls.len() - 1)
            }
        };
        self.current = self.current.filter(|(known, _)| *known != block);
        self.blocks.retain(|(known, _)| *known != block);
        self.blocks.push((block, target));
    }

    /// Takes more of a block. A block that was not started is not watched: all of it is allowed to be shown.
    ///
    /// Where rules fired at several bytes of `text`, this is the verdict on the first of them. A caller that is not stopped
    /// by it calls [`Gate::more`] until there is none left.
    #[inline]
    pub fn piece(&mut self, block: BlockId, text: &str) -> Fed {
        match self.pass(block, text) {
            Some(safe) => Fed { safe, ..Fed::default() },
            None => self.feed(block, text),
        }
    }

    /// Takes the next bytes, if nothing is to be done about them: how much of the stream is safe. The path of most deltas.
    #[inline(always)]
    fn pass(&mut self, block: BlockId, text: &str) -> Option<u64> {
        match self.current {
            Some((current, thinking)) if current == block => {
                let prose = if thinking { &mut self.thinking } else { &mut self.text };
                prose.pass(text)
            }
            Some(_) | None => None,
        }
    }

    /// Takes more of a block, except for the bytes that [`Prose::pass`] took.
    #[inline(never)]
    fn feed(&mut self, block: BlockId, text: &str) -> Fed {
        let known = self.blocks.iter().rfind(|(known, _)| *known == block);
        match known.map(|(_, target)| *target) {
            Some(Target::Text) => {
                self.current = Some((block, false));
                self.text.feed(text, &StreamKind::Text, &self.set)
            }
            Some(Target::Thinking) => {
                self.current = Some((block, true));
                self.thinking.feed(text, &StreamKind::Thinking, &self.set)
            }
            Some(Target::Call(at)) => self.calls[at].feed(text, &self.set),
            None => Fed { safe: u64::MAX, ..Fed::default() },
        }
    }

    /// The verdict on the next byte at which rules fired, of the chunk or the end that was fed last.
    pub fn more(&mut self, block: BlockId) -> Option<Fed> {
        let known = self.blocks.iter().rfind(|(known, _)| *known == block);
        match known.map(|(_, target)| *target)? {
            Target::Text => self.text.more(&StreamKind::Text, &self.set),
            Target::Thinking => self.thinking.more(&StreamKind::Thinking, &self.set),
            Target::Call(at) => self.calls[at].more(),
        }
    }

    /// The block is complete. The stream of a call ends with it; text and thinking continue until [`Gate::finish`].
    pub fn block_end(&mut self, block: BlockId) -> Fed {
        let known = self.blocks.iter().rfind(|(known, _)| *known == block);
        match known.map(|(_, target)| *target) {
            Some(Target::Text) => self.text.block_end(&self.set),
            Some(Target::Thinking) => self.thinking.block_end(&self.set),
            // A match that waits for a file that was never named cannot fire. A call that cannot be read does not pass the
            // rules that guard it.
            Some(Target::Call(at)) => {
                let Call { stream, watch, .. } = &mut self.calls[at];
                let unread = watch.as_mut().map(|watch| watch.unread(&self.set, &self.modes, stream));
                Fed { matches: unread.unwrap_or_default(), ..Fed::default() }
            }
            None => Fed { safe: u64::MAX, ..Fed::default() },
        }
    }

    /// The answer is complete, and with it the text or the thinking: assertions that wait for its end are decided. Does
    /// nothing for calls.
    pub fn finish(&mut self, stream: &StreamKind) -> Fed {
        match stream {
            StreamKind::Text => self.text.finish(stream, &self.set),
            StreamKind::Thinking => self.thinking.finish(stream, &self.set),
            StreamKind::Tool { .. } => Fed::default(),
        }
    }

    /// The block is complete, and with it its stream: [`Gate::block_end`] and [`Gate::finish`] for a stream of one block.
    pub fn end(&mut self, block: BlockId) -> Fed {
        let known = self.blocks.iter().rfind(|(known, _)| *known == block);
        match known.map(|(_, target)| *target) {
            Some(Target::Text) => self.finish(&StreamKind::Text),
            Some(Target::Thinking) => self.finish(&StreamKind::Thinking),
            Some(Target::Call(_)) | None => self.block_end(block),
        }
    }

    /// Text that the model is given to continue from, before any other: a match in it had its verdict in an earlier
    /// attempt and does not fire again, but a match may begin in it. Returns the bytes that are allowed to be shown.
    pub fn prefix(&mut self, text: &str) -> u64 {
        let mut fed = self.text.feed(text, &StreamKind::Text, &self.set);
        while let Some(more) = self.text.more(&StreamKind::Text, &self.set) {
            fed = more;
        }
        fed.safe
    }

    /// Bytes have been held back for as long as the settings allow: releases those of the stream that are held back only
    /// for conditions without a bounded length. Returns how many bytes of the stream are allowed to be shown, and how
    /// many of them were released by this.
    pub fn release_held(&mut self, stream: &StreamKind) -> (u64, u64) {
        match stream {
            StreamKind::Text => self.text.release(),
            StreamKind::Thinking => self.thinking.release(),
            StreamKind::Tool { .. } => (u64::MAX, 0),
        }
    }

    /// Whether [`Gate::release_held`] could release anything of the stream, now or later.
    pub fn has_limit(&self, stream: &StreamKind) -> bool {
        match stream {
            StreamKind::Text => self.text.has_limit(),
            StreamKind::Thinking => self.thinking.has_limit(),
            StreamKind::Tool { .. } => false,
        }
    }

    /// The answer ends here, before the calls that are not complete do: the rules that match in what was received of them, or would if
    /// the call named a file that they ask for. Nothing is judged, and nothing of the calls is watched from here on.
    pub fn cut_off(&mut self) -> Vec<(CallId, String)> {
        let mut found = Vec::new();
        for call in &mut self.calls {
            let StreamKind::Tool { call: id, .. } = &call.stream else { continue };
            let rules = call.watch.take().map(|watch| watch.cut_off(&self.set, &call.stream));
            found.extend(rules.into_iter().flatten().map(|rule| (id.clone(), rule)));
        }
        found
    }

    /// Bytes of the stream, from its start, that no match in progress can include.
    pub fn decided(&self, stream: &StreamKind) -> u64 {
        match stream {
            StreamKind::Text => self.text.decided(),
            StreamKind::Thinking => self.thinking.decided(),
            StreamKind::Tool { .. } => u64::MAX,
        }
    }

    /// Names of the rules for which bytes of the stream are held back now.
    pub fn holding(&self, stream: &StreamKind) -> Vec<String> {
        match stream {
            StreamKind::Text => self.text.holding(&self.set),
            StreamKind::Thinking => self.thinking.holding(&self.set),
            StreamKind::Tool { .. } => Vec::new(),
        }
    }

    /// Why the arguments of a tool call could not be decoded to their end, if so: from there on no rule can see them.
    pub fn decode_error(&self, block: BlockId) -> Option<&str> {
        let (_, target) = self.blocks.iter().rfind(|(known, _)| *known == block)?;
        let Target::Call(at) = *target else { return None };
        self.calls.get(at)?.watch.as_ref()?.error()
    }

    fn call(&self, name: &str) -> Option<Box<CallWatch>> {
        let tool = name.to_lowercase();
        let group = self.set.groups().tool(&tool)?;
        let live: Vec<bool> = group.rules.iter().map(|at| self.modes[*at as usize].watched).collect();
        if !live.contains(&true) {
            return None;
        }
        let declared = self.path_fields.get(&tool).cloned().unwrap_or_default();
        Some(Box::new(CallWatch::new(group, declared, tool, live)))
    }
}

impl Call {
    fn feed(&mut self, text: &str, set: &RuleSet) -> Fed {
        if let Some(watch) = &mut self.watch {
            watch.feed(text, set, &self.stream, &mut self.fired);
        }
        self.more().unwrap_or_default()
    }

    fn more(&mut self) -> Option<Fed> {
        self.fired.pop_front().map(|matches| Fed { matches, ..Fed::default() })
    }
}
