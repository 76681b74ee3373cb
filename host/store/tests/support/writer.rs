//! A process that tests kill while it writes: it opens a session, reports that, and then writes without end.
//!
//! Arguments: `disk FOLDER` or `redis URL LEASE_MS`. Every flight has a batch for each of two plugins, with the number after the
//! highest that is stored: ten keys are set to it, a key with the number in its name is added, and that of the plugin's batch before is
//! deleted. The number is printed when the flight is durable.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use flow::{PluginId, SessionId};
use tidegate_store::{DiskStore, StoreOptions};
use turn::SystemClock;
use turn::ports::{
    Clock as _, SessionState, StateBatch, StateChange, StateEntry, StateError, StateLifetime, StateStore,
};

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let state = match words[..] {
        ["disk", folder] => open(&DiskStore::new(folder, StoreOptions::default(), Arc::new(SystemClock))?).await?,
        #[cfg(feature = "redis")]
        ["redis", url, lease_ms] => {
            let mut options = tidegate_store::RedisOptions::new(url);
            options.lease = Duration::from_millis(lease_ms.parse()?);
            open(&tidegate_store::RedisStore::new(options, Arc::new(SystemClock))?).await?
        }
        _ => return Err("usage: tidegate-store-writer disk FOLDER | redis URL LEASE_MS".into()),
    };
    write(&*state).await
}

/// Opens the session as soon as the lease of a writer that was killed is over.
async fn open(store: &dyn StateStore) -> Result<Arc<dyn SessionState>, StateError> {
    loop {
        match store.open(&SessionId::new("killed")).await {
            Err(StateError::Leased { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            opened => return opened,
        }
    }
}

async fn write(state: &dyn SessionState) -> Result<(), Failure> {
    report("open")?;
    let plugins: [PluginId; 2] = ["writer".parse()?, "other".parse()?];
    let mut stored = [0; 2];
    for (plugin, stored) in plugins.iter().zip(&mut stored) {
        *stored = state.load(plugin).await?.version.unwrap_or(0);
    }
    for number in stored[0].max(stored[1]) + 1.. {
        for (plugin, stored) in plugins.iter().zip(&mut stored) {
            let changes = batch(u64::from(number), u64::from(*stored));
            state.apply(plugin, StateBatch { changes, version: Some(number) });
            *stored = number;
        }
        state.settle(Duration::from_secs(5)).await?;
        report(&number.to_string())?;
    }
    Ok(())
}

fn batch(number: u64, before: u64) -> Vec<StateChange> {
    let now_ms = SystemClock.now_ms();
    // Values of some size, so that a batch is many pages.
    let value: Vec<u8> = number.to_le_bytes().repeat(500);
    let set =
        |key: String| StateChange::Set(StateEntry::written(key, value.as_slice(), StateLifetime::Session, now_ms));
    let keys = (0..10).map(|key| format!("key-{key}")).chain([format!("only-{number}")]);
    keys.map(set).chain([StateChange::Delete(format!("only-{before}"))]).collect()
}

fn report(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
