//! Many patterns as one machine: what follows a set of states and a byte. Shared by all streams.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use regex_automata::util::look::Look;

use super::look::{Context, holds, is_word, looks_behind_only};
use super::pattern::{Pattern, Step};
use super::table::{Key, Table};

/// Room for the rows of one automaton. A thousand real rules on a megabyte of code use about 9 MB.
const MAX_TABLE_BYTES: usize = 16 << 20;

/// How often the rows may be thrown away before no new ones are made.
const MAX_CLEARS: u64 = 8;

/// Many patterns as one machine.
#[derive(Debug)]
pub struct Automaton {
    patterns: Vec<Arc<Pattern>>,
    steps: Vec<Step>,
    owner: Vec<u32>,
    depth: Vec<u32>,
    starts: Vec<u32>,
    pub(crate) classes: Box<[u8; 256]>,
    class_count: u32,
    pub(crate) stride2: u32,
    contexts: Contexts,
    /// What follows the start states alone, by context and byte class (the last class: the end of the block). Start
    /// states are always alive and therefore in no key.
    from_start: Vec<OnceLock<FromStart>>,
    table: Mutex<Arc<Table>>,
    max_bytes: usize,
    clears: AtomicU64,
    uncached: AtomicU64,
}

/// How an automaton's memory stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Patterns it runs.
    pub patterns: usize,
    /// States of all patterns together.
    pub pattern_states: usize,
    /// Rows made since the last clear.
    pub rows: usize,
    /// Bytes in use for them.
    pub bytes: usize,
    /// How often the rows were thrown away because they took too much room.
    pub clears: u64,
    /// No new rows are made any more, because they were thrown away too often; streams step without them.
    pub frozen: bool,
    /// Bytes of text stepped without rows.
    pub uncached_bytes: u64,
}

#[derive(Debug, Default)]
struct FromStart {
    set: Vec<u32>,
    before: Vec<u32>,
    after: Vec<u32>,
}

/// Which contexts the patterns can tell apart; the others are `Other`.
#[derive(Clone, Copy, Debug, Default)]
struct Contexts {
    start: bool,
    line: bool,
    crlf: bool,
    word: bool,
}

/// Room to work in, kept between steps.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    seen: Vec<u32>,
    mark: u32,
    stack: Vec<u32>,
    active: Vec<u32>,
    set: Vec<u32>,
    before: Vec<u32>,
    after: Vec<u32>,
}

impl Scratch {
    fn begin(&mut self, states: usize) {
        if self.mark == u32::MAX || self.seen.len() != states {
            self.seen = vec![0; states];
            self.mark = 0;
        }
        self.mark += 1;
    }

    fn first_visit(&mut self, state: u32) -> bool {
        std::mem::replace(&mut self.seen[state as usize], self.mark) != self.mark
    }
}

impl Automaton {
    /// Puts patterns together; a pattern's number is its position. Patterns that match without a byte are left out
    /// ([`Pattern::matches_empty`]): they are found before the first byte.
    pub fn new(patterns: Vec<Arc<Pattern>>) -> Arc<Self> {
        Self::with_room(patterns, MAX_TABLE_BYTES)
    }

    /// As [`new`](Self::new), with another bound for the bytes of rows.
    pub fn with_room(patterns: Vec<Arc<Pattern>>, max_bytes: usize) -> Arc<Self> {
        let (mut steps, mut owner, mut depth, mut starts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, pattern) in patterns.iter().enumerate().filter(|(_, p)| !p.matches_empty()) {
            let base = steps.len() as u32;
            starts.push(base + pattern.start);
            depth.extend_from_slice(&pattern.depth);
            owner.extend(std::iter::repeat_n(number as u32, pattern.steps.len()));
            steps.extend(pattern.steps.iter().map(|step| shift(step, base)));
        }
        let contexts = contexts(&steps);
        let (classes, class_count) = classes(&steps, contexts);
        // One column more for the depth; at least 4 cells, so that the low bits of offsets are free.
        let stride2 = (class_count + 1).next_power_of_two().trailing_zeros().max(2);
        let from_start = (0..Context::ALL.len() * (class_count as usize + 1)).map(|_| OnceLock::new()).collect();
        let table = Mutex::new(Arc::new(Table::new(stride2, class_count)));
        Arc::new(Self {
            patterns,
            steps,
            owner,
            depth,
            starts,
            classes,
            class_count,
            stride2,
            contexts,
            from_start,
            table,
            max_bytes,
            clears: AtomicU64::new(0),
            uncached: AtomicU64::new(0),
        })
    }

    /// The patterns by number.
    pub fn patterns(&self) -> &[Arc<Pattern>] {
        &self.patterns
    }

    /// How the memory stands.
    pub fn stats(&self) -> EngineStats {
        let table = self.current();
        let rows = table.rows();
        EngineStats {
            patterns: self.patterns.len(),
            pattern_states: self.steps.len(),
            rows: rows.keys.len(),
            bytes: rows.bytes(),
            clears: self.clears.load(Ordering::Relaxed),
            frozen: self.frozen(),
            uncached_bytes: self.uncached.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn current(&self) -> Arc<Table> {
        Arc::clone(&self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a new table unless `full` has been replaced already; the table to use from now on.
    pub(crate) fn renew(&self, full: &Arc<Table>) -> Arc<Table> {
        let mut current = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, full) && !self.frozen() {
            *current = Arc::new(Table::new(self.stride2, self.class_count));
            self.clears.fetch_add(1, Ordering::Relaxed);
        }
        Arc::clone(&current)
    }

    pub(crate) fn frozen(&self) -> bool {
        self.clears.load(Ordering::Relaxed) >= MAX_CLEARS
    }

    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        bytes > self.max_bytes
    }

    pub(crate) fn count_uncached(&self) {
        self.uncached.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn depth_column(&self) -> u32 {
        self.class_count
    }

    pub(crate) fn start_context(&self) -> Context {
        self.contexts.reduce(Context::Start)
    }

    /// The greatest depth of the states in `set` whose pattern `counts`.
    pub(crate) fn depth_of(&self, set: &[u32], counts: impl Fn(u32) -> bool) -> u32 {
        let depths = set.iter().filter(|s| counts(self.owner[**s as usize])).map(|s| self.depth[*s as usize]);
        depths.max().unwrap_or(0)
    }

    /// The patterns of the states in `set`, each once.
    pub(crate) fn owners(&self, set: &[u32]) -> Vec<u32> {
        let mut owners: Vec<u32> = set.iter().map(|s| self.owner[*s as usize]).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// What follows `set` after `context` and `byte`.
    pub(crate) fn step(&self, context: Context, set: &[u32], byte: u8, scratch: &mut Scratch) -> Key {
        let class = u32::from(self.classes[byte as usize]);
        self.resolve(set, context, Some(byte), scratch);
        let start = self.step_from_start(context, class, Some(byte));
        scratch.before.extend_from_slice(&start.before);
        sort_unique(&mut scratch.before);
        let after_byte = self.contexts.reduce(Context::after(byte));
        scratch.begin(self.steps.len());
        scratch.set.clear();
        scratch.after.clear();
        let active = std::mem::take(&mut scratch.active);
        for &state in &active {
            if contains(&scratch.before, self.owner[state as usize]) {
                continue;
            }
            if let Step::Bytes(ranges) = &self.steps[state as usize] {
                for range in ranges.iter().filter(|r| r.0 <= byte && byte <= r.1) {
                    self.close(range.2, after_byte, scratch);
                }
            }
        }
        scratch.active = active;
        for &state in &start.set {
            if scratch.first_visit(state) {
                scratch.set.push(state);
            }
        }
        scratch.after.extend_from_slice(&start.after);
        sort_unique(&mut scratch.after);
        // A pattern that has just matched begins anew: its first match is all a stream needs, and fewer states live.
        let Scratch { set, before, after, .. } = scratch;
        after.retain(|pattern| !contains(before, *pattern));
        if !before.is_empty() || !after.is_empty() {
            set.retain(|s| {
                let owner = self.owner[*s as usize];
                !contains(before, owner) && !contains(after, owner)
            });
        }
        set.sort_unstable();
        Key::new(after_byte, before, after, set)
    }

    /// The patterns that end where the block ends.
    pub(crate) fn finish(&self, context: Context, set: &[u32], scratch: &mut Scratch) -> Vec<u32> {
        self.resolve(set, context, None, scratch);
        scratch.before.extend_from_slice(&self.step_from_start(context, self.class_count, None).before);
        sort_unique(&mut scratch.before);
        scratch.before.clone()
    }

    fn step_from_start(&self, context: Context, class: u32, byte: Option<u8>) -> &FromStart {
        let at = context as usize * (self.class_count as usize + 1) + class as usize;
        self.from_start[at].get_or_init(|| {
            let mut scratch = Scratch::default();
            self.resolve(&self.starts, context, byte, &mut scratch);
            let before = std::mem::take(&mut scratch.before);
            let active = std::mem::take(&mut scratch.active);
            let Some(byte) = byte else { return FromStart { before, ..FromStart::default() } };
            scratch.begin(self.steps.len());
            for &state in &active {
                if let Step::Bytes(ranges) = &self.steps[state as usize] {
                    for range in ranges.iter().filter(|r| r.0 <= byte && byte <= r.1) {
                        self.close(range.2, self.contexts.reduce(Context::after(byte)), &mut scratch);
                    }
                }
            }
            FromStart { set: scratch.set, before, after: scratch.after }
        })
    }

    /// Judges the assertions that waited for `next`; fills `active` with states that take bytes, `before` with
    /// patterns that have ended.
    fn resolve(&self, from: &[u32], context: Context, next: Option<u8>, scratch: &mut Scratch) {
        scratch.begin(self.steps.len());
        scratch.active.clear();
        scratch.before.clear();
        scratch.stack.clear();
        scratch.stack.extend(from.iter().rev());
        while let Some(state) = scratch.stack.pop() {
            if !scratch.first_visit(state) {
                continue;
            }
            match &self.steps[state as usize] {
                Step::Bytes(_) => scratch.active.push(state),
                Step::Jump(to) => scratch.stack.extend(to.iter().rev()),
                Step::Look(look, to) if holds(*look, context, next) => scratch.stack.push(*to),
                Step::Match => scratch.before.push(self.owner[state as usize]),
                Step::Look(..) | Step::Fail => {}
            }
        }
    }

    /// Adds `state` and what follows it without a byte; assertions that need the next byte stay as they are.
    fn close(&self, state: u32, context: Context, scratch: &mut Scratch) {
        scratch.stack.clear();
        scratch.stack.push(state);
        while let Some(state) = scratch.stack.pop() {
            if !scratch.first_visit(state) {
                continue;
            }
            match &self.steps[state as usize] {
                Step::Bytes(_) => scratch.set.push(state),
                Step::Jump(to) => scratch.stack.extend(to.iter().rev()),
                Step::Look(look, to) if looks_behind_only(*look) => {
                    if holds(*look, context, None) {
                        scratch.stack.push(*to);
                    }
                }
                Step::Look(..) => scratch.set.push(state),
                Step::Match => scratch.after.push(self.owner[state as usize]),
                Step::Fail => {}
            }
        }
    }
}

impl Contexts {
    fn reduce(self, context: Context) -> Context {
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

fn contains(sorted: &[u32], value: u32) -> bool {
    !sorted.is_empty() && sorted.binary_search(&value).is_ok()
}

fn sort_unique(values: &mut Vec<u32>) {
    values.sort_unstable();
    values.dedup();
}

fn shift(step: &Step, base: u32) -> Step {
    match step {
        Step::Bytes(ranges) => Step::Bytes(ranges.iter().map(|r| (r.0, r.1, r.2 + base)).collect()),
        Step::Jump(to) => Step::Jump(to.iter().map(|to| to + base).collect()),
        Step::Look(look, to) => Step::Look(*look, to + base),
        Step::Match => Step::Match,
        Step::Fail => Step::Fail,
    }
}

fn contexts(steps: &[Step]) -> Contexts {
    let mut out = Contexts::default();
    for step in steps {
        let Step::Look(look, _) = step else { continue };
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

/// Bytes that no pattern tells apart share a class.
fn classes(steps: &[Step], contexts: Contexts) -> (Box<[u8; 256]>, u32) {
    let mut ends = [false; 256];
    let mut cut = |low: u8, high: u8| {
        if let Some(before) = low.checked_sub(1) {
            ends[before as usize] = true;
        }
        ends[high as usize] = true;
    };
    let mut line_end = false;
    for step in steps {
        match step {
            Step::Bytes(ranges) => ranges.iter().for_each(|r| cut(r.0, r.1)),
            Step::Look(..) => line_end = true,
            _ => {}
        }
    }
    if line_end {
        cut(b'\n', b'\n');
        cut(b'\r', b'\r');
    }
    if contexts.word {
        let words: Vec<u8> = (0..=u8::MAX).filter(|b| is_word(*b)).collect();
        let mut runs = words.chunk_by(|a, b| a + 1 == *b);
        runs.by_ref().for_each(|run| cut(run[0], run[run.len() - 1]));
    }
    let mut classes = Box::new([0_u8; 256]);
    let mut class = 0_u8;
    for byte in 0..256 {
        classes[byte] = class;
        if ends[byte] && byte != 255 {
            class += 1;
        }
    }
    (classes, u32::from(class) + 1)
}
