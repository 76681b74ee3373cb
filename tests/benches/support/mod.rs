//! What the benches share: contenders that are measured in turn, and the table of aims.
//!
//! A machine that also does other work is up to twice as slow at one moment as at the next, so two numbers measured one
//! after the other say little about each other. [`race`] therefore gives every contender a short slice of each round; a
//! ratio is the median over the rounds of the ratio within a round. What does not wait for other processes is measured
//! by the time its thread had on a processor, so that time given to others does not count. Criterion then measures each
//! contender by itself, which gives its own statistics and the comparison with the run before.
#![allow(dead_code, reason = "each bench uses a part of it")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a test with a terminal")]

pub(crate) mod echo;
pub(crate) mod extism;
pub(crate) mod guests;
pub(crate) mod hyperscan;
pub(crate) mod node;
pub(crate) mod peer;
pub(crate) mod text;

use std::fmt::Write as _;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use criterion::Criterion;
use rustix::time::{ClockId, clock_gettime};

/// One contender: does its work so many times and says how long that took.
pub(crate) struct Lane<'a> {
    name: String,
    run: Box<dyn FnMut(u64) -> Duration + 'a>,
}

impl<'a> Lane<'a> {
    /// A contender whose work is `work` and nothing else, all on this thread.
    pub(crate) fn new(name: impl Into<String>, mut work: impl FnMut() + 'a) -> Self {
        Self::timed(name, move |times| {
            let start = cpu_time();
            for _ in 0..times {
                work();
            }
            cpu_time() - start
        })
    }

    /// A contender that waits for others, so that the time on the wall counts.
    pub(crate) fn waiting(name: impl Into<String>, mut work: impl FnMut() + 'a) -> Self {
        Self::timed(name, move |times| {
            let start = Instant::now();
            for _ in 0..times {
                work();
            }
            start.elapsed()
        })
    }

    /// A contender that says itself how long its work took, because something before or after it does not count.
    pub(crate) fn timed(name: impl Into<String>, run: impl FnMut(u64) -> Duration + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// The time that this thread had on a processor.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Memory that this process takes, in KB of 1,000 bytes: a page of a component's image that a thousand instances map counts once,
/// which the resident set size would count a thousand times.
pub(crate) fn memory_kb() -> f64 {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap();
    kib * 1.024
}

/// The folder that cargo gives benches for their files.
pub(crate) fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Writes the input and the answer of a callback where a contender reads them.
pub(crate) fn json_files(contender: &str, input: &str, answer: &str) -> (PathBuf, PathBuf) {
    let (given, wanted) =
        (scratch().join(format!("{contender}-input.json")), scratch().join(format!("{contender}-answer.json")));
    fs::write(&given, input).unwrap();
    fs::write(&wanted, answer).unwrap();
    (given, wanted)
}

/// How long a contender's slice of a round is, if its work is not longer.
const SLICE: Duration = Duration::from_millis(2);

/// The result of a race, by contender: nanoseconds of one unit of work, in each round.
pub(crate) struct Times(Vec<Vec<f64>>);

impl Times {
    /// The median time of a contender, in nanoseconds.
    pub(crate) fn of(&self, lane: usize) -> f64 {
        median(self.0[lane].clone())
    }

    /// How many times as long `lane` takes as `base`: the median of the ratios within each round.
    pub(crate) fn ratio(&self, lane: usize, base: usize) -> f64 {
        median(self.0[lane].iter().zip(&self.0[base]).map(|(one, other)| one / other).collect())
    }
}

/// Measures contenders in turn, `rounds` times, and then each by itself with criterion.
pub(crate) fn race(criterion: &mut Criterion, group: &str, rounds: usize, mut lanes: Vec<Lane<'_>>) -> Times {
    let times: Vec<u64> = lanes.iter_mut().map(calibrate).collect();
    let mut nanos = vec![Vec::with_capacity(rounds); lanes.len()];
    for _ in 0..rounds {
        for ((lane, times), nanos) in lanes.iter_mut().zip(&times).zip(&mut nanos) {
            nanos.push((lane.run)(*times).as_nanos() as f64 / *times as f64);
        }
    }
    let mut criterion = criterion.benchmark_group(group);
    for lane in &mut lanes {
        criterion.bench_function(&lane.name, |bencher| bencher.iter_custom(|times| (lane.run)(times)));
    }
    criterion.finish();
    Times(nanos)
}

/// Warms a contender up and measures how often its work fits into a slice.
fn calibrate(lane: &mut Lane<'_>) -> u64 {
    let mut times = 1;
    loop {
        let took = (lane.run)(times);
        if took * 2 >= SLICE {
            return times;
        }
        times *= 2;
    }
}

/// Criterion with short measurements: the rounds are what the table is made of.
pub(crate) fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .configure_from_args()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Drives a future on this thread.
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
    }
}

/// What an aim asks for.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeast(f64),
    /// Measured for comparison.
    None,
}

/// The rows of a bench, in the form of the table in `README.md`.
pub(crate) struct Table {
    bench: &'static str,
    rows: String,
}

impl Table {
    pub(crate) fn new(bench: &'static str) -> Self {
        Self { bench, rows: String::new() }
    }

    /// Adds a row. `unit` follows the numbers; of a ratio it is `×`.
    pub(crate) fn row(&mut self, what: &str, aim: Aim, reached: f64, unit: &str) {
        let (aim, verdict) = match aim {
            Aim::AtMost(most) => (format!("≤ {most} {unit}"), if reached <= most { "yes" } else { "**no**" }),
            Aim::AtLeast(least) => (format!("≥ {least} {unit}"), if reached >= least { "yes" } else { "**no**" }),
            Aim::None => ("–".to_owned(), "–"),
        };
        writeln!(self.rows, "| {what} | {aim} | {} {unit} | {verdict} |", short(reached)).unwrap();
    }

    /// Adds a row for a contender that is not on this machine, which is not a reason to stop: the others are measured.
    pub(crate) fn missing(&mut self, what: &str, why: &str) {
        // A pipe or a line break would end the cell.
        let why = why.replace('|', "/").replace('\n', "; ");
        writeln!(self.rows, "| {what} | – | not measured: {why} | – |").unwrap();
    }

    /// Shows the table and leaves its rows where `cargo xtask bench` looks for them.
    pub(crate) fn finish(self) {
        println!("\n| {} | aim | reached | met |\n|---|---|---|---|\n{}", self.bench, self.rows);
        fs::write(scratch().join(format!("bench-{}.md", self.bench)), self.rows).unwrap();
    }
}

/// Three digits that count, and no more.
fn short(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => {
            let digits = format!("{v:.0}");
            let groups: Vec<&str> =
                digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap()).collect();
            groups.join(",")
        }
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}
