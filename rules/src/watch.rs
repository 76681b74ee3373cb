//! One block of text under watch: which rules fire in it and where, and from which byte on it must wait.

use std::ops::Range;
use std::sync::Arc;

use flow::Evidence;

use crate::engine::{Context, Cursor, Hit, Holders, Next, Pattern};
use crate::group::{Group, Role};

/// The most bytes of matched text in evidence.
const EVIDENCE_BYTES: usize = 200;

/// How much text is kept to find the beginning of a match in. A match that began earlier is said to begin here.
const TAIL_BYTES: usize = 4096;

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
    holders: Holders,
    /// For rules with `all` or `unless`: patterns of theirs seen so far.
    partial: Vec<u32>,
    tail: Tail,
    hits: Vec<Hit>,
    /// Rules that have fired and were not fetched yet.
    fired: Vec<Fired>,
    /// No match of a rule that stops begins before it.
    floor: u64,
}

impl Watch {
    /// A block begins. `live` and `stops` are by position in the group.
    pub(crate) fn new(group: &Arc<Group>, live: Vec<bool>, stops: Vec<bool>) -> Self {
        let holds = group
            .slots
            .iter()
            .map(|(local, role)| *role != Role::Unless && live[*local as usize] && stops[*local as usize]);
        let holders = Holders::new(holds.collect());
        let first = group.at_once.iter().filter(|p| live[group.slots[**p as usize].0 as usize]);
        let hits = first.map(|pattern| Hit { pattern: *pattern, end: 0, seen: 0 }).collect();
        Self {
            group: Arc::clone(group),
            cursor: Cursor::new(&group.automaton),
            live,
            stops,
            holders,
            partial: Vec::new(),
            tail: Tail::default(),
            hits,
            fired: Vec::new(),
            floor: 0,
        }
    }

    /// Takes the next bytes. Tells whether a rule that stops the stream has fired.
    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() <= TAIL_BYTES {
            return self.feed_part(bytes, false);
        }
        let mut stopped = false;
        for part in bytes.chunks(TAIL_BYTES) {
            stopped |= self.feed_part(part, stopped);
        }
        stopped
    }

    /// The rules that have fired since the last time.
    #[inline]
    pub(crate) fn take_fired(&mut self) -> Option<Vec<Fired>> {
        if self.fired.is_empty() { None } else { Some(std::mem::take(&mut self.fired)) }
    }

    #[inline]
    fn feed_part(&mut self, part: &[u8], stopped: bool) -> bool {
        let mark = self.cursor.mark();
        let begin = self.cursor.position();
        self.tail.push(part);
        let (live, slots, hits) = (&self.live, &self.group.slots, &mut self.hits);
        self.cursor.feed(part, |hit| {
            let wanted = live[slots[hit.pattern as usize].0 as usize];
            if wanted {
                hits.push(hit);
            }
            wanted
        });
        if !self.hits.is_empty()
            && let Some(seen) = self.settle(false)
        {
            if !stopped {
                // What was held just before the match was known stays held: longer matches may have begun there.
                let before = (seen.saturating_sub(1).saturating_sub(begin) as usize).min(part.len());
                self.floor = self.cursor.held_within(&mut self.holders, self.floor, mark, &part[..before]);
            }
            return true;
        }
        if !stopped && !self.holders.is_empty() {
            self.floor = self.cursor.held_from(&mut self.holders, self.floor, mark, part);
        }
        false
    }

    /// The block is complete.
    pub(crate) fn finish(&mut self) -> bool {
        let (live, slots, hits) = (&self.live, &self.group.slots, &mut self.hits);
        self.cursor.finish(|hit| {
            let wanted = live[slots[hit.pattern as usize].0 as usize];
            if wanted {
                hits.push(hit);
            }
            wanted
        });
        self.settle(true).is_some()
    }

    /// Bytes from the block's start that no match in progress can include, cut at a character. `None`: it cannot be
    /// told any more where the character begins.
    #[inline]
    pub(crate) fn free(&self) -> Option<u64> {
        if self.holders.is_empty() { Some(self.cursor.position()) } else { self.tail.char_start(self.floor) }
    }

    /// Whether any rule that may fire here stops the stream.
    pub(crate) fn holds(&self) -> bool {
        !self.holders.is_empty()
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
    /// has the first word. Gives the byte at which the first rule that stops was known.
    #[cold]
    fn settle(&mut self, ended: bool) -> Option<u64> {
        let mut hits = std::mem::take(&mut self.hits);
        let slots = &self.group.slots;
        hits.sort_by_key(|hit| (hit.seen, slots[hit.pattern as usize].1 != Role::Unless));
        let mut stopped = None;
        for hit in &hits {
            let (local, _) = self.group.slots[hit.pattern as usize];
            if self.live[local as usize] && self.completes(hit.pattern) {
                self.live[local as usize] = false;
                if self.stops[local as usize] {
                    stopped = stopped.or(Some(hit.seen));
                }
                self.fired.push(Fired { local, evidence: self.evidence(*hit, ended) });
            }
        }
        hits.clear();
        self.hits = hits;
        stopped
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

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// Room for the last bytes of a block: large against `TAIL_BYTES`, so that they are seldom moved.
const TAIL_ROOM: usize = 8 * TAIL_BYTES;

/// The last bytes of a block, at least `TAIL_BYTES` once there are so many.
#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    /// Where in the block `bytes` begins.
    start: u64,
    /// Line ends before `start`.
    lines: u32,
    last_dropped: Option<u8>,
}

impl Tail {
    #[inline]
    fn push(&mut self, part: &[u8]) {
        if self.bytes.len() + part.len() > TAIL_ROOM {
            self.drop_old();
        }
        self.bytes.extend_from_slice(part);
    }

    #[cold]
    fn drop_old(&mut self) {
        let drop = self.bytes.len().saturating_sub(TAIL_BYTES);
        self.lines += count_lines(&self.bytes[..drop]);
        self.last_dropped = drop.checked_sub(1).map(|at| self.bytes[at]).or(self.last_dropped);
        self.bytes.drain(..drop);
        self.start += drop as u64;
    }

    fn index(&self, at: u64) -> Option<usize> {
        at.checked_sub(self.start).map(|at| at as usize).filter(|at| *at <= self.bytes.len())
    }

    fn byte(&self, at: u64) -> Option<u8> {
        self.index(at).and_then(|at| self.bytes.get(at)).copied()
    }

    /// The bytes before `end`, as far back as a match is looked for, and what stood before them.
    fn window(&self, end: u64) -> (Context, &[u8]) {
        let end = self.index(end).unwrap_or(0);
        let range: Range<usize> = end.saturating_sub(TAIL_BYTES)..end;
        let before = range.start.checked_sub(1).map(|at| self.bytes[at]).or(self.last_dropped);
        (before.map_or(Context::Start, Context::after), &self.bytes[range])
    }

    fn line(&self, at: u64) -> u32 {
        self.lines + count_lines(&self.bytes[..self.index(at).unwrap_or(0)]) + 1
    }

    /// The start of the character that `at` stands in.
    #[inline]
    fn char_start(&self, at: u64) -> Option<u64> {
        let mut index = self.index(at)?;
        while self.bytes.get(index).is_some_and(|b| is_continuation(*b)) {
            index = index.checked_sub(1)?;
        }
        Some(self.start + index as u64)
    }
}

fn count_lines(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|b| **b == b'\n').count() as u32
}
