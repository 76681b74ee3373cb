//! Matches whose text a transcript does not have: those of rules about secrets. A replay takes them from the transcript.

use std::collections::HashMap;

use flow::{BlockId, Delta, RuleMatch, StreamKind};

use super::attempt::{Attempt, Past};

/// The hidden matches of one attempt that are still to come.
pub(super) struct Hidden<'a> {
    waiting: Vec<&'a RuleMatch>,
    streams: HashMap<BlockId, &'a StreamKind>,
    /// Bytes of the text and of the thinking so far.
    bytes: [u64; 2],
}

impl<'a> Hidden<'a> {
    pub(super) fn of(attempt: &'a Attempt) -> Self {
        let past = if let Past::Fired(fires) = &attempt.past { fires.as_slice() } else { &[] };
        let waiting = past.iter().filter_map(|fire| fire.hidden.as_deref()).collect();
        Self { waiting, streams: HashMap::new(), bytes: [attempt.prefix.len() as u64, 0] }
    }

    /// A delta was taken: the matches that end in it, in groups of one byte. `None` is the end of what was recorded.
    pub(super) fn due(&mut self, delta: Option<&'a Delta>) -> Vec<Vec<&'a RuleMatch>> {
        let mut call = None;
        match delta {
            Some(Delta::BlockStart { block, kind }) => drop(self.streams.insert(*block, kind)),
            Some(Delta::Piece { block, text }) => match self.streams.get(block) {
                Some(StreamKind::Text) => self.bytes[0] += text.len() as u64,
                Some(StreamKind::Thinking) => self.bytes[1] += text.len() as u64,
                Some(StreamKind::Tool { .. }) | None => {}
            },
            Some(Delta::BlockEnd { block }) => call = self.streams.get(block).copied(),
            _ => {}
        }
        let is_due = |found: &RuleMatch| match &found.stream {
            _ if delta.is_none() => true,
            StreamKind::Text => found.evidence.end <= self.bytes[0],
            StreamKind::Thinking => found.evidence.end <= self.bytes[1],
            stream @ StreamKind::Tool { .. } => call == Some(stream),
        };
        let (due, waiting) = self.waiting.drain(..).partition::<Vec<_>, _>(|found| is_due(found));
        self.waiting = waiting;
        let same = |a: &&RuleMatch, b: &&RuleMatch| {
            a.stream == b.stream && a.evidence.end == b.evidence.end && a.evidence.field == b.evidence.field
        };
        due.chunk_by(same).map(<[_]>::to_vec).collect()
    }
}
