//! A process that tests kill while it writes: it opens a session, reports that, and then writes without end.
//!
//! Arguments: `transcript FOLDER`, `disk FOLDER` or `redis URL LEASE_MS`.
//!
//! A transcript gets one critical event after three droppable ones, and every now and then several at once; the number of a critical
//! event is printed when the journal reports it as durable.
//!
//! Of state, every flight has a batch for each of two plugins, with the number after the
//! highest that is stored: ten keys are set to it, a key with the number in its name is added, and that of the plugin's batch before is
//! deleted. The number is printed when the flight is durable.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{
    Clock as _, Journal as _, JournalError, JournalProgress, SessionState, StateBatch, StateChange, StateEntry,
    StateError, StateLifetime, StateStore,
};
use flow::{Event, EventKind, PluginId, RunPosition, SessionId};
use system::SystemClock;
use tidegate_store::{DiskStore, RecordAll, StoreOptions, TranscriptError, TranscriptStore};

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let state = match words[..] {
        ["transcript", folder] => return record(folder).await,
        ["disk", folder] => open(&DiskStore::new(folder, StoreOptions::default(), Arc::new(SystemClock))?).await?,
        #[cfg(feature = "redis")]
        ["redis", url, lease_ms] => {
            let mut options = tidegate_store::RedisOptions::new(url);
            options.lease = Duration::from_millis(lease_ms.parse()?);
            open(&tidegate_store::RedisStore::new(options, Arc::new(SystemClock))?).await?
        }
        _ => return Err("usage: tidegate-store-writer transcript FOLDER | disk FOLDER | redis URL LEASE_MS".into()),
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

/// Appends events without end.
async fn record(folder: &str) -> Result<(), Failure> {
    let store = TranscriptStore::new(folder, StoreOptions::default().owner, Arc::new(SystemClock))?;
    let opened = loop {
        match store.open(&SessionId::new("killed"), Arc::new(RecordAll)) {
            Err(TranscriptError::Journal(JournalError::Locked { .. })) => std::thread::sleep(Duration::from_millis(10)),
            opened => break opened?,
        }
    };
    report("open")?;
    let journal = opened.journal;
    journal.watch(Box::new(|progress| {
        if let JournalProgress::Durable(event) = progress {
            report(&event.to_string()).unwrap_or_else(|_| std::process::exit(1));
        }
    }));
    for number in opened.next_event.. {
        journal.append(&event(number));
        // Most events wait for the disk; the others share a sync.
        if number % 4 == 3 && number % 64 < 40 {
            journal.durable().await?;
        }
    }
    Ok(())
}

/// The event with a number, of some length.
fn event(number: u64) -> Event {
    let text = number.to_string().repeat(usize::try_from(number % 97).unwrap_or_default() + 1);
    let kind = match number % 4 {
        3 => EventKind::Notice { message: text },
        _ => EventKind::CognitionOutDelta { text, index: 0, is_final: false },
    };
    Event::new(number, SystemClock.now_ms(), RunPosition::default(), kind)
}

fn report(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
