//! What a plugin may use up, and the part of it that the engine asks about: memory, tables, instances.

use std::time::Duration;

use flow::CallbackKind;
#[cfg(feature = "wasm")]
use wasmtime::ResourceLimiter;

/// The most bytes a component may have before anything parses it: 32 MiB. A component that `componentize-py` makes contains a Python
/// interpreter, 18.4 MB of it before the author's own modules; the next power of two leaves as much again for those.
pub const COMPONENT_MAX_BYTES: u64 = 32 << 20;

/// Lines of the `log` power that one callback may write; the rest is counted.
pub(crate) const LOG_LINES: u32 = 64;
/// Bytes of one line that are kept.
pub(crate) const LOG_LINE_BYTES: usize = 4 << 10;
/// The maximum length of a plugin's own error message in bytes.
pub(crate) const MESSAGE_BYTES: usize = 4 << 10;
/// Messages that one call of `history.messages` returns at most.
pub(crate) const HISTORY_MESSAGES: u32 = 256;
/// Bytes of the text in them.
pub(crate) const HISTORY_BYTES: usize = 1 << 20;
/// Bytes that one call of `random.bytes` returns at most.
pub(crate) const RANDOM_BYTES: u32 = 4096;
/// Notes about one output.
pub(crate) const ANNOTATIONS: usize = 32;
/// Bytes of a note's name.
pub(crate) const ANNOTATION_KEY_BYTES: usize = 128;
/// Bytes of a note's value.
pub(crate) const ANNOTATION_VALUE_BYTES: usize = 64 << 10;

/// Tools that one plugin provides.
pub(crate) const TOOLS: usize = 64;
/// Characters of a tool's name.
pub(crate) const TOOL_NAME: usize = 64;
/// Bytes of a tool's description.
pub(crate) const TOOL_DESCRIPTION_BYTES: usize = 4 << 10;
/// Bytes of the payload of an event that a plugin emits.
pub(crate) const EVENT_BYTES: usize = 16 << 10;
/// Events that a plugin emits in a turn.
pub(crate) const EVENTS: u32 = 256;
/// Bytes of the JSON Schema of a tool's arguments.
pub(crate) const TOOL_SCHEMA_BYTES: usize = 64 << 10;
/// Subschemas of all tools of one plugin, references written out. 64 tools with 64 arguments each fit.
pub(crate) const SCHEMA_NODES: usize = 4096;
/// Schemas inside of each other, references written out: checks recurse so deep.
pub(crate) const SCHEMA_DEPTH: usize = 64;
/// Patterns in them. One can take up to 10 MB of memory.
pub(crate) const SCHEMA_PATTERNS: usize = 32;
/// Bytes of the arguments of one call.
pub(crate) const TOOL_ARGUMENT_BYTES: usize = 256 << 10;
/// What a check of arguments may take: values in them, times what their schema compares each with. 100 times 10,000
/// take about 0.1 s at most.
pub(crate) const CHECK_STEPS: usize = 1_000_000;
/// Lines of the interface `tool-progress` that one call may report; the rest is counted.
pub(crate) const PROGRESS_LINES: u32 = 256;
/// Bytes of one of these lines that are kept.
pub(crate) const PROGRESS_BYTES: usize = 1 << 10;

/// Core instances of one component: languages with a runtime bring up to 40.
const INSTANCES: usize = 64;
/// Tables of one component.
const TABLES: usize = 64;
/// Memories of one component.
const MEMORIES: usize = 16;
/// Elements of one table.
pub(crate) const TABLE_ELEMENTS: usize = 1 << 16;

/// What one plugin may use in one session. The defaults are those the contract names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestLimits {
    /// Own time of a callback, of `register`, and of starting an instance: while it runs, not while it waits for an
    /// executor or a processor.
    pub time: Duration,
    /// Own time of `on_plain_text` and `on_tag`, which are called for every unit of an answer.
    pub text_time: Duration,
    /// Own time of all callbacks of one turn together; starting an instance is not part of it, nor are calls of tools and the
    /// callbacks around them: how many there are is for the model to decide.
    pub turn_time: Duration,
    /// Own time of one call of a tool.
    pub tool_time: Duration,
    /// Bytes over all memories of an instance.
    pub memory_bytes: usize,
    /// Bytes of everything that one callback returns.
    pub returned_bytes: usize,
    /// Bytes of the result of one call of a tool, which goes into the conversation.
    pub tool_bytes: usize,
    /// Bytes of a key of the `state` power.
    pub state_key_bytes: usize,
    /// Bytes of one value of the `state` power.
    pub state_value_bytes: usize,
    /// Bytes of all keys and values of the `state` power together.
    pub state_total_bytes: u64,
    /// How long a value of the `state` power is kept since it was last read or written, where the plugin sets no time.
    pub state_ttl: Duration,
}

impl Default for GuestLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_millis(100),
            text_time: Duration::from_millis(20),
            turn_time: Duration::from_secs(2),
            tool_time: Duration::from_secs(30),
            memory_bytes: 32 << 20,
            returned_bytes: 4 << 20,
            tool_bytes: 64 << 10,
            state_key_bytes: 512,
            state_value_bytes: 1 << 20,
            state_total_bytes: 10 << 20,
            state_ttl: Duration::from_secs(60 * 60),
        }
    }
}

impl GuestLimits {
    /// The own time that one call may use.
    pub fn time_of(&self, callback: CallbackKind) -> Duration {
        match callback {
            CallbackKind::PlainText | CallbackKind::Tag => self.text_time,
            CallbackKind::InputMessages
            | CallbackKind::LlmOutput
            | CallbackKind::TtsrTriggered
            | CallbackKind::ToolCall
            | CallbackKind::ToolResult => self.time,
        }
    }

    /// Bytes that a guest may make the host allocate while one value crosses. More than what may be returned, so that
    /// a slightly too large answer is still read and refused with its real size.
    pub(crate) fn crossing_bytes(&self) -> usize {
        self.returned_bytes.max(self.state_value_bytes).max(self.tool_bytes).saturating_mul(4)
    }
}

/// Counts what an instance has, and refuses what is too much.
#[derive(Debug)]
#[cfg(feature = "wasm")]
pub(crate) struct Limiter {
    max: usize,
    used: usize,
    /// What the last `memory_growing` added, to be taken back when the growth fails after all.
    pending: usize,
    refused: Option<usize>,
    /// Why the system had no memory for a growth that the limit allows.
    exhausted: Option<String>,
}

#[cfg(feature = "wasm")]
impl Limiter {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, used: 0, pending: 0, refused: None, exhausted: None }
    }

    /// The bytes an instance would have had, where a growth was refused since this was last asked.
    pub(crate) fn take_refused(&mut self) -> Option<usize> {
        self.refused.take()
    }

    /// Why the system had no memory, where it had none since this was last asked.
    pub(crate) fn take_exhausted(&mut self) -> Option<String> {
        self.exhausted.take()
    }
}

#[cfg(feature = "wasm")]
impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = desired.saturating_sub(current);
        let total = self.used.saturating_add(wanted);
        if total > self.max || maximum.is_some_and(|max| desired > max) {
            self.refused = Some(total);
            return Ok(false);
        }
        self.used = total;
        self.pending = wanted;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.used = self.used.saturating_sub(self.pending);
        // A growth that was refused before the system was asked has nothing pending.
        if std::mem::take(&mut self.pending) > 0 {
            self.exhausted = Some(error.root_cause().to_string());
        }
        Ok(())
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

/// The longest prefix of `text` of at most `max` bytes, cut at a character boundary.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// The text, where it has at most `max` bytes, else as much of it as fits before the mark `…`.
pub(crate) fn shorten(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    const MARK: &str = "…";
    format!("{}{MARK}", cut(&text, max.saturating_sub(MARK.len())))
}

#[cfg(all(test, feature = "wasm"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use wasmtime::ResourceLimiter as _;

    use super::{Limiter, cut, shorten};

    #[test]
    fn memories_are_summed() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap(), "a second memory counts too");
        assert_eq!(limiter.take_refused(), Some(120));
        assert!(limiter.memory_growing(60, 100, None).unwrap());
        limiter.memory_grow_failed(wasmtime::Error::msg("no")).unwrap();
        assert!(limiter.memory_growing(0, 40, None).unwrap(), "what failed is given back");
        assert_eq!(limiter.take_exhausted().as_deref(), Some("no"), "the guest did not ask for too much");
    }

    #[test]
    fn cut_keeps_characters_whole() {
        assert_eq!(cut("aäb", 2), "a");
        assert_eq!(cut("aäb", 3), "aä");
        assert_eq!(cut("ab", 9), "ab");
        assert_eq!(shorten("äbcde".into(), 5), "ä…");
        assert_eq!(shorten("äbcd".into(), 5), "äbcd");
    }
}
