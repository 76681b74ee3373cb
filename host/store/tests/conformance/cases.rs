//! What is stored is there again: durability, order, separation, clearing, versions, and the operator's view.

use std::time::Duration;

use flow::PluginId;
use flow::ports::{Clock as _, SessionState, StateBatch, StateChange, StateEntry, StateError, StateLifetime};

use super::places::Place;
use crate::support::{DEFAULT, HOUR, PATIENCE, TestClock, entry, listed, own, plugin, save, session, set, touch};

pub(crate) async fn what_is_settled_is_there_after_a_restart(place: &impl Place) {
    let clock = TestClock::new();
    let state = place.store(&clock).open(&session("a")).await.unwrap();
    let entries = [
        entry(&clock, "default", "one", DEFAULT),
        entry(&clock, "own", "two", own(90 * 60_000)),
        entry(&clock, "session", "three", StateLifetime::Session),
    ];
    let changes = entries.iter().cloned().map(StateChange::Set).collect();
    state.apply(&plugin("notes"), StateBatch { changes, version: Some(7) });
    state.settle(PATIENCE).await.unwrap();
    let before = state.load(&plugin("notes")).await.unwrap();
    state.close(PATIENCE).await.unwrap();

    let state = place.store(&clock).open(&session("a")).await.unwrap();
    let stored = state.load(&plugin("notes")).await.unwrap();
    assert_eq!(stored.entries, entries);
    assert_eq!(stored.version, Some(7));
    assert_eq!(stored, before);
}

pub(crate) async fn what_is_not_settled_is_seen_but_not_durable(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "kept", "old", DEFAULT), set(&clock, "gone", "x", DEFAULT)]).await;
    let changes = vec![
        set(&clock, "kept", "queued", DEFAULT),
        set(&clock, "fresh", "queued", DEFAULT),
        StateChange::Delete("gone".to_owned()),
    ];
    state.apply(&plugin("notes"), changes.into());
    assert_eq!(listed(&*state, "notes").await, ["fresh=queued", "kept=queued"]);
    drop(state);

    let state = crate::support::open_when_free(&*store, "a").await;
    assert_eq!(listed(&*state, "notes").await, ["gone=x", "kept=old"]);
}

pub(crate) async fn batches_have_their_effect_in_order(place: &impl Place) {
    let clock = TestClock::new();
    let state = place.store(&clock).open(&session("a")).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "a", "0", DEFAULT), set(&clock, "b", "0", DEFAULT)]).await;
    state.apply(&plugin("notes"), vec![set(&clock, "a", "1", DEFAULT), set(&clock, "c", "1", DEFAULT)].into());
    state.apply(&plugin("notes"), vec![StateChange::Delete("a".to_owned()), set(&clock, "c", "2", DEFAULT)].into());
    state.apply(&plugin("notes"), vec![set(&clock, "a", "3", DEFAULT), StateChange::Delete("b".to_owned())].into());
    // A read of what is not there adds nothing.
    state.apply(&plugin("notes"), vec![touch(&clock, "b", DEFAULT), touch(&clock, "never", DEFAULT)].into());
    state.settle(PATIENCE).await.unwrap();
    state.close(PATIENCE).await.unwrap();
    let state = place.store(&clock).open(&session("a")).await.unwrap();
    assert_eq!(listed(&*state, "notes").await, ["a=3", "c=2"]);
}

pub(crate) async fn sessions_and_plugins_do_not_see_each_other(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    // Names that are prefixes of each other, and keys with the separators of formats.
    let ids = ["a", "a-", "a-b", "A"];
    let plugins = ["p", "p-", "p-q", "P"];
    for id in ids {
        let state = store.open(&session(id)).await.unwrap();
        for name in plugins {
            save(&*state, name, vec![set(&clock, "p/q", &format!("{id} {name}"), DEFAULT)]).await;
        }
        state.close(PATIENCE).await.unwrap();
    }
    for id in ids {
        let state = store.open(&session(id)).await.unwrap();
        for name in plugins {
            assert_eq!(listed(&*state, name).await, [format!("p/q={id} {name}")]);
        }
        state.clear(&plugin("p")).await.unwrap();
        assert_eq!(listed(&*state, "p-").await, [format!("p/q={id} p-")]);
        state.close(PATIENCE).await.unwrap();
    }
}

pub(crate) async fn many_sessions_at_once_do_not_see_each_other(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (store, clock) = (store.clone(), clock.clone());
        tasks.spawn(async move {
            let state = store.open(&session(&format!("s-{number}"))).await.unwrap();
            for round in 0..10 {
                for name in ["p", "q"] {
                    save(&*state, name, vec![set(&clock, "key", &format!("{number} {name} {round}"), DEFAULT)]).await;
                }
            }
            for name in ["p", "q"] {
                assert_eq!(listed(&*state, name).await, [format!("key={number} {name} 9")]);
            }
            state.close(PATIENCE).await.unwrap();
        });
    }
    tasks.join_all().await;
}

pub(crate) async fn clearing_removes_entries_and_version_of_one_plugin(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    for name in ["cleared", "kept"] {
        let changes = vec![set(&clock, "key", name, StateLifetime::Session)];
        state.apply(&plugin(name), StateBatch { changes, version: Some(2) });
    }
    state.settle(PATIENCE).await.unwrap();
    // What is queued is cleared too.
    state.apply(&plugin("cleared"), vec![set(&clock, "queued", "x", DEFAULT)].into());
    state.clear(&plugin("cleared")).await.unwrap();
    state.close(PATIENCE).await.unwrap();

    let state = store.open(&session("a")).await.unwrap();
    assert_eq!(state.load(&plugin("cleared")).await.unwrap(), flow::ports::StoredState::default());
    let kept = state.load(&plugin("kept")).await.unwrap();
    assert_eq!((kept.entries.len(), kept.version), (1, Some(2)));
}

pub(crate) async fn a_cleared_area_keeps_its_version(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    let changes = vec![set(&clock, "old", "x", DEFAULT)];
    state.apply(&plugin("notes"), StateBatch { changes, version: Some(2) });
    state.settle(PATIENCE).await.unwrap();
    save(
        &*state,
        "notes",
        vec![set(&clock, "before", "x", DEFAULT), StateChange::Clear, set(&clock, "after", "x", DEFAULT)],
    )
    .await;
    state.close(PATIENCE).await.unwrap();
    let state = store.open(&session("a")).await.unwrap();
    assert_eq!(listed(&*state, "notes").await, ["after=x"]);
    assert_eq!(state.load(&plugin("notes")).await.unwrap().version, Some(2));
}

pub(crate) async fn a_migration_is_one_batch(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a")).await.unwrap();
    assert_eq!(state.load(&plugin("notes")).await.unwrap().version, None);
    state.apply(&plugin("notes"), StateBatch { changes: vec![set(&clock, "v1", "x", DEFAULT)], version: Some(1) });
    state.settle(PATIENCE).await.unwrap();
    let changes = vec![StateChange::Clear, set(&clock, "v2", "x", DEFAULT)];
    state.apply(&plugin("notes"), StateBatch { changes, version: Some(2) });
    state.close(PATIENCE).await.unwrap();
    let state = store.open(&session("a")).await.unwrap();
    assert_eq!(listed(&*state, "notes").await, ["v2=x"]);
    assert_eq!(state.load(&plugin("notes")).await.unwrap().version, Some(2));
}

pub(crate) async fn large_and_odd_values_are_kept(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let state = store.open(&session("a session/with: {odd} characters \u{1f30a}")).await.unwrap();
    let all: Vec<u8> = (0..=255).collect();
    let longest = "k".repeat(512);
    let values: [(&str, Vec<u8>); 6] = [
        ("all bytes", all),
        ("empty", Vec::new()),
        ("line\nbreak", b"a\nb\r\n\0".to_vec()),
        ("\0", b"1 2 3\n".to_vec()),
        ("ä/\u{10ffff}", vec![0; 1 << 20]),
        (&longest, vec![255; 70_000]),
    ];
    let mut entries: Vec<StateEntry> =
        values.map(|(key, value)| StateEntry::written(key, value, own(HOUR), 1_790_000_000_000)).into();
    entries.sort_by(|one, other| one.key.cmp(&other.key));
    save(&*state, "notes", entries.iter().cloned().map(StateChange::Set).collect()).await;
    // New times for a large value do not change it.
    let large = entries.iter_mut().find(|entry| entry.value.len() == 1 << 20).unwrap();
    (large.used_ms, large.expires_ms) = (clock.now_ms() + 5, Some(clock.now_ms() + 5 + HOUR));
    let touch = StateChange::Touch { key: large.key.clone(), expires_ms: large.expires_ms, used_ms: large.used_ms };
    save(&*state, "notes", vec![touch]).await;
    state.close(PATIENCE).await.unwrap();
    let state = store.open(&session("a session/with: {odd} characters \u{1f30a}")).await.unwrap();
    assert!(state.load(&plugin("notes")).await.unwrap().entries == entries);
}

pub(crate) async fn the_operator_sees_what_is_stored(place: &impl Place) {
    let clock = TestClock::new();
    let (store, admin) = (place.store(&clock), place.store(&clock));
    assert!(admin.sessions().await.unwrap().sessions.is_empty());
    let open = store.open(&session("open")).await.unwrap();
    save(&*open, "notes", vec![set(&clock, "key", "value", DEFAULT), set(&clock, "own", "1", own(5))]).await;
    save(&*open, "todo", vec![set(&clock, "key", "v", StateLifetime::Session)]).await;
    let idle = store.open(&session("idle")).await.unwrap();
    idle.apply(&plugin("notes"), StateBatch { changes: vec![set(&clock, "k", "", DEFAULT)], version: Some(3) });
    idle.close(PATIENCE).await.unwrap();
    clock.advance(5);

    let list = admin.sessions().await.unwrap();
    assert!(list.problems.is_empty(), "{:?}", list.problems);
    let names: Vec<&str> = list.sessions.iter().map(|one| one.session.as_str()).collect();
    assert_eq!(names, ["idle", "open"]);
    assert_eq!((list.sessions[0].owner.as_deref(), list.sessions[1].owner.as_deref()), (None, Some("the test")));
    let sums: Vec<_> = list.sessions[1].plugins.iter().map(|one| (one.plugin.as_str(), one.keys, one.bytes)).collect();
    assert_eq!(sums, [("notes", 1, 8), ("todo", 1, 4)], "the entry of its own time has expired");
    let expiry = clock.now_ms() - 5 + HOUR;
    assert_eq!(list.sessions[1].plugins[0].next_expiry_ms, Some(expiry));
    assert_eq!(list.sessions[1].plugins[1].next_expiry_ms, None);
    assert_eq!(list.sessions[0].plugins[0].version, Some(3));

    let shown = admin.show(&session("open")).await.unwrap().unwrap();
    assert_eq!(shown.summary, list.sessions[1]);
    assert_eq!(shown.states[0].0.as_str(), "notes");
    assert_eq!(&*shown.states[0].1.entries[0].value, b"value");
    assert_eq!(admin.show(&session("unknown")).await.unwrap(), None);
}

pub(crate) async fn the_operator_clears_what_is_stored(place: &impl Place) {
    let clock = TestClock::new();
    let (store, admin) = (place.store(&clock), place.store(&clock));
    for id in ["open", "idle"] {
        let state = store.open(&session(id)).await.unwrap();
        for name in ["notes", "todo"] {
            save(&*state, name, vec![set(&clock, "key", "v", StateLifetime::Session)]).await;
        }
        state.close(PATIENCE).await.unwrap();
    }
    let open = store.open(&session("open")).await.unwrap();
    admin.show(&session("open")).await.unwrap().unwrap();
    // The owner has not noticed that somebody looked.
    save(&*open, "todo", vec![set(&clock, "key", "w", StateLifetime::Session)]).await;

    for one in [None, Some(&plugin("notes"))] {
        let refused = admin.clear(&session("open"), one).await.unwrap_err();
        assert!(matches!(refused, StateError::Leased { .. }), "{refused}");
        assert!(!admin.clear(&session("unknown"), one).await.unwrap());
    }
    open.close(PATIENCE).await.unwrap();
    assert!(admin.clear(&session("open"), Some(&plugin("notes"))).await.unwrap());
    let shown = admin.show(&session("open")).await.unwrap().unwrap();
    assert_eq!(shown.summary.plugins.len(), 1);
    assert!(admin.clear(&session("open"), None).await.unwrap());
    assert_eq!(admin.show(&session("open")).await.unwrap(), None);
    assert_eq!(admin.sessions().await.unwrap().sessions.len(), 1);
}

pub(crate) async fn a_closed_session_writes_nothing(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let closed = store.open(&session("a")).await.unwrap();
    save(&*closed, "notes", vec![set(&clock, "key", "before", DEFAULT)]).await;
    closed.close(PATIENCE).await.unwrap();
    closed.close(PATIENCE).await.unwrap();
    closed.settle(Duration::ZERO).await.unwrap();
    let open = store.open(&session("a")).await.unwrap();
    closed.apply(&plugin("notes"), vec![set(&clock, "key", "after", DEFAULT)].into());
    let errors = [closed.settle(PATIENCE).await.unwrap_err(), closed.load(&plugin("notes")).await.unwrap_err()];
    for error in errors {
        assert!(matches!(error, StateError::Closed { .. }), "{error}");
    }
    // Neither does dropping it end the lease of the next owner.
    drop(closed);
    assert!(store.open(&session("a")).await.is_err());
    assert_eq!(listed(&*open, "notes").await, ["key=before"]);
}

pub(crate) async fn the_plugins_of_a_session_are_listed(place: &impl Place) {
    let clock = TestClock::new();
    let store = place.store(&clock);
    let names = async |state: &dyn SessionState| {
        let plugins = state.plugins().await.unwrap();
        plugins.iter().map(|plugin| plugin.as_str().to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    let state = store.open(&session("a")).await.unwrap();
    assert!(names(&*state).await.is_empty());
    save(&*state, "notes", vec![set(&clock, "key", "v", DEFAULT)]).await;
    save(&*state, "todo", vec![set(&clock, "key", "v", StateLifetime::Session)]).await;
    save(&*state, PluginId::host().as_str(), vec![set(&clock, "gone", "1", StateLifetime::Session)]).await;
    state.close(PATIENCE).await.unwrap();
    // Another session has its own.
    save(&*store.open(&session("b")).await.unwrap(), "other", vec![set(&clock, "key", "v", DEFAULT)]).await;

    let state = place.store(&clock).open(&session("a")).await.unwrap();
    assert_eq!(names(&*state).await, ["notes", "tidegate", "todo"].map(str::to_owned).into());
    state.clear(&plugin("todo")).await.unwrap();
    assert_eq!(names(&*state).await, ["notes", "tidegate"].map(str::to_owned).into());
}

/// The notes of the host are no plugin that the operator sees.
pub(crate) async fn the_operator_sees_since_when_a_plugin_is_absent(place: &impl Place) {
    let clock = TestClock::new();
    let (store, admin) = (place.store(&clock), place.store(&clock));
    let state = store.open(&session("a")).await.unwrap();
    save(&*state, "notes", vec![set(&clock, "key", "v", StateLifetime::Session)]).await;
    save(&*state, PluginId::host().as_str(), vec![set(&clock, "notes", "1234", StateLifetime::Session)]).await;
    state.close(PATIENCE).await.unwrap();
    let listed = admin.sessions().await.unwrap().sessions.remove(0);
    let since: Vec<_> = listed.plugins.iter().map(|one| (one.plugin.as_str(), one.absent_since_ms)).collect();
    assert_eq!(since, [("notes", Some(1234))]);
    assert_eq!(admin.show(&session("a")).await.unwrap().unwrap().summary.plugins, listed.plugins);
}
