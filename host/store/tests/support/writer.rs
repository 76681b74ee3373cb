//! A process that tests kill while it writes: it opens a session, reports that, and then writes without end.
//!
//! Arguments: `disk FOLDER` or `redis URL LEASE_MS`. Every batch sets ten keys to the same number; the number is printed when the
//! batch is durable.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use flow::{PluginId, SessionId};
use tidegate_store::{DiskStore, StoreOptions};
use turn::SystemClock;
use turn::ports::{Clock as _, SessionState, StateBatch, StateChange, StateEntry, StateLifetime, StateStore};

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let state = match words[..] {
        ["disk", folder] => {
            let store = DiskStore::new(folder, StoreOptions::default(), Arc::new(SystemClock))?;
            store.open(&SessionId::new("killed")).await?
        }
        #[cfg(feature = "redis")]
        ["redis", url, lease_ms] => {
            let mut options = tidegate_store::RedisOptions::new(url);
            options.lease = Duration::from_millis(lease_ms.parse()?);
            let store = tidegate_store::RedisStore::new(options, Arc::new(SystemClock))?;
            store.open(&SessionId::new("killed")).await?
        }
        _ => return Err("usage: tidegate-store-writer disk FOLDER | redis URL LEASE_MS".into()),
    };
    write(&*state).await
}

async fn write(state: &dyn SessionState) -> Result<(), Failure> {
    let plugin: PluginId = "writer".parse()?;
    report("open")?;
    for number in 0u64.. {
        let now_ms = SystemClock.now_ms();
        let set = |key: u64| {
            // Values of some size, so that a batch is many pages.
            let value: Vec<u8> = number.to_le_bytes().repeat(500);
            StateChange::Set(StateEntry::written(format!("key-{key}"), value, StateLifetime::Session, now_ms))
        };
        state.apply(&plugin, StateBatch { changes: (0..10).map(set).collect(), version: u32::try_from(number).ok() });
        state.settle(Duration::from_secs(5)).await?;
        report(&number.to_string())?;
    }
    Ok(())
}

fn report(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
