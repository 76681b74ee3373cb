//! What the sessions of a run did, and what was wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How every secret begins. It ends with `.`, so that no secret is the beginning of another.
pub(crate) const CANARY: &str = "canary-";

/// Memory that may grow after the warm-up, whatever the number of turns: pools and caches of the allocator.
const SLACK: u64 = 24 << 20;
/// Bytes that may be added for each turn: a leak of one event a turn would be more.
const PER_TURN: u64 = 512;
/// The longest back-off of a circuit breaker.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);
/// How many problems are kept; the others are counted.
const KEPT: usize = 20;

/// Counts of a run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    turns: AtomicU64,
    opened: AtomicU64,
    callbacks: AtomicU64,
    reloads: AtomicU64,
    /// Sessions' turns that began with other versions of plugins.
    renewed: AtomicU64,
    /// Turns that did not wait for a reload.
    late: AtomicU64,
    restarts: AtomicU64,
    /// Whether the server of the state is away, and how often it has been.
    away: AtomicBool,
    outages: AtomicU64,
    /// When the server went away last, or was back.
    back: Mutex<Option<Instant>>,
    /// Turns that reported that state was not saved.
    unsaved: AtomicU64,
    /// Callbacks that could not be called in an outage.
    without_state: AtomicU64,
    discarded: AtomicU64,
    memory: Mutex<Vec<(u64, u64, u64)>>,
    /// Problems with how often each was met.
    problems: Mutex<BTreeMap<String, u64>>,
}

/// Something that is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    Turn,
    Opened,
    Callback,
    Reload,
    Renewed,
    Late,
    Restart,
    Unsaved,
    WithoutState,
    Discarded,
}

impl Tally {
    pub(crate) fn add(&self, count: Count) {
        let counter = match count {
            Count::Turn => &self.turns,
            Count::Opened => &self.opened,
            Count::Callback => &self.callbacks,
            Count::Reload => &self.reloads,
            Count::Renewed => &self.renewed,
            Count::Late => &self.late,
            Count::Restart => &self.restarts,
            Count::Unsaved => &self.unsaved,
            Count::WithoutState => &self.without_state,
            Count::Discarded => &self.discarded,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// The server of the state goes away, or is back.
    pub(crate) fn set_away(&self, away: bool) {
        if away {
            self.outages.fetch_add(1, Ordering::SeqCst);
        }
        self.away.store(away, Ordering::SeqCst);
        *lock(&self.back) = Some(Instant::now());
    }

    /// Where in the outages a turn begins or ends.
    pub(crate) fn outage(&self) -> (bool, u64) {
        (self.away.load(Ordering::SeqCst), self.outages.load(Ordering::SeqCst))
    }

    /// Returns whether a breaker that an outage has opened can still be open.
    pub(crate) fn is_recovering(&self) -> bool {
        lock(&self.back).is_some_and(|back| back.elapsed() < LONGEST_BACK_OFF)
    }

    pub(crate) fn set_memory(&self, samples: Vec<(u64, u64, u64)>) {
        *lock(&self.memory) = samples;
    }

    pub(crate) fn problem(&self, problem: impl Into<String>) {
        *lock(&self.problems).entry(problem.into()).or_default() += 1;
    }

    /// Reports every secret in `text` that is not `own`.
    pub(crate) fn look_for_secrets(&self, what: &str, text: &str, own: &str) {
        for (at, _) in text.match_indices(CANARY) {
            let found = &text[at..];
            if !found.starts_with(own) {
                let end = found.find('.').unwrap_or(found.len().min(40));
                self.problem(format!("{what} of the session of {own} contains {}", &found[..end]));
            }
        }
    }

    /// The growth of memory after the warm-up, and the turns meanwhile.
    fn growth(&self) -> Option<(u64, u64)> {
        let memory = lock(&self.memory);
        let (first, last) = (memory.first()?, memory.last()?);
        Some((last.2.saturating_sub(first.2), last.1 - first.1))
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let all = lock(&self.problems);
        let mut problems: Vec<String> =
            all.iter().take(KEPT).map(|(problem, times)| format!("{problem} ({times} times)")).collect();
        if all.len() > KEPT {
            problems.push(format!("and {} other problems", all.len() - KEPT));
        }
        match self.growth() {
            Some((bytes, turns)) if bytes > SLACK + turns * PER_TURN => {
                problems.push(format!("memory grew by {bytes} bytes in {turns} turns after the warm-up"));
            }
            Some(_) | None => {}
        }
        if self.turns() == 0 {
            problems.push("no turn was completed".to_owned());
        }
        problems
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        writeln!(f, "turns {}, sessions opened {}", self.turns(), get(&self.opened))?;
        writeln!(f, "callbacks {}, answers discarded by a rule {}", get(&self.callbacks), get(&self.discarded))?;
        let (reloads, renewed, late) = (get(&self.reloads), get(&self.renewed), get(&self.late));
        writeln!(
            f,
            "reloads {reloads}, turns that began with another version {renewed}, that did not wait for it {late}"
        )?;
        writeln!(
            f,
            "restarts of the server {}, turns that reported unsaved state {}, callbacks skipped because the state could not be read {}",
            get(&self.restarts),
            get(&self.unsaved),
            get(&self.without_state)
        )?;
        let memory = lock(&self.memory);
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        if let (Some(first), Some(last)) = (memory.first(), memory.last()) {
            let most = memory.iter().map(|sample| sample.2).max().unwrap_or(0);
            write!(f, "memory after {} s {:.1} MiB, after {} s {:.1}", first.0, mib(first.2), last.0, mib(last.2))?;
            write!(f, ", at most {:.1}, in {} turns", mib(most), last.1 - first.1)?;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
