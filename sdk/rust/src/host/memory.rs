//! The powers outside a guest: a host in memory, one a thread, so that an extension's code runs and is tested as plain
//! Rust. [`testing`](crate::testing) puts its own host in the thread's place while it calls a callback.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::log::Level;
use crate::testing::LogLine;
use crate::{Message, SessionInfo, Setting, StateError, ToolInfo};

/// The longest key, in bytes, as the contract has it.
const KEY_BYTES: usize = 512;
/// The largest value, in bytes, as the contract has it.
const VALUE_BYTES: usize = 1 << 20;
/// The largest sum of an extension's values, in bytes, as the contract has it.
const STATE_BYTES: usize = 10 << 20;
/// The most messages `history` gives at once, as the contract has it.
const HISTORY_MESSAGES: usize = 256;
/// How long a value without a time of its own lives unread, in milliseconds: the host's default.
const TTL_MS: u64 = 60 * 60 * 1000;

/// One stored value.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) value: Vec<u8>,
    ttl_ms: u64,
    expires_ms: u64,
}

/// A host in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    pub(crate) state: BTreeMap<String, Stored>,
    pub(crate) log: Vec<LogLine>,
    pub(crate) settings: BTreeMap<String, Setting>,
    pub(crate) session: SessionInfo,
    pub(crate) history: Vec<Message>,
    pub(crate) tools: Vec<ToolInfo>,
    pub(crate) now_ms: u64,
}

impl Host {
    /// Drops what has outlived its time.
    pub(crate) fn expire(&mut self) {
        let now = self.now_ms;
        self.state.retain(|_, stored| stored.expires_ms > now);
    }
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::new(Host::default());
}

/// Runs something on the thread's host.
pub(crate) fn with<T>(run: impl FnOnce(&mut Host) -> T) -> T {
    HOST.with_borrow_mut(run)
}

fn check_key(key: &str) -> Result<(), StateError> {
    match key.len() {
        0 => Err(StateError::BadKey("it is empty".into())),
        1..=KEY_BYTES => Ok(()),
        bytes => Err(StateError::BadKey(format!("it has {bytes} bytes, at most {KEY_BYTES} are allowed"))),
    }
}

pub(crate) fn state_get(key: &str) -> Result<Option<Vec<u8>>, StateError> {
    check_key(key)?;
    with(|host| {
        host.expire();
        let now = host.now_ms;
        Ok(host.state.get_mut(key).map(|stored| {
            stored.expires_ms = now.saturating_add(stored.ttl_ms);
            stored.value.clone()
        }))
    })
}

pub(crate) fn state_set(key: &str, value: &[u8], ttl_ms: Option<u32>) -> Result<(), StateError> {
    check_key(key)?;
    if value.len() > VALUE_BYTES {
        return Err(StateError::Limit(format!(
            "the value has {} bytes, at most {VALUE_BYTES} are allowed",
            value.len()
        )));
    }
    with(|host| {
        host.expire();
        let others: usize = host.state.iter().filter(|(name, _)| *name != key).map(|(_, old)| old.value.len()).sum();
        if others + value.len() > STATE_BYTES {
            return Err(StateError::Limit(format!("all values together have more than {STATE_BYTES} bytes")));
        }
        let ttl_ms = ttl_ms.map_or(TTL_MS, u64::from);
        let expires_ms = host.now_ms.saturating_add(ttl_ms);
        host.state.insert(key.to_owned(), Stored { value: value.to_vec(), ttl_ms, expires_ms });
        Ok(())
    })
}

pub(crate) fn state_delete(key: &str) -> Result<bool, StateError> {
    check_key(key)?;
    with(|host| {
        host.expire();
        Ok(host.state.remove(key).is_some())
    })
}

pub(crate) fn state_clear() -> Result<u32, StateError> {
    with(|host| {
        host.expire();
        let count = host.state.len();
        host.state.clear();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    })
}

pub(crate) fn state_keys(prefix: &str) -> Result<Vec<String>, StateError> {
    with(|host| {
        host.expire();
        Ok(host.state.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    })
}

pub(crate) fn log(level: Level, message: &str, fields: &[(&str, &str)]) {
    let fields = fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    with(|host| host.log.push(LogLine { level, message: message.to_owned(), fields }));
}

pub(crate) fn session_info() -> SessionInfo {
    with(|host| host.session.clone())
}

pub(crate) fn session_history(from: u32, count: u32) -> Vec<Message> {
    let count = HISTORY_MESSAGES.min(count as usize);
    with(|host| host.history.iter().skip(from as usize).take(count).cloned().collect())
}

pub(crate) fn tools_list() -> Vec<ToolInfo> {
    with(|host| host.tools.clone())
}

pub(crate) fn setting(key: &str) -> Option<Setting> {
    with(|host| host.settings.get(key).cloned())
}

pub(crate) fn settings_all() -> Vec<(String, Setting)> {
    with(|host| host.settings.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
}
