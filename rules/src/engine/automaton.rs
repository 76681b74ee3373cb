//! Many patterns as one machine, shared by all streams: what they have in common, and the life of its tables.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use regex_syntax::hir::Look;

use super::classes::Classes;
use super::look::Context;
use super::pattern::Pattern;
use super::room::Room;
use super::step::{FromStart, Scratch};
use super::table::Table;

/// A table that was thrown away after fewer bytes of text for each of its rows was not worth making.
const WORTH_BYTES_PER_ROW: u64 = 16;

/// How many such tables one after the other it takes until no rows are made for a while.
const MAX_WORTHLESS: u64 = 4;

/// How many bytes are then stepped without rows before one more table is tried.
const PAUSE_BYTES: u64 = 1 << 20;

/// Many patterns as one machine.
#[derive(Debug)]
pub struct Automaton {
    patterns: Vec<Arc<Pattern>>,
    /// The number of each pattern's first state.
    base: Vec<u32>,
    /// For each state, its pattern.
    owner: Vec<u32>,
    classes: Arc<Classes>,
    pub(crate) contexts: Contexts,
    /// What follows the start states alone, by context and byte class (the last class: the end of the block). Start
    /// states are always alive and therefore in no key.
    from_start: Vec<OnceLock<FromStart>>,
    tables: Mutex<Tables>,
    room: Arc<Room>,
    scratch: Mutex<Vec<Scratch>>,
    counts: Counts,
}

#[derive(Debug)]
struct Tables {
    current: Arc<Table>,
    /// The one before, as long as streams stand in it.
    last: Weak<Table>,
}

#[derive(Debug, Default)]
struct Counts {
    clears: AtomicU64,
    worthless: AtomicU64,
    freezes: AtomicU64,
    /// Bytes that had been stepped without rows when a pause ends.
    thaw_at: AtomicU64,
    uncached: AtomicU64,
    steps: AtomicU64,
    step_states: AtomicU64,
    /// Bytes fed since the last clear, as far as streams have told.
    fed: AtomicU64,
}

/// How an automaton's memory stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Patterns it runs.
    pub patterns: usize,
    /// States of all patterns together.
    pub pattern_states: usize,
    /// Bytes that the states take; patterns are shared by automata.
    pub pattern_bytes: usize,
    /// Rows made since the last clear.
    pub rows: usize,
    /// Bytes in use for them.
    pub bytes: usize,
    /// Bytes that all automata of the rule set have for rows together.
    pub room: usize,
    /// Bytes of it in use.
    pub room_used: usize,
    /// How often the rows were thrown away because they took too much room.
    pub clears: u64,
    /// No new rows are made for now, because they were thrown away too often for too little; streams step without them,
    /// at many times the cost for each byte.
    pub frozen: bool,
    /// How often it came to that.
    pub freezes: u64,
    /// Bytes of text stepped without rows.
    pub uncached_bytes: u64,
    /// How often it was worked out what follows a row and a byte; all other bytes were looked up.
    pub steps: u64,
    /// States alive before and after these steps, summed up: the work they took.
    pub step_states: u64,
}

/// Which contexts the patterns can tell apart; the others are `Other`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contexts {
    start: bool,
    line: bool,
    crlf: bool,
    word: bool,
}

impl Automaton {
    /// Puts patterns together; a pattern's number is its position. Patterns that match without a byte are left out
    /// ([`Pattern::matches_empty`]): they are found before the first byte.
    pub fn new(patterns: Vec<Arc<Pattern>>) -> Arc<Self> {
        Self::sharing(patterns, &Room::shared())
    }

    /// As [`new`](Self::new), with another bound for the bytes of rows.
    pub fn with_room(patterns: Vec<Arc<Pattern>>, max_bytes: usize) -> Arc<Self> {
        Self::sharing(patterns, &Room::of(max_bytes))
    }

    /// As [`new`](Self::new), with room for rows that it shares with other automata.
    pub fn sharing(patterns: Vec<Arc<Pattern>>, room: &Arc<Room>) -> Arc<Self> {
        let (mut owner, mut base) = (Vec::new(), Vec::with_capacity(patterns.len()));
        for (number, pattern) in patterns.iter().enumerate() {
            base.push(owner.len() as u32);
            owner.resize(owner.len() + pattern.program.steps.len(), number as u32);
        }
        let contexts = Contexts::of(&patterns);
        let classes = Arc::new(Classes::of(&patterns, contexts.word));
        let from_start = (0..Context::ALL.len() * (classes.count + 1)).map(|_| OnceLock::new()).collect();
        let current = Arc::new(Table::new(&classes, room));
        room.join();
        Arc::new(Self {
            patterns,
            base,
            owner,
            classes,
            contexts,
            from_start,
            tables: Mutex::new(Tables { current, last: Weak::new() }),
            room: Arc::clone(room),
            scratch: Mutex::default(),
            counts: Counts::default(),
        })
    }

    /// The patterns by number.
    pub fn patterns(&self) -> &[Arc<Pattern>] {
        &self.patterns
    }

    /// How the memory stands.
    pub fn stats(&self) -> EngineStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let table = self.current();
        let rows = table.rows();
        EngineStats {
            patterns: self.patterns.len(),
            pattern_states: self.owner.len(),
            pattern_bytes: self.patterns.iter().map(|pattern| pattern.program.bytes()).sum(),
            rows: rows.count(),
            bytes: rows.bytes(),
            room: self.room.most(),
            room_used: self.room.used(),
            clears: count(&self.counts.clears),
            frozen: self.frozen(),
            freezes: count(&self.counts.freezes),
            uncached_bytes: count(&self.counts.uncached),
            steps: count(&self.counts.steps),
            step_states: count(&self.counts.step_states),
        }
    }

    pub(crate) fn current(&self) -> Arc<Table> {
        Arc::clone(&self.tables.lock().unwrap_or_else(PoisonError::into_inner).current)
    }

    /// Begins a new table in place of `full`, unless another stream has done so, streams still stand in the table before
    /// it, or tables are not worth making for now; the table to use from now on.
    pub(crate) fn renew(&self, full: &Arc<Table>) -> Arc<Table> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&tables.current, full) && tables.last.strong_count() == 0 && !self.frozen() {
            self.note_clear(full.rows().count() as u64);
            let new = Arc::new(Table::new(&self.classes, &self.room));
            tables.last = Arc::downgrade(&std::mem::replace(&mut tables.current, new));
        }
        Arc::clone(&tables.current)
    }

    fn note_clear(&self, rows: u64) {
        let Counts { clears, worthless, freezes, thaw_at, uncached, fed, .. } = &self.counts;
        clears.fetch_add(1, Ordering::Relaxed);
        if fed.swap(0, Ordering::Relaxed) >= rows * WORTH_BYTES_PER_ROW {
            worthless.store(0, Ordering::Relaxed);
        } else if worthless.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_WORTHLESS {
            freezes.fetch_add(1, Ordering::Relaxed);
            thaw_at.store(uncached.load(Ordering::Relaxed) + PAUSE_BYTES, Ordering::Relaxed);
        }
    }

    fn frozen(&self) -> bool {
        self.counts.uncached.load(Ordering::Relaxed) < self.counts.thaw_at.load(Ordering::Relaxed)
    }

    /// What follows a row was worked out.
    pub(crate) fn count_step(&self, states: usize) {
        self.counts.steps.fetch_add(1, Ordering::Relaxed);
        self.counts.step_states.fetch_add(states as u64, Ordering::Relaxed);
    }

    /// A byte was stepped without rows.
    pub(crate) fn count_uncached(&self) {
        self.counts.uncached.fetch_add(1, Ordering::Relaxed);
    }

    /// A stream has passed so many bytes since it last asked for a row.
    pub(crate) fn count_fed(&self, bytes: u64) {
        self.counts.fed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What follows the start states alone.
    pub(crate) fn after_start(&self, context: Context, next: Option<u8>) -> &FromStart {
        let class = next.map_or(self.classes.count, |byte| usize::from(self.classes.of[usize::from(byte)]));
        let slot = &self.from_start[context as usize * (self.classes.count + 1) + class];
        slot.get_or_init(|| FromStart::find(self, context, next))
    }

    /// The start states of patterns that may match from a place that `next` follows.
    pub(crate) fn starts(&self, next: Option<u8>) -> impl Iterator<Item = u32> {
        let live = move |(pattern, _): &(&Arc<Pattern>, &u32)| !pattern.matches_empty() && pattern.begin.allows(next);
        self.patterns.iter().zip(&self.base).filter(live).map(|(pattern, base)| base + pattern.program.start)
    }

    pub(crate) fn state_count(&self) -> usize {
        self.owner.len()
    }

    pub(crate) fn owner(&self, state: u32) -> u32 {
        self.owner[state as usize]
    }

    /// A state's pattern, the number of that pattern's first state, and the state's number among its own.
    #[inline]
    pub(crate) fn place(&self, state: u32) -> (&Pattern, u32, u32) {
        let owner = self.owner[state as usize] as usize;
        (&self.patterns[owner], self.base[owner], state - self.base[owner])
    }

    /// The greatest depth of the states in `set` whose pattern `counts`.
    pub(crate) fn depth_of(&self, set: &[u32], counts: impl Fn(u32) -> bool) -> u32 {
        let depths = set.iter().filter(|state| counts(self.owner(**state))).map(|state| {
            let (pattern, _, own) = self.place(*state);
            pattern.program.depth[own as usize]
        });
        depths.max().unwrap_or(0)
    }

    /// The patterns of the states in `set`, each once.
    pub(crate) fn owners(&self, set: &[u32]) -> Vec<u32> {
        let mut owners: Vec<u32> = set.iter().map(|state| self.owner(*state)).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// Room to work in; [`Self::put_back`] keeps it for the next.
    pub(crate) fn scratch(&self) -> Scratch {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn put_back(&self, scratch: Scratch) {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

impl Drop for Automaton {
    fn drop(&mut self) {
        self.room.leave();
    }
}

impl Contexts {
    fn of(patterns: &[Arc<Pattern>]) -> Self {
        let mut out = Self::default();
        for look in patterns.iter().flat_map(|pattern| pattern.program.looks()) {
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

    /// The context as far as the patterns can tell it.
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
