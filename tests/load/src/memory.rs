//! The memory of this process, once a second.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::tally::Tally;

/// When memory has to be flat: by then every instance was used, and every pool and cache has been filled.
const WARM: u64 = 10;

/// Resident bytes of this process.
pub(crate) fn resident() -> Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm").context("cannot read the memory of this process")?;
    let pages: Option<u64> = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    Ok(pages.context("/proc/self/statm has another format")? * rustix::param::page_size() as u64)
}

/// Notes the memory from when it has to be flat to the end. A run that is shorter than twice that says nothing about it.
pub(crate) async fn watch(seconds: u64, tally: Arc<Tally>) -> Result<()> {
    if seconds < 2 * WARM {
        return Ok(());
    }
    tokio::time::sleep(Duration::from_secs(WARM)).await;
    let mut samples = Vec::new();
    for second in WARM..seconds {
        samples.push((second, tally.turns(), resident()?));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tally.set_memory(samples);
    Ok(())
}
