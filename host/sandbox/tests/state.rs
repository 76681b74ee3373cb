//! What a plugin keeps, through a real guest and real stores: durable at a barrier, undone with a discarded attempt, and never
//! overwritten unread.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::{
    AttemptEnd, BoxFuture, ExtensionHost as _, Extensions, SessionState, StateBatch, StateChange, StateError,
    StateStore, StoredState,
};
use flow::{EventKind, FailureCause, PluginId, SessionId, TextAnswer};
use store::{DiskStore, StoreOptions};
use tidegate_sandbox::{PluginSource, SandboxHost, Setting};

use crate::support::{Stage, failure, open, patient, sandbox, say, source, store};

fn conformance() -> PluginSource {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/conformance");
    let built = tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    let mut source = patient(source("conformance", built.bytes));
    source.settings.insert("unit".into(), Setting::Text("whole".into()));
    source
}

fn host(store: Arc<dyn StateStore>) -> SandboxHost {
    SandboxHost::new(vec![sandbox().load(conformance()).unwrap()], store).unwrap()
}

async fn ask(extensions: &Arc<dyn Extensions>, script: &str) -> String {
    match say(extensions, script).await.unwrap() {
        TextAnswer::Replace(text) => text,
        other => panic!("{script}: {other:?}"),
    }
}

fn disk(folder: &Path) -> Arc<dyn StateStore> {
    Arc::new(DiskStore::new(folder, StoreOptions::default(), Arc::new(system::SystemClock)).unwrap())
}

#[tokio::test]
async fn state_on_disk_outlives_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Arc::new(Stage::default());
    {
        let host = host(disk(folder.path()));
        let session = host.open(&SessionId::new("s"), Arc::clone(&stage) as _, Arc::clone(&stage) as _).await.unwrap();
        session.begin_turn();
        assert_eq!(ask(&session, "!state-set k one").await, "()");
        session.end_turn();
        session.settle(Duration::from_secs(5)).await.unwrap();
        let Err(refused) = host.open(&SessionId::new("s"), Arc::clone(&stage) as _, Arc::clone(&stage) as _).await
        else {
            panic!("a session is open once");
        };
        assert!(matches!(refused, StateError::Leased { .. }), "{refused}");
    }
    let host = host(disk(folder.path()));
    let session = host.open(&SessionId::new("s"), Arc::clone(&stage) as _, Arc::clone(&stage) as _).await.unwrap();
    assert_eq!(ask(&session, "!state-get k\n!count").await, "Some(\"one\")\n1", "the value is kept, the memory is not");
}

#[tokio::test]
async fn a_discarded_attempt_leaves_nothing_behind() {
    let stage = Arc::new(Stage::default());
    let session = open(&host(store()), "s", &stage);
    assert_eq!(ask(&session, "!state-set k one\n!count").await, "()\n1");
    session.begin_attempt();
    assert_eq!(ask(&session, "!state-set k two\n!state-set new 1\n!count").await, "()\n()\n2");
    assert_eq!(ask(&session, "!state-get k").await, "Some(\"two\")");
    session.end_attempt(AttemptEnd::Discarded);
    let script = "!state-get k\n!state-get new\n!count";
    assert_eq!(ask(&session, script).await, "Some(\"one\")\nNone\n1", "the instance remembered what it wrote");
    let undone = stage.events.lock().unwrap().iter().filter(|event| is_roll_back(event)).count();
    assert_eq!(undone, 2);
    // An attempt without writes costs no instance.
    session.begin_attempt();
    ask(&session, "!state-get k").await;
    session.end_attempt(AttemptEnd::Discarded);
    assert_eq!(ask(&session, "!count").await, "3");
}

#[tokio::test]
async fn reads_are_counted_until_they_are_asked_for() {
    let session = open(&host(store()), "s", &Arc::new(Stage::default()));
    assert_eq!(session.take_state_reads(0), 0);
    ask(&session, "!state-set k one\n!state-get k\n!state-get k\n!state-get missing\n!state-keys").await;
    assert_eq!((session.take_state_reads(0), session.take_state_reads(0)), (3, 0));
    say(&session, "!state-get k\n!error no").await.unwrap_err();
    assert_eq!(session.take_state_reads(0), 1, "also those of a callback that failed");
}

#[tokio::test]
async fn conditions_of_prompt_additions_read_state_without_using_it() {
    let session = open(&host(store()), "s", &Arc::new(Stage::default()));
    assert_eq!(session.state_value(0, "k").unwrap_err(), "the state of the extension is not loaded");
    session.settle(Duration::ZERO).await.unwrap();
    assert_eq!(session.state_value(0, "k"), Ok(None));
    ask(&session, "!state-set k one").await;
    assert_eq!(session.state_value(0, "k"), Ok(Some(b"\"one\"".to_vec())));
}

fn is_roll_back(event: &EventKind) -> bool {
    matches!(event, EventKind::ExtensionState { operation, .. } if operation == "roll_back")
}

/// A store that fails as it is told, and records what is written.
#[derive(Clone, Default)]
struct Faulty {
    unreadable: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
    written: Arc<Mutex<Vec<StateChange>>>,
}

impl StateStore for Faulty {
    fn open<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>> {
        Box::pin(async { Ok(Arc::new(self.clone()) as Arc<dyn SessionState>) })
    }
}

impl SessionState for Faulty {
    fn load<'a>(&'a self, _: &'a PluginId) -> BoxFuture<'a, Result<StoredState, StateError>> {
        Box::pin(async {
            if self.unreadable.load(Ordering::Relaxed) {
                return Err(StateError::Unreadable { place: "s.redb".into(), cause: "it is damaged".into() });
            }
            Ok(StoredState::default())
        })
    }

    fn apply(&self, _: &PluginId, batch: StateBatch) {
        self.written.lock().unwrap().extend(batch.changes);
    }

    fn turn_started(&self) {}

    fn turn_ended(&self) {}

    fn settle(&self, _: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(async {
            if self.lost.swap(false, Ordering::Relaxed) {
                return Err(StateError::Lost { session: SessionId::new("s"), place: "the server".into() });
            }
            Ok(())
        })
    }

    fn clear<'a>(&'a self, _: &'a PluginId) -> BoxFuture<'a, Result<(), StateError>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, _: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_plugin_whose_state_cannot_be_read_does_not_run_without_it() {
    let faulty = Faulty::default();
    faulty.unreadable.store(true, Ordering::Relaxed);
    let stage = Arc::new(Stage::default());
    let session = open(&host(Arc::new(faulty.clone())), "s", &stage);
    let failed =
        session.plain_text(0, "!state-set k one", &flow::TextPlace::default()).await.map_err(failure).unwrap_err();
    assert_eq!(failed.cause, FailureCause::Host);
    assert!(failed.message.contains("cannot be loaded") && failed.message.contains("s.redb"), "{}", failed.message);
    assert_eq!(*faulty.written.lock().unwrap(), []);
    // As soon as it can be read, the plugin runs.
    faulty.unreadable.store(false, Ordering::Relaxed);
    assert_eq!(ask(&session, "!state-set k one").await, "()");
}

#[tokio::test]
async fn a_store_that_lost_its_data_gets_it_again() {
    let faulty = Faulty::default();
    let stage = Arc::new(Stage::default());
    let session = open(&host(Arc::new(faulty.clone())), "s", &stage);
    ask(&session, "!state-set k one").await;
    session.settle(Duration::ZERO).await.unwrap();
    faulty.written.lock().unwrap().clear();
    faulty.lost.store(true, Ordering::Relaxed);
    session.settle(Duration::ZERO).await.unwrap();
    let written = faulty.written.lock().unwrap();
    assert!(
        matches!(written.as_slice(), [StateChange::Clear, StateChange::Set(entry)] if entry.key == "k"),
        "{written:?}"
    );
    let told =
        |event: &EventKind| matches!(event, EventKind::Notice { message } if message.contains("was written again"));
    assert!(stage.events.lock().unwrap().iter().any(told));
}
