//! The powers of a guest: the imports of the contract. What is not called is not imported.

use crate::__guest::base::tidegate::extension::log as wit_log;
use crate::__guest::powers::tidegate::extension::{
    clock, events, history, random, session, settings, state, tool_progress, tools,
};
use crate::log::Level;
use crate::state::Keep;
use crate::{EventError, Message, SessionInfo, Setting, StateError, ToolInfo, convert};

/// In a guest the host refuses by itself.
pub(crate) fn registering<T>(run: impl FnOnce() -> T) -> T {
    run()
}

pub(crate) fn state_get(key: &str) -> Result<Option<Vec<u8>>, StateError> {
    Ok(state::get(key)?)
}

pub(crate) fn state_set(key: &str, value: &[u8], keep: Keep) -> Result<(), StateError> {
    let keep = match keep {
        Keep::Standard => state::Keep::Standard,
        Keep::Session => state::Keep::Session,
        Keep::For(time) => state::Keep::Ms(u32::try_from(time.as_millis()).unwrap_or(u32::MAX)),
    };
    Ok(state::set(key, value, &state::SetOptions { keep, attributes: Vec::new() })?)
}

pub(crate) fn state_delete(key: &str) -> Result<bool, StateError> {
    Ok(state::delete(key)?)
}

pub(crate) fn state_clear() -> Result<u32, StateError> {
    Ok(state::clear()?)
}

pub(crate) fn state_keys(prefix: &str) -> Result<Vec<String>, StateError> {
    Ok(state::keys(prefix)?)
}

pub(crate) fn log(level: Level, message: &str, fields: &[(&str, &str)]) {
    let level = match level {
        Level::Trace => wit_log::Level::Trace,
        Level::Debug => wit_log::Level::Debug,
        Level::Info => wit_log::Level::Info,
        Level::Warn => wit_log::Level::Warn,
        Level::Error => wit_log::Level::Error,
    };
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    wit_log::log(level, message, &fields);
}

pub(crate) fn panic(message: &str, file: &str, line: u32, column: u32) {
    wit_log::panic(message, file, line, column);
}

pub(crate) fn session_info() -> SessionInfo {
    session::info().into()
}

pub(crate) fn history_length() -> u32 {
    history::length()
}

pub(crate) fn history_messages(from: u32, count: u32) -> Vec<Message> {
    convert::list(history::messages(from, count))
}

pub(crate) fn clock_now_ms() -> f64 {
    clock::now_ms()
}

pub(crate) fn random_bytes(count: u32) -> Vec<u8> {
    random::bytes(count)
}

pub(crate) fn tools_list() -> Vec<ToolInfo> {
    convert::list(tools::list())
}

pub(crate) fn emit_event(event_type: &str, payload: &str) -> Result<(), EventError> {
    use events::EmitError;
    events::emit(event_type, payload).map_err(|error| match error {
        EmitError::UnknownType(why) => EventError::UnknownType(why),
        EmitError::InvalidPayload(why) => EventError::InvalidPayload(why),
        EmitError::Limit(why) => EventError::Limit(why),
        EmitError::Unavailable(why) => EventError::Unavailable(why),
        EmitError::Other(why) => EventError::Other(why),
    })
}

pub(crate) fn progress(percent: Option<f64>, line: &str) {
    tool_progress::report(percent, line);
}

pub(crate) fn setting(key: &str) -> Option<Setting> {
    settings::get(key).map(Into::into)
}

pub(crate) fn settings_all() -> Vec<(String, Setting)> {
    settings::all().into_iter().map(|(key, value)| (key, value.into())).collect()
}
