//! What real sets of rules cost: 200 conditions each in the shapes of secret scanners, of detectors of personal data, of rules about
//! code and of prompt injections in several languages, at four sizes of a delta, next to Hyperscan and to a `RegexSet` over the
//! whole buffer; how much text they hold back; and what 20 times as many patterns of one shape cost.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use flow::StreamKind;
use regex::RegexSetBuilder;
use rules::{RuleSession, RuleSet};

use crate::support::hyperscan;
use crate::support::text::{patterns, pieces_of, rule_set, text};
use crate::support::{Aim, Lane, Table, cpu_time, criterion, median, race};

const BYTES: usize = 1_000_000;
const DELTAS: [usize; 4] = [1, 4, 20, 1_000];

pub(crate) fn bench() {
    let mut table = Table::new("rule-sets");
    let text = text(BYTES);
    let hyperscan = hyperscan::program();
    if let Err(why) = &hyperscan {
        table.missing("Hyperscan", why);
    }
    let lines = |lines: &str| -> Vec<String> { lines.lines().map(str::to_owned).collect() };
    let sets = [
        ("secrets", lines(include_str!("sets/secrets.txt"))),
        ("personal data", lines(include_str!("sets/personal.txt"))),
        ("code", patterns(200)),
        ("injections", lines(include_str!("sets/injection.txt"))),
    ];
    for (name, patterns) in &sets {
        cold(&mut table, name, patterns, &text);
        for delta in DELTAS {
            warm(&mut table, &format!("{name}, deltas of {delta}"), patterns, &text, delta, hyperscan.as_deref().ok());
        }
        rescan(&mut table, name, patterns, &text[..100_000]);
    }
    growth(&mut table, &text);
    table.finish();
}

/// Feeds the text to a new gate, delta by delta; returns how many bytes were held back behind each.
fn feed(set: &Arc<RuleSet>, pieces: &[&str]) -> Vec<f64> {
    let mut session = RuleSession::new(Arc::clone(set));
    session.begin_turn();
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    let (mut given, mut held) = (0, Vec::with_capacity(pieces.len()));
    for piece in pieces {
        let fed = gate.piece(0, piece);
        assert!(fed.matches.is_empty(), "{:?} stops the measurement", fed.matches);
        given += piece.len() as u64;
        held.push((given - fed.safe) as f64);
    }
    held
}

/// The automaton has seen nothing.
fn cold(table: &mut Table, name: &str, patterns: &[String], text: &str) {
    let pieces = pieces_of(&text[..100_000], 4);
    let run = || {
        let set = rule_set(patterns);
        set.prepare();
        let start = cpu_time();
        black_box(feed(&set, &pieces));
        (cpu_time() - start).as_nanos() as f64 / 1e5
    };
    let nanos = median((0..9).map(|_| run()).collect());
    table.row(&format!("{name}, first 100 KB, deltas of 4, cold"), Aim::AtMost(100.0), nanos, "ns/byte");
    let held = feed(&rule_set(patterns), &pieces);
    table.row(&format!("{name}, held back behind a delta, median"), Aim::AtMost(8.0), median(held), "bytes");
}

/// The automaton has seen the text before.
fn warm(table: &mut Table, what: &str, patterns: &[String], text: &str, delta: usize, hyperscan: Option<&Path>) {
    let (set, pieces) = (rule_set(patterns), pieces_of(text, delta));
    feed(&set, &pieces);
    let mut peer = hyperscan.map(|program| hyperscan::start(program, patterns, text, delta).unwrap());
    let mut lanes = vec![Lane::new("rules", || {
        black_box(feed(&set, &pieces));
    })];
    lanes.extend(peer.as_mut().map(|peer| peer.lane("Hyperscan")));
    let times = race(&mut criterion(), what, 31, lanes);
    let aim = if delta == 4 { Aim::AtMost(10.0) } else { Aim::None };
    table.row(&format!("{what}, warm"), aim, times.of(0) / BYTES as f64, "ns/byte");
    if peer.is_some() {
        let aim = if delta == 4 { Aim::AtLeast(2.0) } else { Aim::None };
        table.row(&format!("{what}, Hyperscan"), Aim::None, times.of(1) / BYTES as f64, "ns/byte");
        table.row(&format!("{what}, Hyperscan ÷ rules"), aim, times.ratio(1, 0), "×");
    }
}

/// What a host without an engine for streams does: a `RegexSet` over the whole buffer at each delta. A scan is timed at four
/// lengths of the buffer and the others are interpolated.
fn rescan(table: &mut Table, name: &str, patterns: &[String], text: &str) {
    let set = RegexSetBuilder::new(patterns).size_limit(1 << 30).dfa_size_limit(20 << 20).build().unwrap();
    let scan = |bytes: usize| {
        let start = cpu_time();
        black_box(set.is_match(black_box(&text[..bytes])));
        (cpu_time() - start).as_nanos() as f64
    };
    let mean =
        (0..4).map(|sample| median((0..3).map(|_| scan(text.len() * (2 * sample + 1) / 8)).collect())).sum::<f64>()
            / 4.0;
    table.row(
        &format!("{name}, 100 KB, a `RegexSet` over the buffer at each delta of 4"),
        Aim::None,
        mean / 4.0,
        "ns/byte",
    );
}

/// From 50 to 1,000 patterns of one shape that differ in their names.
fn growth(table: &mut Table, text: &str) {
    let shape = r#"(?i)[\w.-]{0,50}?(?:@)(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|:|=>)['"\s=]{0,5}([a-z0-9]{32})(?:['"\s;]|$)"#;
    let syllables = ["ba", "cor", "del", "fin", "gra", "hul", "jav", "kel", "lum", "mor"];
    let name = |at: usize| [at / 100 % 10, at / 10 % 10, at % 10].map(|at| syllables[at]).concat();
    let pieces = pieces_of(text, 4);
    let sets = [50, 1_000].map(|count| {
        let patterns: Vec<String> = (0..count).map(|at| shape.replace('@', &name(at))).collect();
        rule_set(&patterns)
    });
    let lanes = sets.iter().zip(["50", "1,000"]).map(|(set, name)| {
        feed(set, &pieces);
        Lane::new(name, || {
            black_box(feed(set, &pieces));
        })
    });
    let times = race(&mut criterion(), "growth", 31, lanes.collect());
    table.row("50 patterns of one shape, warm", Aim::None, times.of(0) / BYTES as f64, "ns/byte");
    let most = times.of(0) / BYTES as f64 + 5.0;
    table.row(
        "1,000 patterns of it, warm",
        Aim::AtMost((most * 10.0).round() / 10.0),
        times.of(1) / BYTES as f64,
        "ns/byte",
    );
}
