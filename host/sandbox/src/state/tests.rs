//! The transaction of a callback, without any guest.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;

use flow::ports::{StateBatch, StateChange, StateLifetime, StoredState};

use super::{Change, Commit, Refusal, SessionTotal, SharedArea, Transaction};
use crate::limits::GuestLimits;

const SESSION: StateLifetime = StateLifetime::Session;

fn own(ttl_ms: u64) -> StateLifetime {
    StateLifetime::Own { ttl_ms }
}

fn standard(ttl_ms: u64) -> StateLifetime {
    StateLifetime::Default { ttl_ms }
}

fn area(max: u64) -> (SharedArea, Arc<SessionTotal>) {
    let total = Arc::new(SessionTotal::new(max));
    (SharedArea::new(Arc::clone(&total)), total)
}

fn fresh() -> (SharedArea, GuestLimits) {
    (area(1 << 30).0, GuestLimits::default())
}

/// Commits, and returns what changed and what the store gets.
fn commit(it: &mut Transaction, of: Commit) -> (Vec<Change>, StateBatch) {
    let mut sent = StateBatch::default();
    let changes = it.commit(of, |batch| sent = batch).unwrap();
    (changes, sent)
}

/// The changes of a batch, in short: `+key`, `-key`, `~key`, `clear`.
fn short(batch: &StateBatch) -> Vec<String> {
    let one = |change: &StateChange| match change {
        StateChange::Set(entry) => format!("+{}", entry.key),
        StateChange::Touch { key, .. } => format!("~{key}"),
        StateChange::Delete(key) => format!("-{key}"),
        StateChange::Clear => "clear".to_owned(),
    };
    batch.changes.iter().map(one).collect()
}

#[test]
fn own_writes_are_seen_at_once_and_kept_only_by_a_commit() {
    let (area, limits) = fresh();
    let mut one = Transaction::new(area.clone());
    one.set("a".into(), vec![1], SESSION, 0, &limits).unwrap();
    assert_eq!(one.get("a", 0, &limits).unwrap(), Some(vec![1]));
    drop(one);
    let mut two = Transaction::new(area.clone());
    assert_eq!(two.get("a", 0, &limits).unwrap(), None, "what was not committed is gone");
    two.set("a".into(), vec![2], SESSION, 0, &limits).unwrap();
    two.set("b".into(), vec![3], SESSION, 0, &limits).unwrap();
    let changes: Vec<_> = commit(&mut two, Commit::Call).0.into_iter().map(|c| (c.operation, c.key, c.size)).collect();
    assert_eq!(changes, [("set", "a".to_owned(), 4), ("set", "b".to_owned(), 4)]);
    let mut three = Transaction::new(area);
    assert_eq!(three.keys("", 0), ["a", "b"]);
    assert!(three.delete("a", 0, &limits).unwrap());
    assert!(!three.delete("a", 0, &limits).unwrap());
    assert_eq!(three.keys("", 0), ["b"]);
    three.set("c".into(), vec![], SESSION, 0, &limits).unwrap();
    assert_eq!(three.clear(0), 2);
    assert_eq!(three.keys("", 0), [""; 0]);
    three.set("d".into(), vec![9], SESSION, 0, &limits).unwrap();
    let changes: Vec<_> =
        commit(&mut three, Commit::Call).0.into_iter().map(|c| (c.operation, c.key, c.size)).collect();
    assert_eq!(changes, [("clear", String::new(), 2), ("set", "d".to_owned(), 2)]);
}

#[test]
fn what_can_never_be_kept_is_refused_and_the_old_value_remains() {
    let (area, mut limits) = fresh();
    limits.state_value_bytes = 8;
    limits.state_total_bytes = 9;
    let mut it = Transaction::new(area);
    assert!(matches!(it.set(String::new(), vec![], SESSION, 0, &limits), Err(Refusal::BadKey(_))));
    assert!(matches!(it.get(&"k".repeat(513), 0, &limits), Err(Refusal::BadKey(_))));
    it.set("a".into(), vec![1; 8], SESSION, 0, &limits).unwrap();
    assert!(matches!(it.set("a".into(), vec![0; 9], SESSION, 0, &limits), Err(Refusal::Limit(_))));
    assert!(matches!(it.set("ab".into(), vec![0; 8], SESSION, 0, &limits), Err(Refusal::Limit(_))));
    assert_eq!(it.get("a", 0, &limits).unwrap(), Some(vec![1; 8]));
}

#[test]
fn over_the_limit_the_least_recently_used_keys_are_evicted() {
    let (area, mut limits) = fresh();
    limits.state_total_bytes = 30;
    let mut it = Transaction::new(area);
    for key in ["a", "b", "c"] {
        it.set(key.into(), vec![0; 9], SESSION, 0, &limits).unwrap();
    }
    commit(&mut it, Commit::Call);
    // `a` is the oldest, and is read.
    assert!(it.get("a", 1, &limits).unwrap().is_some());
    it.set("d".into(), vec![0; 9], SESSION, 1, &limits).unwrap();
    assert_eq!(it.keys("", 1), ["a", "c", "d"]);
    let (done, batch) = commit(&mut it, Commit::Call);
    let changes: Vec<_> = done.iter().map(|one| (one.operation, one.key.as_str(), one.size)).collect();
    assert_eq!(changes, [("evict", "b", 30), ("set", "d", 30)]);
    assert_eq!(short(&batch), ["~a", "-b", "+d"]);
    // A key that is written again is not evicted for itself.
    it.set("a".into(), vec![0; 19], SESSION, 2, &limits).unwrap();
    assert_eq!(it.keys("", 2), ["a", "d"]);
}

#[test]
fn the_session_has_a_limit_of_its_own_for_all_extensions() {
    let ((one, total), limits) = (area(30), GuestLimits::default());
    let other = SharedArea::new(Arc::clone(&total));
    let (mut first, mut second) = (Transaction::new(one.clone()), Transaction::new(other));
    first.set("a".into(), vec![0; 19], SESSION, 0, &limits).unwrap();
    // Not committed yet, and reserved.
    let refused = second.set("b".into(), vec![0; 10], SESSION, 0, &limits).unwrap_err();
    let Refusal::Limit(why) = refused else { panic!("{refused:?}") };
    assert_eq!(why, "the state of all extensions of the session would have 31 bytes, the limit is 30");
    commit(&mut first, Commit::Call);
    second.set("b".into(), vec![0; 9], SESSION, 0, &limits).unwrap();
    drop(second);
    // What was reserved and not committed is free again.
    let mut again = Transaction::new(one);
    again.set("c".into(), vec![0; 9], SESSION, 0, &limits).unwrap();
    commit(&mut again, Commit::Call);
    again.delete("a", 0, &limits).unwrap();
    commit(&mut again, Commit::Call);
    assert_eq!(total.reserve(21), Err((31, 30)));
    assert_eq!(total.reserve(20), Ok(()));
}

#[test]
fn what_a_discarded_attempt_wrote_is_undone() {
    let (area, limits) = fresh();
    let mut it = Transaction::new(area.clone());
    let set = |it: &mut Transaction, key: &str, value: u8, notice| {
        it.set(key.into(), vec![value], SESSION, 0, &limits).unwrap();
        let version = it.area.version();
        short(&commit(it, if notice { Commit::Notice { version } } else { Commit::Call }).1)
    };
    assert_eq!(set(&mut it, "kept", 1, false), ["+kept"]);
    area.lock().begin_attempt();
    assert_eq!(set(&mut it, "kept", 2, false), [""; 0], "the store learns of it when the attempt is accepted");
    assert_eq!(set(&mut it, "new", 3, false), [""; 0]);
    assert_eq!(set(&mut it, "fired", 4, true), ["+fired"], "a notification belongs to no attempt");
    assert_eq!(area.lock().discard_attempt(), ["kept", "new"]);
    assert_eq!(it.keys("", 0), ["fired", "kept"]);
    assert_eq!(it.get("kept", 0, &limits).unwrap(), Some(vec![1]));
    area.lock().begin_attempt();
    set(&mut it, "kept", 5, false);
    it.delete("fired", 0, &limits).unwrap();
    commit(&mut it, Commit::Call);
    assert_eq!(short(&area.lock().accept_attempt()), ["-fired", "+kept"]);
    assert_eq!(area.lock().discard_attempt(), [""; 0], "there is no attempt any more");
}

#[test]
fn a_notice_that_finds_another_version_changes_nothing() {
    let (area, limits) = fresh();
    let (mut notice, mut call) = (Transaction::new(area.clone()), Transaction::new(area.clone()));
    let version = area.version();
    notice.set("count".into(), vec![1], SESSION, 0, &limits).unwrap();
    call.set("count".into(), vec![9], SESSION, 0, &limits).unwrap();
    commit(&mut call, Commit::Call);
    assert_eq!(notice.commit(Commit::Notice { version }, |_| panic!("nothing is sent")), None);
    assert_eq!(Transaction::new(area).get("count", 0, &limits).unwrap(), Some(vec![9]));
}

#[test]
fn a_read_during_an_attempt_reaches_the_store_whatever_becomes_of_it() {
    let (area, limits) = fresh();
    let mut it = Transaction::new(area.clone());
    for key in ["a", "b"] {
        it.set(key.into(), vec![1], own(100), 0, &limits).unwrap();
    }
    commit(&mut it, Commit::Call);
    for discarded in [false, true] {
        area.lock().begin_attempt();
        it.get("a", 50, &limits).unwrap();
        it.get("b", 50, &limits).unwrap();
        it.set("b".into(), vec![2], own(100), 50, &limits).unwrap();
        assert_eq!(short(&commit(&mut it, Commit::Call).1), [""; 0]);
        let batch = if discarded {
            area.lock().discard_attempt();
            area.lock().flush()
        } else {
            area.lock().accept_attempt()
        };
        assert_eq!(short(&batch), if discarded { ["~a", "~b"] } else { ["~a", "+b"] });
    }
}

#[test]
fn a_store_that_lost_everything_does_not_get_what_may_be_undone() {
    let (area, limits) = fresh();
    let mut it = Transaction::new(area.clone());
    it.set("a".into(), vec![1], SESSION, 0, &limits).unwrap();
    commit(&mut it, Commit::Call);
    area.lock().begin_attempt();
    it.set("a".into(), vec![2], SESSION, 0, &limits).unwrap();
    it.set("b".into(), vec![3], SESSION, 0, &limits).unwrap();
    commit(&mut it, Commit::Call);
    let snapshot = area.lock().snapshot();
    assert_eq!(short(&snapshot), ["clear", "+a"]);
    assert!(matches!(&snapshot.changes[1], StateChange::Set(entry) if *entry.value == [1]));
}

#[test]
fn values_with_the_standard_lifetime_do_not_expire_while_a_turn_runs() {
    let (area, limits) = fresh();
    let mut it = Transaction::new(area.clone());
    area.lock().begin_turn(0);
    it.set("standard".into(), vec![1], standard(100), 0, &limits).unwrap();
    it.set("own".into(), vec![1], own(100), 0, &limits).unwrap();
    commit(&mut it, Commit::Call);
    assert_eq!(it.keys("", 500), ["standard"]);
    area.lock().end_turn(500);
    assert_eq!((it.keys("", 599), it.keys("", 600)), (vec!["standard".to_owned()], Vec::new()));
    area.lock().begin_turn(600);
    assert_eq!(it.keys("", 600), [""; 0], "what expired while the session was idle stays expired");
}

#[test]
fn what_was_stored_is_there_again_with_its_times() {
    let ((first, _), limits) = (area(1 << 20), GuestLimits::default());
    let mut it = Transaction::new(first.clone());
    it.set("a".into(), vec![1], own(100), 0, &limits).unwrap();
    it.set("b".into(), vec![2], SESSION, 0, &limits).unwrap();
    commit(&mut it, Commit::Call);
    let mut snapshot = first.lock().snapshot().changes;
    assert_eq!(snapshot.remove(0), StateChange::Clear);
    let entries = snapshot.into_iter().filter_map(|change| match change {
        StateChange::Set(entry) => Some(entry),
        _ => None,
    });
    let (second, total) = area(1 << 20);
    second.lock().load(StoredState { entries: entries.collect(), version: None });
    let it = Transaction::new(second);
    assert_eq!((it.keys("", 99), it.keys("", 100)), (vec!["a".to_owned(), "b".to_owned()], vec!["b".to_owned()]));
    assert_eq!(total.reserve((1 << 20) - 4), Ok(()));
    assert!(total.reserve(1).is_err());
}

#[test]
fn a_time_to_live_starts_anew_when_read_and_makes_room_when_over() {
    let (area, mut limits) = fresh();
    limits.state_total_bytes = 3;
    let mut it = Transaction::new(area);
    it.set("a".into(), vec![1, 2], own(1000), 0, &limits).unwrap();
    commit(&mut it, Commit::Call);
    assert_eq!(it.get("a", 800, &limits).unwrap(), Some(vec![1, 2]));
    assert_eq!(it.get("a", 1799, &limits).unwrap(), Some(vec![1, 2]));
    assert_eq!(it.get("a", 2799, &limits).unwrap(), None);
    assert_eq!(it.keys("", 2799), [""; 0]);
    it.set("b".into(), vec![1, 2], SESSION, 2799, &limits).unwrap();
}

#[test]
fn what_is_past_its_time_is_not_kept_for_ever() {
    let (area, mut limits) = fresh();
    limits.state_total_bytes = 30;
    let mut it = Transaction::new(area.clone());
    for n in 0..100 {
        it.set(format!("k{n:02}"), vec![0; 7], own(1), n * 10, &limits).unwrap();
        commit(&mut it, Commit::Call);
        let count = it.keys("", 0).len();
        let area = area.lock();
        assert!(area.size() <= 30 && count <= 3, "{} bytes in {count} entries", area.size());
    }
}

#[test]
fn keys_past_their_time_make_no_room_beyond_the_limit() {
    let (area, mut limits) = fresh();
    limits.state_total_bytes = 30;
    let mut it = Transaction::new(area);
    for key in ["a", "b", "c"] {
        it.set(key.into(), vec![0; 9], own(1), 0, &limits).unwrap();
    }
    commit(&mut it, Commit::Call);
    // All three are over. Each can be rewritten, but only within the limit.
    let set = |it: &mut Transaction, key: &str| it.set(key.into(), vec![0; 9], SESSION, 100, &limits);
    set(&mut it, "x").unwrap();
    set(&mut it, "a").unwrap();
    set(&mut it, "b").unwrap();
    set(&mut it, "c").unwrap();
    assert_eq!(commit(&mut it, Commit::Call).0.last().unwrap().size, 30);
    assert_eq!(it.keys("", 100), ["a", "b", "c"]);
}

#[test]
fn the_version_counts_commits_that_change_something() {
    let (area, limits) = fresh();
    let mut one = Transaction::new(area.clone());
    assert!(!one.has_written());
    commit(&mut one, Commit::Call);
    assert_eq!(area.version(), 0);
    one.set("a".into(), vec![1], SESSION, 0, &limits).unwrap();
    assert!(one.has_written());
    commit(&mut one, Commit::Call);
    assert_eq!(area.version(), 1);
    one.clear(0);
    assert!(one.has_written());
    commit(&mut one, Commit::Call);
    assert_eq!(area.version(), 2);
}

#[test]
fn a_key_that_was_cleared_has_no_weight_left() {
    let (area, mut limits) = fresh();
    limits.state_total_bytes = 30;
    let mut it = Transaction::new(area);
    it.set("k".into(), vec![0; 20], SESSION, 0, &limits).unwrap();
    commit(&mut it, Commit::Call);
    it.clear(0);
    it.set("a".into(), vec![0; 10], SESSION, 0, &limits).unwrap();
    it.set("k".into(), vec![0; 18], SESSION, 0, &limits).unwrap();
    assert_eq!(it.keys("", 0), ["a", "k"], "11 + 19 bytes");
    commit(&mut it, Commit::Call);
    // Overwriting a value releases the bytes of the old one.
    it.set("k".into(), vec![0; 17], SESSION, 0, &limits).unwrap();
    it.delete("a", 0, &limits).unwrap();
    it.set("k".into(), vec![0; 29], SESSION, 0, &limits).unwrap();
}
