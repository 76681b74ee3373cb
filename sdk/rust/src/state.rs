//! Power `state`: data that persists between calls. Keys are scoped to this extension in this session.
//!
//! A callback is a transaction: its writes are applied when it succeeds and discarded when it fails; it sees its own
//! writes at once. Values are stored as JSON text, so any serde type will do. Name `state` under `[capabilities]` in
//! `plugin.toml`, with the reason; the operator grants it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host;

/// Why the state refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// The key is empty or longer than 512 bytes.
    BadKey(String),
    /// The value, or all values together, would be larger than allowed; the string names the limit and the size.
    Limit(String),
    /// Not now: called while registering.
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
    /// A value that cannot be written as JSON, such as a map with keys that are not strings.
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

/// Returns the value under a key, if there is one, and restarts its time to live.
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

/// How long a value is kept. Reading it restarts its time. The lifetime of the session's state bounds every other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// The operator's default time to live: 1 hour unless set otherwise.
    #[default]
    Standard,
    /// As long as the host keeps the state of the session.
    Session,
    /// This long, at most 49 days, in whole milliseconds.
    For(Duration),
}

/// Stores a value under a key for the standard time to live. At most 1 MiB.
///
/// # Errors
/// The state refuses, or the value cannot be written as JSON.
pub fn set<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<(), StateError> {
    set_with(key, value, Keep::Standard)
}

/// Stores a value under a key for this long.
///
/// # Errors
/// The state refuses, or the value cannot be written as JSON.
pub fn set_with<T: Serialize + ?Sized>(key: &str, value: &T, keep: Keep) -> Result<(), StateError> {
    host::state_set(key, &json(value)?, keep)
}

/// Replaces the value under a key by what `change` makes of it, and returns the new value. The value is kept for the standard
/// time to live.
///
/// ```
/// use tidegate_sdk::state;
/// state::update("count", |old: Option<u32>| old.unwrap_or(0) + 1)?;
/// assert_eq!(state::get::<u32>("count")?, Some(1));
/// # Ok::<(), tidegate_sdk::StateError>(())
/// ```
///
/// # Errors
/// [`StateError::WrongType`] where the stored value is not a `T`; else the state refuses. Then nothing is changed.
pub fn update<T: Serialize + DeserializeOwned>(
    key: &str,
    change: impl FnOnce(Option<T>) -> T,
) -> Result<T, StateError> {
    let new = change(get(key)?);
    set(key, &new)?;
    Ok(new)
}

/// Returns the bytes under a key, whatever they are.
///
/// # Errors
/// The state refuses.
pub fn get_bytes(key: &str) -> Result<Option<Vec<u8>>, StateError> {
    host::state_get(key)
}

/// Stores bytes under a key for the standard time to live.
///
/// # Errors
/// The state refuses.
pub fn set_bytes(key: &str, value: &[u8]) -> Result<(), StateError> {
    set_bytes_with(key, value, Keep::Standard)
}

/// Stores bytes under a key for this long.
///
/// # Errors
/// The state refuses.
pub fn set_bytes_with(key: &str, value: &[u8], keep: Keep) -> Result<(), StateError> {
    host::state_set(key, value, keep)
}

/// Removes a key. Returns whether it existed.
///
/// # Errors
/// The state refuses.
pub fn delete(key: &str) -> Result<bool, StateError> {
    host::state_delete(key)
}

/// Removes all keys of this extension in this session. Returns how many there were.
///
/// # Errors
/// The state refuses.
pub fn clear() -> Result<u32, StateError> {
    host::state_clear()
}

/// Returns all keys that begin with `prefix`, sorted. An empty prefix means all.
///
/// # Errors
/// The state refuses.
pub fn keys(prefix: &str) -> Result<Vec<String>, StateError> {
    host::state_keys(prefix)
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, StateError> {
    serde_json::to_vec(value).map_err(|error| StateError::NotJson(error.to_string()))
}
