//! Power `state`: what must last. Keys are scoped to this extension in this session.
//!
//! A callback is a transaction: what it writes is applied when it succeeds and thrown away when it fails; it sees its own
//! writes at once. Values are stored as JSON text, so any serde type will do. Name `state` under `[capabilities]` in
//! `plugin.toml`, with the reason; the operator grants it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host;

/// Why the state refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateError {
    /// The key is empty or longer than 512 bytes.
    BadKey(String),
    /// The value, or all values together, would be larger than allowed; the text says which limit and its size.
    Limit(String),
    /// Not now: called while registering, or the store is away; the text says which.
    Unavailable(String),
    /// The stored value cannot be read as the type asked for. It is still there.
    WrongType {
        /// Under which key.
        key: String,
        /// The type asked for.
        wanted: &'static str,
        /// What the stored value has instead.
        found: String,
    },
    /// A value that cannot be written as JSON, such as a map whose keys are not texts.
    NotJson(String),
    /// A refusal this version does not know.
    Other(String),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadKey(why) => write!(f, "state refuses the key: {why}"),
            Self::Limit(which) => write!(f, "state is full: {which}"),
            Self::Unavailable(why) => write!(f, "state is not available: {why}"),
            Self::WrongType { key, wanted, found } => write!(f, "state `{key}` is not a `{wanted}`: {found}"),
            Self::NotJson(why) => write!(f, "state cannot store the value: {why}"),
            Self::Other(why) => write!(f, "state refuses: {why}"),
        }
    }
}

impl std::error::Error for StateError {}

/// The value under a key, if there is one. Reading it starts its time to live anew.
///
/// # Errors
/// [`StateError::WrongType`] where the stored value is not a `T`; else the state refuses.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<Option<T>, StateError> {
    let Some(stored) = host::state_get(key)? else { return Ok(None) };
    serde_json::from_slice(&stored).map(Some).map_err(|error| StateError::WrongType {
        key: key.to_owned(),
        wanted: std::any::type_name::<T>(),
        found: error.to_string(),
    })
}

/// Puts a value under a key, for as long as the host keeps the state of the session. At most 1 MiB.
///
/// # Errors
/// The state refuses, or the value is no JSON.
pub fn set<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<(), StateError> {
    host::state_set(key, &json(value)?, None)
}

/// Puts a value under a key until it has not been read for `ttl`; at most 49 days, and never longer than the session.
///
/// # Errors
/// The state refuses, or the value is no JSON.
pub fn set_with_ttl<T: Serialize + ?Sized>(key: &str, value: &T, ttl: Duration) -> Result<(), StateError> {
    let ttl_ms = u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX);
    host::state_set(key, &json(value)?, Some(ttl_ms))
}

/// The bytes under a key, whatever they are.
///
/// # Errors
/// The state refuses.
pub fn get_bytes(key: &str) -> Result<Option<Vec<u8>>, StateError> {
    host::state_get(key)
}

/// Puts bytes under a key, for the operator's default time to live.
///
/// # Errors
/// The state refuses.
pub fn set_bytes(key: &str, value: &[u8]) -> Result<(), StateError> {
    host::state_set(key, value, None)
}

/// Removes a key; tells whether it was there.
///
/// # Errors
/// The state refuses.
pub fn delete(key: &str) -> Result<bool, StateError> {
    host::state_delete(key)
}

/// Removes all keys of this extension in this session; tells how many there were.
///
/// # Errors
/// The state refuses.
pub fn clear() -> Result<u32, StateError> {
    host::state_clear()
}

/// All keys that begin with `prefix`, sorted. An empty prefix means all.
///
/// # Errors
/// The state refuses.
pub fn keys(prefix: &str) -> Result<Vec<String>, StateError> {
    host::state_keys(prefix)
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, StateError> {
    serde_json::to_vec(value).map_err(|error| StateError::NotJson(error.to_string()))
}
