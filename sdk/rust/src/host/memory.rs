//! The powers outside a guest: a host in memory, one per thread, so that an extension's code runs and is tested as plain
//! Rust. [`testing`](crate::testing) puts its own host in place of the thread's while it calls a callback.
//!
//! Where the powers can be observed, it behaves as the real host; `tests/corpus/powers` has the cases that both pass.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::log::Level;
use crate::state::Keep;
use crate::testing::{Emitted, LogLine};
use crate::{Content, EventError, Message, Part, SessionInfo, Setting, StateError, ToolInfo};

/// The largest key, in bytes, as the contract has it.
const KEY_BYTES: usize = 512;
/// The largest value, in bytes, as the contract has it.
const VALUE_BYTES: usize = 1 << 20;
/// The operator's default for the largest sum of an extension's keys and values, in bytes.
const STATE_BYTES: usize = 10 << 20;
/// The most messages that `history.messages` returns at once, as the contract has it.
const HISTORY_MESSAGES: u32 = 256;
/// The most bytes of text in them, as the contract has it.
const HISTORY_BYTES: usize = 1 << 20;
/// The most bytes that `random.bytes` returns, as the contract has it.
const RANDOM_BYTES: u32 = 4096;
/// The lines of progress of one call that are kept, as the contract has it.
const PROGRESS_LINES: usize = 256;
/// The bytes of one that are kept, as the contract has it.
const PROGRESS_BYTES: usize = 1 << 10;
/// The bytes of the payload of an event, as the contract has it.
const EVENT_BYTES: usize = 16 << 10;
/// The operator's default time to live.
const TTL: Duration = Duration::from_secs(60 * 60);
/// The time of a new host: 2026-01-01.
const START_MS: u64 = 1_767_225_600_000;

/// One stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) value: Vec<u8>,
    /// `None`: as long as the session.
    ttl_ms: Option<u64>,
    expires_ms: Option<u64>,
    /// Orders the uses of all values.
    used: u64,
}

/// A host in memory.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) state: BTreeMap<String, Stored>,
    pub(crate) standard_ttl: Duration,
    /// The largest sum of keys and values.
    pub(crate) state_bytes: usize,
    pub(crate) log: Vec<LogLine>,
    pub(crate) emitted: Vec<Emitted>,
    /// The types that `plugin.toml` and, without the extension's id, catalogues declare; `None`: all of them.
    pub(crate) event_types: Option<BTreeSet<String>>,
    /// What tools reported; `None` while none runs.
    pub(crate) progress: Option<Vec<(Option<f64>, String)>>,
    pub(crate) settings: BTreeMap<String, Setting>,
    /// The powers that are granted; `None`: all of them.
    pub(crate) powers: Option<BTreeSet<String>>,
    pub(crate) session: SessionInfo,
    pub(crate) history: Vec<Message>,
    pub(crate) tools: Vec<ToolInfo>,
    pub(crate) now_ms: u64,
    random: u64,
    /// The number of uses of values.
    uses: u64,
    registering: bool,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            state: BTreeMap::new(),
            standard_ttl: TTL,
            state_bytes: STATE_BYTES,
            log: Vec::new(),
            emitted: Vec::new(),
            event_types: None,
            progress: None,
            settings: BTreeMap::new(),
            powers: None,
            session: SessionInfo { agent: "main".into(), ..SessionInfo::default() },
            history: Vec::new(),
            tools: Vec::new(),
            now_ms: START_MS,
            random: 0x9e37_79b9_7f4a_7c15,
            uses: 0,
            registering: false,
        }
    }
}

impl Stored {
    /// The value as text where it is text, with the time for which it is kept.
    pub(crate) fn written(&self) -> String {
        let kept = self.ttl_ms.map_or_else(|| "as long as the session".to_owned(), |ms| format!("for {ms} ms"));
        format!("{:?}, kept {kept}", String::from_utf8_lossy(&self.value))
    }

    fn touch(&mut self, now_ms: u64, used: u64) {
        self.used = used;
        self.expires_ms = self.ttl_ms.map(|ttl| now_ms.saturating_add(ttl));
    }
}

impl Host {
    /// Drops what has outlived its time.
    pub(crate) fn expire(&mut self) {
        let now = self.now_ms;
        self.state.retain(|_, stored| stored.expires_ms.is_none_or(|at| now < at));
    }

    /// Checks that a power is granted.
    ///
    /// # Panics
    /// It is not: the host does not load a component that imports it.
    pub(crate) fn granted(&self, power: &str) {
        let granted = self.powers.as_ref().is_none_or(|powers| powers.contains(power));
        assert!(
            granted,
            "plugin.toml does not request the power `{power}`, which is used: add `{power}` to [capabilities]"
        );
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// The state without what has outlived its time, or why it cannot be used now.
    fn state(&mut self) -> Result<&mut BTreeMap<String, Stored>, StateError> {
        self.granted("state");
        if self.registering {
            return Err(StateError::Unavailable("not during register".into()));
        }
        self.expire();
        Ok(&mut self.state)
    }
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::new(Host::default());
}

/// Runs something on the thread's host.
pub(crate) fn with<T>(run: impl FnOnce(&mut Host) -> T) -> T {
    HOST.with_borrow_mut(run)
}

/// Runs something as `register` runs: the powers refuse.
pub(crate) fn registering<T>(run: impl FnOnce() -> T) -> T {
    /// Also resets it where `run` panics.
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            with(|host| host.registering = self.0);
        }
    }
    let _reset = Reset(with(|host| std::mem::replace(&mut host.registering, true)));
    run()
}

fn check_key(key: &str) -> Result<(), StateError> {
    match key.len() {
        0 => Err(StateError::BadKey("a key must have at least one byte".into())),
        1..=KEY_BYTES => Ok(()),
        bytes => Err(StateError::BadKey(format!("the key has {bytes} bytes, the limit is {KEY_BYTES}"))),
    }
}

pub(crate) fn state_get(key: &str) -> Result<Option<Vec<u8>>, StateError> {
    with(|host| {
        let (now, used) = (host.now_ms, host.next_use());
        let state = host.state()?;
        check_key(key)?;
        Ok(state.get_mut(key).map(|stored| {
            stored.touch(now, used);
            stored.value.clone()
        }))
    })
}

pub(crate) fn state_set(key: &str, value: &[u8], keep: Keep) -> Result<(), StateError> {
    with(|host| {
        let (now, standard, used, max) = (host.now_ms, host.standard_ttl, host.next_use(), host.state_bytes);
        let state = host.state()?;
        check_key(key)?;
        if value.len() > VALUE_BYTES {
            let bytes = value.len();
            return Err(StateError::Limit(format!("the value has {bytes} bytes, the limit is {VALUE_BYTES}")));
        }
        let bytes = key.len() + value.len();
        let Some(room) = max.checked_sub(bytes) else {
            return Err(StateError::Limit(format!(
                "the key and its value have {bytes} bytes, the limit for all keys of an extension is {max}"
            )));
        };
        evict(state, key, room);
        let ttl = match keep {
            Keep::Standard => Some(standard),
            Keep::Session => None,
            Keep::For(time) => Some(time.min(Duration::from_millis(u64::from(u32::MAX)))),
        };
        let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let mut stored = Stored { value: value.to_vec(), ttl_ms, expires_ms: None, used };
        stored.touch(now, used);
        state.insert(key.to_owned(), stored);
        Ok(())
    })
}

/// Removes the values that were not used for the longest time, that of `key` left out, until the others have at most `room`
/// bytes.
fn evict(state: &mut BTreeMap<String, Stored>, key: &str, room: usize) {
    let weight = |key: &str, stored: &Stored| key.len() + stored.value.len();
    loop {
        let others = || state.iter().filter(|(name, _)| *name != key);
        let size: usize = others().map(|(name, stored)| weight(name, stored)).sum();
        let oldest = others().min_by_key(|(_, stored)| stored.used).map(|(name, _)| name.clone());
        match oldest {
            Some(oldest) if size > room => state.remove(&oldest),
            _ => return,
        };
    }
}

pub(crate) fn state_delete(key: &str) -> Result<bool, StateError> {
    with(|host| {
        let state = host.state()?;
        check_key(key)?;
        Ok(state.remove(key).is_some())
    })
}

pub(crate) fn state_clear() -> Result<u32, StateError> {
    with(|host| {
        let state = host.state()?;
        let count = state.len();
        state.clear();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    })
}

pub(crate) fn state_keys(prefix: &str) -> Result<Vec<String>, StateError> {
    with(|host| Ok(host.state()?.keys().filter(|key| key.starts_with(prefix)).cloned().collect()))
}

pub(crate) fn log(level: Level, message: &str, fields: &[(&str, &str)]) {
    let fields = fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    with(|host| host.log.push(LogLine { level, message: message.to_owned(), fields }));
}

pub(crate) fn session_info() -> SessionInfo {
    with(|host| {
        host.granted("session");
        if !host.registering {
            return host.session.clone();
        }
        let (extension, agent) = (host.session.extension.clone(), host.session.agent.clone());
        SessionInfo { extension, agent, ..SessionInfo::default() }
    })
}

pub(crate) fn history_length() -> u32 {
    with(|host| {
        host.granted("history");
        if host.registering { 0 } else { u32::try_from(host.history.len()).unwrap_or(u32::MAX) }
    })
}

pub(crate) fn history_messages(from: u32, count: u32) -> Vec<Message> {
    with(|host| {
        host.granted("history");
        let (mut left, mut done) = (HISTORY_BYTES, Vec::new());
        if host.registering {
            return done;
        }
        let all = host.history.iter().enumerate().skip(from as usize);
        for (position, message) in all.take(count.min(HISTORY_MESSAGES) as usize) {
            let mut message = message.clone();
            let size: usize = texts(&mut message).iter().map(|text| text.len()).sum();
            if size > left && !done.is_empty() {
                break;
            }
            for text in texts(&mut message) {
                text.truncate(text.floor_char_boundary(left));
                left -= text.len();
            }
            if size > HISTORY_BYTES {
                message.attributes.push(("tidegate.cut".into(), size.to_string()));
            }
            if message.id.is_empty() {
                message.id = position.to_string();
            }
            done.push(message);
        }
        done
    })
}

/// The strings of a message that count.
fn texts(message: &mut Message) -> Vec<&mut String> {
    let mut texts = Vec::new();
    for part in &mut message.parts {
        match part {
            Part::Text(text) | Part::Thinking(text) => texts.push(text),
            Part::ToolCall(call) => texts.push(&mut call.arguments),
            Part::ToolResult(result) => texts.extend(result.content.iter_mut().filter_map(|content| match content {
                Content::Text(text) => Some(text),
                Content::Blob(_) | Content::Other(_) => None,
            })),
            Part::Blob(_) | Part::Other(_) => {}
        }
    }
    texts
}

pub(crate) fn tools_list() -> Vec<ToolInfo> {
    with(|host| {
        host.granted("tools");
        if host.registering { Vec::new() } else { host.tools.clone() }
    })
}

pub(crate) fn emit_event(event_type: &str, payload: &str) -> Result<(), EventError> {
    with(|host| {
        if host.registering {
            return Err(EventError::Unavailable("not during register".into()));
        }
        if payload.len() > EVENT_BYTES {
            let bytes = payload.len();
            return Err(EventError::Limit(format!("the payload has {bytes} bytes, the limit is {EVENT_BYTES}")));
        }
        let payload = serde_json::from_str(payload).map_err(|error| EventError::InvalidPayload(error.to_string()))?;
        let serde_json::Value::Object(_) = &payload else {
            return Err(EventError::InvalidPayload("the payload is not an object".into()));
        };
        let own = format!("{}.{event_type}", host.session.extension);
        let name = match &host.event_types {
            None => event_type.to_owned(),
            Some(types) if types.contains(&own) => own,
            Some(types) if types.contains(event_type) => event_type.to_owned(),
            Some(types) => return Err(unknown_type(event_type, types)),
        };
        host.emitted.push(Emitted { event_type: name, payload });
        Ok(())
    })
}

fn unknown_type(event_type: &str, known: &BTreeSet<String>) -> EventError {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let those = match known.as_slice() {
        [] => {
            "; `[events]` of a plugin.toml and `thread_events.toml` declare types, with the schemas of their payloads"
                .to_owned()
        }
        known => format!("; those that are: `{}`", known.join("`, `")),
    };
    EventError::UnknownType(format!("the event type `{event_type}` is not declared{those}"))
}

pub(crate) fn progress(percent: Option<f64>, line: &str) {
    with(|host| {
        if let Some(lines) = host.progress.as_mut().filter(|lines| lines.len() < PROGRESS_LINES) {
            let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
            lines.push((percent, line[..line.floor_char_boundary(PROGRESS_BYTES)].to_owned()));
        }
    });
}

pub(crate) fn setting(key: &str) -> Option<Setting> {
    with(|host| host.settings.get(key).cloned())
}

pub(crate) fn settings_all() -> Vec<(String, Setting)> {
    with(|host| host.settings.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
}

pub(crate) fn clock_now_ms() -> f64 {
    with(|host| if host.registering { 0.0 } else { host.now_ms as f64 })
}

/// The same numbers in each new host, so that a test that fails can be repeated (xorshift64*).
pub(crate) fn random_bytes(count: u32) -> Vec<u8> {
    let next = || {
        with(|host| {
            let mut x = host.random;
            x ^= x >> 12;
            x ^= x << 25;
            x ^= x >> 27;
            host.random = x;
            x.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes()[0]
        })
    };
    (0..count.min(RANDOM_BYTES)).map(|_| next()).collect()
}
