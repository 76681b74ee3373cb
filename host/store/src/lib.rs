//! What sessions keep: transcripts of their events, and the state of extensions. It is the only crate that owns the formats of both and
//! talks to Redis.
//!
//! # Transcripts
//!
//! [`TranscriptStore`] records the events of each session in a file of its own, or in a stream of a Redis server, through the port [`Journal`](flow::ports::Journal); it
//! reads, forks, lists and repairs these files. Data flow: `append` ─► queue, which never waits ─► one of a few threads that write all
//! transcripts of the process ─► one write and one `fdatasync` for all that is queued ─► the watcher, and who waits for `durable`. No
//! open session has a thread or an open file of its own.
//!
//! # Extension state
//!
//! The ports [`StateStore`](flow::ports::StateStore) and [`StateAdmin`](flow::ports::StateAdmin) on three backends.
//!
//! | backend | durable | lease of a session | several machines |
//! |---|---|---|---|
//! | [`MemoryStore`] | while the program runs | until it is dropped | no |
//! | [`DiskStore`] | one file for each session | a lock on a file, which ends with its process | no |
//! | `RedisStore` (feature `redis`) | as the server is configured | expires unless it is renewed | yes |
//!
//! Data flow: a committed callback ─► `apply` ─► queue, which keeps the last change of each key ─► `settle` ─► one atomic write of the
//! backend. The queue, the expiry and the retries are the same for all backends; a backend loads, writes and releases. An example:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use flow::ports::{StateChange, StateEntry, StateLifetime, StateStore};
//! use tidegate_store::{MemoryStore, StoreOptions};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = MemoryStore::new(StoreOptions::default(), Arc::new(system::SystemClock));
//! let (session, plugin) = (flow::SessionId::new("chat-1"), "notes".parse().unwrap());
//! let state = store.open(&session).await?;
//! state.turn_started();
//! let entry = StateEntry::written("todo", *b"milk", StateLifetime::Session, 0);
//! state.apply(&plugin, vec![StateChange::Set(entry.clone())].into());
//! state.settle(Duration::from_secs(5)).await?;
//! state.turn_ended();
//! state.close(Duration::from_secs(5)).await?;
//!
//! assert_eq!(store.open(&session).await?.load(&plugin).await?.entries, [entry]);
//! # Ok::<(), flow::ports::StateError>(())
//! # }).unwrap();
//! ```
//! Futures of [`DiskStore`] and `RedisStore` need a Tokio runtime with time and I/O enabled.
#![forbid(unsafe_code)]

mod activity;
mod backend;
mod changes;
mod descriptors;
mod disk;
pub mod emission;
mod expiry;
mod lifetime;
mod lock;
mod memory;
mod names;
mod options;
mod process;
mod queue;
#[cfg(feature = "redis")]
mod redis_store;
mod redis_url;
mod session;
mod transcript;
#[cfg(feature = "redis")]
mod waiting;

pub use disk::DiskStore;
pub use expiry::{Expiry, MAX_PAUSE_DAYS, MAX_REMOVED};
pub use memory::MemoryStore;
pub use options::StoreOptions;
#[cfg(feature = "redis")]
pub use redis_store::{InvalidRedis, RedisOptions, RedisSetting, RedisStore, RedisTls};
pub use redis_url::{InvalidRedisUrl, RedisKind, RedisUrl};
#[cfg(feature = "schema")]
pub use transcript::transcript_schema;
pub use transcript::{
    DroppedLine, Entry, EventFilter, EventPolicy, FileJournal, ForkedFrom, JsonRecord, LastRecord, OpenedTranscript,
    RecordAll, Records, Repair, SessionAccess, SessionHolder, SpawnedBy, TranscriptDurability, TranscriptError,
    TranscriptHeader, TranscriptList, TranscriptReader, TranscriptStore, TranscriptSummary, UnreadableTranscript,
};
