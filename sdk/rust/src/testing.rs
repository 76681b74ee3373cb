//! Calls an extension's callbacks natively, over a host in memory: `cargo test` needs no guest and no host.
//!
//! [`Harness::answer`] puts a whole answer of a model through `on_plain_text`, `on_tag` and `on_llm_output`, split as the host
//! splits it, at every chunking:
//!
//! ```
//! use tidegate_sdk::prelude::*;
//! use tidegate_sdk::testing::{Answer, Harness};
//!
//! /// Replaces `<file>` by a link, and counts.
//! #[derive(Default)]
//! struct Links;
//!
//! impl OnTag for Links {
//!     fn tag_options(&self) -> TagOptions {
//!         TagOptions::new(["file"])
//!     }
//!
//!     fn on_tag(&mut self, tag: &Tag, _place: &TagPlace) -> Result<TagAnswer> {
//!         state::update("links", |links: Option<u32>| links.unwrap_or(0) + 1)?;
//!         Ok(TagAnswer::replace(format!("[{0}](/files/{0})", tag.content)))
//!     }
//! }
//! tidegate_sdk::export!(Links: OnTag);
//!
//! // `Harness::of_plugin(include_str!("../plugin.toml"))` in a plugin: its id, settings, powers and limits.
//! let mut harness = Harness::<Links>::of_plugin(
//!     r#"
//!         id = "links"
//!         capabilities.state = "counts links"
//!     "#,
//! );
//! let shown = harness.answer("See <file>a.rs</file>, not `<file>`.\n");
//! assert_eq!(shown.text, "See [a.rs](/files/a.rs), not `<file>`.\n");
//! assert_eq!(harness.state::<u32>("links"), Some(1));
//!
//! // A stream rule stops the first attempt; the writes of its callbacks are undone.
//! let retried = Answer::from("<file>b.rs</file>").after_discarding("<file>c.rs</file><file>d");
//! assert_eq!(harness.answer(retried).text, "[b.rs](/files/b.rs)");
//! assert_eq!(harness.state::<u32>("links"), Some(2));
//!
//! // The same, stopped at every position: the user sees the same answer in the end.
//! harness.retried("See <file>a.rs</file>.\n");
//! ```
//!
//! Single calls, for what is easier to see in one:
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

mod answer;
mod cuts;
mod drive;
mod limits;
mod manifest;
mod tools;
mod whole;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::answer::{Answer, Shown};
use self::manifest::{Keep, Manifest, Policy};
pub use self::tools::ToolRun;
use crate::host::{self, Host};
use crate::log::Level;
use crate::{
    Attribute, Exported, InputAnswer, KeptText, LlmOutput, Message, Migrate, Moment, OnFailure, OnInputMessages,
    OnLlmOutput, OnPlainText, OnTag, OutputAnswer, Result, SessionInfo, Setting, Settings, Tag, TagAnswer, TagPlace,
    TextAnswer, TextPlace, ToolInfo, TtsrEvent, TtsrTriggered,
};

/// What one call may return, in KiB, where the operator sets nothing else.
const OUTPUT_KIB: usize = 4_096;

/// A line that an extension logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// The line as the extension wrote it.
    pub message: String,
    /// Named values that go with it.
    pub fields: Vec<Attribute>,
}

/// An event that an extension emitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// Its type: `ID.NAME` for a type of `plugin.toml`.
    pub event_type: String,
    /// What `events::emit` was given.
    pub payload: serde_json::Value,
}

/// One extension in one session of a host in memory. It behaves as the host does: the instance is made at the first call,
/// a call that fails leaves the state as it was and loses the instance, and reading a value keeps it alive.
///
/// It does not measure time or memory: for `limits.callback_ms`, `text_ms`, `turn_ms` and `memory_mib` run the built plugin.
pub struct Harness<E> {
    host: Host,
    /// `None`: there is no manifest, and everything is granted.
    manifest: Option<Arc<Manifest>>,
    id: String,
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
        Self { host, manifest: None, id: "plugin".into(), instance: None, units: 0 }
    }

    /// A fresh session of the plugin with this `plugin.toml`, such as `include_str!("../plugin.toml")`: its id, the defaults of its
    /// settings, its failure policy, its limits on state and answers. A power that it does not request cannot be used.
    ///
    /// # Panics
    /// The manifest cannot be read.
    #[track_caller]
    pub fn of_plugin(manifest: &str) -> Self {
        let manifest = Manifest::read(manifest);
        let mut own = Self::new();
        own.id.clone_from(&manifest.id);
        own.host.session.extension.clone_from(&manifest.id);
        own.host.settings = manifest.defaults();
        own.host.powers = Some(manifest.powers());
        own.host.event_types = Some(manifest.event_types());
        let ttl = manifest.limits.state_ttl_s.map_or(own.host.standard_ttl, Duration::from_secs);
        own.host.standard_ttl = own.host.standard_ttl.min(ttl);
        let asked = manifest.limits.state_mib.map(|mib| mib << 20);
        own.host.state_bytes = asked.map_or(own.host.state_bytes, |asked| asked.min(own.host.state_bytes));
        own.manifest = Some(Arc::new(manifest));
        own
    }

    /// The same with a setting, such as `("replacement", "[gone]")`.
    ///
    /// # Panics
    /// There is a manifest, and it declares no such setting of this type.
    #[must_use]
    #[track_caller]
    pub fn with_setting(mut self, key: impl Into<String>, value: impl Into<Setting>) -> Self {
        let (key, value) = (key.into(), value.into());
        if let Some(manifest) = &self.manifest {
            manifest.check(&key, &value);
        }
        self.host.settings.insert(key, value);
        self
    }

    /// The same with another default time to live of values in state, as the operator can set it.
    #[must_use]
    pub fn with_standard_ttl(mut self, ttl: Duration) -> Self {
        self.host.standard_ttl = ttl;
        self
    }

    /// The same with an event type that a catalogue declares.
    #[must_use]
    pub fn with_event_type(mut self, name: impl Into<String>) -> Self {
        self.host.event_types.get_or_insert_default().insert(name.into());
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

    /// Puts a value into state, as an earlier callback or an older version of the extension would.
    ///
    /// # Panics
    /// The state refuses it: it is too large, or the power `state` is not requested.
    #[track_caller]
    pub fn set_state<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        let swapped = Swapped::new(&mut self.host);
        let set = crate::state::set(key, value);
        drop(swapped);
        set.unwrap_or_else(|error| panic!("state `{key}` cannot be set: {error}"));
    }

    /// All of the state, as bytes.
    pub fn state_bytes(&self) -> BTreeMap<String, Vec<u8>> {
        self.host.state.iter().map(|(key, stored)| (key.clone(), stored.value.clone())).collect()
    }

    /// The events that were emitted, in order, failed calls included. The host also checks their payloads against their schemas.
    pub fn events(&self) -> &[Emitted] {
        &self.host.emitted
    }

    /// What was logged, in order, failed calls included.
    pub fn log(&self) -> &[LogLine] {
        &self.host.log
    }

    /// Runs anything on the instance as a callback would run: with this harness's host, as a transaction.
    ///
    /// # Errors
    /// The extension refuses its settings, or `run` fails; the state is then as before.
    ///
    /// # Panics
    /// The manifest declares a setting without a default, and it was not given; or the call uses a power that the manifest does not
    /// request. The host loads no such plugin.
    #[track_caller]
    pub fn call<T>(&mut self, run: impl FnOnce(&mut E) -> Result<T>) -> Result<T> {
        self.check_settings();
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

impl<E> Harness<E> {
    #[track_caller]
    fn check_settings(&self) {
        if let Some(missing) = self.manifest.as_ref().and_then(|manifest| manifest.missing(&self.host.settings).pop()) {
            panic!("plugin.toml declares no default for setting `{missing}`: give it with `with_setting`");
        }
    }

    /// Whether a callback that was registered with this policy fails closed.
    fn fails_closed(&self, registered: OnFailure) -> bool {
        match registered {
            OnFailure::Unspecified => {
                self.manifest.as_ref().is_some_and(|manifest| manifest.on_failure == Policy::Withhold)
            }
            OnFailure::Skip => false,
            OnFailure::Withhold | OnFailure::Reject => true,
        }
    }

    /// Whether what was shown is kept of what a callback changes that registered this.
    fn keeps_shown(&self, registered: KeptText) -> bool {
        match registered {
            KeptText::Unspecified => self.manifest.as_ref().is_some_and(|manifest| manifest.keep == Keep::Shown),
            KeptText::Original => false,
            KeptText::Shown => true,
        }
    }

    /// The most bytes that a call may return.
    fn output_bytes(&self) -> usize {
        let wanted = self.manifest.as_ref().and_then(|manifest| manifest.limits.output_kib);
        wanted.map_or(OUTPUT_KIB, |wanted| wanted.min(OUTPUT_KIB)) << 10
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

impl<E: Exported + Migrate> Harness<E> {
    /// Calls `migrate`, as the host does where the state was written by this `state_version`.
    ///
    /// # Errors
    /// The extension's own; the state is as it was.
    ///
    /// # Panics
    /// There is a manifest, and its `state_version` is not newer than `from`: the host would not call it.
    #[track_caller]
    pub fn migrate(&mut self, from: u32) -> Result<()> {
        if let Some(manifest) = &self.manifest {
            let own = manifest.state_version;
            assert!(own > from, "plugin.toml has `state_version = {own}`, so nothing of version {from} is migrated");
        }
        self.call(|extension| extension.migrate(from))?;
        // The host migrates in an instance of its own.
        self.restart();
        Ok(())
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
