//! A lazy DFA over many patterns, shared by all streams: the NFAs, the byte classes, and when the cache is cleared.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use regex_syntax::hir::Look;

use super::budget::CacheBudget;
use super::cache::StateCache;
use super::classes::ByteClasses;
use super::determinize::{Scratch, StartTransition};
use super::look::Context;
use super::pattern::Pattern;

/// A cache that is cleared after fewer bytes of text per state was not worth filling.
const MIN_BYTES_PER_STATE: u64 = 16;

/// After this number of consecutive early clears the automaton stops caching for a while.
const MAX_EARLY_CLEARS: u64 = 4;

/// The number of bytes that are then matched without the cache before caching is tried again.
const PAUSE_BYTES: u64 = 1 << 20;

/// Many patterns as one lazy DFA.
#[derive(Debug)]
pub struct Automaton {
    patterns: Vec<Arc<Pattern>>,
    /// By pattern: the number of its first NFA state.
    base: Vec<u32>,
    /// By NFA state: its pattern.
    owner: Vec<u32>,
    classes: Arc<ByteClasses>,
    pub(crate) contexts: Contexts,
    /// The transitions of the start states alone, by context and byte class (the last class is the end of the stream).
    /// Start states are always live and therefore part of no DFA state.
    start_transitions: Vec<OnceLock<StartTransition>>,
    caches: Mutex<Caches>,
    budget: Arc<CacheBudget>,
    scratch: Mutex<Vec<Scratch>>,
    counts: Counts,
}

#[derive(Debug)]
struct Caches {
    current: Arc<StateCache>,
    /// The previous cache, as long as streams use it.
    last: Weak<StateCache>,
}

#[derive(Debug, Default)]
struct Counts {
    clears: AtomicU64,
    early_clears: AtomicU64,
    freezes: AtomicU64,
    /// The value of `uncached` at which caching is tried again.
    thaw_at: AtomicU64,
    uncached: AtomicU64,
    steps: AtomicU64,
    step_states: AtomicU64,
    /// Bytes fed since the last cache clear, as far as streams have reported them.
    fed: AtomicU64,
}

/// Memory and work of an automaton.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// The number of patterns.
    pub patterns: usize,
    /// The number of NFA states of all patterns together.
    pub nfa_states: usize,
    /// Bytes of the NFAs, which automata share.
    pub nfa_bytes: usize,
    /// DFA states computed since the last cache clear.
    pub states: usize,
    /// Bytes of the cache that they use.
    pub bytes: usize,
    /// The cache budget in bytes that all automata of the rule set share.
    pub budget: usize,
    /// Bytes of the budget in use.
    pub budget_used: usize,
    /// How often the cache was cleared because the budget was exhausted.
    pub clears: u64,
    /// No states are cached for now, because the cache was cleared too often after too few bytes; matching without it
    /// costs many times more per byte.
    pub frozen: bool,
    /// How often caching was suspended.
    pub freezes: u64,
    /// Bytes of text that were matched without the cache.
    pub uncached_bytes: u64,
    /// The number of transitions that were computed; all others were read from the table.
    pub steps: u64,
    /// The sum of the live NFA states before and after these transitions: the work they took.
    pub step_states: u64,
}

/// The contexts that the patterns can distinguish; the others are treated as `Other`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contexts {
    start: bool,
    line: bool,
    crlf: bool,
    word: bool,
}

impl Automaton {
    /// Combines patterns; the number of a pattern is its position. Patterns that match the empty string everywhere are
    /// left out ([`Pattern::matches_empty`]): they match before the first byte.
    pub fn new(patterns: Vec<Arc<Pattern>>) -> Arc<Self> {
        Self::with_budget(patterns, &CacheBudget::shared())
    }

    /// As [`new`](Self::new), with a cache budget of its own.
    pub fn with_cache_bytes(patterns: Vec<Arc<Pattern>>, max_bytes: usize) -> Arc<Self> {
        Self::with_budget(patterns, &CacheBudget::new(max_bytes))
    }

    /// As [`new`](Self::new), with a cache budget that is shared with other automata.
    pub fn with_budget(patterns: Vec<Arc<Pattern>>, budget: &Arc<CacheBudget>) -> Arc<Self> {
        let (mut owner, mut base) = (Vec::new(), Vec::with_capacity(patterns.len()));
        for (number, pattern) in patterns.iter().enumerate() {
            base.push(owner.len() as u32);
            owner.resize(owner.len() + pattern.nfa().states.len(), number as u32);
        }
        let contexts = Contexts::of(&patterns);
        let classes = Arc::new(ByteClasses::of(&patterns, contexts.word));
        let start_transitions = (0..Context::ALL.len() * (classes.count + 1)).map(|_| OnceLock::new()).collect();
        let current = Arc::new(StateCache::new(&classes, budget));
        budget.register();
        Arc::new(Self {
            patterns,
            base,
            owner,
            classes,
            contexts,
            start_transitions,
            caches: Mutex::new(Caches { current, last: Weak::new() }),
            budget: Arc::clone(budget),
            scratch: Mutex::default(),
            counts: Counts::default(),
        })
    }

    /// The patterns by number.
    pub fn patterns(&self) -> &[Arc<Pattern>] {
        &self.patterns
    }

    /// Returns the current statistics.
    pub fn stats(&self) -> EngineStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let cache = self.current();
        let states = cache.states();
        EngineStats {
            patterns: self.patterns.len(),
            nfa_states: self.owner.len(),
            nfa_bytes: self.patterns.iter().map(|pattern| pattern.nfa().bytes()).sum(),
            states: states.count(),
            bytes: states.bytes(),
            budget: self.budget.max_bytes(),
            budget_used: self.budget.used(),
            clears: count(&self.counts.clears),
            frozen: self.frozen(),
            freezes: count(&self.counts.freezes),
            uncached_bytes: count(&self.counts.uncached),
            steps: count(&self.counts.steps),
            step_states: count(&self.counts.step_states),
        }
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
            let new = Arc::new(StateCache::new(&self.classes, &self.budget));
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

    fn frozen(&self) -> bool {
        self.counts.uncached.load(Ordering::Relaxed) < self.counts.thaw_at.load(Ordering::Relaxed)
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

    /// The transition of the start states alone.
    pub(crate) fn after_start(&self, context: Context, next: Option<u8>) -> &StartTransition {
        let class = next.map_or(self.classes.count, |byte| usize::from(self.classes.of[usize::from(byte)]));
        let slot = &self.start_transitions[context as usize * (self.classes.count + 1) + class];
        slot.get_or_init(|| StartTransition::find(self, context, next))
    }

    /// The start states of the patterns that can match from a position before `next`.
    pub(crate) fn starts(&self, next: Option<u8>) -> impl Iterator<Item = u32> {
        let live =
            move |(pattern, _): &(&Arc<Pattern>, &u32)| !pattern.matches_empty() && pattern.first_bytes().allows(next);
        self.patterns.iter().zip(&self.base).filter(live).map(|(pattern, base)| base + pattern.nfa().start)
    }

    pub(crate) fn state_count(&self) -> usize {
        self.owner.len()
    }

    pub(crate) fn owner(&self, state: u32) -> u32 {
        self.owner[state as usize]
    }

    /// The pattern of an NFA state, the number of the pattern's first state, and the state's number within the pattern.
    #[inline]
    pub(crate) fn place(&self, state: u32) -> (&Pattern, u32, u32) {
        let owner = self.owner[state as usize] as usize;
        (&self.patterns[owner], self.base[owner], state - self.base[owner])
    }

    /// The maximum depth of the NFA states in `set` whose pattern `counts` accepts.
    pub(crate) fn depth_of(&self, set: &[u32], counts: impl Fn(u32) -> bool) -> u32 {
        let depths = set.iter().filter(|state| counts(self.owner(**state))).map(|state| {
            let (pattern, _, own) = self.place(*state);
            pattern.nfa().depth[own as usize]
        });
        depths.max().unwrap_or(0)
    }

    /// The patterns of the NFA states in `set`, each once.
    pub(crate) fn owners(&self, set: &[u32]) -> Vec<u32> {
        let mut owners: Vec<u32> = set.iter().map(|state| self.owner(*state)).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// Working memory; [`Self::put_back`] returns it for reuse.
    pub(crate) fn scratch(&self) -> Scratch {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn put_back(&self, scratch: Scratch) {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

impl Drop for Automaton {
    fn drop(&mut self) {
        self.budget.unregister();
    }
}

impl Contexts {
    fn of(patterns: &[Arc<Pattern>]) -> Self {
        let mut out = Self::default();
        for look in patterns.iter().flat_map(|pattern| pattern.nfa().looks()) {
            match look {
                Look::Start => out.start = true,
                Look::StartLF => (out.start, out.line) = (true, true),
                Look::StartCRLF => (out.start, out.line, out.crlf) = (true, true, true),
                Look::EndCRLF => out.crlf = true,
                Look::End | Look::EndLF => {}
                _ => out.word = true,
            }
        }
        out
    }

    /// The context as far as the patterns can distinguish it.
    pub(crate) fn reduce(self, context: Context) -> Context {
        let kept = match context {
            Context::Start => self.start,
            Context::Lf => self.line,
            Context::Cr => self.crlf,
            Context::Word => self.word,
            Context::Other => true,
        };
        if kept { context } else { Context::Other }
    }
}
