//! The catalogue of event types as one session uses it: `config` resolves it from data, `store` applies it to events.

use std::collections::BTreeMap;

/// How events are recorded, by the name of their type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventCatalogue {
    types: BTreeMap<String, EventType>,
}

/// How events of one type are recorded in one session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventType {
    /// Its group, such as `lifecycle`.
    pub category: String,
    /// The name of its criticality level.
    pub criticality: String,
    /// What it reports, in one sentence.
    pub description: String,
    /// The JSON Schema of its payload.
    pub payload_schema: serde_json::Value,
    /// The turn waits until it is on disk, and it is never left out.
    pub critical: bool,
    /// A session cannot be rebuilt without it.
    pub required: bool,
    /// A file has declared it: its events are [`EventKind::CustomEvent`](crate::EventKind::CustomEvent)s of this type.
    pub declared: bool,
    /// Whether its condition is fulfilled in this session. Without that, nothing of the type is recorded.
    pub enabled: bool,
    /// At most one event in this many milliseconds is recorded, and always the last one; 0 for no limit.
    pub throttle_ms: u64,
    /// The values of its progress that are recorded, ascending; the throttle does not apply to an event with progress. Empty: all.
    pub milestones: Vec<f64>,
    /// An event that reports an error is recorded, too.
    pub emit_on_error: bool,
    /// What was accumulated until an interruption is recorded.
    pub accumulate_on_error: bool,
    /// Events without an error are counted, and recorded as one.
    pub aggregate: Aggregate,
}

/// Over what events are counted that are recorded as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// Each has its own record.
    #[default]
    Never,
    /// One record for each turn, extension and callback.
    Turn,
}

impl EventType {
    /// A type of which everything is recorded without delay.
    pub fn new(category: impl Into<String>, criticality: impl Into<String>, critical: bool) -> Self {
        Self {
            category: category.into(),
            criticality: criticality.into(),
            description: String::new(),
            payload_schema: serde_json::Value::Bool(true),
            critical,
            required: false,
            declared: false,
            enabled: true,
            throttle_ms: 0,
            milestones: Vec::new(),
            emit_on_error: true,
            accumulate_on_error: true,
            aggregate: Aggregate::Never,
        }
    }
}

impl EventCatalogue {
    /// A catalogue of these types.
    pub fn new(types: BTreeMap<String, EventType>) -> Self {
        Self { types }
    }

    /// The type of this name.
    pub fn get(&self, name: &str) -> Option<&EventType> {
        self.types.get(name)
    }

    /// All types with their names, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &EventType)> {
        self.types.iter().map(|(name, of)| (name.as_str(), of))
    }
}

/// Which settings of a catalogue can have an effect on a type. A setting without one is refused where the catalogue is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventTraits {
    /// Some or all of its events report an error: `emit_on_error`.
    pub reports_errors: bool,
    /// Its events may contain what was accumulated until an interruption: `accumulate_on_error`.
    pub accumulates: bool,
    /// Its events may have a progress from 0 to 100: `milestones`.
    pub has_progress: bool,
    /// Its events can be counted for each turn: `aggregate`.
    pub can_be_counted: bool,
}

/// The types of which an event can report an error.
const REPORT_ERRORS: &[&str] = &[
    "thread_completed",
    "thread_error",
    "turn_finish",
    "cognition_out",
    "cognition_reasoning",
    "tool_call_result",
    "error_classified",
    "extension_callback",
    "extension_tool",
    "extension_withheld",
    "state_lost",
    "child_thread_failed",
    "schema_violation",
    "step_finish",
    "journal_failed",
    "context_compaction_end",
];

impl EventTraits {
    /// The traits of the type with this name.
    pub fn of(name: &str) -> Self {
        Self {
            reports_errors: REPORT_ERRORS.contains(&name),
            accumulates: name == "cognition_reasoning",
            has_progress: name == "tool_call_progress",
            can_be_counted: name == "extension_callback",
        }
    }
}
