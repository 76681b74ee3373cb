//! When entries expire, on a clock that the test moves. Expired entries are never returned, whether something removed them or not.

use flow::ports::{Clock as _, SessionState, StateChange, StateLifetime};

use super::places::{Place, Store};
use crate::support::{
    DAY, DEFAULT, HOUR, MINUTE, PATIENCE, SECOND, TestClock, listed, own, plugin, save, session, set, touch,
};

/// A turn that saves these changes and takes some time.
async fn turn(state: &dyn SessionState, clock: &TestClock, takes_ms: u64, changes: Vec<StateChange>) {
    state.turn_started();
    save(state, "notes", changes).await;
    clock.advance(takes_ms);
    state.turn_ended();
    state.settle(PATIENCE).await.unwrap();
}

/// What is there after the process was replaced, and in the running one: both must be the same.
async fn listed_everywhere(store: &dyn Store, state: &dyn SessionState) -> Vec<String> {
    let live = listed(state, "notes").await;
    let shown = store.show(&session("a")).await.unwrap();
    let states = shown.into_iter().flat_map(|shown| shown.states);
    let entries = states.flat_map(|(_, state)| state.entries);
    let durable: Vec<String> =
        entries.map(|entry| format!("{}={}", entry.key, String::from_utf8_lossy(&entry.value))).collect();
    assert_eq!(live, durable);
    live
}

pub(crate) async fn a_read_extends_a_time_of_its_own(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    let second = own(SECOND);
    save(&*state, "notes", vec![set(&clock, "read", "x", second), set(&clock, "unread", "x", second)]).await;
    clock.advance(800);
    save(&*state, "notes", vec![touch(&clock, "read", second)]).await;
    assert_eq!(listed_everywhere(&*store, &*state).await, ["read=x", "unread=x"]);
    clock.advance(200);
    assert_eq!(listed_everywhere(&*store, &*state).await, ["read=x"]);
    // A turn does not extend it.
    state.turn_started();
    clock.advance(799);
    assert_eq!(listed_everywhere(&*store, &*state).await, ["read=x"]);
    clock.advance(1);
    assert!(listed_everywhere(&*store, &*state).await.is_empty());
    state.turn_ended();
    state.close(PATIENCE).await.unwrap();
    let state = store.open(&session("a")).await.unwrap();
    assert!(listed_everywhere(&*store, &*state).await.is_empty());
}

pub(crate) async fn a_turn_keeps_default_times_from_running_out(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    let changes = vec![set(&clock, "default", "x", DEFAULT), set(&clock, "own", "x", own(2 * HOUR))];
    turn(&*state, &clock, MINUTE, changes).await;
    // Turns that use neither entry, with idle times below an hour in between.
    for _ in 0..3 {
        clock.advance(59 * MINUTE);
        turn(&*state, &clock, MINUTE, Vec::new()).await;
    }
    assert_eq!(listed_everywhere(&*store, &*state).await, ["default=x"]);
    // A turn can take longer than the time to live.
    state.turn_started();
    clock.advance(5 * HOUR);
    assert_eq!(listed(&*state, "notes").await, ["default=x"]);
    state.turn_ended();
    clock.advance(HOUR - 1);
    state.close(PATIENCE).await.unwrap();
    let state = store.open(&session("a")).await.unwrap();
    assert_eq!(listed_everywhere(&*store, &*state).await, ["default=x"]);
    clock.advance(1);
    assert!(listed_everywhere(&*store, &*state).await.is_empty());
}

pub(crate) async fn closing_a_session_ends_its_turn(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    state.turn_started();
    save(&*state, "notes", vec![set(&clock, "default", "x", DEFAULT)]).await;
    clock.advance(59 * SECOND);
    state.close(PATIENCE).await.unwrap();
    clock.advance(HOUR - 1);
    let state = store.open(&session("a")).await.unwrap();
    assert_eq!(listed_everywhere(&*store, &*state).await, ["default=x"]);
    clock.advance(1);
    assert!(listed_everywhere(&*store, &*state).await.is_empty());
}

pub(crate) async fn what_expired_before_a_turn_stays_expired(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    turn(&*state, &clock, MINUTE, vec![set(&clock, "old", "x", DEFAULT)]).await;
    state.close(PATIENCE).await.unwrap();
    clock.advance(HOUR);
    // Turns of the next process are activity, which must not bring back what was gone before; nor before it is durable that it is.
    let state = store.open(&session("a")).await.unwrap();
    state.turn_started();
    clock.advance(MINUTE);
    state.turn_ended();
    assert!(listed(&*state, "notes").await.is_empty());
    turn(&*state, &clock, MINUTE, Vec::new()).await;
    turn(&*state, &clock, MINUTE, vec![set(&clock, "fresh", "x", DEFAULT)]).await;
    assert_eq!(listed_everywhere(&*store, &*state).await, ["fresh=x"]);
    state.close(PATIENCE).await.unwrap();
    let state = store.open(&session("a")).await.unwrap();
    assert_eq!(listed_everywhere(&*store, &*state).await, ["fresh=x"]);
}

pub(crate) async fn kept_entries_live_as_long_as_the_session(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    turn(&*state, &clock, MINUTE, vec![set(&clock, "kept", "x", StateLifetime::Session)]).await;
    state.close(PATIENCE).await.unwrap();
    for _ in 0..3 {
        clock.advance(29 * DAY);
        let state = store.open(&session("a")).await.unwrap();
        assert_eq!(listed_everywhere(&*store, &*state).await, ["kept=x"]);
        turn(&*state, &clock, MINUTE, Vec::new()).await;
        state.close(PATIENCE).await.unwrap();
    }
    clock.advance(30 * DAY);
    let state = store.open(&session("a")).await.unwrap();
    assert!(listed_everywhere(&*store, &*state).await.is_empty());
}

pub(crate) async fn the_session_bounds_all_times(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    let changes = vec![
        set(&clock, "default", "x", StateLifetime::Default { ttl_ms: 90 * DAY }),
        set(&clock, "own", "x", own(90 * DAY)),
        set(&clock, "endless", "x", own(u64::MAX)),
        set(&clock, "kept", "x", StateLifetime::Session),
    ];
    turn(&*state, &clock, 0, changes).await;
    clock.advance(30 * DAY - 1);
    assert_eq!(listed_everywhere(&*store, &*state).await.len(), 4);
    clock.advance(1);
    assert!(listed_everywhere(&*store, &*state).await.is_empty(), "an open session expires too");
    turn(&*state, &clock, MINUTE, vec![set(&clock, "fresh", "x", own(90 * DAY))]).await;
    state.close(PATIENCE).await.unwrap();
    let state = store.open(&session("a")).await.unwrap();
    assert_eq!(listed_everywhere(&*store, &*state).await, ["fresh=x"]);
}

/// Whoever looks with a clock that is set back sees what is really stored.
pub(crate) async fn expired_entries_are_removed_for_good(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let began = clock.now_ms();
    let state = store.open(&session("a")).await.unwrap();
    let keys: Vec<StateChange> = (0..50).map(|key| set(&clock, &format!("key-{key}"), "x", own(MINUTE))).collect();
    turn(&*state, &clock, MINUTE, keys).await;
    clock.advance(HOUR);
    turn(&*state, &clock, MINUTE, vec![set(&clock, "last", "x", DEFAULT)]).await;
    clock.set(began);
    let shown = store.show(&session("a")).await.unwrap().unwrap();
    assert_eq!(shown.summary.plugins[0].keys, 1);
    state.close(PATIENCE).await.unwrap();
}

pub(crate) async fn expired_sessions_are_invisible_and_removed(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let began = clock.now_ms();
    for (id, days) in [("old", 20), ("older", 0)] {
        let state = store.open(&session(id)).await.unwrap();
        turn(&*state, &clock, MINUTE, vec![set(&clock, "key", "x", StateLifetime::Session)]).await;
        state.load(&plugin("notes")).await.unwrap();
        state.close(PATIENCE).await.unwrap();
        clock.advance(days * DAY);
    }
    let open = store.open(&session("open")).await.unwrap();
    turn(&*open, &clock, MINUTE, vec![set(&clock, "key", "x", StateLifetime::Session)]).await;
    clock.advance(10 * DAY);
    let names = |list: flow::ports::SessionList| -> Vec<String> {
        assert!(list.problems.is_empty(), "{:?}", list.problems);
        list.sessions.iter().map(|one| one.session.to_string()).collect()
    };
    assert_eq!(names(store.sessions().await.unwrap()), ["older", "open"]);
    clock.advance(30 * DAY);
    assert!(names(store.sessions().await.unwrap()).is_empty());
    assert_eq!(store.show(&session("old")).await.unwrap(), None);
    let removed = store.remove_expired().await.unwrap().removed;
    if place.leases_expire() {
        // The server removes them by its own clock.
        assert_eq!(removed, 0);
    } else {
        assert_eq!(removed, 2, "the open session is left to its owner");
        clock.set(began);
        assert_eq!(names(store.sessions().await.unwrap()), ["open"]);
    }
}
