//! What the program takes from the machine.

use std::fmt;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::editor::Editor;

/// Between two samples.
const EVERY: Duration = Duration::from_millis(250);

/// Threads, descriptors, memory and processor time of a process at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
    pub(crate) resident: u64,
    /// Since it was started.
    pub(crate) processor: Duration,
}

impl Sample {
    pub(crate) fn of(process: u32) -> Result<Self> {
        let count = |what: &str| anyhow::Ok(fs::read_dir(format!("/proc/{process}/{what}"))?.count() as u64);
        let statm = fs::read_to_string(format!("/proc/{process}/statm"))?;
        let pages: Option<u64> = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
        let resident = pages.context("statm has another format")? * rustix::param::page_size() as u64;
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        // After the name, which can contain anything: the state is field 3, the times of user and system 14 and 15.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at - 3).and_then(|ticks| ticks.parse::<u64>().ok());
        let ticks = ticks(14).zip(ticks(15)).map(|(user, system)| user + system).context("stat has another format")?;
        let processor = Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64);
        Ok(Self { threads: count("task")?, descriptors: count("fd")?, resident, processor })
    }

    /// Its resident memory in MiB.
    pub(crate) fn mib(&self) -> f64 {
        self.resident as f64 / f64::from(1 << 20)
    }

    /// Of each number the larger one.
    pub(crate) fn most(self, other: Self) -> Self {
        Self {
            threads: self.threads.max(other.threads),
            descriptors: self.descriptors.max(other.descriptors),
            resident: self.resident.max(other.resident),
            processor: self.processor.max(other.processor),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, descriptors, .. } = self;
        write!(f, "{threads} threads, {descriptors} descriptors, {:.1} MiB", self.mib())
    }
}

/// Samples the program until it is aborted.
pub(crate) async fn watch(editor: Arc<Editor>) -> Result<()> {
    loop {
        editor.note()?;
        tokio::time::sleep(EVERY).await;
    }
}

/// The value that this part of sorted values does not exceed; 0 if there is none.
pub(crate) fn quantile(sorted: &[u32], part: f64) -> u32 {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}
