//! The stored data of a conversation next to the state of its plugins: a note of the host, which no plugin can read or write.

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::ports::{StateEntry, StateLifetime};
use rules::{InjectionRecord, RuleMemory, TurnSpent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::KEPT_POINTS;

/// The key of the note. It contains a dot, which no id of a plugin does: notes about plugins have ids as keys.
pub(super) const KEY: &str = "conversation.1";

/// The data that is kept of a conversation between requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kept {
    pub(super) rules: RuleMemory,
    /// The memory of the embedder.
    pub(super) memory: Value,
    /// The points behind its last answers, each with the number of turns that had ended there.
    pub(super) points: Vec<(String, u64)>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    records: Vec<WrittenRecord>,
    #[serde(default)]
    completed: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    interrupts: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    untrusted: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    by_rule: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    reminders: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    memory: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    points: Vec<(String, u64)>,
}

#[derive(Serialize, Deserialize)]
struct WrittenRecord {
    rule: String,
    hash: u64,
    turn: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Kept {
    /// Returns the note that stores it.
    ///
    /// # Errors
    /// The memory cannot be written as JSON.
    pub(super) fn note(&self, now_ms: u64) -> Result<StateEntry, serde_json::Error> {
        let RuleMemory { records, completed, spent } = self.rules.clone();
        let record = |one: InjectionRecord| WrittenRecord { rule: one.rule, hash: one.hash, turn: one.turn };
        let written = Written {
            records: records.into_iter().map(record).collect(),
            completed,
            interrupts: spent.interrupts,
            untrusted: spent.untrusted,
            by_rule: spent.by_rule,
            reminders: spent.reminders,
            memory: self.memory.clone(),
            points: self.points.clone(),
        };
        Ok(StateEntry::written(KEY, serde_json::to_vec(&written)?, StateLifetime::Session, now_ms))
    }

    /// Reads a note.
    ///
    /// # Errors
    /// It is not such a note, or it is of another version.
    pub(super) fn read(note: &[u8]) -> Result<Self, serde_json::Error> {
        let Written { records, completed, interrupts, untrusted, by_rule, reminders, memory, points } =
            serde_json::from_slice(note)?;
        let record = |one: WrittenRecord| InjectionRecord { rule: one.rule, hash: one.hash, turn: one.turn };
        let records = records.into_iter().map(record).collect();
        let spent = TurnSpent { interrupts, untrusted, by_rule, reminders };
        Ok(Self { rules: RuleMemory { records, completed, spent }, memory, points })
    }

    /// Merges the changes of two owners: `self` and `other` both continued `base`.
    pub(super) fn merged(&self, base: &Self, other: &Self) -> Self {
        let rules = self.rules.merged(&base.rules, &other.rules);
        let new = self.points.iter().filter(|(point, _)| other.points.iter().all(|(known, _)| known != point));
        let mut points: Vec<(String, u64)> = other.points.iter().chain(new).cloned().collect();
        points.drain(..points.len().saturating_sub(KEPT_POINTS));
        Self { rules, memory: merged(&base.memory, &self.memory, &other.memory), points }
    }
}

/// The data as it was last seen in the store.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// The note, if there is one.
    pub(super) note: Option<Arc<[u8]>>,
    pub(super) kept: Kept,
}

impl Stored {
    /// Without a note, the store has lost it, since no host deletes it: entries that are missing were not removed by anyone.
    pub(super) fn forget_unless_in(&mut self, now: &Self) {
        if now.note.is_none() {
            *self = Self::default();
        }
    }
}

/// Merges the changes of two owners to one value (three-way merge). Added and changed entries of objects are kept from both, and so are
/// elements that were appended to lists. Where both have changed one entry differently, `own` wins.
pub(super) fn merged(base: &Value, own: &Value, other: &Value) -> Value {
    match (own, other) {
        _ if own == base => other.clone(),
        _ if other == base || own == other => own.clone(),
        (Value::Object(own), Value::Object(other)) => {
            let none = Map::new();
            Value::Object(objects(base.as_object().unwrap_or(&none), own, other))
        }
        (Value::Array(own), Value::Array(other)) => {
            let before = base.as_array().map_or(&[][..], Vec::as_slice);
            let both = own.starts_with(before) && other.starts_with(before);
            let added = if both { &own[before.len()..] } else { &own[..] };
            let start = if both { &other[..] } else { &[] };
            Value::Array(start.iter().chain(added).cloned().collect())
        }
        _ => own.clone(),
    }
}

fn objects(base: &Map<String, Value>, own: &Map<String, Value>, other: &Map<String, Value>) -> Map<String, Value> {
    let mut all = Map::new();
    for key in other.keys().chain(own.keys().filter(|key| !other.contains_key(*key))) {
        let before = base.get(key);
        let value = match (own.get(key), other.get(key)) {
            (Some(own), Some(other)) => Some(merged(before.unwrap_or(&Value::Null), own, other)),
            // One of the two has removed an entry that the other has not changed.
            (Some(one), None) | (None, Some(one)) => Some(one.clone()).filter(|one| before != Some(one)),
            (None, None) => None,
        };
        all.extend(value.map(|value| (key.clone(), value)));
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn two_owners_lose_nothing() {
        for (base, own, other, both) in [
            (json!(null), json!({"a": 1}), json!({"b": 2}), json!({"b": 2, "a": 1})),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), json!({"a": 1}), json!({"a": 1, "b": 2})),
            (json!({"a": 1, "b": 2}), json!({"b": 2}), json!({"a": 1, "b": 2, "c": 3}), json!({"b": 2, "c": 3})),
            (
                json!({"a": {"x": 1}}),
                json!({"a": {"x": 1, "y": 2}}),
                json!({"a": {"x": 1, "z": 3}}),
                json!({"a": {"x": 1, "z": 3, "y": 2}}),
            ),
            (json!([1]), json!([1, 2]), json!([1, 3]), json!([1, 3, 2])),
            (json!([1]), json!([2]), json!([1]), json!([2])),
            (json!({"a": 1}), json!({"a": 2}), json!({"a": 3}), json!({"a": 2})),
        ] {
            assert_eq!(merged(&base, &own, &other), both, "{base} {own} {other}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let record = InjectionRecord { rule: "no-todo".to_owned(), hash: u64::MAX, turn: 3 };
        let spent = TurnSpent {
            interrupts: 2,
            untrusted: 1,
            by_rule: [("no-todo".to_owned(), 2)].into(),
            ..TurnSpent::default()
        };
        let rules = RuleMemory { records: vec![record], completed: 4, spent };
        let kept = Kept { rules, memory: json!({"placeholder": "SECRET_1"}), points: vec![("0a".to_owned(), 3)] };
        assert_eq!(Kept::read(&kept.note(1).unwrap().value).unwrap(), kept);
        assert_eq!(Kept::read(&Kept::default().note(1).unwrap().value).unwrap(), Kept::default());
        assert!(Kept::read(b"{}}").is_err());
    }
}
