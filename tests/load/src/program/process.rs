//! What the program takes from the machine.

use std::fmt;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::editor::Editor;

/// Threads, descriptors and memory of a process at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
    pub(crate) resident: u64,
}

impl Sample {
    pub(crate) fn of(process: u32) -> Result<Self> {
        let count = |what: &str| anyhow::Ok(fs::read_dir(format!("/proc/{process}/{what}"))?.count() as u64);
        let statm = fs::read_to_string(format!("/proc/{process}/statm"))?;
        let pages: Option<u64> = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
        let resident = pages.context("statm has another format")? * rustix::param::page_size() as u64;
        Ok(Self { threads: count("task")?, descriptors: count("fd")?, resident })
    }

    /// Of each number the larger one.
    pub(crate) fn most(self, other: Self) -> Self {
        Self {
            threads: self.threads.max(other.threads),
            descriptors: self.descriptors.max(other.descriptors),
            resident: self.resident.max(other.resident),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, descriptors, resident } = self;
        write!(f, "{threads} threads, {descriptors} descriptors, {:.1} MiB", *resident as f64 / f64::from(1 << 20))
    }
}

/// Samples the program until it is aborted.
pub(crate) async fn most(editor: Arc<Editor>) -> Result<Sample> {
    loop {
        editor.note()?;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// The value that this part of sorted values does not exceed; 0 if there is none.
pub(crate) fn quantile(sorted: &[u32], part: f64) -> u32 {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}
