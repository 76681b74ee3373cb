//! One stream's place in an automaton: feeding bytes, and how far back a match in progress may reach.

use std::collections::HashMap;
use std::sync::Arc;

use super::automaton::{Automaton, Scratch};
use super::look::Context;
use super::pattern::UNBOUNDED;
use super::table::{Cells, HITS, Key, Table, UNKNOWN, decode_depth};

/// A pattern has matched, for the first time or again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The pattern's number.
    pub pattern: u32,
    /// The byte after the match's last, counted from the block's start.
    pub end: u64,
    /// How many bytes had to be seen to know it: `end`, or one more where an assertion had to see what follows.
    pub seen: u64,
}

/// One stream's place.
#[derive(Debug)]
pub struct Cursor {
    automaton: Arc<Automaton>,
    table: Arc<Table>,
    cells: Arc<Cells>,
    row: u32,
    position: u64,
    /// The last row whose hits nobody wanted: it is passed without looking them up again.
    dull: u32,
    /// Set while the automaton has no room: the live states themselves.
    loose: Option<Box<Loose>>,
    /// How often it went to another table: rows of different tables must not be mixed.
    moves: u32,
}

#[derive(Debug)]
struct Loose {
    key: Key,
    scratch: Scratch,
}

/// Which patterns make bytes wait on a stream, with what has been found out about rows.
#[derive(Debug, Default)]
pub struct Holders {
    kind: Kind,
    known: HashMap<u32, u32>,
    table: Option<Arc<Table>>,
}

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Nobody,
    All,
    Some(Vec<bool>),
}

impl Holders {
    /// Holders by pattern number.
    pub fn new(holds: Vec<bool>) -> Self {
        let kind = match holds.iter().filter(|h| **h).count() {
            0 => Kind::Nobody,
            n if n == holds.len() => Kind::All,
            _ => Kind::Some(holds),
        };
        Self { kind, known: HashMap::new(), table: None }
    }

    /// Whether no pattern makes bytes wait.
    pub fn is_empty(&self) -> bool {
        matches!(self.kind, Kind::Nobody)
    }

    fn counts(&self, pattern: u32) -> bool {
        match &self.kind {
            Kind::Nobody => false,
            Kind::All => true,
            Kind::Some(holds) => holds[pattern as usize],
        }
    }
}

impl Cursor {
    /// The beginning of a block.
    pub fn new(automaton: &Arc<Automaton>) -> Self {
        let table = automaton.current();
        let cells = Arc::clone(&table.rows().cells);
        let row = table.root(automaton.start_context());
        Self { automaton: Arc::clone(automaton), table, cells, row, position: 0, dull: UNKNOWN, loose: None, moves: 0 }
    }

    /// The machine it runs on.
    pub fn automaton(&self) -> &Arc<Automaton> {
        &self.automaton
    }

    /// Bytes fed so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Takes the next bytes; any split of a text gives the same hits. `on_hit` answers whether the hit was of use.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], mut on_hit: impl FnMut(Hit) -> bool) {
        let mut at = 0;
        loop {
            at = self.run(bytes, at);
            if at >= bytes.len() {
                return;
            }
            self.hard_step(bytes[at], &mut on_hit);
            at += 1;
        }
    }

    /// The fast loop: follows filled cells without hits; the number of bytes passed.
    #[inline]
    fn run(&mut self, bytes: &[u8], from: usize) -> usize {
        if self.loose.is_some() {
            return from;
        }
        let (cells, classes) = (&*self.cells, &*self.automaton.classes);
        let (mut row, mut at) = (self.row, from);
        while at < bytes.len() {
            let cell = cells.get(row + u32::from(classes[bytes[at] as usize]));
            if cell & HITS != 0 {
                break;
            }
            row = cell;
            at += 1;
        }
        self.row = row;
        self.position += (at - from) as u64;
        at
    }

    #[cold]
    fn hard_step(&mut self, byte: u8, on_hit: &mut impl FnMut(Hit) -> bool) {
        self.position += 1;
        let class = u32::from(self.automaton.classes[byte as usize]);
        let cell = if self.loose.is_some() { UNKNOWN } else { self.cells.get(self.row + class) };
        if cell != UNKNOWN && cell == self.dull {
            self.row = cell & !HITS;
            return;
        }
        let key = if cell == UNKNOWN {
            self.make_step(byte)
        } else {
            self.row = cell & !HITS;
            self.table.key(&self.table.rows(), self.row)
        };
        let mut wanted = false;
        for &pattern in key.before() {
            wanted |= on_hit(Hit { pattern, end: self.position - 1, seen: self.position });
        }
        for &pattern in key.after() {
            wanted |= on_hit(Hit { pattern, end: self.position, seen: self.position });
        }
        if !wanted && self.loose.is_none() {
            self.dull = self.row | HITS;
        }
    }

    /// Steps over a cell that is not filled: fills it, or steps without the table where there is no room.
    fn make_step(&mut self, byte: u8) -> Key {
        let automaton = Arc::clone(&self.automaton);
        if let Some(Loose { key, mut scratch }) = self.loose.take().map(|loose| *loose) {
            automaton.count_uncached();
            let next = automaton.step(key.context(), key.set(), byte, &mut scratch);
            self.settle(&next, None, scratch);
            return next;
        }
        let class = u32::from(automaton.classes[byte as usize]);
        let from = {
            let rows = self.table.rows();
            let cell = rows.cells.get(self.row + class);
            if cell != UNKNOWN {
                // Another stream filled it, in cells that have grown since this one looked.
                self.cells = Arc::clone(&rows.cells);
                self.row = cell & !HITS;
                return self.table.key(&rows, self.row);
            }
            self.table.key(&rows, self.row)
        };
        let mut scratch = Scratch::default();
        let next = automaton.step(from.context(), from.set(), byte, &mut scratch);
        self.settle(&next, Some(class), scratch);
        next
    }

    /// Puts the cursor on `key`: on its row where there is one or may be one, else loose.
    fn settle(&mut self, key: &Key, link: Option<u32>, scratch: Scratch) {
        let depth = self.automaton.depth_of(key.set(), |_| true);
        let mut table = Arc::clone(&self.table);
        let full = {
            let rows = table.rows();
            rows.find(key).is_none() && self.automaton.is_full(rows.bytes())
        };
        if full {
            table = self.automaton.renew(&table);
        }
        let moved = !Arc::ptr_eq(&table, &self.table);
        let mut rows = table.rows();
        let known = rows.find(key);
        if known.is_none() && self.automaton.is_full(rows.bytes()) {
            drop(rows);
            self.loose = Some(Box::new(Loose { key: key.clone(), scratch }));
            return;
        }
        let cell = known.unwrap_or_else(|| table.intern(&mut rows, key.clone(), depth));
        if let (Some(class), false) = (link, moved) {
            table.link(&rows, self.row, class, cell);
        }
        self.cells = Arc::clone(&rows.cells);
        self.row = cell & !HITS;
        drop(rows);
        if moved {
            (self.table, self.dull) = (table, UNKNOWN);
            self.moves += 1;
        }
    }

    /// The block is complete: hits of patterns that end with it.
    pub fn finish(&mut self, mut on_hit: impl FnMut(Hit) -> bool) {
        let (context, set) = self.live();
        let ended = self.automaton.finish(context, &set, &mut Scratch::default());
        for pattern in ended {
            on_hit(Hit { pattern, end: self.position, seen: self.position + 1 });
        }
    }

    /// Patterns that are in the midst of a match.
    pub fn in_progress(&self) -> Vec<u32> {
        self.automaton.owners(&self.live().1)
    }

    fn live(&self) -> (Context, Vec<u32>) {
        let key = match &self.loose {
            Some(loose) => loose.key.clone(),
            None => self.table.key(&self.table.rows(), self.row),
        };
        (key.context(), key.set().to_vec())
    }

    /// Where the cursor stands, for [`Self::held_from`].
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { row: self.row, position: self.position, moves: self.moves }
    }

    /// The first byte that may belong to a match in progress of a holder, given that none before `floor` can and that
    /// `bytes` were fed since `mark`. Exact for patterns of fixed length, else at most the pattern's length too early;
    /// behind a loop, the last place where no holder was behind one.
    #[inline]
    pub fn held_from(&self, holders: &mut Holders, floor: u64, mark: Mark, bytes: &[u8]) -> u64 {
        // The common case by itself: every pattern holds, and the row knows its depth.
        let depth = match (&holders.kind, &self.loose) {
            (Kind::All, None) => decode_depth(self.cells.get(self.row + self.automaton.depth_column())),
            _ => None,
        };
        let depth = depth.unwrap_or_else(|| self.depth(holders, self.row));
        if depth != UNBOUNDED {
            return floor.max(self.position - u64::from(depth).min(self.position));
        }
        self.held_within(holders, floor, mark, bytes)
    }

    /// As [`held_from`](Self::held_from), but as it stood after `bytes`, which may be the beginning only of what was fed
    /// since `mark`: walks over them again, without hits, for the last place where the reach of a match was bounded.
    #[cold]
    pub fn held_within(&self, holders: &mut Holders, floor: u64, mark: Mark, bytes: &[u8]) -> u64 {
        let (mut row, mut position, mut floor) = (mark.row, mark.position, floor);
        if self.loose.is_some() || mark.moves != self.moves {
            // The rows passed are gone: the floor is older than need be, and safe.
            return floor;
        }
        for byte in bytes {
            let cell = self.cells.get(row + u32::from(self.automaton.classes[*byte as usize]));
            if cell == UNKNOWN {
                return floor;
            }
            (row, position) = (cell & !HITS, position + 1);
            let depth = self.depth(holders, row);
            if depth != UNBOUNDED {
                floor = floor.max(position - u64::from(depth).min(position));
            }
        }
        floor
    }

    /// How far back from this row a match of a holder may have begun.
    #[inline]
    fn depth(&self, holders: &mut Holders, row: u32) -> u32 {
        if matches!(holders.kind, Kind::Nobody) {
            return 0;
        }
        if let Some(loose) = &self.loose {
            return self.automaton.depth_of(loose.key.set(), |p| holders.counts(p));
        }
        match decode_depth(self.cells.get(row + self.automaton.depth_column())) {
            Some(0) => 0,
            Some(depth) if matches!(holders.kind, Kind::All) => depth,
            _ => self.depth_of_some(holders, row),
        }
    }

    #[cold]
    fn depth_of_some(&self, holders: &mut Holders, row: u32) -> u32 {
        if !holders.table.as_ref().is_some_and(|table| Arc::ptr_eq(table, &self.table)) {
            holders.known.clear();
            holders.table = Some(Arc::clone(&self.table));
        }
        if let Some(depth) = holders.known.get(&row) {
            return *depth;
        }
        let key = self.table.key(&self.table.rows(), row);
        let depth = self.automaton.depth_of(key.set(), |p| holders.counts(p));
        holders.known.insert(row, depth);
        depth
    }
}

/// A place a cursor has been at.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    row: u32,
    position: u64,
    moves: u32,
}
