//! The powers of a guest: the imports of the contract. What is not called is not imported.

use crate::__guest::base::tidegate::extension::{log as wit_log, session, settings, state, tools};
use crate::log::Level;
use crate::{Message, SessionInfo, Setting, StateError, ToolInfo, convert};

pub(crate) fn state_get(key: &str) -> Result<Option<Vec<u8>>, StateError> {
    Ok(state::get(key)?)
}

pub(crate) fn state_set(key: &str, value: &[u8], ttl_ms: Option<u32>) -> Result<(), StateError> {
    Ok(state::set(key, value, &state::SetOptions { ttl_ms, attributes: Vec::new() })?)
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

pub(crate) fn session_history(from: u32, count: u32) -> Vec<Message> {
    convert::list(session::history(from, count))
}

pub(crate) fn tools_list() -> Vec<ToolInfo> {
    convert::list(tools::list())
}

pub(crate) fn setting(key: &str) -> Option<Setting> {
    settings::get(key).map(Into::into)
}

pub(crate) fn settings_all() -> Vec<(String, Setting)> {
    settings::all().into_iter().map(|(key, value)| (key, value.into())).collect()
}
