//! The transaction of a callback, without any guest.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;

use flow::SessionId;

use super::{Refusal, SharedArea, States, Transaction};
use crate::limits::GuestLimits;

fn fresh() -> (SharedArea, GuestLimits) {
    (SharedArea::default(), GuestLimits::default())
}

#[test]
fn own_writes_are_seen_at_once_and_kept_only_by_a_commit() {
    let (area, limits) = fresh();
    let mut one = Transaction::new(area.clone());
    one.set("a".into(), vec![1], None, 0, &limits).unwrap();
    assert_eq!(one.get("a", 0, &limits).unwrap(), Some(vec![1]));
    drop(one);
    let mut two = Transaction::new(area.clone());
    assert_eq!(two.get("a", 0, &limits).unwrap(), None, "what was not committed is gone");
    two.set("a".into(), vec![2], None, 0, &limits).unwrap();
    two.set("b".into(), vec![3], None, 0, &limits).unwrap();
    let changes: Vec<_> = two.commit().into_iter().map(|c| (c.operation, c.key, c.size)).collect();
    assert_eq!(changes, [("set", "a".to_owned(), 4), ("set", "b".to_owned(), 4)]);
    let mut three = Transaction::new(area);
    assert_eq!(three.keys("", 0), ["a", "b"]);
    assert!(three.delete("a", 0, &limits).unwrap());
    assert!(!three.delete("a", 0, &limits).unwrap());
    assert_eq!(three.keys("", 0), ["b"]);
    three.set("c".into(), vec![], None, 0, &limits).unwrap();
    assert_eq!(three.clear(0), 2);
    assert_eq!(three.keys("", 0), [""; 0]);
    three.set("d".into(), vec![9], None, 0, &limits).unwrap();
    let changes: Vec<_> = three.commit().into_iter().map(|c| (c.operation, c.key, c.size)).collect();
    assert_eq!(changes, [("clear", String::new(), 2), ("set", "d".to_owned(), 2)]);
}

#[test]
fn limits_refuse_and_leave_the_old_value() {
    let (area, mut limits) = fresh();
    limits.state_value_bytes = 8;
    limits.state_total_bytes = 20;
    let mut it = Transaction::new(area);
    assert!(matches!(it.set(String::new(), vec![], None, 0, &limits), Err(Refusal::BadKey(_))));
    assert!(matches!(it.get(&"k".repeat(513), 0, &limits), Err(Refusal::BadKey(_))));
    assert!(matches!(it.set("a".into(), vec![0; 9], None, 0, &limits), Err(Refusal::Limit(_))));
    it.set("a".into(), vec![0; 8], None, 0, &limits).unwrap();
    it.set("b".into(), vec![0; 8], None, 0, &limits).unwrap();
    assert!(matches!(it.set("c".into(), vec![0; 8], None, 0, &limits), Err(Refusal::Limit(_))));
    it.set("b".into(), vec![1; 8], None, 0, &limits).unwrap();
    it.commit();
    assert!(matches!(it.set("c".into(), vec![0; 8], None, 0, &limits), Err(Refusal::Limit(_))));
    assert!(it.delete("a", 0, &limits).unwrap());
    it.set("c".into(), vec![0; 8], None, 0, &limits).unwrap();
    assert_eq!(it.keys("", 0), ["b", "c"]);
    assert_eq!(it.commit().last().unwrap().size, 18);
}

#[test]
fn a_time_to_live_starts_anew_when_read_and_makes_room_when_over() {
    let (area, mut limits) = fresh();
    limits.state_total_bytes = 3;
    let mut it = Transaction::new(area);
    it.set("a".into(), vec![1, 2], Some(1000), 0, &limits).unwrap();
    it.commit();
    assert_eq!(it.get("a", 800, &limits).unwrap(), Some(vec![1, 2]));
    assert_eq!(it.get("a", 1799, &limits).unwrap(), Some(vec![1, 2]));
    assert_eq!(it.get("a", 2799, &limits).unwrap(), None);
    assert_eq!(it.keys("", 2799), [""; 0]);
    it.set("b".into(), vec![1, 2], None, 2799, &limits).unwrap();
}

#[test]
fn what_is_past_its_time_is_not_kept_for_ever() {
    let (area, mut limits) = fresh();
    limits.state_total_bytes = 30;
    let mut it = Transaction::new(area.clone());
    for n in 0..100 {
        it.set(format!("k{n:02}"), vec![0; 7], Some(1), n * 10, &limits).unwrap();
        it.commit();
        let area = area.0.lock().unwrap();
        assert!(area.size <= 30 && area.entries.len() <= 3, "{} bytes in {} entries", area.size, area.entries.len());
    }
}

#[test]
fn keys_past_their_time_make_no_room_beyond_the_limit() {
    let (area, mut limits) = fresh();
    limits.state_total_bytes = 30;
    let mut it = Transaction::new(area);
    for key in ["a", "b", "c"] {
        it.set(key.into(), vec![0; 9], Some(1), 0, &limits).unwrap();
    }
    it.commit();
    // All three are over. Each can be rewritten, but only within the limit.
    let set = |it: &mut Transaction, key: &str| it.set(key.into(), vec![0; 9], None, 100, &limits);
    set(&mut it, "x").unwrap();
    set(&mut it, "a").unwrap();
    set(&mut it, "b").unwrap();
    assert!(matches!(set(&mut it, "c"), Err(Refusal::Limit(_))));
    assert_eq!(it.commit().last().unwrap().size, 30);
}

#[test]
fn a_session_is_open_once_and_keeps_its_state_when_it_is_closed() {
    let (states, limits) = (Arc::new(States::default()), GuestLimits::default());
    let plugin = "p".parse().unwrap();
    let first = states.open(SessionId::new("s")).unwrap();
    let refused = states.open(SessionId::new("s")).unwrap_err();
    assert!(refused.to_string().starts_with("the session `s` is open already"), "{refused}");
    states.open(SessionId::new("other")).unwrap();
    let mut one = Transaction::new(first.area(&plugin));
    one.set("a".into(), vec![1], None, 0, &limits).unwrap();
    one.commit();
    drop(first);
    let again = states.open(SessionId::new("s")).expect("the first is closed");
    assert_eq!(Transaction::new(again.area(&plugin)).get("a", 0, &limits).unwrap(), Some(vec![1]));
}

#[test]
fn the_version_counts_commits_that_change_something() {
    let (area, limits) = fresh();
    let mut one = Transaction::new(area.clone());
    assert!(!one.has_written());
    one.commit();
    assert_eq!(area.version(), 0);
    one.set("a".into(), vec![1], None, 0, &limits).unwrap();
    assert!(one.has_written());
    one.commit();
    assert_eq!(area.version(), 1);
    one.clear(0);
    assert!(one.has_written());
    one.commit();
    assert_eq!(area.version(), 2);
}

#[test]
fn a_key_that_was_cleared_has_no_weight_left() {
    let (area, mut limits) = fresh();
    limits.state_total_bytes = 30;
    let mut it = Transaction::new(area);
    it.set("k".into(), vec![0; 20], None, 0, &limits).unwrap();
    it.commit();
    it.clear(0);
    it.set("a".into(), vec![0; 10], None, 0, &limits).unwrap();
    assert!(matches!(it.set("k".into(), vec![0; 19], None, 0, &limits), Err(Refusal::Limit(_))), "11 + 20 > 30");
    it.set("k".into(), vec![0; 18], None, 0, &limits).unwrap();
    it.commit();
    // Overwriting a value releases the bytes of the old one.
    it.set("k".into(), vec![0; 17], None, 0, &limits).unwrap();
    it.delete("a", 0, &limits).unwrap();
    it.set("k".into(), vec![0; 29], None, 0, &limits).unwrap();
}
