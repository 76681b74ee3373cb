//! Coalesced changes have the same effect as all changes one after the other, and are no more than the keys.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use flow::ports::{StateBatch, StateChange, StateEntry, StateLifetime};
use proptest::prelude::*;

use super::PluginChanges;

fn entry(key: &str, value: u8, now: u64) -> StateEntry {
    StateEntry::written(key, [value], StateLifetime::Own { ttl_ms: 100 }, now)
}

/// Few keys, so that changes meet.
fn change() -> impl Strategy<Value = StateChange> {
    let key = prop::sample::select(vec!["a", "b", "c"]);
    prop_oneof![
        4 => (key.clone(), any::<u8>(), 0..50u64).prop_map(|(key, value, now)| StateChange::Set(entry(key, value, now))),
        2 => (key.clone(), 0..50u64).prop_map(|(key, now)| StateChange::Touch {
            key: key.to_owned(),
            expires_ms: Some(now + 100),
            used_ms: now,
        }),
        2 => key.prop_map(|key| StateChange::Delete(key.to_owned())),
        1 => Just(StateChange::Clear),
    ]
}

fn batches() -> impl Strategy<Value = Vec<Vec<StateChange>>> {
    prop::collection::vec(prop::collection::vec(change(), 0..5), 0..6)
}

/// The oracle: one change after the other.
fn one_by_one(entries: &mut BTreeMap<String, StateEntry>, changes: &[StateChange]) {
    for change in changes.iter().cloned() {
        match change {
            StateChange::Set(entry) => drop(entries.insert(entry.key.clone(), entry)),
            StateChange::Touch { key, expires_ms, used_ms } => {
                if let Some(entry) = entries.get_mut(&key) {
                    (entry.expires_ms, entry.used_ms) = (expires_ms, used_ms);
                }
            }
            StateChange::Delete(key) => drop(entries.remove(&key)),
            StateChange::Clear => entries.clear(),
        }
    }
}

fn coalesced(batches: &[Vec<StateChange>], stored: &BTreeSet<String>) -> PluginChanges {
    let mut changes = PluginChanges::default();
    for batch in batches {
        changes.push(StateBatch::from(batch.clone()), |key| stored.contains(key));
    }
    changes
}

proptest! {
    #[test]
    fn coalesced_changes_have_the_same_effect(
        first in batches(),
        later in batches(),
        stored in prop::collection::btree_map("[abc]", any::<u8>(), 0..3),
    ) {
        let stored: BTreeMap<String, StateEntry> = stored.iter().map(|(key, value)| (key.clone(), entry(key, *value, 0))).collect();
        let keys: BTreeSet<String> = stored.keys().cloned().collect();
        let mut expected = stored.clone();
        for changes in first.iter().chain(&later) {
            one_by_one(&mut expected, changes);
        }

        // Later changes can meet keys that the first ones, under way, have stored.
        let mut changes = coalesced(&first, &keys);
        let mut possible = keys;
        possible.extend(changes.keys.keys().cloned());
        let later = coalesced(&later, &possible);

        // Written one after the other.
        let mut written = stored.clone();
        changes.apply_to(&mut written);
        later.apply_to(&mut written);
        prop_assert_eq!(&written, &expected);

        // Joined, because the first ones could not be written: also where they were, without anybody knowing.
        let mut twice = stored.clone();
        changes.apply_to(&mut twice);
        changes.extend(later, |key| possible.contains(key));
        changes.apply_to(&mut twice);
        prop_assert_eq!(&twice, &expected);
        let mut once = stored;
        changes.apply_to(&mut once);
        prop_assert_eq!(&once, &expected);
        prop_assert!(changes.keys.len() <= 3);
    }
}

#[test]
fn a_key_that_was_never_stored_leaves_nothing_behind() {
    let mut changes = PluginChanges::default();
    for number in 0..1_000 {
        let key = format!("key-{number}");
        let batch = vec![StateChange::Set(entry(&key, 1, 0)), StateChange::Delete(key)];
        changes.push(batch.into(), |_| false);
    }
    assert!(changes.is_empty(), "{} keys are queued", changes.keys.len());
}

#[test]
fn the_last_version_is_kept_and_forgetting_removes_it() {
    let mut changes = PluginChanges::default();
    changes.push(StateBatch { changes: Vec::new(), version: Some(1) }, |_| true);
    changes.push(vec![StateChange::Clear].into(), |_| true);
    assert_eq!(changes.version.apply(None), Some(1));
    changes.forget();
    assert_eq!(changes.version.apply(Some(7)), None);
    let mut later = PluginChanges::default();
    later.push(StateBatch { changes: Vec::new(), version: Some(3) }, |_| true);
    changes.extend(later, |_| true);
    assert_eq!(changes.version.apply(None), Some(3));
}
