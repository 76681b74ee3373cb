//! State that an older version of a plugin wrote: migrated once, durably, or left as it was and out of use.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{AttemptEnd, ExtensionHost as _, Extensions, StateEntry, StateLifetime, StateStore};
use flow::{FailureCause, PluginId, SessionId, TextAnswer, TextPlace};
use store::{DiskStore, StoreOptions};
use tidegate_sandbox::{GuestLimits, Plugin, PluginSource, SandboxHost, Setting};

use crate::support::{Stage, patient, sandbox, say, source};

/// The guest `versioned`, whose migration fails like this, as a plugin with this `state_version`.
fn versioned(failure: &str, state_version: u32) -> Plugin {
    versioned_as(&plugin(), failure, state_version)
}

fn versioned_as(id: &PluginId, failure: &str, state_version: u32) -> Plugin {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/versioned");
    let built = tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    let mut source = patient(source(id.as_str(), built.bytes));
    source.settings.insert("failure".into(), Setting::Text(failure.into()));
    if failure == "loop" {
        source.limits = GuestLimits { turn_time: Duration::from_millis(50), ..source.limits };
    }
    sandbox().load(PluginSource { state_version, ..source }).unwrap()
}

/// The guest `conformance`, which exports no `migration`, with this `state_version`.
fn unversioned(state_version: u32) -> Plugin {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/conformance");
    let built = tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    sandbox().load(PluginSource { state_version, ..patient(source("plugin", built.bytes)) }).unwrap()
}

fn plugin() -> PluginId {
    "plugin".parse().unwrap()
}

fn disk(folder: &Path) -> Arc<dyn StateStore> {
    Arc::new(DiskStore::new(folder, StoreOptions::default(), Arc::new(system::SystemClock)).unwrap())
}

async fn session(folder: &Path, plugin: Plugin) -> Arc<dyn Extensions> {
    session_of(folder, vec![plugin]).await
}

async fn session_of(folder: &Path, plugins: Vec<Plugin>) -> Arc<dyn Extensions> {
    let host = SandboxHost::new(plugins, disk(folder)).unwrap();
    let stage = Arc::new(Stage::default());
    host.open(&SessionId::new("s"), Arc::clone(&stage) as _, stage as _).await.unwrap()
}

async fn ask(extensions: &Arc<dyn Extensions>, text: &str) -> String {
    match say(extensions, text).await.unwrap() {
        TextAnswer::Replace(text) => text,
        other => panic!("{text}: {other:?}"),
    }
}

/// What is on disk: the version and `KEY=VALUE`.
async fn stored(folder: &Path) -> (Option<u32>, Vec<String>) {
    stored_of(folder, &plugin()).await
}

async fn stored_of(folder: &Path, plugin: &PluginId) -> (Option<u32>, Vec<String>) {
    let state = disk(folder).open(&SessionId::new("s")).await.unwrap();
    let stored = state.load(plugin).await.unwrap();
    let entry = |entry: StateEntry| format!("{}={}", entry.key, String::from_utf8_lossy(&entry.value));
    (stored.version, stored.entries.into_iter().map(entry).collect())
}

/// What the first version, which named no `state_version`, left behind.
async fn write_first(folder: &Path) {
    write_first_of(folder, &plugin()).await;
}

async fn write_first_of(folder: &Path, plugin: &PluginId) {
    let state = disk(folder).open(&SessionId::new("s")).await.unwrap();
    let entry = |key: &str, value: &str| {
        flow::ports::StateChange::Set(StateEntry::written(key, value.as_bytes(), StateLifetime::Session, 1))
    };
    state.apply(plugin, vec![entry("a", "one"), entry("b", "two")].into());
    state.settle(Duration::from_secs(5)).await.unwrap();
}

async fn settle(session: &Arc<dyn Extensions>) {
    session.settle(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn older_state_is_migrated_once_and_durably() {
    let folder = tempfile::tempdir().unwrap();
    write_first(folder.path()).await;
    let migrated = "v2/a=one (from 1) v2/b=two (from 1)";
    {
        let session = session(folder.path(), versioned("", 2)).await;
        assert_eq!(ask(&session, "list").await, migrated);
        settle(&session).await;
    }
    let entries = vec!["v2/a=one (from 1)".to_owned(), "v2/b=two (from 1)".to_owned()];
    assert_eq!(stored(folder.path()).await, (Some(2), entries));
    let session = session(folder.path(), versioned("", 2)).await;
    assert_eq!(ask(&session, "c=three").await, format!("{migrated} v2/c=three"), "nothing is migrated twice");
}

#[tokio::test]
async fn a_discarded_attempt_does_not_undo_a_migration() {
    let folder = tempfile::tempdir().unwrap();
    write_first(folder.path()).await;
    {
        let session = session(folder.path(), versioned("", 2)).await;
        session.begin_attempt();
        assert_eq!(ask(&session, "c=three").await, "v2/a=one (from 1) v2/b=two (from 1) v2/c=three");
        session.end_attempt(AttemptEnd::Discarded);
        assert_eq!(ask(&session, "list").await, "v2/a=one (from 1) v2/b=two (from 1)");
        settle(&session).await;
    }
    assert_eq!(stored(folder.path()).await.0, Some(2));
}

#[tokio::test]
async fn a_migration_that_fails_leaves_the_state_and_ends_the_work_of_the_plugin() {
    let causes = [
        ("error", FailureCause::Returned, "from `state_version` 1 to 2: no more"),
        ("panic", FailureCause::Panic, "cannot"),
        ("loop", FailureCause::Timeout, "50 ms"),
    ];
    for (how, cause, why) in causes {
        let folder = tempfile::tempdir().unwrap();
        write_first(folder.path()).await;
        {
            let session = session(folder.path(), versioned(how, 2)).await;
            for _ in 0..2 {
                let failure = say(&session, "c=three").await.unwrap_err();
                assert_eq!(failure.cause, cause, "{how}");
                assert!(failure.message.starts_with("its state cannot be migrated"), "{}", failure.message);
                assert!(failure.message.contains(why), "{}", failure.message);
            }
            settle(&session).await;
        }
        assert_eq!(stored(folder.path()).await, (None, vec!["a=one".to_owned(), "b=two".to_owned()]), "{how}");
    }
}

#[tokio::test]
async fn a_plugin_whose_migration_fails_keeps_no_other_plugin_from_its_work() {
    let other: PluginId = "other".parse().unwrap();
    // The states are loaded by the first call of each plugin, or before it for the conditions of prompt additions.
    for preloaded in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        write_first(folder.path()).await;
        write_first_of(folder.path(), &other).await;
        {
            let plugins = vec![versioned("error", 2), versioned_as(&other, "", 2)];
            let session = session_of(folder.path(), plugins).await;
            if preloaded {
                settle(&session).await;
                assert_eq!(session.state_value(1, "v2/a"), Ok(Some(b"one (from 1)".to_vec())));
            }
            let failure = say(&session, "c=three").await.unwrap_err();
            assert!(failure.message.starts_with("its state cannot be migrated"), "{}", failure.message);
            let answer = session.plain_text(1, "c=three", &TextPlace::default()).await;
            let all = "v2/a=one (from 1) v2/b=two (from 1) v2/c=three";
            assert_eq!(answer, Ok(TextAnswer::Replace(all.to_owned())), "{preloaded}");
            settle(&session).await;
        }
        assert_eq!(stored(folder.path()).await, (None, vec!["a=one".to_owned(), "b=two".to_owned()]));
        let migrated = ["v2/a=one (from 1)", "v2/b=two (from 1)", "v2/c=three"].map(str::to_owned);
        assert_eq!(stored_of(folder.path(), &other).await, (Some(2), migrated.into()));
    }
}

#[tokio::test]
async fn state_of_another_format_that_nothing_migrates_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    write_first(folder.path()).await;
    {
        let session = session(folder.path(), unversioned(2)).await;
        let failure = say(&session, "!state-set k v").await.unwrap_err();
        assert_eq!(failure.cause, FailureCause::Start);
        assert!(failure.message.contains("exports no `migration`; delete the state with"), "{}", failure.message);
        assert!(failure.message.contains("`tidegate state clear s --of plugin`"), "{}", failure.message);
        settle(&session).await;
        // A condition of a prompt addition does not read a format that the plugin does not know.
        assert!(session.state_value(0, "a").unwrap_err().contains("exports no `migration`"));
    }
    {
        let session = session(folder.path(), versioned("", 3)).await;
        ask(&session, "list").await;
        settle(&session).await;
    }
    assert_eq!(stored(folder.path()).await.0, Some(3));
    let session = session(folder.path(), versioned("", 2)).await;
    let failure = say(&session, "list").await.unwrap_err();
    assert!(failure.message.contains("which a newer version of the plugin wrote"), "{}", failure.message);
}

#[tokio::test]
async fn new_state_has_the_version_of_the_plugin() {
    let folder = tempfile::tempdir().unwrap();
    {
        let session = session(folder.path(), versioned("", 2)).await;
        assert_eq!(ask(&session, "list").await, "");
        settle(&session).await;
        assert_eq!(ask(&session, "k=v").await, "v2/k=v");
        settle(&session).await;
    }
    assert_eq!(stored(folder.path()).await, (Some(2), vec!["v2/k=v".to_owned()]));
}

#[tokio::test]
async fn a_session_that_changes_to_a_newer_version_migrates_too() {
    let folder = tempfile::tempdir().unwrap();
    write_first(folder.path()).await;
    let first = unversioned(1);
    let host = SandboxHost::new(vec![first], disk(folder.path())).unwrap();
    let stage = Arc::new(Stage::default());
    let session = host.open(&SessionId::new("s"), Arc::clone(&stage) as _, Arc::clone(&stage) as _).await.unwrap();
    assert_eq!(ask(&session, "!state-size a").await, "Some(3)");
    let newer = SandboxHost::new(vec![versioned("", 2)], disk(folder.path())).unwrap();
    let session = newer.adopt(&session, &[]).unwrap();
    assert_eq!(ask(&session, "list").await, "v2/a=one (from 1) v2/b=two (from 1)");
}
