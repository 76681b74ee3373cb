//! What plugins keep in a session, and the stores that it is kept in: memory, one file for each session, or, with the feature `redis`, a
//! Redis server.

pub use crate::host::assemble::state_folder;
pub use crate::host::expiry::swept_state;
pub use flow::ports::{
    Replaced, SessionList, SessionState, SessionSummary, ShownSession, StateAdmin, StateBatch, StateChange, StateEntry,
    StateError, StateLifetime, StateStore, StoredState, SweptState,
};
pub use store::{DiskStore, MemoryStore, StoreOptions};
#[cfg(feature = "redis")]
pub use store::{InvalidRedis, RedisOptions, RedisSetting, RedisStore, RedisTls};
