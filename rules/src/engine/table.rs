//! The rows an automaton has made so far. Streams read them without a lock and take the lock only to make a new one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::look::Context;
use super::pattern::UNBOUNDED;

/// A cell that nobody has filled. Odd, like all cells that the fast loop must stop at.
pub(crate) const UNKNOWN: u32 = 1;

/// Set in a cell whose target state has hits to report. Offsets are multiples of at least 4.
pub(crate) const HITS: u32 = 1;

/// What a row stands for: the context, the patterns that ended before and after the last byte, and the states that are
/// alive. In one slice: context, number of each kind of hits, the hits, the states (sorted).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(Arc<[u32]>);

impl Key {
    pub(crate) fn new(context: Context, before: &[u32], after: &[u32], set: &[u32]) -> Self {
        let head = [context as u32, before.len() as u32, after.len() as u32];
        Self(head.iter().chain(before).chain(after).chain(set).copied().collect())
    }

    pub(crate) fn context(&self) -> Context {
        Context::ALL[self.0[0] as usize]
    }

    /// Patterns that ended just before the last byte.
    pub(crate) fn before(&self) -> &[u32] {
        &self.0[3..3 + self.0[1] as usize]
    }

    /// Patterns that ended with the last byte.
    pub(crate) fn after(&self) -> &[u32] {
        let at = 3 + self.0[1] as usize;
        &self.0[at..at + self.0[2] as usize]
    }

    pub(crate) fn set(&self) -> &[u32] {
        &self.0[3 + (self.0[1] + self.0[2]) as usize..]
    }

    fn has_hits(&self) -> bool {
        self.0[1] + self.0[2] > 0
    }
}

/// Rows of cells. A row is `stride` cells: one per byte class, then the row's depth (see [`encode_depth`]).
#[derive(Debug)]
pub(crate) struct Cells(Box<[AtomicU32]>);

impl Cells {
    fn new(len: usize, from: Option<&Self>) -> Arc<Self> {
        let old = from.map_or(&[] as &[AtomicU32], |cells| &cells.0);
        let copied = old.iter().map(|cell| cell.load(Ordering::Relaxed));
        Arc::new(Self(copied.chain(std::iter::repeat(UNKNOWN)).take(len).map(AtomicU32::new).collect()))
    }

    /// The cell at `at`; `UNKNOWN` beyond the end.
    #[inline(always)]
    pub(crate) fn get(&self, at: u32) -> u32 {
        // Cells hold nothing but offsets into this table, so no order between them is needed.
        self.0.get(at as usize).map_or(UNKNOWN, |cell| cell.load(Ordering::Relaxed))
    }

    fn set(&self, at: u32, value: u32) {
        self.0[at as usize].store(value, Ordering::Relaxed);
    }
}

/// A depth as a cell holds it: doubled, so that it is never `UNKNOWN`.
fn encode_depth(depth: u32) -> u32 {
    depth.min(UNBOUNDED >> 1) << 1
}

/// The depth in a cell, unless the cell has not been filled for this reader yet.
#[inline(always)]
pub(crate) fn decode_depth(cell: u32) -> Option<u32> {
    match cell {
        UNKNOWN => None,
        c if c >> 1 == UNBOUNDED >> 1 => Some(UNBOUNDED),
        c => Some(c >> 1),
    }
}

/// All rows of one generation. When they take too much room, the automaton begins a new table; streams that stand in
/// an old one leave it at their next miss.
#[derive(Debug)]
pub(crate) struct Table {
    stride2: u32,
    depth_column: u32,
    rows: Mutex<Rows>,
}

#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) cells: Arc<Cells>,
    offsets: HashMap<Key, u32>,
    pub(crate) keys: Vec<Key>,
    key_bytes: usize,
}

impl Table {
    /// A table with a row for each context and no live state, at offset `context << stride2`.
    pub(crate) fn new(stride2: u32, depth_column: u32) -> Self {
        let cells = Cells::new(64 << stride2, None);
        let rows = Rows { cells, offsets: HashMap::new(), keys: Vec::new(), key_bytes: 0 };
        let table = Self { stride2, depth_column, rows: Mutex::new(rows) };
        let mut rows = table.rows();
        for context in Context::ALL {
            table.intern(&mut rows, Key::new(context, &[], &[], &[]), 0);
        }
        drop(rows);
        table
    }

    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        // A row is complete before it is reachable, so a panic elsewhere cannot have left half of one.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn root(&self, context: Context) -> u32 {
        (context as u32) << self.stride2
    }

    /// The key of the row at `offset`.
    pub(crate) fn key(&self, rows: &Rows, offset: u32) -> Key {
        rows.keys[(offset >> self.stride2) as usize].clone()
    }

    /// The cell value for `key`, making its row if there is none.
    pub(crate) fn intern(&self, rows: &mut Rows, key: Key, depth: u32) -> u32 {
        if let Some(cell) = rows.offsets.get(&key) {
            return *cell;
        }
        let index = rows.keys.len();
        let needed = (index + 1) << self.stride2;
        if needed > rows.cells.0.len() {
            rows.cells = Cells::new((rows.cells.0.len() * 2).max(needed), Some(&rows.cells));
        }
        let offset = (index as u32) << self.stride2;
        rows.cells.set(offset + self.depth_column, encode_depth(depth));
        let cell = if key.has_hits() { offset | HITS } else { offset };
        rows.key_bytes += key.0.len() * 4 + 96;
        rows.keys.push(key.clone());
        rows.offsets.insert(key, cell);
        cell
    }

    /// Fills the cell of the row at `offset` for a byte class.
    pub(crate) fn link(&self, rows: &Rows, offset: u32, class: u32, cell: u32) {
        rows.cells.set(offset + class, cell);
    }
}

impl Rows {
    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.cells.0.len() * 4 + self.key_bytes
    }

    pub(crate) fn find(&self, key: &Key) -> Option<u32> {
        self.offsets.get(key).copied()
    }
}
