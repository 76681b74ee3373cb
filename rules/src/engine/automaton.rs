//! Many patterns as a few lazy DFAs: the NFA states of all, and which part runs which of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::budget::CacheBudget;
use super::determinize::Scratch;
use super::part::Part;
use super::pattern::Pattern;

/// Many patterns, to be run together.
#[derive(Debug)]
pub struct Automaton {
    /// The patterns by number, and behind them their leads.
    patterns: Vec<Arc<Pattern>>,
    /// The number of patterns without the leads.
    count: usize,
    /// By pattern: the number of its first NFA state.
    base: Vec<u32>,
    /// By NFA state: its pattern.
    owner: Vec<u32>,
    /// Whether patterns are divided into leads, heads and tails, as far as that is of use.
    is_divided: bool,
    /// By pattern: the number of its lead.
    leads: Vec<Option<u32>>,
    /// By pattern: its tail.
    tail_of: Vec<Option<u32>>,
    /// The parts that every stream runs all the time.
    always: Vec<Part>,
    tails: Vec<Tail>,
    budget: Arc<CacheBudget>,
    scratch: Mutex<Vec<Scratch>>,
}

/// The tails of the patterns that have the same head: they are entered together.
#[derive(Debug)]
struct Tail {
    patterns: Vec<u32>,
    part: OnceLock<Part>,
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
    /// How often a cache was cleared because the budget was exhausted.
    pub clears: u64,
    /// No states of some part are cached for now, because its cache was cleared too often after too few bytes; matching
    /// without it costs many times more per byte.
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
        Self::build(patterns, budget, true)
    }

    /// As [`new`](Self::new), but as one DFA, whose states multiply with the counts in the patterns. Matches and what is held
    /// back are the same, so that tests can compare both.
    pub fn undivided(patterns: Vec<Arc<Pattern>>) -> Arc<Self> {
        Self::build(patterns, &CacheBudget::shared(), false)
    }

    fn build(mut patterns: Vec<Arc<Pattern>>, budget: &Arc<CacheBudget>, is_divided: bool) -> Arc<Self> {
        let count = patterns.len();
        let leads = if is_divided { add_leads(&mut patterns) } else { vec![None; count] };
        let (mut owner, mut base) = (Vec::new(), Vec::with_capacity(patterns.len()));
        for (number, pattern) in patterns.iter().enumerate() {
            base.push(owner.len() as u32);
            owner.resize(owner.len() + pattern.nfa().states.len(), number as u32);
        }
        let searched = (0..patterns.len() as u32).filter(|number| !patterns[*number as usize].matches_empty());
        let (counting, others): (Vec<u32>, Vec<u32>) =
            searched.partition(|number| is_divided && patterns[*number as usize].nfa().counts);
        let mut always = Vec::new();
        for starts in [others, counting] {
            // There is always one, also without a pattern.
            if !starts.is_empty() || always.is_empty() && patterns.iter().all(|pattern| pattern.matches_empty()) {
                always.push(Part::searching(&patterns, starts, is_divided, budget));
            }
        }
        let (tails, tail_of) = tails(&patterns);
        Arc::new(Self {
            patterns,
            count,
            base,
            owner,
            is_divided,
            leads,
            tail_of,
            always,
            tails,
            budget: Arc::clone(budget),
            scratch: Mutex::default(),
        })
    }

    /// The patterns by number.
    pub fn patterns(&self) -> &[Arc<Pattern>] {
        &self.patterns[..self.count]
    }

    /// Returns the current statistics.
    pub fn stats(&self) -> EngineStats {
        let mut stats = EngineStats {
            patterns: self.count,
            nfa_states: self.owner.len(),
            nfa_bytes: self.patterns.iter().map(|pattern| pattern.nfa().bytes()).sum(),
            budget: self.budget.max_bytes(),
            budget_used: self.budget.used(),
            ..EngineStats::default()
        };
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for part in self.parts() {
            let (cache, counts) = (part.current(), part.counts());
            let states = cache.states();
            stats.states += states.count();
            stats.bytes += states.bytes();
            stats.clears += count(&counts.clears);
            stats.frozen |= part.frozen();
            stats.freezes += count(&counts.freezes);
            stats.uncached_bytes += count(&counts.uncached);
            stats.steps += count(&counts.steps);
            stats.step_states += count(&counts.step_states);
        }
        stats
    }

    /// By pattern: how often NFA states of it are in DFA states that were computed, which is its part of memory and work.
    pub fn live_states(&self) -> Vec<u64> {
        let mut out = vec![0; self.patterns.len()];
        for part in self.parts() {
            part.current().states().for_each_live(|state| out[self.owner(state) as usize] += 1);
        }
        // A lead works for all of its patterns.
        for lead in self.count as u32..self.patterns.len() as u32 {
            let led = self.led_by(lead);
            led.iter().for_each(|pattern| out[*pattern as usize] += out[lead as usize] / led.len() as u64);
        }
        out.truncate(self.count);
        out
    }

    /// The parts that have run.
    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.always.iter().chain(self.tails.iter().filter_map(|tail| tail.part.get()))
    }

    /// The number of parts that every stream runs all the time; the numbers of the tails follow.
    pub(crate) fn always(&self) -> u32 {
        self.always.len() as u32
    }

    /// A part by number. A tail is made when it is first entered.
    pub(crate) fn part(&self, number: u32) -> &Part {
        if let Some(part) = self.always.get(number as usize) {
            return part;
        }
        let Tail { patterns, part } = &self.tails[number as usize - self.always.len()];
        let patterns = patterns.iter().map(|number| &*self.patterns[*number as usize]);
        part.get_or_init(|| Part::tail(patterns, &self.budget))
    }

    /// The number of the part that runs the tail of a pattern.
    pub(crate) fn tail_of(&self, pattern: u32) -> Option<u32> {
        self.tail_of[pattern as usize].map(|tail| tail + self.always())
    }

    /// The lead of a pattern.
    pub(crate) fn lead_of(&self, pattern: u32) -> Option<u32> {
        self.leads[pattern as usize]
    }

    /// The patterns whose lead this is; a pattern that is no lead is its own only one.
    pub(crate) fn led_by(&self, number: u32) -> Vec<u32> {
        if (number as usize) < self.count {
            return vec![number];
        }
        (0..self.count as u32).filter(|pattern| self.lead_of(*pattern) == Some(number)).collect()
    }

    /// By pattern number, leads included: whether one is held back. A lead is where one of its patterns is.
    pub(crate) fn held_with_leads(&self, mut holds: Vec<bool>) -> Vec<bool> {
        holds.resize(self.patterns.len(), false);
        for pattern in (0..self.count).filter(|pattern| holds[*pattern]).collect::<Vec<_>>() {
            if let Some(lead) = self.leads[pattern] {
                holds[lead as usize] = true;
            }
        }
        holds
    }

    /// The start states of those of `patterns` that can match from a position before `next`.
    pub(crate) fn starts(&self, patterns: &[u32], next: Option<u8>) -> impl Iterator<Item = u32> {
        let of_all = patterns.iter().map(|number| (&self.patterns[*number as usize], self.base[*number as usize]));
        let can_start = move |pattern: &Pattern| {
            pattern.first_bytes().allows(next) || !self.is_divided && pattern.nfa().start != pattern.nfa().search_start
        };
        let live = of_all.filter(move |(pattern, _)| can_start(pattern));
        live.map(|(pattern, base)| {
            base + if self.is_divided { pattern.nfa().search_start } else { pattern.nfa().start }
        })
    }

    pub(crate) fn is_divided(&self) -> bool {
        self.is_divided
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
        let depths = set.iter().filter(|state| counts(self.owner(**state))).map(|state| self.depth_at(*state));
        depths.max().unwrap_or(0)
    }

    /// The depth of an NFA state.
    pub(crate) fn depth_at(&self, state: u32) -> u32 {
        let (pattern, _, own) = self.place(state);
        pattern.nfa().depth[own as usize]
    }

    /// Working memory; [`Self::put_back`] returns it for reuse.
    pub(crate) fn scratch(&self) -> Scratch {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn put_back(&self, scratch: Scratch) {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

/// Adds the leads of the patterns behind them, each once; returns the number of each pattern's.
fn add_leads(patterns: &mut Vec<Arc<Pattern>>) -> Vec<Option<u32>> {
    let (count, mut known) = (patterns.len(), Vec::new());
    let mut leads = Vec::with_capacity(count);
    for pattern in &*patterns {
        leads.push(pattern.lead().map(|lead| {
            let at = known.iter().position(|one| *one == lead).unwrap_or_else(|| {
                known.push(lead);
                known.len() - 1
            });
            (count + at) as u32
        }));
    }
    let new: Vec<_> = known.into_iter().map(|lead| Arc::new(Pattern::of_lead(lead))).collect();
    leads.resize(count + new.len(), None);
    patterns.extend(new);
    leads
}

/// The tails of the patterns, and the tail of each.
fn tails(patterns: &[Arc<Pattern>]) -> (Vec<Tail>, Vec<Option<u32>>) {
    let (mut known, mut tails) = (HashMap::new(), Vec::<Tail>::new());
    let of_each = patterns.iter().zip(0..).map(|(pattern, number)| {
        let head = Some(pattern.nfa().head.as_str()).filter(|head| !head.is_empty())?;
        let at = *known.entry(head).or_insert(tails.len() as u32);
        if at as usize == tails.len() {
            tails.push(Tail { patterns: Vec::new(), part: OnceLock::new() });
        }
        tails[at as usize].patterns.push(number);
        Some(at)
    });
    let of_each = of_each.collect();
    (tails, of_each)
}
