//! Calls an extension's callbacks natively, over a host in memory: `cargo test` needs no guest and no host.
//!
//! ```
//! use tidegate_sdk::prelude::*;
//! use tidegate_sdk::testing::Harness;
//!
//! #[derive(Default)]
//! struct Counter;
//!
//! impl OnPlainText for Counter {
//!     fn on_plain_text(&mut self, _text: &str, _place: &TextPlace) -> Result<TextAnswer> {
//!         state::update("seen", |seen: Option<u32>| seen.unwrap_or(0) + 1)?;
//!         Ok(TextAnswer::Pass)
//!     }
//! }
//! tidegate_sdk::export!(Counter: OnPlainText);
//!
//! let mut harness = Harness::<Counter>::new();
//! assert_eq!(harness.plain_text("one\n").unwrap(), TextAnswer::Pass);
//! harness.restart(); // The host may drop an instance between any two calls.
//! harness.plain_text("two\n").unwrap();
//! assert_eq!(harness.state::<u32>("seen"), Some(2));
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::host::{self, Host};
use crate::log::Level;
use crate::{
    Attribute, Exported, InputAnswer, LlmOutput, Message, Moment, OnInputMessages, OnLlmOutput, OnPlainText, OnTag,
    OutputAnswer, Result, SessionInfo, Setting, Settings, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, ToolInfo,
    TtsrEvent, TtsrTriggered,
};

/// A line that an extension logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// The line as the extension wrote it.
    pub message: String,
    /// Named values beside it.
    pub fields: Vec<Attribute>,
}

/// One extension in one session of a host in memory. It behaves as the host does: the instance is made at the first call,
/// a call that fails leaves the state as it was and loses the instance, and reading a value keeps it alive.
pub struct Harness<E> {
    host: Host,
    instance: Option<E>,
    units: u32,
}

impl<E: Exported> Harness<E> {
    /// A fresh session: no settings, no state, no history, no tools. The time is 2026-01-01, and random numbers are the same
    /// in each harness.
    pub fn new() -> Self {
        let mut host = Host::default();
        host.session.id = "session".into();
        host.session.at = Moment::new(1, 1, 1);
        Self { host, instance: None, units: 0 }
    }

    /// The same with a setting, such as `("replacement", "[gone]")`.
    #[must_use]
    pub fn with_setting(mut self, key: impl Into<String>, value: impl Into<Setting>) -> Self {
        self.host.settings.insert(key.into(), value.into());
        self
    }

    /// The same with another default time to live of values in state, as the operator can set it.
    #[must_use]
    pub fn with_standard_ttl(mut self, ttl: Duration) -> Self {
        self.host.standard_ttl = ttl;
        self
    }

    /// The same with a tool offered to the model.
    #[must_use]
    pub fn with_tool(mut self, tool: ToolInfo) -> Self {
        self.host.tools.push(tool);
        self
    }

    /// The facts that [`session::info`](crate::session::info) gives from here on.
    pub fn session(&mut self) -> &mut SessionInfo {
        &mut self.host.session
    }

    /// The messages that [`history::messages`](crate::history::messages) returns from here on.
    pub fn history(&mut self) -> &mut Vec<Message> {
        &mut self.host.history
    }

    /// Drops the instance, as the host may between any two calls. State stays.
    pub fn restart(&mut self) {
        self.instance = None;
    }

    /// Lets time pass, for the clock and for values in state.
    pub fn advance(&mut self, time: Duration) {
        self.host.now_ms = self.host.now_ms.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.host.expire();
    }

    /// The value under a key of state.
    ///
    /// # Panics
    /// It is not a `T`.
    pub fn state<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let stored = self.host.state.get(key)?;
        match serde_json::from_slice(&stored.value) {
            Ok(value) => Some(value),
            Err(error) => panic!("state `{key}` is not a `{}`: {error}", std::any::type_name::<T>()),
        }
    }

    /// All of the state, as bytes.
    pub fn state_bytes(&self) -> BTreeMap<String, Vec<u8>> {
        self.host.state.iter().map(|(key, stored)| (key.clone(), stored.value.clone())).collect()
    }

    /// What was logged, in order, failed calls included.
    pub fn log(&self) -> &[LogLine] {
        &self.host.log
    }

    /// Runs anything on the instance as a callback would run: with this harness's host, as a transaction.
    ///
    /// # Errors
    /// The extension refuses its settings, or `run` fails; the state is then as before.
    pub fn call<T>(&mut self, run: impl FnOnce(&mut E) -> Result<T>) -> Result<T> {
        let before = self.host.state.clone();
        // Also puts the hosts back when the callback panics.
        let swapped = Swapped::new(&mut self.host);
        let result = match &mut self.instance {
            Some(extension) => run(extension),
            empty => E::make(&Settings::host()).and_then(|extension| run(empty.insert(extension))),
        };
        drop(swapped);
        if result.is_err() {
            self.host.state = before;
            self.instance = None;
        }
        result
    }
}

/// The harness's host in the thread's place, until dropped.
struct Swapped<'a>(&'a mut Host);

impl<'a> Swapped<'a> {
    fn new(own: &'a mut Host) -> Self {
        host::with(|current| std::mem::swap(current, own));
        Self(own)
    }
}

impl Drop for Swapped<'_> {
    fn drop(&mut self) {
        host::with(|current| std::mem::swap(current, self.0));
    }
}

impl<E: Exported + OnInputMessages> Harness<E> {
    /// Calls `on_input_messages`.
    ///
    /// # Errors
    /// The callback's own.
    pub fn input_messages(&mut self, messages: Vec<Message>) -> Result<InputAnswer> {
        self.call(|extension| extension.on_input_messages(messages))
    }
}

impl<E: Exported + OnPlainText> Harness<E> {
    /// Calls `on_plain_text` with the next unit of the message, outside of all tags.
    ///
    /// # Errors
    /// The callback's own.
    pub fn plain_text(&mut self, text: &str) -> Result<TextAnswer> {
        let place = TextPlace::new(self.units, &[]);
        self.units += 1;
        self.plain_text_at(text, &place)
    }

    /// Calls `on_plain_text` with a unit at this place.
    ///
    /// # Errors
    /// The callback's own.
    pub fn plain_text_at(&mut self, text: &str, place: &TextPlace) -> Result<TextAnswer> {
        self.call(|extension| extension.on_plain_text(text, place))
    }
}

impl<E: Exported + OnTag> Harness<E> {
    /// Calls `on_tag` with a section outside of all other tags.
    ///
    /// # Errors
    /// The callback's own.
    pub fn tag(&mut self, tag: &Tag) -> Result<TagAnswer> {
        self.tag_at(tag, &TagPlace::default())
    }

    /// Calls `on_tag` with a section at this place.
    ///
    /// # Errors
    /// The callback's own.
    pub fn tag_at(&mut self, tag: &Tag, place: &TagPlace) -> Result<TagAnswer> {
        self.call(|extension| extension.on_tag(tag, place))
    }
}

impl<E: Exported + OnLlmOutput> Harness<E> {
    /// Calls `on_llm_output`.
    ///
    /// # Errors
    /// The callback's own.
    pub fn llm_output(&mut self, output: &LlmOutput) -> Result<OutputAnswer> {
        self.call(|extension| extension.on_llm_output(output))
    }
}

impl<E: Exported + TtsrTriggered> Harness<E> {
    /// Calls `ttsr_triggered`.
    ///
    /// # Errors
    /// The callback's own.
    pub fn ttsr_triggered(&mut self, event: &TtsrEvent) -> Result<()> {
        self.call(|extension| extension.ttsr_triggered(event))
    }
}

impl<E: Exported> Default for Harness<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for Harness<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("host", &self.host).finish_non_exhaustive()
    }
}
