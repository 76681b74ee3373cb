//! What watching a stream costs: nanoseconds per byte by number of rules and size of the text, compared with a scan
//! of the whole buffer at each delta and Hyperscan's streaming mode; the longest that a single delta takes; time and
//! memory to begin with.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::StreamKind;
use rules::{RuleSession, RuleSet};

use crate::support::hyperscan;
use crate::support::text::{patterns, pieces, regexes, rule_set, text};
use crate::support::{Aim, Lane, Table, cpu_time, criterion, median, race};

const COUNTS: [usize; 4] = [10, 30, 100, 1_000];
const SIZES: [(usize, &str); 3] = [(10_000, "10 KB"), (100_000, "100 KB"), (1_000_000, "1 MB")];

/// Bytes of a delta.
const DELTA: usize = 4;

pub(crate) fn bench() {
    let mut table = Table::new("rules");
    let text = text(SIZES[2].0);
    let hyperscan = hyperscan::program();
    if let Err(why) = &hyperscan {
        table.missing("Hyperscan", why);
    }
    for count in COUNTS {
        let patterns = patterns(count);
        for regex in regexes(&patterns) {
            assert!(!regex.is_match(text.as_bytes()), "{regex} matches, so its rule would stop the measurement");
        }
        begin(&mut table, count, &patterns, &text);
        cold(&mut table, count, &patterns, &text);
        let warm = warm(&mut table, count, &patterns, &text, hyperscan.as_deref().ok());
        rescan(&mut table, count, &patterns, &text, warm);
    }
    table.finish();
}

/// From the conditions to automata that can be fed, and what they take.
fn begin(table: &mut Table, count: usize, patterns: &[String], text: &str) {
    let build = || {
        let start = cpu_time();
        black_box(rule_set(patterns)).prepare();
        (cpu_time() - start).as_secs_f64() * 1000.0
    };
    let aim = if count == 1_000 { Aim::AtMost(50.0) } else { Aim::None };
    table.row(
        &format!("{count} rules, from conditions to ready"),
        aim,
        median((0..9).map(|_| build()).collect()),
        "ms",
    );
    let memory = |set: &RuleSet| {
        let engines = rules::engine::stats(set);
        engines.iter().map(|engine| engine.nfa_bytes + engine.bytes).sum::<usize>() as f64 / f64::from(1 << 20)
    };
    let set = rule_set(patterns);
    table.row(&format!("{count} rules, memory of the automaton, cold"), Aim::None, memory(&set), "MiB");
    feed(&set, &pieces(text));
    let aim = if count == 1_000 { Aim::AtMost(64.0) } else { Aim::None };
    table.row(&format!("{count} rules, – after 1 MB"), aim, memory(&set), "MiB");
}

/// Feeds the text to a new gate, delta by delta.
fn feed(set: &Arc<RuleSet>, pieces: &[&str]) {
    let mut session = RuleSession::new(Arc::clone(set));
    session.begin_turn();
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
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
fn warm(table: &mut Table, count: usize, patterns: &[String], text: &str, hyperscan: Option<&Path>) -> f64 {
    let set = rule_set(patterns);
    let cuts = SIZES.map(|(bytes, _)| pieces(&text[..bytes]));
    feed(&set, &cuts[2]);
    let mut peer = hyperscan.map(|program| hyperscan::start(program, patterns, text, DELTA).unwrap());
    let mut lanes: Vec<_> =
        cuts.iter().zip(SIZES).map(|(pieces, (_, name))| Lane::new(name, || feed(&set, pieces))).collect();
    lanes.push(Lane::new("floor", || floor(&cuts[2])));
    lanes.extend(peer.as_mut().map(|peer| peer.lane("Hyperscan")));
    let times = race(&mut criterion(), &format!("{count} rules, warm"), 31, lanes);
    for (at, (bytes, name)) in SIZES.iter().enumerate() {
        let aim = if *bytes == SIZES[2].0 { Aim::AtMost(3.0) } else { Aim::None };
        table.row(&format!("{count} rules, {name}, warm"), aim, times.of(at) / *bytes as f64, "ns/byte");
    }
    table.row(&format!("{count} rules, 1 MB, one dependent load a byte"), Aim::None, times.of(3) / 1e6, "ns/byte");
    table.row(&format!("{count} rules, 1 MB, warm ÷ one dependent load a byte"), Aim::None, times.ratio(2, 3), "×");
    let exponent = times.ratio(2, 0).log10() / 2.0;
    table.row(&format!("{count} rules, growth exponent from 10 KB to 1 MB"), Aim::AtMost(1.02), exponent, "");
    let what = format!("{count} rules, longest single delta, warm");
    worst(table, &what, Aim::AtMost(100.0), &cuts[2], || Arc::clone(&set));
    if peer.is_some() {
        table.row(&format!("{count} rules, 1 MB, Hyperscan"), Aim::None, times.of(4) / 1e6, "ns/byte");
        table.row(&format!("{count} rules, 1 MB, Hyperscan ÷ warm engine"), Aim::AtLeast(8.0), times.ratio(4, 2), "×");
    }
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
        let nanos = median((0..9).map(|_| run()).collect());
        let aim = if (count, bytes) == (1_000, SIZES[2].0) { Aim::AtMost(60.0) } else { Aim::None };
        table.row(&format!("{count} rules, {name}, cold"), aim, nanos, "ns/byte");
        if bytes == SIZES[2].0 {
            let aim = Aim::AtMost(if count == 1_000 { 1000.0 } else { 100.0 });
            let what = format!("{count} rules, longest single delta, cold");
            worst(table, &what, aim, &pieces, || rule_set(patterns));
        }
    }
}

/// The longest that any one delta takes. The machine also does other work, so each delta is timed in several passes and the
/// shortest of its times counts.
fn worst(table: &mut Table, what: &str, aim: Aim, pieces: &[&str], set: impl Fn() -> Arc<RuleSet>) {
    let mut shortest = vec![Duration::MAX; pieces.len()];
    for _ in 0..5 {
        let mut session = RuleSession::new(set());
        session.begin_turn();
        let mut gate = session.gate();
        gate.block_start(0, &StreamKind::Text);
        for (piece, shortest) in pieces.iter().zip(&mut shortest) {
            let start = Instant::now();
            black_box(gate.piece(0, piece));
            *shortest = start.elapsed().min(*shortest);
        }
    }
    let worst = shortest.into_iter().max().unwrap();
    table.row(what, aim, worst.as_nanos() as f64 / 1000.0, "µs");
}

/// What a host without an engine for streams does: every regular expression over the whole buffer, at each delta. A scan is
/// timed at eight lengths of the buffer and the scans of all other deltas are interpolated from them.
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
        let nanos = mean / DELTA as f64;
        table.row(&format!("{count} rules, {name}, a rescan at each delta"), Aim::None, nanos, "ns/byte");
        if bytes == SIZES[2].0 {
            let what = format!("{count} rules, {name}, rescan ÷ warm engine");
            table.row(&what, Aim::AtLeast(20_000.0), nanos / warm, "×");
        }
    }
}
