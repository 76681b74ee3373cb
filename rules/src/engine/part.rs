//! One lazy DFA of an automaton, shared by all streams: its byte classes, its start states, and when its cache is cleared.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use regex_syntax::hir::LookSet;

use super::automaton::Automaton;
use super::budget::CacheBudget;
use super::cache::StateCache;
use super::classes::{ByteClasses, ClassEnds};
use super::determinize::StartTransition;
use super::look::{Context, Contexts};
use super::nfa::NfaState;
use super::pattern::Pattern;

/// A cache that is cleared after fewer bytes of text per state was not worth filling.
const MIN_BYTES_PER_STATE: u64 = 16;

/// After this number of consecutive early clears the part stops caching for a while.
const MAX_EARLY_CLEARS: u64 = 4;

/// The number of bytes that are then matched without the cache before caching is tried again.
const PAUSE_BYTES: u64 = 1 << 20;

/// A lazy DFA over some NFA states of an automaton.
#[derive(Debug)]
pub(crate) struct Part {
    /// The numbers of the patterns whose search starts here. They are always live; a tail has none.
    starts: Vec<u32>,
    pub(crate) is_tail: bool,
    classes: Arc<ByteClasses>,
    pub(crate) contexts: Contexts,
    /// The transitions of the start states alone, by context and byte class (the last class is the end of the stream).
    /// Start states are always live and therefore part of no DFA state.
    start_transitions: Vec<OnceLock<StartTransition>>,
    caches: Mutex<Caches>,
    budget: Arc<CacheBudget>,
    counts: Counts,
}

#[derive(Debug)]
struct Caches {
    current: Arc<StateCache>,
    /// The previous cache, as long as streams use it.
    last: Weak<StateCache>,
}

/// Counters of what a part has done.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) clears: AtomicU64,
    early_clears: AtomicU64,
    pub(crate) freezes: AtomicU64,
    /// The value of `uncached` at which caching is tried again.
    thaw_at: AtomicU64,
    pub(crate) uncached: AtomicU64,
    pub(crate) steps: AtomicU64,
    pub(crate) step_states: AtomicU64,
    /// Bytes fed since the last cache clear, as far as streams have reported them.
    fed: AtomicU64,
}

impl Part {
    /// A part in which searches for the patterns `starts` begin; whether it stops where tails begin.
    pub(crate) fn searching(
        patterns: &[Arc<Pattern>],
        starts: Vec<u32>,
        is_divided: bool,
        budget: &Arc<CacheBudget>,
    ) -> Self {
        let (mut ends, mut looks) = (ClassEnds::default(), LookSet::empty());
        for number in &starts {
            let nfa = patterns[*number as usize].nfa();
            if nfa.head.is_empty() || !is_divided {
                ends.add(nfa.ends);
                looks.set_union(nfa.looks);
                continue;
            }
            nfa.for_each_of_head(|state| match nfa.states[state as usize] {
                NfaState::Look(look, _) => looks.set_insert(look),
                _ => nfa.ranges_of(state).for_each(|(low, high, _)| ends.cut(low, high)),
            });
        }
        Self::new(ends, looks, starts, false, budget)
    }

    /// The tails of some patterns.
    pub(crate) fn tail<'a>(patterns: impl Iterator<Item = &'a Pattern>, budget: &Arc<CacheBudget>) -> Self {
        let (mut ends, mut looks) = (ClassEnds::default(), LookSet::empty());
        for pattern in patterns {
            ends.add(pattern.nfa().ends);
            looks.set_union(pattern.nfa().tail_looks);
        }
        Self::new(ends, looks, Vec::new(), true, budget)
    }

    fn new(ends: ClassEnds, looks: LookSet, starts: Vec<u32>, is_tail: bool, budget: &Arc<CacheBudget>) -> Self {
        let contexts = Contexts::of(looks.iter());
        let classes = Arc::new(ByteClasses::of(ends, contexts, !looks.is_empty()));
        let of_starts = if is_tail { 0 } else { Context::ALL.len() * (classes.count + 1) };
        let current = Arc::new(StateCache::new(&classes, is_tail, budget));
        budget.register();
        Self {
            starts,
            is_tail,
            classes,
            contexts,
            start_transitions: (0..of_starts).map(|_| OnceLock::new()).collect(),
            caches: Mutex::new(Caches { current, last: Weak::new() }),
            budget: Arc::clone(budget),
            counts: Counts::default(),
        }
    }

    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The transition of the start states alone; none for a tail.
    pub(crate) fn after_start(
        &self,
        automaton: &Automaton,
        context: Context,
        next: Option<u8>,
    ) -> Option<&StartTransition> {
        let class = next.map_or(self.classes.count, |byte| usize::from(self.classes.of[usize::from(byte)]));
        let slot = self.start_transitions.get(context as usize * (self.classes.count + 1) + class)?;
        Some(slot.get_or_init(|| StartTransition::find(automaton, self, context, next)))
    }

    pub(crate) fn current(&self) -> Arc<StateCache> {
        Arc::clone(&self.caches.lock().unwrap_or_else(PoisonError::into_inner).current)
    }

    /// Clears the cache by starting a new one in place of `full`, unless another stream has done so, streams still use
    /// the cache before it, or caching is suspended. Returns the cache to use from now on.
    pub(crate) fn renew(&self, full: &Arc<StateCache>) -> Arc<StateCache> {
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&caches.current, full) && caches.last.strong_count() == 0 && !self.frozen() {
            self.note_clear(full.states().count() as u64);
            let new = Arc::new(StateCache::new(&self.classes, self.is_tail, &self.budget));
            caches.last = Arc::downgrade(&std::mem::replace(&mut caches.current, new));
        }
        Arc::clone(&caches.current)
    }

    fn note_clear(&self, states: u64) {
        let Counts { clears, early_clears, freezes, thaw_at, uncached, fed, .. } = &self.counts;
        clears.fetch_add(1, Ordering::Relaxed);
        if fed.swap(0, Ordering::Relaxed) >= states * MIN_BYTES_PER_STATE {
            early_clears.store(0, Ordering::Relaxed);
        } else if early_clears.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_EARLY_CLEARS {
            freezes.fetch_add(1, Ordering::Relaxed);
            thaw_at.store(uncached.load(Ordering::Relaxed) + PAUSE_BYTES, Ordering::Relaxed);
        }
    }

    pub(crate) fn frozen(&self) -> bool {
        self.counts.uncached.load(Ordering::Relaxed) < self.counts.thaw_at.load(Ordering::Relaxed)
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts a computed transition.
    pub(crate) fn count_step(&self, states: usize) {
        self.counts.steps.fetch_add(1, Ordering::Relaxed);
        self.counts.step_states.fetch_add(states as u64, Ordering::Relaxed);
    }

    /// Counts a byte that was matched without the cache.
    pub(crate) fn count_uncached(&self) {
        self.counts.uncached.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the bytes that a stream has passed since it last reported.
    pub(crate) fn count_fed(&self, bytes: u64) {
        self.counts.fed.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.budget.unregister();
    }
}
