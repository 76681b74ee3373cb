//! Whatever a backend does, a settle that succeeds means that it has exactly what was applied.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{
    BoxFuture, Clock, Replaced, SessionState as _, StateBatch, StateChange, StateEntry, StateError, StateLifetime,
    StoredState,
};
use flow::{PluginId, SessionId};
use proptest::prelude::*;

use super::OpenSession;
use crate::activity::Recorded;
use crate::backend::{Backend, Opened, Swept, WriteError};
use crate::queue::Flight;

/// What a backend does with a write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Works,
    /// The flight does not arrive, and the backend says so.
    Refused,
    /// The flight does not arrive, and nobody knows.
    Missed,
    /// The flight arrives, its answer does not.
    AnswerLost,
    /// The caller gives up; the flight arrives after the next one.
    Late,
}

#[derive(Default)]
struct Scripted {
    fates: Mutex<VecDeque<Fate>>,
    late: Mutex<Vec<Arc<Flight>>>,
    stored: Mutex<BTreeMap<String, StateEntry>>,
    last_number: AtomicU64,
    writes: AtomicU64,
}

impl Scripted {
    fn arrive(&self, flight: &Flight) {
        // The contract of a backend: never an older flight over a newer one.
        if flight.number > self.last_number.fetch_max(flight.number, Ordering::SeqCst) {
            let mut stored = self.stored.lock().unwrap();
            flight.plugins.values().for_each(|changes| changes.apply_to(&mut stored));
        }
    }
}

impl Backend for Arc<Scripted> {
    fn load<'a>(&'a self, _: &'a PluginId) -> BoxFuture<'a, Result<StoredState, StateError>> {
        Box::pin(async {
            let entries = self.stored.lock().unwrap().values().cloned().collect();
            Ok(StoredState { entries, version: None })
        })
    }

    fn plugins(&self) -> BoxFuture<'_, Result<Vec<PluginId>, StateError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn write(&self, flight: Arc<Flight>) -> BoxFuture<'_, Result<Swept, WriteError>> {
        Box::pin(async move {
            self.writes.fetch_add(1, Ordering::SeqCst);
            let away = |is_definite| WriteError { error: away(), is_definite };
            let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Works);
            match fate {
                Fate::Works | Fate::AnswerLost => {
                    self.arrive(&flight);
                    std::mem::take(&mut *self.late.lock().unwrap()).iter().for_each(|late| self.arrive(late));
                    if fate == Fate::Works { Ok(Swept::new()) } else { Err(away(false)) }
                }
                Fate::Refused => Err(away(true)),
                Fate::Missed => Err(away(false)),
                Fate::Late => {
                    self.late.lock().unwrap().push(flight);
                    std::future::pending().await
                }
            }
        })
    }

    fn replace_note<'a>(
        &'a self,
        seen: Option<&'a [u8]>,
        note: &'a StateEntry,
    ) -> Option<BoxFuture<'a, Result<Replaced, StateError>>> {
        let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Works);
        let mut stored = self.stored.lock().unwrap();
        let known = stored.get(&note.key).map(|entry| Arc::clone(&entry.value));
        let replaced = match known {
            _ if matches!(fate, Fate::Refused | Fate::Missed | Fate::Late) => Err(away()),
            known if known.as_deref() != seen => Ok(Replaced::Other(known)),
            _ => {
                stored.insert(note.key.clone(), note.clone());
                if fate == Fate::AnswerLost { Err(away()) } else { Ok(Replaced::Done) }
            }
        };
        Some(Box::pin(std::future::ready(replaced)))
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn away() -> StateError {
    let cause = Arc::from(Box::<dyn std::error::Error + Send + Sync>::from("it is away"));
    StateError::Unavailable { place: "a script".into(), cause }
}

/// A clock whose pauses move it and take no time.
#[derive(Debug, Default)]
struct Leaping(Arc<AtomicU64>);

impl Clock for Leaping {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}

fn session(fates: impl IntoIterator<Item = Fate>) -> (Arc<Scripted>, OpenSession<Arc<Scripted>>, Arc<AtomicU64>) {
    let backend = Arc::new(Scripted { fates: Mutex::new(fates.into_iter().collect()), ..Scripted::default() });
    let recorded = Recorded { active_ms: 0, shortest_ttl_ms: None, has_state: false };
    let opened = Opened { backend: Arc::clone(&backend), recorded };
    let clock = Leaping::default();
    let time = Arc::clone(&clock.0);
    (backend, OpenSession::new(SessionId::new("s"), opened, Arc::new(clock), u64::MAX), time)
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// Settles, and gives up where the backend does not answer.
async fn settle(state: &OpenSession<Arc<Scripted>>, patience: Duration) -> Option<Result<(), StateError>> {
    let mut settling = state.settle(patience);
    tokio::select! {
        biased;
        done = &mut settling => Some(done),
        () = tokio::task::yield_now() => None,
    }
}

fn set(key: &str, value: u8) -> StateChange {
    StateChange::Set(StateEntry::written(key, [value], StateLifetime::Session, 0))
}

#[test]
fn a_backend_that_is_away_is_asked_until_the_patience_ends_and_the_queue_is_kept() {
    let (backend, state, time) = session([Fate::Refused; 40]);
    let plugin = "p".parse().unwrap();
    state.apply(&plugin, vec![set("a", 1)].into());
    let error = run(state.settle(Duration::from_secs(10))).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(error.to_string(), "cannot reach the state store a script: it is away");
    assert_eq!(time.load(Ordering::SeqCst), 10_000);
    // 20, 40, … 640 ms, then each second, the last pause cut short.
    assert_eq!(backend.writes.load(Ordering::SeqCst), 16);
    run(state.settle(Duration::ZERO)).unwrap_err();
    assert_eq!(backend.writes.load(Ordering::SeqCst), 17, "without patience it is asked once");
    backend.fates.lock().unwrap().clear();
    run(state.settle(Duration::ZERO)).unwrap();
    assert_eq!(backend.stored.lock().unwrap().len(), 1);
}

/// A note that was replaced, of which nobody was told, is not taken for that of another host: what both had counted would be counted twice.
#[test]
fn a_note_whose_answer_was_lost_is_replaced_once() {
    let note = |value: u8| StateEntry::written("note", [value], StateLifetime::Session, 0);
    let replace = |state: &OpenSession<Arc<Scripted>>, seen: Option<u8>, value| {
        let seen = seen.map(|seen| [seen]);
        let seen = seen.as_ref().map(|seen| &seen[..]);
        run(state.replace_note(seen, note(value), Duration::from_secs(1))).unwrap()
    };
    for fates in [vec![Fate::AnswerLost], vec![Fate::AnswerLost, Fate::Missed], vec![Fate::Missed, Fate::AnswerLost]] {
        let (backend, state, _) = session(fates);
        assert_eq!(replace(&state, None, 1), Replaced::Done);
        assert_eq!(*backend.stored.lock().unwrap()["note"].value, [1]);
        // Another host has written, also where it wrote the same.
        assert_eq!(replace(&state, None, 1), Replaced::Other(Some([1].into())));
        assert_eq!(replace(&state, Some(3), 2), Replaced::Other(Some([1].into())));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<StateChange>),
    Settle,
    Load,
}

fn step() -> impl Strategy<Value = Step> {
    let key = || prop::sample::select(vec!["a", "b", "c"]);
    let change = prop_oneof![
        3 => (key(), any::<u8>()).prop_map(|(key, value)| set(key, value)),
        2 => key().prop_map(|key| StateChange::Delete(key.to_owned())),
        1 => Just(StateChange::Clear),
    ];
    prop_oneof![
        3 => prop::collection::vec(change, 1..4).prop_map(Step::Apply),
        2 => Just(Step::Settle),
        1 => Just(Step::Load),
    ]
}

fn change(model: &mut BTreeMap<String, StateEntry>, changes: &[StateChange]) {
    for change in changes {
        match change {
            StateChange::Set(entry) => drop(model.insert(entry.key.clone(), entry.clone())),
            StateChange::Delete(key) => drop(model.remove(key)),
            StateChange::Clear => model.clear(),
            StateChange::Touch { .. } => unreachable!("not generated"),
        }
    }
}

proptest! {
    #[test]
    fn after_a_settle_the_backend_has_what_was_applied(
        steps in prop::collection::vec(step(), 1..25),
        fates in prop::collection::vec(
            prop::sample::select(vec![Fate::Works, Fate::Refused, Fate::Missed, Fate::AnswerLost, Fate::Late]), 0..20),
    ) {
        let (backend, state, _) = session(fates);
        let plugin: PluginId = "p".parse().unwrap();
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Apply(changes) => {
                    change(&mut model, &changes);
                    state.apply(&plugin, StateBatch::from(changes));
                }
                Step::Settle => {
                    if let Some(Ok(())) = run(settle(&state, Duration::ZERO)) {
                        prop_assert_eq!(&*backend.stored.lock().unwrap(), &model);
                    }
                }
                Step::Load => {
                    let loaded = run(state.load(&plugin)).unwrap().entries;
                    prop_assert_eq!(loaded, model.values().cloned().collect::<Vec<_>>());
                }
            }
        }
        backend.fates.lock().unwrap().clear();
        run(state.settle(Duration::ZERO)).unwrap();
        prop_assert_eq!(&*backend.stored.lock().unwrap(), &model);
    }
}

#[test]
fn what_a_plugin_has_written_counts_before_it_is_durable() {
    let (_, state, _) = session([Fate::Refused]);
    let (plugin, none): (PluginId, PluginId) = ("p".parse().unwrap(), "none".parse().unwrap());
    state.apply(&plugin, vec![set("a", 1)].into());
    state.apply(&none, vec![StateChange::Delete("a".to_owned())].into());
    assert_eq!(run(state.plugins()).unwrap(), std::slice::from_ref(&plugin));
    run(state.settle(Duration::ZERO)).unwrap_err();
    assert_eq!(run(state.plugins()).unwrap(), [plugin]);
}
