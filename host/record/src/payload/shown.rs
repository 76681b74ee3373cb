//! The payloads of the shown stream, where it has less of an event than the event's record: no text that a rule or an extension kept
//! from the user, and no words of extensions, which were given that text.

use serde::{Deserialize, Serialize};

use super::Absent;
use crate::message::Author;

payloads! {
    /// An answer has ended; its text is that of the deltas.
    ShownAnswer {
        /// The model's name.
        model: Option<String>,
        /// Who wrote it: the model, or an extension in its place.
        #[serde(default)]
        author: Author,
        /// It did not come to its end.
        #[serde(default)]
        is_partial: bool,
        /// Of a partial answer: why it ended, such as the rule that stopped it.
        error: Option<String>,
        /// Of a partial answer: the bytes of it that were shown, including those kept from an earlier attempt.
        shown_bytes: Option<u64>,
        /// Of a partial answer: how many of them, from the start, the next attempt continues. The rest is void; 0: all of it.
        kept_bytes: Option<u64>,
        /// Of a partial answer: what stays in the conversation, `nothing`, `answer`, `start` or `marked`. What was shown and is not void stays
        /// as a message of its own with `marked`, `answer`, and `start` where `kept_bytes` has not grown.
        retained: Option<String>,
    }

    /// A call is over.
    ShownToolResult {
        /// The id of the call.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// What the tool gave, after extensions. Absent where the call did not run: what the model reads then can quote what a rule found.
        output: Option<String>,
        /// It failed, or did not run.
        is_error: bool,
        /// A unified diff, for people.
        diff: Option<String>,
        /// How long it ran; absent where it did not.
        duration_ms: Option<u64>,
        /// How long it waited for a confirmation; absent where nobody was asked.
        waited_ms: Option<u64>,
    }

    /// A stream rule matched.
    ShownMatch {
        /// The name of the rule.
        rule: String,
        /// `text`, `thinking` or `tool`.
        stream: String,
        /// What is done about it.
        action: String,
        /// The first of this stream and rule in the turn.
        first: bool,
        /// Only reported: its repeat mode does not let it act.
        again: bool,
        /// Of a tool call: its id.
        call_id: Option<String>,
        /// Of a tool call: the tool's name.
        tool: Option<String>,
    }

    /// Reminders of these rules went to the model.
    ShownInjection {
        /// Names of the rules, each once.
        rules: Vec<String>,
        /// Bytes of the answer that were discarded.
        discarded_bytes: u64,
    }

    /// Another conversation has taken the place of the former.
    ShownReplacement {
        /// How many messages it has.
        messages: u64,
    }

    /// The conversation is smaller, or nothing has changed.
    ShownCompaction {
        /// How many messages of the conversation stay, from the end.
        kept_messages: u64,
        /// Tokens of the next prompt as it is now.
        used_tokens: u64,
        /// Why there is no summary.
        error: Option<String>,
    }

    /// A child did not complete its task.
    ShownChildFailure {
        /// The child's thread.
        child_thread_id: String,
    }

    /// A callback was called, or skipped.
    ShownCallback {
        /// The id of the extension.
        extension_id: String,
        /// The callback's name.
        callback: String,
        /// How long it took, in microseconds.
        duration_us: f64,
        /// `passed`, `changed`, `skipped`, `not_permitted`, `error` or `ignored`.
        outcome: String,
        /// Of a failure: its kind.
        cause: Option<String>,
    }

    /// A call of a tool that an extension provides has ended, or was not made.
    ShownTool {
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
        /// Of a failure: its kind.
        cause: Option<String>,
    }

    /// A circuit breaker of an extension has changed its state.
    ShownBreaker {
        /// The id of the extension.
        extension_id: String,
        /// `session` or `host`.
        scope: String,
        /// `open`, `half_open` or `closed`.
        state: String,
        /// Milliseconds until a call is tried again; 0 unless it is open.
        retry_after_ms: u64,
    }

    /// An extension that fails closed did not check something, so it was not shown, or not sent.
    ShownWithheld {
        /// The id of the extension.
        extension_id: String,
        /// In which callback.
        callback: String,
        /// Bytes of text that were withheld.
        bytes: u64,
    }

    /// The payload of an event contradicts the schema of its type.
    ShownViolation {
        /// The type of the event.
        event_type: String,
    }
}
