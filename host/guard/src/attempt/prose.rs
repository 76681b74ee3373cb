//! A stream of prose of one answer: which of its bytes are held back, since when, and for which rules.

use std::collections::VecDeque;
use std::time::Duration;

use flow::{EventKind, HoldOutcome, StreamKind};

use super::hold::Holds;

/// The text or the thinking of an answer. Offsets count from the start of the stream.
#[derive(Debug, Default)]
pub(super) struct Prose {
    /// Bytes that were released.
    released: u64,
    /// The received bytes that are held back.
    held: String,
    /// The chunks of which something is held back for conditions without a bounded length, oldest first: where each ends,
    /// and when it was received.
    arrivals: VecDeque<(u64, Duration)>,
    /// `None` while nothing was held back.
    holds: Option<Box<Holds>>,
}

impl Prose {
    /// The stream starts with `text`, of which `released` bytes were released in an earlier attempt.
    pub(super) fn start_at(&mut self, text: &str, released: usize) {
        let released = text.floor_char_boundary(released);
        self.released = released as u64;
        self.held = text[released..].to_owned();
    }

    /// Bytes released so far.
    pub(super) fn released(&self) -> usize {
        usize::try_from(self.released).unwrap_or(usize::MAX)
    }

    /// So many bytes were received and released at once.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.released += bytes as u64;
    }

    /// Releases a chunk at once if nothing is held back and nothing of it has to be. Returns whether it was.
    pub(super) fn passes(&mut self, text: &str, safe: u64) -> bool {
        let end = self.released + text.len() as u64;
        let passes = self.held.is_empty() && safe >= end;
        if passes {
            self.released = end;
        }
        passes
    }

    /// Takes a chunk that may have to be held back.
    pub(super) fn push(&mut self, text: &str) {
        self.held.push_str(text);
    }

    /// Makes asterisks of the bytes from this one on that are held back.
    pub(super) fn hide_from(&mut self, from: usize) {
        let at = from.saturating_sub(self.released());
        super::hidden::star(&mut self.held, at);
    }

    /// Releases the bytes before `safe`; `None` where these are none.
    pub(super) fn release(&mut self, safe: u64) -> Option<String> {
        let bytes = usize::try_from(safe.saturating_sub(self.released)).unwrap_or(usize::MAX);
        let bytes = self.held.floor_char_boundary(bytes.min(self.held.len()));
        if bytes == 0 {
            return None;
        }
        self.released += bytes as u64;
        while self.arrivals.front().is_some_and(|(end, _)| *end <= self.released) {
            self.arrivals.pop_front();
        }
        let rest = self.held.split_off(bytes);
        Some(std::mem::replace(&mut self.held, rest))
    }

    /// A chunk was received just now; if not all of it was released, its time counts from here.
    pub(super) fn note_arrival(&mut self, now: &dyn Fn() -> Duration) {
        let end = self.released + self.held.len() as u64;
        if !self.held.is_empty() && self.arrivals.back().is_none_or(|(known, _)| *known < end) {
            self.arrivals.push_back((end, now()));
        }
    }

    /// When the oldest of the bytes was received whose time is limited.
    pub(super) fn oldest(&self) -> Option<Duration> {
        self.arrivals.front().map(|(_, received)| *received)
    }

    /// The time of what is held back now is up.
    pub(super) fn forget_arrivals(&mut self) {
        self.arrivals.clear();
    }

    /// Notes what is held back after a step; `who` names the rules.
    pub(super) fn note_hold(&mut self, now: &dyn Fn() -> Duration, who: impl FnOnce() -> Vec<String>) {
        if self.held.is_empty() {
            if let Some(holds) = &mut self.holds {
                holds.over(now);
            }
            return;
        }
        let bytes = self.held.len() as u64;
        self.holds.get_or_insert_with(|| Box::new(Holds::new())).waiting(bytes, now, who);
    }

    /// How the last hold ended, if not because every match was ruled out.
    pub(super) fn hold_ended(&mut self, outcome: HoldOutcome) {
        if let Some(holds) = &mut self.holds {
            holds.ended(outcome);
        }
    }

    /// The rules that bytes were held back for and the event that reports it, once.
    pub(super) fn report(
        &mut self,
        stream: &StreamKind,
        now: &dyn Fn() -> Duration,
    ) -> Option<(Vec<String>, EventKind)> {
        let holds = self.holds.take()?;
        Some((holds.rules().to_vec(), holds.report(stream.clone(), now)))
    }
}
