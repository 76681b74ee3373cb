//! One stream under watch: which rules fire in it and at which byte, and from which byte on it must be held back.

use std::collections::VecDeque;
use std::sync::Arc;

use flow::Evidence;

use crate::engine::{Cursor, Match, Next, Pattern};
use crate::fold::FoldedWatch;
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
    /// How many bytes of the stream had to be seen: the byte at which the verdict is reached.
    seen: u64,
    /// For a rule that stops the stream: nothing from this byte on is to be shown. It is the start of the match or of its group
    /// `hide`, or the first byte that was held back just before its end was known, since a longer match may begin there.
    stopped_from: Option<u64>,
}

impl Fired {
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// The same in another text: seen there, and with its places moved.
    pub(crate) fn moved(self, seen: u64, place: impl Fn(u64) -> u64) -> Self {
        Self { seen, stopped_from: self.stopped_from.map(place), ..self }
    }
}

/// The rules that fired at one byte.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) fired: Vec<Fired>,
    /// Where one of them stops the stream: nothing from this byte on is to be shown. Always at a character's start.
    pub(crate) stopped_from: Option<u64>,
}

/// What is held back for the rules of a stream, each by position in the group.
#[derive(Debug)]
pub(crate) struct Held {
    /// Does a match of it stop the stream?
    pub(crate) stops: Vec<bool>,
    /// Are bytes of its matches in progress held back?
    pub(crate) holds: Vec<bool>,
    /// Is the limit on held bytes without effect on it?
    pub(crate) is_unlimited: Vec<bool>,
}

impl Held {
    /// Nothing stops the stream, and nothing of it is held back.
    pub(crate) fn none(rules: usize) -> Self {
        Self { stops: vec![false; rules], holds: vec![false; rules], is_unlimited: vec![false; rules] }
    }
}

/// One stream under watch.
#[derive(Debug)]
pub(crate) struct Watch {
    group: Arc<Group>,
    cursor: Cursor,
    /// By position in the group: may it still fire here?
    live: Vec<bool>,
    held: Held,
    /// For rules with `all` or `unless`: patterns of theirs seen so far.
    partial: Vec<u32>,
    tail: Tail,
    hits: Vec<Match>,
    /// Rules that have fired and were not fetched yet, in the order of their bytes.
    fired: VecDeque<Fired>,
    /// Whether a pattern whose matches are held back, up to the limit, can be mid-match for any number of bytes.
    unbounded: bool,
    /// The watches of rules that see the stream folded.
    folded: Vec<FoldedWatch>,
}

impl Watch {
    /// A stream begins. `live` is by position in the group.
    pub(crate) fn new(group: &Arc<Group>, live: Vec<bool>, held: Held) -> Self {
        let holds = group
            .slots
            .iter()
            .map(|(local, role)| *role != Role::Unless && live[*local as usize] && held.holds[*local as usize]);
        let holds: Vec<bool> = holds.collect();
        let of_pattern = holds.iter().zip(group.automaton.patterns()).zip(&group.slots);
        let folded: Vec<FoldedWatch> =
            group.folded.iter().filter_map(|folded| FoldedWatch::new(folded, &live, &held)).collect();
        let unbounded = of_pattern
            .filter(|(_, (local, _))| !held.is_unlimited[*local as usize])
            .any(|((holds, pattern), _)| *holds && pattern.max_hidden().is_none())
            || folded.iter().any(FoldedWatch::is_unbounded);
        let cursor = Cursor::holding(&group.automaton, holds);
        let first = group.at_once.iter().filter(|p| live[group.slots[**p as usize].0 as usize]);
        let hits = first.map(|pattern| Match { pattern: *pattern, end: 0, seen: 0, held_from: 0 }).collect();
        Self {
            group: Arc::clone(group),
            cursor,
            live,
            held,
            partial: Vec::new(),
            tail: Tail::default(),
            hits,
            fired: VecDeque::new(),
            unbounded,
            folded,
        }
    }

    /// Takes the next bytes up to the first that needs more than a look into the transition table. Returns whether it took
    /// all of them; if not, the same bytes are to be given to [`feed`](Self::feed).
    #[inline(always)]
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> bool {
        self.folded.is_empty() && self.tail.try_push(bytes) && self.cursor.scan(bytes) == bytes.len()
    }

    /// Takes the next bytes, except for those that [`pass`](Self::pass) took. Returns whether a rule has fired.
    #[cold]
    #[inline(never)]
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> bool {
        // Between deltas the cursor is at the end of the tail.
        let behind = (self.tail.end() - self.cursor.position()) as usize;
        if behind > 0 || bytes.is_empty() {
            return self.feed_rest(&bytes[bytes.len() - behind..]);
        }
        // Hits are settled while the tail still contains the bytes before them.
        for part in bytes.chunks(TAIL_BYTES) {
            self.tail.push(part);
            self.feed_rest(part);
            self.feed_folded(|folded, tail, fired| folded.feed(part, tail, fired));
        }
        self.in_order();
        !self.fired.is_empty()
    }

    /// The next verdict: the rules that fired at the first byte at which any did. `None`: none is left.
    pub(crate) fn take_verdict(&mut self) -> Option<Verdict> {
        let seen = self.fired.front()?.seen;
        let count = self.fired.iter().take_while(|one| one.seen == seen).count();
        let fired: Vec<Fired> = self.fired.drain(..count).collect();
        let stopped_from = fired.iter().filter_map(|one| one.stopped_from).min();
        Some(Verdict { fired, stopped_from })
    }

    /// Whether rules have fired that were not fetched yet.
    pub(crate) fn has_fired(&self) -> bool {
        !self.fired.is_empty()
    }

    /// Whether one of them stops the stream.
    pub(crate) fn has_stopped(&self) -> bool {
        self.fired.iter().any(|one| one.stopped_from.is_some())
    }

    fn feed_rest(&mut self, part: &[u8]) -> bool {
        let (live, slots, hits) = (&self.live, &self.group.slots, &mut self.hits);
        self.cursor.feed(part, |hit| note(hit, live, slots, hits));
        if !self.hits.is_empty() {
            self.settle(false);
        }
        !self.fired.is_empty()
    }

    /// The stream is complete. Returns whether a rule has fired with that.
    pub(crate) fn finish(&mut self) -> bool {
        let (live, slots, hits) = (&self.live, &self.group.slots, &mut self.hits);
        self.cursor.finish(|hit| note(hit, live, slots, hits));
        self.settle(true);
        self.feed_folded(FoldedWatch::finish);
        self.in_order();
        !self.fired.is_empty()
    }

    /// Lets the folded watches take something, and hides in their evidence what can be a secret.
    fn feed_folded(&mut self, take: impl Fn(&mut FoldedWatch, &Tail, &mut VecDeque<Fired>)) {
        let known = self.fired.len();
        self.folded.iter_mut().for_each(|folded| take(folded, &self.tail, &mut self.fired));
        for at in known..self.fired.len() {
            let (_, window) = self.tail.window(self.fired[at].evidence.end);
            if self.is_in_secret(window) {
                Evidence::HIDDEN.clone_into(&mut self.fired[at].evidence.text);
            }
        }
    }

    /// Puts what fired in folded text among what fired in the text itself.
    fn in_order(&mut self) {
        if !self.folded.is_empty() {
            self.fired.make_contiguous().sort_by_key(Fired::seen);
        }
    }

    /// Rules that have fired, without putting those of one byte together.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Fired> {
        self.fired.drain(..)
    }

    /// Rules of which a match of a bounded length that is held back is in progress, where `is_too_long` says so of its first byte: they
    /// count as fired, as if it had matched.
    pub(crate) fn give_up(&mut self, is_too_long: impl Fn(u64) -> bool) -> Vec<Fired> {
        let (mut out, end) = (Vec::new(), self.taken());
        for pattern in self.cursor.in_progress() {
            let (local, role) = self.group.slots[pattern as usize];
            let condition = &self.group.automaton.patterns()[pattern as usize];
            let is_held =
                self.live[local as usize] && self.held.holds[local as usize] && condition.max_hidden().is_some();
            let start = self.cursor.held_from_by(|one| one == pattern);
            if role == Role::Unless || !is_held || start >= end || !is_too_long(start) {
                continue;
            }
            self.live[local as usize] = false;
            let (pattern, text, field, path) = (condition.as_str().to_owned(), String::new(), None, None);
            let evidence = Evidence { pattern, text, start, end, line: 1, field, path, unread: false };
            let stopped_from = self.held.stops[local as usize].then_some(start);
            out.push(Fired { local, evidence, seen: end, stopped_from });
        }
        out
    }

    /// The bytes that were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.tail.end()
    }

    /// Bytes from the stream's start that no match in progress can include, cut at a character. `None`: the start of
    /// the character is no longer known.
    #[inline(always)]
    pub(crate) fn free(&self) -> Option<u64> {
        let free = self.tail.char_start(self.cursor.held_from());
        if self.folded.is_empty() { free } else { self.with_folded(free, FoldedWatch::free) }
    }

    /// The least of this and what the folded watches give.
    #[cold]
    fn with_folded(&self, free: Option<u64>, of: impl Fn(&FoldedWatch) -> Option<u64>) -> Option<u64> {
        // `None` is the least: the place is no longer known.
        self.folded.iter().map(of).fold(free, Option::min)
    }

    /// The same, but without matches in progress of patterns that have reached a limit: those without a bounded length.
    #[cold]
    pub(crate) fn free_at_limit(&self) -> Option<u64> {
        let (patterns, slots) = (self.group.automaton.patterns(), &self.group.slots);
        let remains = |pattern: u32| {
            let is_unlimited = self.held.is_unlimited[slots[pattern as usize].0 as usize];
            is_unlimited || patterns[pattern as usize].max_hidden().is_some()
        };
        self.with_folded(self.tail.char_start(self.cursor.held_from_by(remains)), FoldedWatch::free_at_limit)
    }

    /// Whether the limits on holding can apply: a pattern whose matches are held back has no bounded length.
    #[inline]
    pub(crate) fn is_unbounded(&self) -> bool {
        self.unbounded
    }

    /// Rules (by position in the group) for which bytes are held back now.
    pub(crate) fn holding(&self) -> Vec<u32> {
        let locals = self.cursor.in_progress().into_iter().map(|p| self.group.slots[p as usize].0);
        let mut locals: Vec<u32> = locals.filter(|l| self.live[*l as usize] && self.held.holds[*l as usize]).collect();
        locals.extend(self.folded.iter().flat_map(FoldedWatch::holding));
        locals.dedup();
        locals
    }

    /// Turns hits into fired rules, in the order in which they were known; where several came with one byte, `unless`
    /// takes precedence.
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
                let (evidence, hidden_from) = self.evidence(*hit, ended);
                let from = hit.held_from.min(hidden_from);
                let stops = self.held.stops[local as usize];
                let stopped_from = stops.then(|| self.tail.char_start(from).unwrap_or(0));
                self.fired.push_back(Fired { local, evidence, seen: hit.seen, stopped_from });
            }
        }
        hits.clear();
        self.hits = hits;
    }

    /// Notes a pattern's match and returns whether all conditions of its rule are met.
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

    /// The evidence of a match, and the first byte of it that is hidden.
    fn evidence(&self, hit: Match, ended: bool) -> (Evidence, u64) {
        let pattern: &Pattern = &self.group.automaton.patterns()[hit.pattern as usize];
        let next = match (hit.seen > hit.end, ended) {
            (false, _) => Next::Unseen,
            (true, false) => self.tail.byte(hit.end).map_or(Next::Unseen, Next::Byte),
            (true, true) => self.tail.byte(hit.end).map_or(Next::End, Next::Byte),
        };
        let (before, window) = self.tail.window(hit.end);
        let found = pattern.start_of_match(window, before, next).unwrap_or(0);
        let at = |found: usize| hit.end - (window.len() - found) as u64;
        let start = at(found);
        let hidden_from = match pattern.has_shown_part() {
            // Where it began before the window, it was held back.
            true => pattern.start_of_hidden(window, before, next).map_or(hit.held_from, at),
            false => start,
        };
        let hides = self.is_in_secret(window);
        let evidence = Evidence {
            pattern: pattern.as_str().to_owned(),
            text: if hides { Evidence::HIDDEN.to_owned() } else { bounded_text(&window[found..]) },
            start,
            end: hit.end,
            line: self.tail.line(start),
            field: None,
            path: None,
            unread: false,
        };
        (evidence, hidden_from)
    }

    /// Whether a match of a rule about secrets is in progress.
    pub(crate) fn ends_in_secret(&self) -> bool {
        let (_, window) = self.tail.window(self.tail.end());
        self.is_in_secret(window)
    }

    /// Whether a match of a rule about secrets is in progress at the end of these bytes of the stream: what another rule has matched there
    /// can be the start of the secret.
    #[cold]
    pub(crate) fn is_in_secret(&self, window: &[u8]) -> bool {
        if self.folded.iter().any(|folded| folded.is_in_secret(window)) {
            return true;
        }
        let of_rule = self.group.secrets.iter().zip(&self.group.slots);
        let secrets: Vec<bool> = of_rule.map(|(secret, (local, _))| *secret && self.live[*local as usize]).collect();
        if !secrets.contains(&true) {
            return false;
        }
        let mut cursor = Cursor::holding(&self.group.automaton, secrets);
        cursor.feed(window, |_| true);
        cursor.held_from() < window.len() as u64
    }
}

/// At most [`EVIDENCE_BYTES`] of a match, cut at a character.
pub(crate) fn bounded_text(bytes: &[u8]) -> String {
    let mut end = bytes.len().min(EVIDENCE_BYTES);
    while end < bytes.len() && end > 0 && is_continuation(bytes[end]) {
        end -= 1;
    }
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Keeps a hit if its rule can still fire, and returns whether it can.
fn note(hit: Match, live: &[bool], slots: &[(u32, Role)], hits: &mut Vec<Match>) -> bool {
    let wanted = live[slots[hit.pattern as usize].0 as usize];
    if wanted {
        hits.push(hit);
    }
    wanted
}
