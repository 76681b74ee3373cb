//! One block of text under watch: which rules fire in it and where, and from which byte on it must wait.

use std::sync::Arc;

use flow::Evidence;

use crate::engine::{Cursor, Hit, Next, Pattern};
use crate::group::{Group, Role};
use crate::tail::{TAIL_BYTES, Tail, is_continuation};

/// The most bytes of matched text in evidence.
const EVIDENCE_BYTES: usize = 200;

/// A rule has fired.
#[derive(Debug)]
pub(crate) struct Fired {
    /// The rule's position in the group.
    pub(crate) local: u32,
    /// Without field and path.
    pub(crate) evidence: Evidence,
}

/// One block under watch.
#[derive(Debug)]
pub(crate) struct Watch {
    group: Arc<Group>,
    cursor: Cursor,
    /// By position in the group: may it still fire here?
    live: Vec<bool>,
    /// By position in the group: does a match of it stop the stream?
    stops: Vec<bool>,
    /// For rules with `all` or `unless`: patterns of theirs seen so far.
    partial: Vec<u32>,
    tail: Tail,
    hits: Vec<Hit>,
    /// Rules that have fired and were not fetched yet.
    fired: Vec<Fired>,
    /// Since a rule that stops has fired: what was held before its match was known.
    stopped_at: Option<u64>,
}

impl Watch {
    /// A block begins. `live` and `stops` are by position in the group.
    pub(crate) fn new(group: &Arc<Group>, live: Vec<bool>, stops: Vec<bool>) -> Self {
        let holds = group
            .slots
            .iter()
            .map(|(local, role)| *role != Role::Unless && live[*local as usize] && stops[*local as usize]);
        let cursor = Cursor::holding(&group.automaton, holds.collect());
        let first = group.at_once.iter().filter(|p| live[group.slots[**p as usize].0 as usize]);
        let hits = first.map(|pattern| Hit { pattern: *pattern, end: 0, seen: 0, held_from: 0 }).collect();
        Self {
            group: Arc::clone(group),
            cursor,
            live,
            stops,
            partial: Vec::new(),
            tail: Tail::default(),
            hits,
            fired: Vec::new(),
            stopped_at: None,
        }
    }

    /// Takes the next bytes. Tells whether a rule has fired.
    #[inline(always)]
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> bool {
        // Further bytes after a match that stops: somebody has let it pass.
        self.stopped_at = None;
        if bytes.len() > TAIL_BYTES {
            return self.feed_long(bytes);
        }
        self.tail.push(bytes);
        let passed = self.cursor.pass(bytes);
        if passed == bytes.len() && self.hits.is_empty() {
            return false;
        }
        self.feed_rest(&bytes[passed..])
    }

    /// The rules that have fired since the last time.
    #[inline]
    pub(crate) fn take_fired(&mut self) -> Option<Vec<Fired>> {
        if self.fired.is_empty() { None } else { Some(std::mem::take(&mut self.fired)) }
    }

    /// Hits are settled while the tail still holds what came before them.
    #[cold]
    #[inline(never)]
    fn feed_long(&mut self, bytes: &[u8]) -> bool {
        for part in bytes.chunks(TAIL_BYTES) {
            self.tail.push(part);
            self.feed_rest(part);
        }
        !self.fired.is_empty()
    }

    #[cold]
    #[inline(never)]
    fn feed_rest(&mut self, part: &[u8]) -> bool {
        let (live, slots, hits) = (&self.live, &self.group.slots, &mut self.hits);
        self.cursor.feed(part, |hit| note(hit, live, slots, hits));
        if !self.hits.is_empty() {
            self.settle(false);
        }
        !self.fired.is_empty()
    }

    /// The block is complete. Tells whether a rule that stops the stream has fired with that.
    pub(crate) fn finish(&mut self) -> bool {
        self.stopped_at = None;
        let (live, slots, hits) = (&self.live, &self.group.slots, &mut self.hits);
        self.cursor.finish(|hit| note(hit, live, slots, hits));
        self.settle(true);
        self.has_stopped()
    }

    /// Whether a rule that stops the stream has fired in what was fed last.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped_at.is_some()
    }

    /// Bytes from the block's start that no match in progress can include, cut at a character. `None`: it cannot be
    /// told any more where the character begins.
    #[inline]
    pub(crate) fn free(&self) -> Option<u64> {
        self.tail.char_start(self.stopped_at.unwrap_or_else(|| self.cursor.held_from()))
    }

    /// Whether any rule that may fire here stops the stream.
    pub(crate) fn holds(&self) -> bool {
        !self.cursor.holds_nothing()
    }

    /// Whether a match of the rule at this position in the group stops the stream.
    pub(crate) fn stops(&self, local: u32) -> bool {
        self.stops[local as usize]
    }

    /// Rules (by position in the group) that make bytes wait now.
    pub(crate) fn holding(&self) -> Vec<u32> {
        let locals = self.cursor.in_progress().into_iter().map(|p| self.group.slots[p as usize].0);
        let mut locals: Vec<u32> = locals.filter(|l| self.live[*l as usize] && self.stops[*l as usize]).collect();
        locals.dedup();
        locals
    }

    /// Turns hits into fired rules, in the order in which they were known; where several came with one byte, `unless`
    /// has the first word.
    #[cold]
    #[inline(never)]
    fn settle(&mut self, ended: bool) {
        let mut hits = std::mem::take(&mut self.hits);
        let slots = &self.group.slots;
        hits.sort_by_key(|hit| (hit.seen, slots[hit.pattern as usize].1 != Role::Unless));
        for hit in &hits {
            let (local, _) = self.group.slots[hit.pattern as usize];
            if self.live[local as usize] && self.completes(hit.pattern) {
                self.live[local as usize] = false;
                if self.stops[local as usize] {
                    // What was held just before the match was known stays held: longer matches may have begun there.
                    self.stopped_at = self.stopped_at.or(Some(hit.held_from));
                }
                self.fired.push(Fired { local, evidence: self.evidence(*hit, ended) });
            }
        }
        hits.clear();
        self.hits = hits;
    }

    /// Notes a pattern's match and tells whether its rule has all it needs.
    fn completes(&mut self, pattern: u32) -> bool {
        let (local, role) = self.group.slots[pattern as usize];
        let own = || self.group.slots.iter().zip(0_u32..).filter(move |((l, _), _)| *l == local);
        if role == Role::Unless {
            self.live[local as usize] = false;
            return false;
        }
        if own().all(|((_, role), _)| *role == Role::Any) {
            return true;
        }
        if !self.partial.contains(&pattern) {
            self.partial.push(pattern);
        }
        let has = |number: u32| self.partial.contains(&number);
        let any = own().filter(|((_, role), _)| *role == Role::Any);
        let any_seen = any.clone().next().is_none() || any.clone().any(|(_, number)| has(number));
        any_seen && own().filter(|((_, role), _)| matches!(role, Role::All(_))).all(|(_, number)| has(number))
    }

    fn evidence(&self, hit: Hit, ended: bool) -> Evidence {
        let pattern: &Pattern = &self.group.automaton.patterns()[hit.pattern as usize];
        let next = match (hit.seen > hit.end, ended) {
            (false, _) => Next::Unseen,
            (true, false) => self.tail.byte(hit.end).map_or(Next::Unseen, Next::Byte),
            (true, true) => self.tail.byte(hit.end).map_or(Next::End, Next::Byte),
        };
        let (before, window) = self.tail.window(hit.end);
        let found = pattern.start_of_match(window, before, next).unwrap_or(0);
        let start = hit.end - (window.len() - found) as u64;
        Evidence {
            pattern: pattern.as_str().to_owned(),
            text: bounded_text(&window[found..]),
            start,
            end: hit.end,
            line: self.tail.line(start),
            field: None,
            path: None,
        }
    }
}

/// At most [`EVIDENCE_BYTES`] of a match, cut at a character.
fn bounded_text(bytes: &[u8]) -> String {
    let mut end = bytes.len().min(EVIDENCE_BYTES);
    while end < bytes.len() && end > 0 && is_continuation(bytes[end]) {
        end -= 1;
    }
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Keeps a hit if its rule may still fire, and tells whether it may.
fn note(hit: Hit, live: &[bool], slots: &[(u32, Role)], hits: &mut Vec<Hit>) -> bool {
    let wanted = live[slots[hit.pattern as usize].0 as usize];
    if wanted {
        hits.push(hit);
    }
    wanted
}
