//! One stream's place in an automaton: feeding bytes, and how far back a match in progress may reach.

use std::sync::Arc;

use super::automaton::Automaton;
use super::look::Context;
use super::step::Scratch;
use super::table::{Holders, Key, PLAIN, Parts, Rows, Table, UNKNOWN, View, Ways, get, line_of, number_at};

/// A pattern has matched, for the first time or again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The pattern's number.
    pub pattern: u32,
    /// The byte after the match's last, counted from the block's start.
    pub end: u64,
    /// How many bytes had to be seen to know it: `end`, or one more where an assertion had to see what follows.
    pub seen: u64,
    /// What [`Cursor::held_from`] was before the last of these bytes.
    pub held_from: u64,
}

/// One stream's place.
#[derive(Debug)]
pub struct Cursor {
    automaton: Arc<Automaton>,
    table: Arc<Table>,
    ways: Arc<Ways>,
    view: Option<Arc<View>>,
    row: u32,
    /// One more than how far back a match in progress of a holder may reach.
    reach: u32,
    position: u64,
    /// The cell of the last row whose hits nobody wanted: it is passed without looking them up again.
    dull: u32,
    /// Position at the last step that had to ask for a row.
    asked: u64,
    /// Set while the automaton has no room: the live states themselves.
    loose: Option<Box<Loose>>,
}

#[derive(Debug)]
struct Loose {
    key: Vec<u32>,
    scratch: Scratch,
}

impl Cursor {
    /// The beginning of a block in which nothing waits for a match in progress.
    pub fn new(automaton: &Arc<Automaton>) -> Self {
        Self::of(automaton, None)
    }

    /// The beginning of a block. `holds` tells by pattern number for whose matches bytes wait.
    pub fn holding(automaton: &Arc<Automaton>, holds: Vec<bool>) -> Self {
        let holders = match holds.iter().filter(|holds| **holds).count() {
            0 => return Self::new(automaton),
            n if n == holds.len() => Holders::All,
            _ => Holders::Some(holds),
        };
        Self::of(automaton, Some(&Arc::new(holders)))
    }

    fn of(automaton: &Arc<Automaton>, holders: Option<&Arc<Holders>>) -> Self {
        let table = automaton.current();
        let (ways, view) = {
            let mut rows = table.rows();
            (Arc::clone(&rows.ways), holders.map(|holders| rows.view(holders)))
        };
        let mut cursor = Self {
            automaton: Arc::clone(automaton),
            table,
            ways,
            view,
            row: UNKNOWN,
            reach: 1,
            position: 0,
            dull: UNKNOWN,
            asked: 0,
            loose: None,
        };
        let mut scratch = automaton.scratch();
        let context = automaton.contexts.reduce(Context::Start);
        Parts { context, before: &[], after: &[], set: &[] }.write(&mut scratch.key);
        cursor.settle(scratch, None);
        cursor
    }

    /// The machine it runs on.
    pub fn automaton(&self) -> &Arc<Automaton> {
        &self.automaton
    }

    /// Bytes fed so far.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether no pattern makes bytes wait.
    #[inline]
    pub fn holds_nothing(&self) -> bool {
        self.view.is_none()
    }

    /// The first byte that may belong to a match in progress of a holder: no match that ends behind this place begins
    /// before it. Never moves back, and is the same for every way to cut the text.
    #[inline]
    pub fn held_from(&self) -> u64 {
        // Without holders the reach stays 1. It starts at 1 and grows by at most 1 with each byte.
        self.position + 1 - u64::from(self.reach)
    }

    /// The same for those holders alone that `counts`. It is looked up, and may be earlier than it needs to be: it only
    /// considers the states that are live now.
    pub fn held_from_by(&self, counts: impl Fn(u32) -> bool) -> u64 {
        let Some(view) = &self.view else { return self.held_from() };
        let live = self.live();
        let depth =
            self.automaton.depth_of(live.parts().set, |pattern| view.holders.counts(pattern) && counts(pattern));
        let reach = depth.min(u32::MAX - 2) + 1;
        (self.position + 1).saturating_sub(u64::from(reach.min(self.reach)))
    }

    /// Takes the next bytes of UTF-8 text; any split of it gives the same hits. `on_hit` answers whether the hit was of use.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], mut on_hit: impl FnMut(Hit) -> bool) {
        let mut at = self.pass(bytes);
        while at < bytes.len() {
            self.hard_step(bytes[at], &mut on_hit);
            at += 1;
            at += self.pass(&bytes[at..]);
        }
    }

    /// The fast loop: takes bytes as long as cells are filled and have no hits; the number of bytes taken. The rest is to be
    /// given to [`feed`](Self::feed).
    // Not inlined: so the loop has the registers to itself, which saves more than the call costs.
    #[inline(never)]
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> usize {
        let ways = self.ways.begin();
        let (mut row, mut passed) = (self.row as usize, 0);
        if let Some(view) = &self.view {
            let (mut reach, reaches) = (self.reach, view.reaches.all());
            for byte in bytes {
                let Some(cell) = ways.get(row, *byte) else { break };
                // Off the way from cell to cell, which is what takes the time. Rows with hits have no reach.
                let Some(limit) = get(reaches, line_of(cell)) else { break };
                if limit == 0 {
                    break;
                }
                (row, reach, passed) = (cell as usize, (reach + 1).min(limit), passed + 1);
            }
            self.reach = reach;
        } else {
            for byte in bytes {
                let Some(cell) = ways.get(row, *byte) else { break };
                if cell & PLAIN == 0 {
                    break;
                }
                (row, passed) = (cell as usize, passed + 1);
            }
        }
        // It is the value of a cell.
        self.row = row as u32;
        self.position += passed as u64;
        passed
    }

    #[cold]
    #[inline(never)]
    fn hard_step(&mut self, byte: u8, on_hit: &mut impl FnMut(Hit) -> bool) {
        let held_from = self.held_from();
        let hits = match self.ways.cell(self.row, byte) {
            UNKNOWN => self.make_step(byte),
            cell => {
                self.enter(cell | PLAIN);
                let news = cell & PLAIN == 0 && self.row != self.dull;
                news.then(|| self.table.rows().key(self.row))
            }
        };
        self.position += 1;
        if let Some(key) = hits
            && !self.report(key.parts(), held_from, on_hit)
        {
            self.dull = self.row;
        }
    }

    /// Tells whether any of the hits was wanted.
    fn report(&self, hits: Parts<'_>, held_from: u64, on_hit: &mut impl FnMut(Hit) -> bool) -> bool {
        let (seen, mut wanted) = (self.position, false);
        for &pattern in hits.before {
            wanted |= on_hit(Hit { pattern, end: seen - 1, seen, held_from });
        }
        for &pattern in hits.after {
            wanted |= on_hit(Hit { pattern, end: seen, seen, held_from });
        }
        wanted
    }

    /// Steps over a cell that is not filled: fills it, or steps without the table where there is no room. Gives the hits.
    fn make_step(&mut self, byte: u8) -> Option<Key> {
        let automaton = Arc::clone(&self.automaton);
        if let Some(Loose { key, mut scratch }) = self.loose.take().map(|loose| *loose) {
            automaton.count_uncached();
            automaton.step(Parts::of(&key), byte, &mut scratch);
            return self.settle(scratch, None);
        }
        let table = Arc::clone(&self.table);
        let from = {
            let mut rows = table.rows();
            let cell = rows.ways.cell(self.row, byte);
            if cell != UNKNOWN {
                // Another stream filled it, in cells that have grown since this one looked.
                self.refresh(&mut rows);
                self.enter(cell | PLAIN);
                return (cell & PLAIN == 0).then(|| rows.key(self.row));
            }
            rows.key(self.row)
        };
        let mut scratch = automaton.scratch();
        automaton.step(from.parts(), byte, &mut scratch);
        self.settle(scratch, Some(byte))
    }

    /// Puts the cursor on the row of the key in `scratch`, where there is one or may be one, else loose; fills the cell
    /// that led there from the row it stood on for the byte `link`. Gives the key if it has hits.
    fn settle(&mut self, scratch: Scratch, link: Option<u8>) -> Option<Key> {
        self.automaton.count_fed(self.position - self.asked);
        self.asked = self.position;
        let full = Arc::clone(&self.table);
        if let Some(cell) = self.row_for(&scratch.key, link) {
            return self.arrive(cell, scratch);
        }
        self.table = self.automaton.renew(&full);
        if !Arc::ptr_eq(&full, &self.table) {
            self.dull = UNKNOWN;
            if let Some(cell) = self.row_for(&scratch.key, None) {
                return self.arrive(cell, scratch);
            }
        }
        Some(self.let_loose(scratch)).filter(|key| key.parts().has_hits())
    }

    /// The cell value for a key, making its row if there is room.
    fn row_for(&mut self, key: &[u32], link: Option<u8>) -> Option<u32> {
        let table = Arc::clone(&self.table);
        let mut rows = table.rows();
        let known = rows.find(key);
        let cell = known.or_else(|| (!rows.is_full()).then(|| rows.insert(key)));
        if let (Some(byte), Some(cell)) = (link, cell) {
            rows.link(self.row, byte, cell);
        }
        self.refresh(&mut rows);
        cell
    }

    fn arrive(&mut self, cell: u32, scratch: Scratch) -> Option<Key> {
        self.automaton.put_back(scratch);
        self.enter(cell | PLAIN);
        (cell & PLAIN == 0).then(|| self.table.rows().key(self.row))
    }

    fn let_loose(&mut self, mut scratch: Scratch) -> Key {
        let key = std::mem::take(&mut scratch.key);
        let set = Parts::of(&key).set;
        if let Some(view) = &self.view {
            self.reach = (self.reach + 1).min(self.limit(set, view));
        }
        // No row has this name: its cells are never filled.
        self.row = UNKNOWN;
        let hits = Key::new(&key);
        self.loose = Some(Box::new(Loose { key, scratch }));
        hits
    }

    /// Uses the cells as they are now.
    fn refresh(&mut self, rows: &mut Rows) {
        if !Arc::ptr_eq(&self.ways, &rows.ways) {
            self.ways = Arc::clone(&rows.ways);
            self.view = self.view.as_ref().map(|view| rows.view(&view.holders));
        }
    }

    /// Goes on to a row. Finds how far back it may reach, where nobody has.
    fn enter(&mut self, row: u32) {
        self.row = row;
        let Some(view) = &self.view else { return };
        let at = line_of(row);
        let mut limit = number_at(view.reaches.all(), at);
        if limit == 0 {
            let key = self.table.rows().key(row);
            limit = self.limit(key.parts().set, view);
            // The fast loop is to stop at rows with hits.
            if !key.parts().has_hits() {
                view.reaches.set(at, limit);
            }
        }
        self.reach = (self.reach + 1).min(limit);
    }

    /// One more than the greatest depth of a holder's states in `set`. There is room above for one more.
    fn limit(&self, set: &[u32], view: &View) -> u32 {
        self.automaton.depth_of(set, |pattern| view.holders.counts(pattern)).min(u32::MAX - 2) + 1
    }

    /// The block is complete: hits of patterns that end with it.
    pub fn finish(&mut self, mut on_hit: impl FnMut(Hit) -> bool) {
        let mut scratch = self.automaton.scratch();
        let ended = self.automaton.finish(self.live().parts(), &mut scratch);
        self.automaton.put_back(scratch);
        let (end, held_from) = (self.position, self.held_from());
        for pattern in ended {
            on_hit(Hit { pattern, end, seen: end + 1, held_from });
        }
    }

    /// Patterns that are in the midst of a match.
    pub fn in_progress(&self) -> Vec<u32> {
        self.automaton.owners(self.live().parts().set)
    }

    fn live(&self) -> Key {
        match &self.loose {
            Some(loose) => Key::new(&loose.key),
            None => self.table.rows().key(self.row),
        }
    }
}
