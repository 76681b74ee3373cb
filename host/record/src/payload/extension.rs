//! The payloads of extensions: what they register and do, and what becomes of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Absent;

payloads! {
    /// The payload of `custom_event`.
    CustomEvent {
        /// The type, which a file or a manifest declares.
        event_type: String,
        /// The id of the extension that emitted it; absent for the program that embeds the host.
        extension_id: Option<String>,
        /// What the schema of the type describes: an object.
        payload: Value,
    }

    /// The payload of `extension_registered`.
    ExtensionRegistered {
        /// The id of the extension.
        extension_id: String,
        /// The version of the extension.
        version: String,
        /// `register`, `enable` or `reload`.
        action: String,
        /// What it registered.
        callbacks: Vec<RegisteredCallback>,
    }

    /// A callback that an extension registered.
    RegisteredCallback {
        /// The callback's name.
        callback: String,
        /// From 0 to 100, higher first.
        priority: u32,
        /// What follows a failure.
        on_failure: String,
        /// `shown`: what the user saw is kept of what it changes.
        keep: Option<String>,
    }

    /// The payload of `extension_unregistered`.
    ExtensionUnregistered {
        /// The id of the extension.
        extension_id: String,
        /// `unregister` or `disable`.
        action: String,
        /// Why it was removed.
        reason: String,
    }

    /// The payload of `extension_prompt`.
    ExtensionPrompt {
        /// The id of the extension.
        extension_id: String,
        /// Another text of it was shown in the workspace before.
        changed: bool,
        /// Names the texts.
        digest: String,
        /// What the model reads of it.
        texts: Vec<PromptText>,
    }

    /// A text that an extension has the model read.
    PromptText {
        /// Where it goes.
        place: String,
        /// The text as the model reads it.
        text: String,
    }

    /// The payload of `extension_callback`.
    ExtensionCallback {
        /// The id of the extension.
        extension_id: String,
        /// The callback's name.
        callback: String,
        /// How many calls of the turn these are, where there are several.
        calls: Option<u32>,
        /// How long it took, in microseconds; of several calls together.
        duration_us: f64,
        /// `passed`, `changed`, `skipped`, `not_permitted`, `error` or `ignored`.
        outcome: String,
        /// Why it was skipped, failed or was ignored.
        reason: Option<String>,
        /// Of a failure: its kind.
        cause: Option<String>,
        /// Of a trap: the functions, innermost first.
        frames: Option<Vec<String>>,
        /// How many values of its state the extension has read.
        state_reads: Option<u64>,
    }

    /// The payload of `extension_tool`.
    ExtensionTool {
        /// The id of the extension.
        extension_id: String,
        /// The tool's name.
        tool: String,
        /// The id of the call.
        call_id: String,
        /// How long it took, in microseconds.
        duration_us: f64,
        /// `done`, `rejected`, `not_permitted`, `error` or `stopped`.
        outcome: String,
        /// Why it was rejected, not made or failed.
        reason: Option<String>,
        /// Of a failure: its kind.
        cause: Option<String>,
        /// Of a trap: the functions, innermost first.
        frames: Option<Vec<String>>,
        /// How many values of its state the extension has read.
        state_reads: Option<u64>,
    }

    /// The payload of `extension_breaker`.
    ExtensionBreaker {
        /// The id of the extension.
        extension_id: String,
        /// The callback whose call changed the state.
        callback: Option<String>,
        /// The tool whose call changed the state.
        tool: Option<String>,
        /// `session` or `host`.
        scope: String,
        /// `open`, `half_open` or `closed`.
        state: String,
        /// What changed it.
        reason: String,
        /// Milliseconds until a call is tried again; 0 unless it is open.
        retry_after_ms: u64,
    }

    /// The payload of `extension_withheld`.
    ExtensionWithheld {
        /// The id of the extension.
        extension_id: String,
        /// In which callback.
        callback: String,
        /// Bytes of text that were withheld.
        bytes: u64,
        /// Why it was not checked.
        reason: String,
    }

    /// The payload of `extension_state`.
    ExtensionState {
        /// The id of the extension.
        extension_id: String,
        /// `set`, `delete`, `clear`, `evict` or `roll_back`.
        operation: String,
        /// The key; empty for `clear`.
        key: String,
        /// Bytes of the extension's state afterwards.
        size_bytes: u64,
    }

    /// The payload of `extension_log`.
    ExtensionLog {
        /// The id of the extension.
        extension_id: String,
        /// `trace`, `debug`, `info`, `warn` or `error`.
        level: String,
        /// The line as the plugin wrote it.
        message: String,
    }
}
