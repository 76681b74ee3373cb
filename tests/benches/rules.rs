//! What watching a stream costs: nanoseconds per byte by number of rules and size of the text, beside a scan of the whole
//! buffer at each delta, and the longest that a single delta takes.
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::BlockKind;
use rules::{RuleSet, Session};

use support::text::{patterns, pieces, regexes, rule_set, text};
use support::{Aim, Lane, Table, cpu_time, criterion, median, race};

const COUNTS: [usize; 4] = [10, 30, 100, 1_000];
const SIZES: [(usize, &str); 3] = [(10_000, "10 KB"), (100_000, "100 KB"), (1_000_000, "1 MB")];

fn main() {
    let mut table = Table::new("rules");
    let text = text(SIZES[2].0);
    for count in COUNTS {
        let patterns = patterns(count);
        for regex in regexes(&patterns) {
            assert!(!regex.is_match(text.as_bytes()), "{regex} matches, so its rule would stop the measurement");
        }
        let warm = warm(&mut table, count, &rule_set(&patterns), &text);
        cold(&mut table, count, &patterns, &text);
        rescan(&mut table, count, &patterns, &text, warm);
    }
    table.finish();
}

/// Feeds the text to a new gate, delta by delta.
fn feed(set: &Arc<RuleSet>, pieces: &[&str]) {
    let mut session = Session::new(Arc::clone(set));
    session.begin_turn();
    let mut gate = session.gate();
    gate.block_start(0, &BlockKind::Text);
    let mut safe = 0;
    for piece in pieces {
        let fed = gate.piece(0, piece);
        safe = fed.safe;
        assert!(fed.matches.is_empty());
    }
    black_box(safe);
}

/// What no automaton can do without: for each byte one load that waits for the one before, delta by delta.
fn floor(pieces: &[&str]) {
    let mut table = [[0_u8; 256]; 16];
    for (state, row) in table.iter_mut().enumerate() {
        for (byte, cell) in row.iter_mut().enumerate() {
            *cell = ((byte + state * 7) % 16) as u8;
        }
    }
    let table = black_box(&table);
    let mut state = 0;
    for piece in pieces {
        state = black_box(piece.bytes().fold(state, |state: u8, byte| table[usize::from(state)][usize::from(byte)]));
    }
}

/// The automaton has seen the text before. Gives nanoseconds per byte at the largest size.
fn warm(table: &mut Table, count: usize, set: &Arc<RuleSet>, text: &str) -> f64 {
    let cuts = SIZES.map(|(bytes, _)| pieces(&text[..bytes]));
    let mut lanes: Vec<_> =
        cuts.iter().zip(SIZES).map(|(pieces, (_, name))| Lane::new(name, || feed(set, pieces))).collect();
    lanes.push(Lane::new("floor", || floor(&cuts[2])));
    let times = race(&mut criterion(), &format!("{count} rules, warm"), 31, lanes);
    for (at, (bytes, name)) in SIZES.iter().enumerate() {
        let aim = match (count, *bytes) {
            (30 | 100, 1_000_000) => Aim::AtMost(3.5),
            (1_000, 1_000_000) => Aim::AtMost(6.0),
            _ => Aim::None,
        };
        table.row(&format!("{count} rules, {name}, warm"), aim, times.of(at) / *bytes as f64, "ns/byte");
    }
    table.row(&format!("{count} rules, 1 MB, warm ÷ one dependent load a byte"), Aim::None, times.ratio(2, 3), "×");
    let exponent = times.ratio(2, 0).log10() / 2.0;
    table.row(&format!("{count} rules, growth exponent from 10 KB to 1 MB"), Aim::AtMost(1.02), exponent, "");
    worst(table, &format!("{count} rules, longest single delta, warm"), &cuts[2], || Arc::clone(set));
    times.of(2) / SIZES[2].0 as f64
}

/// The automaton has seen nothing.
fn cold(table: &mut Table, count: usize, patterns: &[String], text: &str) {
    for (bytes, name) in SIZES {
        let pieces = pieces(&text[..bytes]);
        let run = || {
            let set = rule_set(patterns);
            let start = cpu_time();
            feed(&set, &pieces);
            (cpu_time() - start).as_nanos() as f64 / bytes as f64
        };
        let nanos = median((0..5).map(|_| run()).collect());
        table.row(&format!("{count} rules, {name}, cold"), Aim::None, nanos, "ns/byte");
        if bytes == SIZES[2].0 {
            worst(table, &format!("{count} rules, longest single delta, cold"), &pieces, || rule_set(patterns));
        }
    }
}

/// The longest that any one delta takes. The machine also does other work, so each delta is timed in several passes and the
/// shortest of its times counts.
fn worst(table: &mut Table, what: &str, pieces: &[&str], set: impl Fn() -> Arc<RuleSet>) {
    let mut shortest = vec![Duration::MAX; pieces.len()];
    for _ in 0..5 {
        let mut session = Session::new(set());
        session.begin_turn();
        let mut gate = session.gate();
        gate.block_start(0, &BlockKind::Text);
        for (piece, shortest) in pieces.iter().zip(&mut shortest) {
            let start = Instant::now();
            black_box(gate.piece(0, piece));
            *shortest = start.elapsed().min(*shortest);
        }
    }
    let worst = shortest.into_iter().max().unwrap();
    table.row(what, Aim::None, worst.as_nanos() as f64 / 1000.0, "µs");
}

/// What a host without an engine for streams does: every regular expression over the whole buffer, at each delta. A scan is
/// timed at eight lengths of the buffer and the scans of all other deltas are reckoned from them.
fn rescan(table: &mut Table, count: usize, patterns: &[String], text: &str, warm: f64) {
    let regexes = regexes(patterns);
    let scan = |bytes: usize| {
        let buffer = &text.as_bytes()[..bytes];
        let start = cpu_time();
        for regex in &regexes {
            assert!(!black_box(regex).is_match(black_box(buffer)));
        }
        (cpu_time() - start).as_nanos() as f64
    };
    for (bytes, name) in SIZES {
        let at = |sample: usize| bytes * (2 * sample + 1) / 16;
        let mean = (0..8).map(|sample| median((0..3).map(|_| scan(at(sample))).collect())).sum::<f64>() / 8.0;
        let nanos = mean / 4.0;
        table.row(&format!("{count} rules, {name}, a rescan at each delta"), Aim::None, nanos, "ns/byte");
        if bytes == SIZES[2].0 {
            table.row(&format!("{count} rules, {name}, rescan ÷ warm engine"), Aim::None, nanos / warm, "×");
        }
    }
}
