//! The imports of contract 0.1.0, each handed on to what the host has.

use super::bindings::tidegate::extension as imports;
use super::convert;
use flow::ports::StateLifetime;

use crate::events::NotEmitted;
use crate::guest::{Guest, Panic};
use crate::limits;
use crate::state::Refusal;
use imports::types::{MessageResult, SettingResult};

impl imports::types::Host for Guest {}

impl imports::log::Host for Guest {
    fn log(&mut self, level: imports::log::Level, message: String, fields: Vec<(String, String)>) {
        let level = match level {
            imports::log::Level::Trace => "trace",
            imports::log::Level::Debug => "debug",
            imports::log::Level::Info => "info",
            imports::log::Level::Warn => "warn",
            imports::log::Level::Error => "error",
        };
        Self::log(self, level, message, &fields);
    }

    fn panic(&mut self, message: String, file: String, line: u32, column: u32) {
        let message = limits::cut(&message, limits::MESSAGE_BYTES).to_owned();
        let file = limits::cut(&file, limits::MESSAGE_BYTES);
        self.call.panic = Some(Panic { message, place: format!("{file}:{line}:{column}") });
    }
}

impl imports::session::Host for Guest {
    fn info(&mut self) -> imports::session::SessionInfo {
        let extension = self.plugin.id.as_str().to_owned();
        match self.session() {
            None => convert::no_session(extension),
            Some(session) => convert::session_info(extension, session.view.info()),
        }
    }
}

impl imports::history::Host for Guest {
    fn length(&mut self) -> u32 {
        self.session().map_or(0, |session| convert::small(session.view.history_len() as u64))
    }

    fn messages(&mut self, from: u32, count: u32) -> Vec<MessageResult> {
        let Some(session) = self.session() else { return Vec::new() };
        let count = count.min(limits::HISTORY_MESSAGES) as usize;
        convert::history(&session.view.history(from as usize, count), limits::HISTORY_BYTES)
    }
}

impl imports::clock::Host for Guest {
    fn now_ms(&mut self) -> f64 {
        // Exact up to 2^53 ms, which is in the year 287396.
        self.session().map_or(0.0, |session| session.clock.now_ms() as f64)
    }
}

impl imports::random::Host for Guest {
    fn bytes(&mut self, count: u32) -> wasmtime::Result<Vec<u8>> {
        let mut bytes = vec![0; count.min(limits::RANDOM_BYTES) as usize];
        getrandom::fill(&mut bytes)
            .map_err(|error| wasmtime::Error::msg(format!("the system gives no random numbers: {error}")))?;
        Ok(bytes)
    }
}

impl imports::settings::Host for Guest {
    fn get(&mut self, key: String) -> Option<SettingResult> {
        self.plugin.settings.get(&key).map(convert::setting_out)
    }

    fn all(&mut self) -> Vec<(String, SettingResult)> {
        self.plugin.settings.iter().map(|(key, value)| (key.clone(), convert::setting_out(value))).collect()
    }
}

impl imports::tools::Host for Guest {
    fn list(&mut self) -> Vec<imports::tools::ToolInfo> {
        let Some(session) = self.session() else { return Vec::new() };
        session.view.tools().into_iter().map(convert::tool_out).collect()
    }
}

impl From<NotEmitted> for imports::events::EmitError {
    fn from(refusal: NotEmitted) -> Self {
        match refusal {
            NotEmitted::Unknown(why) => Self::UnknownType(why),
            NotEmitted::Payload(why) => Self::InvalidPayload(why),
            NotEmitted::Limit(why) => Self::Limit(why),
            NotEmitted::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl imports::events::Host for Guest {
    fn emit(&mut self, event_type: String, payload: String) -> Result<(), imports::events::EmitError> {
        Ok(Self::emit(self, &event_type, &payload)?)
    }
}

impl imports::tool_progress::Host for Guest {
    fn report(&mut self, percent: Option<f64>, text: String) {
        self.progress(percent, text);
    }
}

impl From<Refusal> for imports::state::StateError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::BadKey(why) => Self::BadKey(why),
            Refusal::Limit(why) => Self::Limit(why),
            Refusal::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl imports::state::Host for Guest {
    fn get(&mut self, key: String) -> Result<Option<Vec<u8>>, imports::state::StateError> {
        let (state, now, limits) = self.state()?;
        Ok(state.get(&key, now, limits)?)
    }

    fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        options: imports::state::SetOptions,
    ) -> Result<(), imports::state::StateError> {
        use imports::state::{Keep, StateError};
        let (state, now, limits) = self.state()?;
        let lifetime = match options.keep {
            Keep::Standard => {
                StateLifetime::Default { ttl_ms: u64::try_from(limits.state_ttl.as_millis()).unwrap_or(u64::MAX) }
            }
            Keep::Session => StateLifetime::Session,
            Keep::Ms(ms) => StateLifetime::Own { ttl_ms: u64::from(ms) },
            Keep::Other(name) => {
                let name = limits::cut(&name, 200);
                return Err(StateError::Other(format!("the lifetime `{name}` is not known to this version")));
            }
        };
        Ok(state.set(key, value, lifetime, now, limits)?)
    }

    fn delete(&mut self, key: String) -> Result<bool, imports::state::StateError> {
        let (state, now, limits) = self.state()?;
        Ok(state.delete(&key, now, limits)?)
    }

    fn clear(&mut self) -> Result<u32, imports::state::StateError> {
        let (state, now, _) = self.state()?;
        Ok(state.clear(now))
    }

    fn keys(&mut self, prefix: String) -> Result<Vec<String>, imports::state::StateError> {
        let (state, now, _) = self.state()?;
        Ok(state.keys(&prefix, now))
    }
}
