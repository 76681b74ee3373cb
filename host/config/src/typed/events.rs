//! The catalogue of thread events as typed: the default of the program and the files that override it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The catalogue of thread events, or a part of it: a file gives only the keys that it changes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CatalogueFile {
    /// The event types, by name. Any other name than those of the program declares a type for events of plugins and embedding programs, and
    /// needs a `payload_schema`.
    pub(crate) event_types: BTreeMap<String, EventTypeFile>,
    /// How events are kept, by the name of the level.
    pub(crate) criticality_levels: BTreeMap<String, LevelFile>,
    /// The groups of event types: their names and what they contain.
    pub(crate) categories: BTreeMap<String, String>,
}

/// An event type.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EventTypeFile {
    /// The group of the type, one of `categories`.
    pub(crate) category: Option<String>,
    /// How its events are kept, one of `criticality_levels`.
    pub(crate) criticality: Option<String>,
    /// What an event of the type reports, in one sentence.
    pub(crate) description: Option<String>,
    /// The JSON Schema of the payload. It cannot refer to other schemas.
    pub(crate) payload_schema: Option<Map<String, Value>>,
    /// Record events that report an error, such as an answer that broke off. Default: true.
    pub(crate) emit_on_error: Option<bool>,
    /// A session cannot be rebuilt without these events. Only the default of the program sets it.
    pub(crate) required: Option<bool>,
    /// A session in which this condition is fulfilled cannot be rebuilt without these events. Only the default of the program sets it.
    pub(crate) required_if: Option<String>,
    /// When events of the type are recorded.
    pub(crate) emit_config: EmitFile,
}

/// When events of a type are recorded.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EmitFile {
    /// Do not wait until events of a `best_effort` level are on disk. Default: that of the level.
    #[serde(rename = "async")]
    pub(crate) is_async: Option<bool>,
    /// The shortest time between two recorded events, such as `250ms`, `1s` or `2m`; `0s` records all. The last one is always recorded.
    pub(crate) throttle: Option<String>,
    /// Record events of the type only in sessions in which this condition is fulfilled.
    pub(crate) condition: Option<String>,
    /// The values of the progress that are recorded, ascending from 0 to 100. Empty: all.
    pub(crate) milestones: Option<Vec<f64>>,
    /// Record what was accumulated until an interruption. Default: true.
    pub(crate) accumulate_on_error: Option<bool>,
    /// Count events without a failure, and record them as one.
    pub(crate) aggregate: Option<AggregateWord>,
}

/// Over what events are counted.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AggregateWord {
    /// Each event has its own record.
    Never,
    /// One record for each turn, extension and callback.
    Turn,
}

/// A criticality level.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LevelFile {
    /// What the level means, in one or two sentences.
    pub(crate) description: Option<String>,
    /// Whether events of the level can be lost.
    pub(crate) durability: Option<Durability>,
    /// Do not wait until an event is on disk. Default: true for `best_effort`, false for `guaranteed`.
    #[serde(rename = "async")]
    pub(crate) is_async: Option<bool>,
    /// What happens to events when the queue of the writer is full. Without it, the turn waits.
    pub(crate) fallback: Option<Fallback>,
}

/// Whether events of a level can be lost.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// An event is on disk before the turn depends on it.
    Guaranteed,
    /// An event may be lost when the program ends suddenly.
    BestEffort,
}

/// What happens to events of a level when the queue of the writer is full.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// They are dropped, and their number is recorded.
    Drop,
}
