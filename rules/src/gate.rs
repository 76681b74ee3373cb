//! One attempt under watch: its blocks, each with a monitor of its own, and what may be shown of them.

use std::collections::HashMap;
use std::sync::Arc;

use flow::{BlockId, BlockKind, RuleMatch, StreamKind};

use crate::calls::CallWatch;
use crate::group::Group;
use crate::watch::{Fired, Watch};
use crate::{Hold, RuleSet};

/// What the gate found in one piece.
#[derive(Debug, Default)]
pub struct Fed {
    /// Rules that fired, in order. Never allocates when there are none.
    pub matches: Vec<RuleMatch>,
    /// Bytes of the block, from its start, that may be shown. Never falls; always at a character's start. When the block
    /// ends it is the block's length, unless a rule that stops the stream has fired. Of no use for tool calls, whose
    /// arguments are used when they are complete.
    pub safe: u64,
    /// Bytes let go in this step because [`Settings::hold_max_bytes`](crate::Settings) was reached, not because a match
    /// was ruled out.
    pub released: u64,
}

/// Where one rule stands in an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    /// It may fire.
    pub(crate) eligible: bool,
    /// A match in prose stops the stream.
    pub(crate) stops_prose: bool,
}

/// The watch over one attempt (one assistant message). Made by [`Session::gate`](crate::Session::gate).
#[derive(Debug)]
pub struct Gate {
    set: Arc<RuleSet>,
    /// By lower-case name of a tool: the arguments that it declares to name files.
    path_fields: Arc<HashMap<String, Vec<String>>>,
    standings: Vec<Standing>,
    idle: bool,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    id: BlockId,
    stream: StreamKind,
    length: u64,
    safe: u64,
    watch: Option<Kind>,
}

#[derive(Debug)]
enum Kind {
    Prose(Box<Watch>),
    Call(Box<CallWatch>),
}

impl Gate {
    pub(crate) fn new(
        set: &Arc<RuleSet>,
        path_fields: &Arc<HashMap<String, Vec<String>>>,
        standings: Vec<Standing>,
    ) -> Self {
        let idle = !standings.iter().any(|s| s.eligible);
        let path_fields = Arc::clone(path_fields);
        Self { set: Arc::clone(set), path_fields, standings, idle, blocks: Vec::new() }
    }

    /// Whether no rule can fire in this attempt: then nothing need be fed, and everything may be shown.
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// A block begins. A block that begins again is watched from its beginning; what waited in it is forgotten.
    pub fn block_start(&mut self, block: BlockId, kind: &BlockKind) {
        self.blocks.retain(|known| known.id != block);
        let (stream, watch) = match kind {
            BlockKind::Text => (StreamKind::Text, self.prose(self.set.groups.text())),
            BlockKind::Thinking => (StreamKind::Thinking, self.prose(self.set.groups.thinking())),
            BlockKind::Tool { call, name } => {
                (StreamKind::Tool { call: call.clone(), name: name.clone() }, self.call(name))
            }
        };
        self.blocks.push(Block { id: block, stream, length: 0, safe: 0, watch });
    }

    /// Takes more of a block. A block that was not begun is not watched: all of it may be shown.
    // Not inlined elsewhere: all that a delta passes through is compiled here, as one.
    #[inline(never)]
    pub fn piece(&mut self, block: BlockId, text: &str) -> Fed {
        let Some(block) = self.blocks.iter_mut().find(|known| known.id == block) else {
            return Fed { safe: u64::MAX, ..Fed::default() };
        };
        block.length += text.len() as u64;
        if let Some(Kind::Prose(watch)) = &mut block.watch
            && !watch.feed(text.as_bytes())
        {
            let released = block.advance(None, self.set.settings());
            return Fed { matches: Vec::new(), safe: block.safe, released };
        }
        block.other_piece(text, &self.set)
    }

    /// The block is complete.
    pub fn block_end(&mut self, block: BlockId) -> Fed {
        let Some(block) = self.blocks.iter_mut().find(|known| known.id == block) else {
            return Fed { safe: u64::MAX, ..Fed::default() };
        };
        let (mut fired, mut stopped) = (None, false);
        match block.watch.take() {
            Some(Kind::Prose(mut watch)) => {
                stopped = watch.finish();
                fired = watch.take_fired();
            }
            // What waits for a file that never came cannot fire.
            Some(Kind::Call(_)) | None => {}
        }
        if !stopped {
            block.safe = block.length;
        }
        let matches = fired.map_or_else(Vec::new, |fired| block.matches(fired, &self.set));
        Fed { matches, safe: block.safe, released: 0 }
    }

    /// A bound was reached: lets go what the block holds. Gives the number of bytes let go.
    pub fn release_held(&mut self, block: BlockId) -> u64 {
        let Some(block) = self.blocks.iter_mut().find(|known| known.id == block) else { return 0 };
        let held = block.length - block.safe;
        block.safe = block.length;
        held
    }

    /// Names of the rules that make bytes of the block wait now.
    pub fn holding(&self, block: BlockId) -> Vec<String> {
        let Some(block) = self.blocks.iter().find(|known| known.id == block) else { return Vec::new() };
        let Some(Kind::Prose(watch)) = &block.watch else { return Vec::new() };
        let Some(group) = block.group(&self.set) else { return Vec::new() };
        watch.holding().into_iter().map(|local| self.set.at(group.rules[local as usize]).name.clone()).collect()
    }

    /// Why the arguments of a tool call could not be decoded to their end, if so: from there on no rule can see them.
    pub fn decode_error(&self, block: BlockId) -> Option<&str> {
        let block = self.blocks.iter().find(|known| known.id == block)?;
        if let Some(Kind::Call(call)) = &block.watch { call.error() } else { None }
    }

    fn prose(&self, group: Option<&Arc<Group>>) -> Option<Kind> {
        let group = group?;
        let standings = || group.rules.iter().map(|at| self.standings[*at as usize]);
        let live: Vec<bool> = standings().map(|s| s.eligible).collect();
        if !live.contains(&true) {
            return None;
        }
        let stops = standings().map(|s| s.stops_prose).collect();
        Some(Kind::Prose(Box::new(Watch::new(group, live, stops))))
    }

    fn call(&self, name: &str) -> Option<Kind> {
        let tool = name.to_lowercase();
        let group = self.set.groups.tool(&tool)?;
        let live: Vec<bool> = group.rules.iter().map(|at| self.standings[*at as usize].eligible).collect();
        if !live.contains(&true) {
            return None;
        }
        let declared = self.path_fields.get(&tool).cloned().unwrap_or_default();
        Some(Kind::Call(Box::new(CallWatch::new(group, declared, tool, live))))
    }
}

impl Block {
    fn group<'a>(&self, set: &'a RuleSet) -> Option<&'a Arc<Group>> {
        match &self.stream {
            StreamKind::Text => set.groups.text(),
            StreamKind::Thinking => set.groups.thinking(),
            StreamKind::Tool { name, .. } => set.groups.tool(&name.to_lowercase()),
        }
    }

    /// A piece in which a rule has fired, or of a block that is no prose.
    #[cold]
    #[inline(never)]
    fn other_piece(&mut self, text: &str, set: &RuleSet) -> Fed {
        let mut matches = Vec::new();
        match &mut self.watch {
            Some(Kind::Prose(watch)) => {
                let (stopped, fired) = (watch.has_stopped(), watch.take_fired().unwrap_or_default());
                // Of what came together, only a rule that stops the stream keeps its words from being shown.
                let stopping = fired.iter().filter(|one| stopped && watch.stops(one.local));
                let first = stopping.map(|one| one.evidence.start).min();
                let matches = self.matches(fired, set);
                let released = self.advance(first, set.settings());
                return Fed { matches, safe: self.safe, released };
            }
            Some(Kind::Call(call)) => call.feed(text, set, &self.stream, &mut matches),
            None => {}
        }
        self.safe = self.length;
        Fed { matches, safe: self.safe, released: 0 }
    }

    fn matches(&self, fired: Vec<Fired>, set: &RuleSet) -> Vec<RuleMatch> {
        let Some(group) = self.group(set) else { return Vec::new() };
        let to_match = |fired: Fired| RuleMatch {
            rule: set.at(group.rules[fired.local as usize]).name.clone(),
            stream: self.stream.clone(),
            evidence: fired.evidence,
        };
        fired.into_iter().map(to_match).collect()
    }

    /// Lets go what may be shown now; `stopped` is the first byte of what stopped the stream. Gives the number of bytes
    /// let go because a bound was reached.
    #[inline]
    fn advance(&mut self, stopped: Option<u64>, settings: &crate::Settings) -> u64 {
        let Some(Kind::Prose(watch)) = &self.watch else { return 0 };
        let free = match (settings.hold, stopped) {
            _ if !watch.holds() => self.length,
            (Hold::Block, _) => 0,
            (Hold::Off, None) => self.length,
            (Hold::Match, None) => watch.free().unwrap_or(0),
            // Even where nothing is held, the piece that completes a match shows none of it.
            (Hold::Off | Hold::Match, Some(first)) => watch.free().unwrap_or(0).min(first),
        };
        self.safe = self.safe.max(free);
        let held = self.length - self.safe;
        if held <= settings.hold_max_bytes || settings.hold != Hold::Match || stopped.is_some() {
            return 0;
        }
        self.safe = self.length;
        held
    }
}
