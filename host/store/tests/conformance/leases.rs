//! A session has one owner: refusal, release, and the end of an owner's process.

use std::sync::Arc;

use flow::ports::{Clock as _, StateError};
use system::SystemClock;

use super::places::Place;
use crate::support::{
    DAY, DEFAULT, PATIENCE, TestClock, check_what_a_killed_writer_left, listed, open_when_free, save, session, set,
};

pub(crate) async fn an_open_session_is_refused_with_its_owner(place: &impl Place) {
    let clock = TestClock::new();
    let (first, second) = (place.store_of("the first", clock.clone()), place.store_of("the second", clock.clone()));
    let state = first.open(&session("a")).await.unwrap();
    for store in [&first, &second] {
        match store.open(&session("a")).await.map(drop).unwrap_err() {
            StateError::Leased { session: name, by, until_ms } => {
                assert_eq!((name.as_str(), by.as_str()), ("a", "the first"));
                assert_eq!(until_ms.is_some(), place.leases_expire());
                assert!(until_ms.is_none_or(|until| until > clock.now_ms()), "{until_ms:?}");
            }
            other => panic!("{other}"),
        }
    }
    second.open(&session("b")).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "key", "first", DEFAULT)]).await;
    state.close(PATIENCE).await.unwrap();
    let state = second.open(&session("a")).await.unwrap();
    assert_eq!(listed(&*state, "notes").await, ["key=first"]);
    match first.open(&session("a")).await.map(drop).unwrap_err() {
        StateError::Leased { by, .. } => assert_eq!(by, "the second"),
        other => panic!("{other}"),
    }
}

pub(crate) async fn a_dropped_session_is_released(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "key", "kept", DEFAULT)]).await;
    drop(state);
    let state = open_when_free(&*store, "a").await;
    assert_eq!(listed(&*state, "notes").await, ["key=kept"]);
}

/// Leases are not a matter of the host's clock: however far it moves, an owner that lives keeps its session.
pub(crate) async fn a_living_owner_keeps_its_session(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    clock.advance(DAY);
    assert!(matches!(store.open(&session("a")).await.map(drop), Err(StateError::Leased { .. })));
    save(&*state, "notes", vec![set(&clock, "key", "value", DEFAULT)]).await;
}

pub(crate) async fn a_killed_owner_is_taken_over_and_leaves_a_whole_batch(place: &impl Place) {
    let store = place.store_of("the test", Arc::new(SystemClock));
    // In memory no other process can be killed; what is left when an owner goes is the case of a dropped session.
    let Some(mut writer) = place.writer() else { return a_dropped_session_is_released(place).await };
    let name = format!("process {} on ", writer.id());
    match store.open(&session("killed")).await.map(drop).unwrap_err() {
        StateError::Leased { by, .. } => assert!(by.starts_with(&name), "{by}"),
        other => panic!("{other}"),
    }
    writer.wait_for_a_batch();
    let last = writer.kill();
    let state = open_when_free(&*store, "killed").await;
    check_what_a_killed_writer_left(&*state, last).await;
    let clock = TestClock::new();
    clock.set(SystemClock.now_ms());
    save(&*state, "writer", vec![set(&clock, "key-0", "usable", DEFAULT)]).await;
}

pub(crate) async fn a_session_is_open_once_however_many_try(place: &impl Place) {
    let clock = TestClock::new();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = place.store_of(&format!("owner {number}"), clock.clone());
        tasks.spawn(async move { store.open(&session("a")).await });
    }
    let opened = tasks.join_all().await;
    let (open, refused): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
    assert_eq!((open.len(), refused.len()), (1, 7));
    for refusal in refused {
        let error = refusal.map(drop).unwrap_err();
        assert!(matches!(error, StateError::Leased { .. }), "{error}");
    }
}
