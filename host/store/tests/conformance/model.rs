//! Random operations on two plugins of a session, compared with a model that removes each entry in the moment in which it expires.

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::ports::{Clock as _, SessionState, StateBatch, StateChange, StateEntry, StateLifetime};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::places::{Place, Store};
use crate::support::{DAY, HOUR, MINUTE, PATIENCE, TestClock, plugin, session};

/// Sequences of operations, and operations of each.
const SEQUENCES: usize = 60;
const LENGTH: usize = 60;
const PLUGINS: [&str; 2] = ["p", "p-q"];
const SESSION_TTL: u64 = 30 * DAY;

#[derive(Clone, Debug)]
enum Operation {
    Apply(usize, Vec<Change>, Option<u32>),
    Settle,
    Forget(usize),
    Start,
    End,
    Wait(u64),
    Reopen,
}

#[derive(Clone, Debug)]
enum Change {
    Set(&'static str, u8, StateLifetime),
    /// The callers' cache reads an entry that is there.
    Read(&'static str),
    Delete(&'static str),
    Clear,
}

fn change() -> impl Strategy<Value = Change> {
    let key = || prop::sample::select(vec!["a", "b", "c", "d"]);
    let lifetime = prop_oneof![
        prop::sample::select(vec![MINUTE, HOUR]).prop_map(|ttl_ms| StateLifetime::Default { ttl_ms }),
        prop::sample::select(vec![MINUTE, HOUR, 60 * DAY]).prop_map(|ttl_ms| StateLifetime::Own { ttl_ms }),
        Just(StateLifetime::Session),
    ];
    prop_oneof![
        6 => (key(), any::<u8>(), lifetime).prop_map(|(key, value, lifetime)| Change::Set(key, value, lifetime)),
        3 => key().prop_map(Change::Read),
        2 => key().prop_map(Change::Delete),
        1 => Just(Change::Clear),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let waits = vec![1, MINUTE - 1, MINUTE, 30 * MINUTE, HOUR, 29 * DAY, 30 * DAY];
    prop_oneof![
        10 => (0..2usize, prop::collection::vec(change(), 0..4), prop::option::weighted(0.2, 0..9u32))
            .prop_map(|(plugin, changes, version)| Operation::Apply(plugin, changes, version)),
        4 => Just(Operation::Settle),
        1 => (0..2usize).prop_map(Operation::Forget),
        3 => Just(Operation::Start),
        3 => Just(Operation::End),
        5 => prop::sample::select(waits).prop_map(Operation::Wait),
        2 => Just(Operation::Reopen),
    ]
}

/// The model: what is there now.
#[derive(Debug, Default)]
struct Model {
    plugins: [BTreeMap<String, StateEntry>; 2],
    versions: [Option<u32>; 2],
    running: bool,
    active_ms: u64,
}

impl Model {
    fn is_alive(&self, entry: &StateEntry, now_ms: u64) -> bool {
        let active_ms = if self.running { now_ms } else { self.active_ms };
        let own_end = match entry.lifetime {
            StateLifetime::Default { ttl_ms } => active_ms.max(entry.used_ms) + ttl_ms,
            StateLifetime::Own { ttl_ms } => entry.used_ms + ttl_ms,
            StateLifetime::Session => u64::MAX,
        };
        now_ms < own_end && now_ms < active_ms + SESSION_TTL
    }

    fn expire(&mut self, now_ms: u64) {
        let mut plugins = std::mem::take(&mut self.plugins);
        for entries in &mut plugins {
            entries.retain(|_, entry| self.is_alive(entry, now_ms));
        }
        self.plugins = plugins;
    }

    /// Makes the changes, and returns what a cache applies.
    fn apply(&mut self, plugin: usize, changes: &[Change], now_ms: u64) -> Vec<StateChange> {
        let entries = &mut self.plugins[plugin];
        let mut batch = Vec::new();
        for change in changes {
            match change {
                Change::Set(key, value, lifetime) => {
                    let entry = StateEntry::written(*key, [*value], *lifetime, now_ms);
                    entries.insert((*key).to_owned(), entry.clone());
                    batch.push(StateChange::Set(entry));
                }
                Change::Read(key) => {
                    let Some(entry) = entries.get_mut(*key) else { continue };
                    (entry.used_ms, entry.expires_ms) = (now_ms, entry.lifetime.expires_after(now_ms));
                    let (key, expires_ms) = ((*key).to_owned(), entry.expires_ms);
                    batch.push(StateChange::Touch { key, expires_ms, used_ms: now_ms });
                }
                Change::Delete(key) => {
                    entries.remove(*key);
                    batch.push(StateChange::Delete((*key).to_owned()));
                }
                Change::Clear => {
                    entries.clear();
                    batch.push(StateChange::Clear);
                }
            }
        }
        batch
    }
}

/// A session next to its model.
struct Pair {
    store: Arc<dyn Store>,
    clock: Arc<TestClock>,
    state: Arc<dyn SessionState>,
    model: Model,
}

impl Pair {
    async fn run(&mut self, operation: &Operation) {
        let now_ms = self.clock.now_ms();
        if matches!(operation, Operation::Apply(..) | Operation::Forget(_) | Operation::Start) {
            // State changes in turns.
            (self.model.running, self.model.active_ms) = (true, now_ms);
            self.state.turn_started();
        }
        match operation {
            Operation::Start => {}
            Operation::Apply(at, changes, version) => {
                let changes = self.model.apply(*at, changes, now_ms);
                self.model.versions[*at] = version.or(self.model.versions[*at]);
                self.state.apply(&plugin(PLUGINS[*at]), StateBatch { changes, version: *version });
            }
            Operation::Settle => self.state.settle(PATIENCE).await.unwrap(),
            Operation::Forget(at) => {
                self.model.plugins[*at].clear();
                self.model.versions[*at] = None;
                self.state.clear(&plugin(PLUGINS[*at])).await.unwrap();
            }
            Operation::End => self.end(now_ms),
            Operation::Wait(ms) => {
                self.clock.advance(*ms);
                self.model.expire(self.clock.now_ms());
            }
            Operation::Reopen => self.reopen(now_ms).await,
        }
    }

    async fn reopen(&mut self, now_ms: u64) {
        self.end(now_ms);
        self.state.close(PATIENCE).await.unwrap();
        let ended = self.model.active_ms + SESSION_TTL <= now_ms;
        let empty = self.model.plugins.iter().all(BTreeMap::is_empty) && self.model.versions == [None, None];
        if ended || empty {
            // Nothing remains of the session: it starts again now.
            self.model = Model { active_ms: now_ms, ..Model::default() };
        }
        self.state = self.store.open(&session("a")).await.unwrap();
    }

    fn end(&mut self, now_ms: u64) {
        if self.model.running {
            (self.model.running, self.model.active_ms) = (false, now_ms);
        }
        self.state.turn_ended();
    }

    async fn compare(&self) -> Result<(), String> {
        for (at, id) in PLUGINS.iter().enumerate() {
            let stored = self.state.load(&plugin(id)).await.map_err(|error| error.to_string())?;
            let found: Vec<_> = stored.entries.iter().map(|entry| (&entry.key, &entry.value, entry.lifetime)).collect();
            let expected: Vec<_> =
                self.model.plugins[at].values().map(|entry| (&entry.key, &entry.value, entry.lifetime)).collect();
            if (&found, stored.version) != (&expected, self.model.versions[at]) {
                let versions = (stored.version, self.model.versions[at]);
                return Err(format!("{id}: {found:?} instead of {expected:?}, versions {versions:?}"));
            }
        }
        Ok(())
    }
}

pub(crate) async fn random_operations_agree_with_a_model(place: &impl Place) {
    // Fixed seeds: a failure is the same in every run. Comparing loads both plugins, which half of the sequences put off to the end, so
    // that the queue also works for plugins that were never loaded.
    for number in 0..SEQUENCES {
        let seed = [u8::try_from(number).unwrap(); 32];
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let operations = prop::collection::vec(operation(), LENGTH).new_tree(&mut runner).unwrap().current();
        let clock = TestClock::new();
        let store = place.store(&clock);
        store.clear(&session("a"), None).await.unwrap();
        let state = store.open(&session("a")).await.unwrap();
        let model = Model { active_ms: clock.now_ms(), ..Model::default() };
        let mut pair = Pair { store, clock, state, model };
        for (step, operation) in operations.iter().enumerate() {
            pair.run(operation).await;
            if number % 2 == 0 || step + 1 == LENGTH {
                let compared = pair.compare().await;
                compared.unwrap_or_else(|error| {
                    panic!("sequence {number}, step {step}: {error}\n{:#?}", &operations[..=step]);
                });
            }
        }
        pair.state.close(PATIENCE).await.unwrap();
    }
}
