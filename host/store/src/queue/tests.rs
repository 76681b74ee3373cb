//! The bound of the queue, and what is left out of a flight.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use flow::ports::{StateBatch, StateChange, StateEntry, StateLifetime, StoredState};

use super::Queue;
use crate::activity::{Activity, Recorded};
use crate::changes::KeyChange;

fn queue() -> Queue {
    let recorded = Recorded { active_ms: 0, shortest_ttl_ms: None, has_state: false };
    Queue::new(Activity::new(recorded, 1_000_000))
}

fn set(key: &str, value: u8) -> StateChange {
    StateChange::Set(StateEntry::written(key, [value], StateLifetime::Session, 0))
}

/// Keys that are queued or under way.
fn queued(queue: &Queue) -> usize {
    let flight = queue.flight.as_ref().map(|flight| &flight.plugins);
    flight.into_iter().chain([&queue.pending]).flat_map(|plugins| plugins.values()).map(|one| one.keys.len()).sum()
}

/// Ten keys live at any time; the backend is asked after each batch, or rarely, and fails in one way or the other.
#[test]
fn while_the_backend_is_away_the_queue_is_bounded_by_the_state() {
    for (every, is_refused) in [(1, true), (1, false), (100, true), (100, false)] {
        let mut queue = queue();
        let plugin = "p".parse().unwrap();
        queue.complete(&plugin, StoredState::default(), 0);
        for number in 0..5_000u32 {
            let mut changes = vec![set(&format!("key-{number}"), 1), set("counter", 2)];
            changes.extend(number.checked_sub(10).map(|old| StateChange::Delete(format!("key-{old}"))));
            queue.push(&plugin, changes.into());
            if number % every == 0 {
                drop(queue.take(0).unwrap());
                if is_refused {
                    queue.refused();
                }
            }
            // The state, the same in flight, and the deletions of what is in flight.
            assert!(queued(&queue) <= 3 * 11, "{} keys are queued after {number} batches", queued(&queue));
        }
    }
}

#[test]
fn nothing_is_taken_where_nothing_changed() {
    let mut queue = queue();
    let plugin = "p".parse().unwrap();
    assert!(queue.take(0).is_none());
    queue.push(&plugin, StateBatch::default());
    assert!(queue.take(0).is_none());
    queue.push(&plugin, vec![set("a", 1)].into());
    let flight = queue.take(0).unwrap();
    queue.landed(&flight, Vec::new());
    assert!(queue.take(0).is_none());
    assert!(!queue.has_changes());
}

#[test]
fn a_flight_without_an_answer_is_sent_again_unchanged_before_what_follows() {
    let mut queue = queue();
    let plugin = "p".parse().unwrap();
    queue.complete(&plugin, StoredState::default(), 0);
    queue.push(&plugin, vec![set("a", 1)].into());
    let first = queue.take(0).unwrap();
    queue.push(&plugin, vec![StateChange::Delete("a".into())].into());
    let again = queue.take(0).unwrap();
    assert_eq!((again.number, &again.plugins), (first.number, &first.plugins));
    // A refusal of the copy says nothing about the first one.
    queue.refused();
    assert!(queue.has_flight());
    queue.landed(&first, Vec::new());
    let second = queue.take(0).unwrap();
    assert!(second.number > first.number);
    assert!(second.plugins[&plugin].keys.contains_key("a"));
}

#[test]
fn what_was_refused_joins_what_follows() {
    let mut queue = queue();
    let plugin = "p".parse().unwrap();
    queue.complete(&plugin, StoredState::default(), 0);
    queue.push(&plugin, vec![set("a", 1), set("b", 1)].into());
    drop(queue.take(0).unwrap());
    queue.push(&plugin, vec![set("b", 2), StateChange::Delete("a".into())].into());
    queue.refused();
    let flight = queue.take(0).unwrap();
    assert_eq!(flight.plugins[&plugin].keys.len(), 1, "a key that never arrived need not be deleted");
    assert!(matches!(&flight.plugins[&plugin].keys["b"], KeyChange::Set(entry) if *entry.value == [2]));
}
