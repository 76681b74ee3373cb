//! The rows an automaton has made so far. Streams read them without a lock and take the lock only to make a new one.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zerocopy::FromZeros as _;

use super::classes::Classes;
use super::look::Context;
use super::room::Room;

/// A cell that nobody has filled: what memory fresh from the system holds.
pub(crate) const UNKNOWN: u32 = 0;

/// Set in a cell that the fast loop need not stop at: its target row has no hits to report. Offsets of rows are
/// multiples of [`LINE`], and none is 0.
pub(crate) const PLAIN: u32 = 1;

/// Cells in a line of the processor's cache.
const LINE: usize = 16;

/// Room for cells that a table sets aside at first. The system gives the memory page by page, when it is written to.
const FIRST_CELLS: usize = (1 << 20) / 4;

/// What a row costs beside its cells and its key: places in lists, the key's header, its depth in some views.
const ROW_OVERHEAD: usize = 128;

/// How many views of a table are kept for streams to come.
const MAX_VIEWS: usize = 8;

/// What a row stands for: the context, the patterns that ended before and after the last byte, and the states that are
/// alive. In one slice: context, number of each kind of hits, the hits, the states (sorted).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(Arc<[u32]>);

/// A key, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) context: Context,
    /// Patterns that ended just before the last byte.
    pub(crate) before: &'a [u32],
    /// Patterns that ended with the last byte.
    pub(crate) after: &'a [u32],
    /// The states that are alive, but for those that always are.
    pub(crate) set: &'a [u32],
}

impl<'a> Parts<'a> {
    /// Takes a key apart.
    pub(crate) fn of(key: &'a [u32]) -> Self {
        let (head, rest) = key.split_at(3);
        let (before, rest) = rest.split_at(head[1] as usize);
        let (after, set) = rest.split_at(head[2] as usize);
        Self { context: Context::ALL[head[0] as usize], before, after, set }
    }

    /// Puts a key together.
    pub(crate) fn write(self, key: &mut Vec<u32>) {
        key.clear();
        key.extend([self.context as u32, self.before.len() as u32, self.after.len() as u32]);
        key.extend_from_slice(self.before);
        key.extend_from_slice(self.after);
        key.extend_from_slice(self.set);
    }

    pub(crate) fn has_hits(&self) -> bool {
        !(self.before.is_empty() && self.after.is_empty())
    }
}

impl Key {
    pub(crate) fn new(key: &[u32]) -> Self {
        Self(key.into())
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts::of(&self.0)
    }
}

impl Borrow<[u32]> for Key {
    fn borrow(&self) -> &[u32] {
        &self.0
    }
}

/// Mixes a key's words. Keys are made of states, which no text can choose at will; a collision costs time only.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0.rotate_left(23) ^ word) * 0x9E37_79B9_7F4A_7C15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Cells, or depths: numbers that streams read while others write them.
#[derive(Debug)]
pub(crate) struct Numbers(Vec<AtomicU32>);

impl Numbers {
    fn new(len: usize) -> Self {
        // Zeroed memory as the system gives it, not touched until it is used.
        Self(AtomicU32::new_vec_zeroed(len).unwrap_or_default())
    }

    #[inline(always)]
    pub(crate) fn all(&self) -> &[AtomicU32] {
        &self.0
    }

    pub(crate) fn set(&self, at: usize, value: u32) {
        if let Some(number) = self.0.get(at) {
            number.store(value, Ordering::Relaxed);
        }
    }
}

/// The number at `at`; 0 beyond the end.
#[inline(always)]
pub(crate) fn number_at(numbers: &[AtomicU32], at: usize) -> u32 {
    get(numbers, at).unwrap_or(0)
}

/// The number at `at`, if there is one.
#[inline(always)]
pub(crate) fn get(numbers: &[AtomicU32], at: usize) -> Option<u32> {
    // Each number stands for itself, so no order between them is needed.
    Some(numbers.get(at)?.load(Ordering::Relaxed))
}

/// Rows of cells and the way into them, as the fast loop needs them.
///
/// A text keeps to few cells of a row. For them to lie in few lines of the cache, rows begin with a line; for the lines of
/// all rows not to compete for the same places in the cache, a row is an odd number of lines.
#[derive(Debug)]
pub(crate) struct Ways {
    /// By byte: the distance of its cell from the row's name.
    columns: [u16; 256],
    /// What a row's name is multiplied by for its number, in parts of `1 << NUMBER_SHIFT`.
    inverse: u64,
    stride: usize,
    cells: Numbers,
}

/// With it the product fits for names below [`MOST_CELLS`], and is exact.
const NUMBER_SHIFT: u32 = 40;

/// The most cells of a table: 256 MiB, which no rule set has room for.
const MOST_CELLS: usize = 1 << 26;

impl Ways {
    fn new(classes: &Classes, cells: usize) -> Self {
        let cells = Numbers::new(cells + LINE);
        // The name of a row has `PLAIN` set, which counts for the distance; then as many cells as the next line is away.
        let to_line = cells.0.as_ptr().addr().wrapping_neg() / size_of::<u32>() + LINE - PLAIN as usize;
        let stride = stride(classes);
        let columns = classes.of.map(|class| u16::from(class) + (to_line % LINE) as u16);
        Self { columns, inverse: (1 << NUMBER_SHIFT) / stride as u64 + 1, stride, cells }
    }

    /// The way through the cells, for a run of bytes.
    #[inline(always)]
    pub(crate) fn begin(&self) -> Way<'_> {
        Way { columns: &self.columns, cells: &self.cells.0 }
    }

    /// The cell of a row for a byte. A row is named by its offset with [`PLAIN`] set.
    pub(crate) fn cell(&self, row: u32, byte: u8) -> u32 {
        self.begin().get(row as usize, byte).unwrap_or(UNKNOWN)
    }

    fn set(&self, row: u32, byte: u8, cell: u32) {
        self.cells.set(row as usize + usize::from(self.columns[usize::from(byte)]), cell);
    }

    /// The number of a row.
    pub(crate) fn number(&self, row: u32) -> usize {
        ((u64::from(row) * self.inverse) >> NUMBER_SHIFT) as usize
    }

    /// How many lines the cells fill.
    fn lines(&self) -> usize {
        self.cells.0.len() / LINE
    }

    /// How many rows there is room for.
    fn rows(&self) -> usize {
        self.cells.0.len().saturating_sub(LINE) / self.stride
    }

    /// The same cells, and as many more.
    fn grown(&self, classes: &Classes) -> Self {
        let new = Self::new(classes, self.cells.0.len() * 2);
        let shift = usize::from(new.columns[0]).wrapping_sub(usize::from(self.columns[0]));
        for (at, cell) in self.cells.0.iter().enumerate() {
            new.cells.set(at.wrapping_add(shift), cell.load(Ordering::Relaxed));
        }
        new
    }
}

/// [`Ways`], with all that a step needs at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way<'a> {
    columns: &'a [u16; 256],
    cells: &'a [AtomicU32],
}

impl Way<'_> {
    #[inline(always)]
    pub(crate) fn get(self, row: usize, byte: u8) -> Option<u32> {
        get(self.cells, row + usize::from(self.columns[usize::from(byte)]))
    }
}

/// Where a row begins: the number of its first line.
#[inline(always)]
pub(crate) fn line_of(row: u32) -> usize {
    row as usize / LINE
}

/// Cells from row to row: an odd number of lines.
fn stride(classes: &Classes) -> usize {
    (classes.count.div_ceil(LINE) | 1) * LINE
}

/// Whose matches make bytes wait, by pattern number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Holders {
    All,
    Some(Vec<bool>),
}

impl Holders {
    /// Whether matches of this pattern make bytes wait.
    pub(crate) fn counts(&self, pattern: u32) -> bool {
        match self {
            Self::All => true,
            Self::Some(holds) => holds[pattern as usize],
        }
    }
}

/// How far back a match in progress of some holders may reach, row by row.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) holders: Arc<Holders>,
    /// By the row's first line, which takes no multiplication to find: one more than the depth; 0 where nobody has looked
    /// yet, and for rows with hits.
    pub(crate) reaches: Numbers,
}

/// All rows of one generation. When they take too much room, the automaton begins a new table; streams that stand in
/// an old one leave it at their next miss.
#[derive(Debug)]
pub(crate) struct Table(Mutex<Rows>);

#[derive(Debug)]
pub(crate) struct Rows {
    classes: Arc<Classes>,
    pub(crate) ways: Arc<Ways>,
    index: HashMap<Key, u32, BuildHasherDefault<KeyHasher>>,
    /// By row number, from the second on: the first is not used.
    keys: Vec<Key>,
    views: Vec<Arc<View>>,
    bytes: usize,
    room: Arc<Room>,
}

impl Table {
    pub(crate) fn new(classes: &Arc<Classes>, room: &Arc<Room>) -> Self {
        let cells = FIRST_CELLS.min(room.most() / 4).max(2 * stride(classes));
        Self(Mutex::new(Rows {
            classes: Arc::clone(classes),
            ways: Arc::new(Ways::new(classes, cells)),
            index: HashMap::default(),
            keys: Vec::new(),
            views: Vec::new(),
            bytes: 0,
            room: Arc::clone(room),
        }))
    }

    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        // A row is complete before it is reachable, so a panic elsewhere cannot have left half of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    /// How many rows there are.
    pub(crate) fn count(&self) -> usize {
        self.keys.len()
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is no room for another row.
    pub(crate) fn is_full(&self) -> bool {
        self.room.is_full_for(self.bytes) || (self.keys.len() + 2) * self.ways.stride > MOST_CELLS
    }

    /// The key of a row.
    pub(crate) fn key(&self, row: u32) -> Key {
        self.keys[self.ways.number(row) - 1].clone()
    }

    /// The cell value that leads to the row of `key`, where there is one.
    pub(crate) fn find(&self, key: &[u32]) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// Makes a row for `key`, which has none; the cell value that leads to it.
    pub(crate) fn insert(&mut self, key: &[u32]) -> u32 {
        let number = self.keys.len() + 1;
        if number >= self.ways.rows() {
            self.ways = Arc::new(self.ways.grown(&self.classes));
        }
        let offset = (number * self.ways.stride) as u32;
        let cell = if Parts::of(key).has_hits() { offset } else { offset | PLAIN };
        let cost = self.ways.stride * 4 + key.len() * 4 + ROW_OVERHEAD;
        self.bytes += cost;
        self.room.take(cost);
        let key = Key::new(key);
        self.keys.push(key.clone());
        self.index.insert(key, cell);
        cell
    }

    /// Fills the cell of `row` for `byte`.
    pub(crate) fn link(&self, row: u32, byte: u8, cell: u32) {
        self.ways.set(row, byte, cell);
    }

    /// The view of `holders`, as long as the cells of now.
    pub(crate) fn view(&mut self, holders: &Arc<Holders>) -> Arc<View> {
        let lines = self.ways.lines();
        self.views.retain(|view| view.reaches.0.len() == lines);
        if let Some(view) = self.views.iter().find(|view| view.holders == *holders) {
            return Arc::clone(view);
        }
        if self.views.len() == MAX_VIEWS {
            self.views.remove(0);
        }
        let view = Arc::new(View { holders: Arc::clone(holders), reaches: Numbers::new(lines) });
        self.views.push(Arc::clone(&view));
        view
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.room.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_its_number_and_its_cells_when_the_table_grows() {
        for count in [1, 15, 16, 17, 70, 256] {
            let classes = Classes { of: std::array::from_fn(|byte| (byte % count) as u8), count };
            let mut ways = Ways::new(&classes, 4 * stride(&classes));
            for row in 1..4_u32 {
                ways.set((row * ways.stride as u32) | PLAIN, 200, row);
            }
            for _ in 0..4 {
                ways = ways.grown(&classes);
                for row in 1..4_u32 {
                    assert_eq!(ways.cell((row * ways.stride as u32) | PLAIN, 200), row);
                }
            }
            for row in (1..MOST_CELLS / ways.stride).step_by(997) {
                assert_eq!(ways.number((row * ways.stride) as u32 | PLAIN), row);
            }
        }
    }
}
