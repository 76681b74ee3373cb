//! The text or the thinking of one answer under watch: its blocks joined, and how far it is allowed to be shown.

use std::sync::Arc;

use flow::{RuleMatch, StreamKind};

use crate::gate::{Fed, RuleMode};
use crate::group::Group;
use crate::watch::{Fired, Held, Verdict, Watch};
use crate::{Hold, RuleSet};

/// One stream of prose. Offsets count from the start of the stream.
#[derive(Debug, Default)]
pub(crate) struct Prose {
    length: u64,
    safe: u64,
    /// `None` where no rule watches it.
    watched: Option<Box<Watched>>,
}

#[derive(Debug)]
struct Watched {
    group: Arc<Group>,
    watch: Watch,
    /// What is held back; `Off` where no rule that may fire here stops the stream.
    hold: Hold,
    /// The maximum number of bytes to hold back for conditions without a bounded length; without such a condition
    /// there is no limit.
    limit: u64,
}

impl Prose {
    pub(crate) fn new(group: Option<&Arc<Group>>, modes: &[RuleMode], set: &RuleSet) -> Self {
        let watched = group.and_then(|group| {
            let modes = || group.rules.iter().map(|at| modes[*at as usize]);
            let live: Vec<bool> = modes().map(|s| s.watched).collect();
            let stops: Vec<bool> = modes().map(|s| s.watched && s.stops_prose).collect();
            let secret: Vec<bool> = modes().map(|s| s.watched && s.is_secret).collect();
            let settings = set.settings();
            let (hold, holds) = match settings.hold {
                // A secret is held back also where nothing else is.
                Hold::Off if secret.contains(&true) => (Hold::Match, secret.clone()),
                hold if stops.contains(&true) => (hold, stops.clone()),
                Hold::Off | Hold::Match | Hold::Block => (Hold::Off, stops.clone()),
            };
            if !live.contains(&true) {
                return None;
            }
            let watch = Watch::new(group, live, Held { stops, holds, is_unlimited: secret });
            let limited = hold == Hold::Match && watch.is_unbounded();
            let limit = if limited { settings.hold_max_bytes } else { u64::MAX };
            Some(Box::new(Watched { group: Arc::clone(group), watch, hold, limit }))
        });
        Self { length: 0, safe: 0, watched }
    }

    /// Takes the next bytes, up to the first with which a rule may fire or that needs more work. Returns how much of the
    /// stream is safe if it took all of them; else the same bytes are to be given to [`feed`](Self::feed).
    #[inline(always)]
    pub(crate) fn pass(&mut self, text: &str) -> Option<u64> {
        let watched = self.watched.as_deref_mut()?;
        let length = self.length + text.len() as u64;
        if length - self.safe > watched.limit || !watched.watch.pass(text.as_bytes()) {
            return None;
        }
        self.length = length;
        match watched.hold {
            Hold::Match => self.safe = self.safe.max(watched.watch.free().unwrap_or(0)),
            Hold::Off => self.safe = length,
            Hold::Block => {}
        }
        Some(self.safe)
    }

    /// Takes the next bytes, except for those that [`pass`](Self::pass) took.
    pub(crate) fn feed(&mut self, text: &str, stream: &StreamKind, set: &RuleSet) -> Fed {
        let length = self.length + text.len() as u64;
        let Some(watched) = &mut self.watched else {
            (self.length, self.safe) = (length, length);
            return Fed { safe: length, ..Fed::default() };
        };
        if length - self.safe > watched.limit {
            return self.feed_within_limit(text, stream, set);
        }
        self.length = length;
        if watched.watch.feed(text.as_bytes()) {
            return self.more(stream, set).unwrap_or_default();
        }
        self.advance();
        Fed { safe: self.safe, ..Fed::default() }
    }

    /// The verdict on the next byte at which rules fired.
    #[cold]
    #[inline(never)]
    pub(crate) fn more(&mut self, stream: &StreamKind, set: &RuleSet) -> Option<Fed> {
        let (matches, stopped) = self.verdict(stream, set)?;
        // Before the verdict on all bytes of a chunk is known nothing more of it is safe.
        if stopped.is_none() && !self.watched.as_ref().is_some_and(|watched| watched.watch.has_fired()) {
            self.advance();
        }
        Some(Fed { matches, safe: self.safe, decided: stopped.unwrap_or(0), released: 0 })
    }

    /// The next verdict, and the first byte of what stops the stream; `safe` is moved up to it.
    fn verdict(&mut self, stream: &StreamKind, set: &RuleSet) -> Option<(Vec<RuleMatch>, Option<u64>)> {
        let Watched { group, watch, .. } = self.watched.as_deref_mut()?;
        let Verdict { fired, stopped_from } = watch.take_verdict()?;
        let to_match = |one: Fired| RuleMatch {
            rule: set.at(group.rules[one.local as usize]).name.clone(),
            stream: stream.clone(),
            evidence: set.at(group.rules[one.local as usize]).told_evidence(one.evidence),
        };
        let matches = fired.into_iter().map(to_match).collect();
        if let Some(from) = stopped_from.filter(|_| set.settings().hold != Hold::Block) {
            self.safe = self.safe.max(from);
        }
        Some((matches, stopped_from))
    }

    /// Bytes that no match in progress can include, whatever of them is held back.
    pub(crate) fn decided(&self) -> u64 {
        match self.watched.as_deref() {
            Some(Watched { watch, hold: Hold::Match | Hold::Block, .. }) => watch.free().unwrap_or(0),
            Some(_) | None => self.length,
        }
    }

    /// Moves `safe` up to the first byte that is held back.
    fn advance(&mut self) {
        let Some(Watched { watch, hold, .. }) = self.watched.as_deref() else { return };
        let free = match hold {
            Hold::Block => return,
            Hold::Off => self.length,
            Hold::Match => watch.free().unwrap_or(0),
        };
        self.safe = self.safe.max(free);
    }

    /// A block of the stream is complete.
    pub(crate) fn block_end(&mut self, set: &RuleSet) -> Fed {
        if set.settings().hold == Hold::Block {
            let free = self.watched.as_ref().map_or(Some(self.length), |watched| watched.watch.free());
            self.safe = self.safe.max(free.unwrap_or(0));
        }
        Fed { safe: self.safe, ..Fed::default() }
    }

    /// The stream is complete.
    pub(crate) fn finish(&mut self, stream: &StreamKind, set: &RuleSet) -> Fed {
        // A stream without a byte was never there.
        let ended = self.watched.as_mut().is_some_and(|watched| self.length > 0 && watched.watch.finish());
        let (matches, stopped) = if ended { self.verdict(stream, set) } else { None }.unwrap_or_default();
        if stopped.is_none() {
            self.safe = self.length;
        }
        Fed { matches, safe: self.safe, decided: stopped.unwrap_or(self.length), released: 0 }
    }

    /// Whether a limit on holding can apply to the stream.
    pub(crate) fn has_limit(&self) -> bool {
        self.watched.as_deref().is_some_and(|watched| watched.limit < u64::MAX)
    }

    /// Releases what is held back only for conditions without a bounded length: how much is safe, and how much of it was
    /// released.
    pub(crate) fn release(&mut self) -> (u64, u64) {
        let before = self.safe;
        if self.has_limit()
            && let Some(watched) = &self.watched
        {
            self.safe = self.safe.max(watched.watch.free_at_limit().unwrap_or(0));
        }
        (self.safe, self.safe - before)
    }

    /// Names of the rules for which bytes are held back now.
    pub(crate) fn holding(&self, set: &RuleSet) -> Vec<String> {
        let Some(Watched { group, watch, .. }) = self.watched.as_deref() else { return Vec::new() };
        watch.holding().into_iter().map(|local| set.at(group.rules[local as usize]).name.clone()).collect()
    }

    /// Takes the next bytes where the limit on held bytes may be exceeded. It is checked at the same bytes for every
    /// chunking: at the first at which it can be exceeded, and then at every character.
    #[cold]
    #[inline(never)]
    fn feed_within_limit(&mut self, mut text: &str, stream: &StreamKind, set: &RuleSet) -> Fed {
        let (mut released, most) = (0, set.settings().hold_max_bytes);
        while let Some(watched) = self.watched.as_deref_mut().filter(|_| !text.is_empty()) {
            let left = most.saturating_sub(self.length - self.safe).saturating_add(1);
            let left = usize::try_from(left).unwrap_or(usize::MAX).min(text.len());
            let (part, rest) = text.split_at(text.ceil_char_boundary(left));
            text = rest;
            self.length += part.len() as u64;
            watched.watch.feed(part.as_bytes());
            // Behind a match that stops the stream nothing is safe until the caller has let it pass.
            if !watched.watch.has_stopped() {
                self.advance();
                if self.length - self.safe > most {
                    released += self.release().1;
                }
            }
        }
        let (matches, stopped) = self.verdict(stream, set).unwrap_or_default();
        Fed { matches, safe: self.safe, decided: stopped.unwrap_or(0), released }
    }
}
