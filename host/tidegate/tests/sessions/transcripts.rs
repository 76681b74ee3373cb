//! Recorded sessions: another host continues them, and only one has them at a time.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidegate::model::Model;
use tidegate::state::{DiskStore, StateBatch, StateChange, StateEntry, StateLifetime, StateStore, StoreOptions};
use tidegate::{BoxFuture, Clock, Host, HostError, Message, SessionId, SessionOptions, SystemClock};

use super::support::{Answer, Scripted, builder, texts};

/// A host that records its sessions in this folder.
pub(crate) async fn host(folder: &TempDir) -> Host {
    let toml =
        format!("[transcript]\nenabled = true\nfolder = {:?}\n", folder.path().join("sessions").display().to_string());
    builder(&toml).open().await.unwrap()
}

pub(crate) fn options(folder: &TempDir, model: &Arc<Scripted>) -> SessionOptions {
    let id = SessionId::new("chat");
    SessionOptions::new(folder.path()).id(id).model(Arc::clone(model) as Arc<dyn Model>)
}

#[tokio::test]
async fn another_host_continues_the_conversation() {
    let folder = TempDir::new().unwrap();
    let model = Scripted::new([Answer::Text("One."), Answer::Text("Two."), Answer::Text("Three.")]);
    let mut expected = Vec::new();
    for input in ["first", "second", "third"] {
        let host = host(&folder).await;
        let session = host.session(options(&folder, &model)).await.unwrap();
        assert_eq!(session.history(), expected, "{input}");
        session.prompt(input).report().await;
        expected = session.history();
        session.close();
        session.closed().await;
    }
    assert_eq!(texts(&expected), ["first", "One.", "second", "Two.", "third", "Three."]);
    assert_eq!(model.requests()[2], ["first", "One.", "second", "Two.", "third"]);

    let host = host(&folder).await;
    let given = options(&folder, &model).history([Message::user("another")]);
    let error = host.session(given).await.unwrap_err();
    assert!(matches!(error, HostError::HistoryGiven { .. }), "{error}");
    assert_eq!(error.code().unwrap().as_str(), "host-transcript-unavailable");
    assert!(error.hint().is_some());
}

#[tokio::test]
async fn a_session_that_is_open_is_refused_to_others() {
    let folder = TempDir::new().unwrap();
    let model = Scripted::new([Answer::Text("One.")]);
    let (first, second) = (host(&folder).await, host(&folder).await);
    let session = first.session(options(&folder, &model)).await.unwrap();
    let error = second.session(options(&folder, &model)).await.unwrap_err();
    assert_eq!(error.code().unwrap().as_str(), "host-session-in-use");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    let store = second.transcripts().unwrap();
    assert_eq!(store.list().unwrap().sessions.len(), 1, "reading works");
    session.close();
    session.closed().await;
    second.session(options(&folder, &model)).await.unwrap();
}

/// A session that no turn ran in, or that was dropped without being closed, continues too.
#[tokio::test]
async fn a_session_that_was_not_closed_continues() {
    let folder = TempDir::new().unwrap();
    let model = Scripted::new([Answer::Text("One."), Answer::Text("Two.")]);
    let first = host(&folder).await.session(options(&folder, &model)).await.unwrap();
    first.prompt("first").report().await;
    drop(first);
    let second = loop {
        // The writer releases the file on a thread of its own.
        match host(&folder).await.session(options(&folder, &model)).await {
            Ok(session) => break session,
            Err(error) => assert_eq!(error.code().unwrap().as_str(), "host-session-in-use"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(texts(&second.history()), ["first", "One."]);
    second.prompt("second").report().await;
    assert_eq!(texts(&second.history()), ["first", "One.", "second", "Two."]);
}

#[tokio::test]
async fn sessions_that_nobody_used_for_long_are_removed() {
    let folder = TempDir::new().unwrap();
    let model = Scripted::new([Answer::Text("One."), Answer::Text("Two.")]);
    let session = host(&folder).await.session(options(&folder, &model)).await.unwrap();
    session.prompt("first").report().await;
    session.close();
    session.closed().await;
    let file = folder.path().join("sessions/chat/transcript.jsonl");
    // Two days ago.
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(at) = record["ts"].as_u64() {
            record["ts"] = (at - 2 * 86_400_000).into();
        }
        format!("{record}\n")
    });
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let lines = host(&folder).await.remove_expired_sessions(&[folder.path().to_owned()]).await.unwrap();
    assert!(lines.is_empty(), "{lines:?}");
    assert!(file.exists(), "30 days are the default");
    let toml = format!(
        "[transcript]\nenabled = true\nkeep_days = 1\nfolder = {:?}\n[state]\nbackend = \"disk\"\nfolder = {:?}\n",
        folder.path().join("sessions").display().to_string(),
        folder.path().join("state").display().to_string()
    );
    for id in ["chat", "other"] {
        let store =
            DiskStore::new(folder.path().join("state"), StoreOptions::default(), Arc::new(SystemClock)).unwrap();
        let state = store.open(&SessionId::new(id)).await.unwrap();
        let changes = vec![StateChange::Set(StateEntry::written("a", *b"1", StateLifetime::Session, 0))];
        state.apply(&"notes".parse().unwrap(), StateBatch { changes, version: None });
        state.close(Duration::from_secs(5)).await.unwrap();
    }
    let host = builder(&toml).open().await.unwrap();
    assert!(file.exists(), "nothing is removed on its own");
    assert!(host.remove_expired_sessions(&[]).await.unwrap().is_empty());
    assert!(file.exists(), "the setting is not for sessions of other folders");
    let lines = host.remove_expired_sessions(&[folder.path().to_owned()]).await.unwrap();
    let expected = "removed 1 session of this workspace without a record for more than 1 day (`keep_days` under `[transcript]`; 0 keeps all)";
    assert_eq!(lines, [expected]);
    assert!(!file.exists());
    let states = async || {
        let sessions = host.state_admin().sessions().await.unwrap().sessions;
        sessions.iter().map(|one| one.session.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        states().await,
        ["chat", "other"],
        "state that was in use since stays: it can be in use without a transcript"
    );
    assert!(host.remove_session(&SessionId::new("chat")).await.unwrap());
    assert_eq!(states().await, ["other"]);
}

/// The state of a session goes with its transcript: with an id that has state alone, no conversation can be recorded.
#[tokio::test]
async fn state_that_no_turn_has_used_since_is_removed_with_its_transcript() {
    let folder = TempDir::new().unwrap();
    let toml = format!(
        "[transcript]\nenabled = true\nkeep_days = 1\nfolder = {:?}\n[state]\nbackend = \"disk\"\nfolder = {:?}\n",
        folder.path().join("sessions").display().to_string(),
        folder.path().join("state").display().to_string()
    );
    let model = Scripted::new([Answer::Text("Fine.")]);
    let host = builder(&toml).clock(Arc::new(Earlier(2))).open().await.unwrap();
    let session = host.session(options(&folder, &model).id(SessionId::new("old"))).await.unwrap();
    session.prompt("hi").report().await;
    session.close();
    session.closed().await;
    let store = DiskStore::new(folder.path().join("state"), StoreOptions::default(), Arc::new(Earlier(2))).unwrap();
    let state = store.open(&SessionId::new("old")).await.unwrap();
    let changes = vec![StateChange::Set(StateEntry::written("a", *b"1", StateLifetime::Session, 0))];
    state.apply(&"notes".parse().unwrap(), StateBatch { changes, version: None });
    state.close(Duration::from_secs(5)).await.unwrap();

    let host = builder(&toml).open().await.unwrap();
    assert_eq!(host.state_admin().sessions().await.unwrap().sessions.len(), 1);
    assert_eq!(host.remove_expired_sessions(&[folder.path().to_owned()]).await.unwrap().len(), 1);
    assert!(host.state_admin().sessions().await.unwrap().sessions.is_empty());
    let again = Scripted::new([Answer::Text("Again.")]);
    host.session(options(&folder, &again).id(SessionId::new("old"))).await.unwrap();
}

/// So many days ago.
struct Earlier(u64);

impl Clock for Earlier {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms() - self.0 * 86_400_000
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        SystemClock.sleep(time)
    }
}

/// A long conversation is summarised by the model, as the operator has set it, and continues from the summary, also in another host.
#[tokio::test]
async fn a_compacted_conversation_continues_from_its_summary() {
    let folder = TempDir::new().unwrap();
    let long = "A long answer. ".repeat(900).leak();
    let model =
        Scripted::new([Answer::Text(long), Answer::Text("It was long."), Answer::Text("One."), Answer::Text("Two.")]);
    let toml = format!(
        "[transcript]\nenabled = true\nfolder = {:?}\n[compaction]\ncontext_tokens = 16_000\nat_percent = 20\n",
        folder.path().join("sessions").display().to_string()
    );
    let host = builder(&toml).open().await.unwrap();
    let session = host.session(options(&folder, &model)).await.unwrap();
    for input in ["first", "second", "third"] {
        session.prompt(input).report().await;
    }
    let history = texts(&session.history());
    assert!(history[0].ends_with("\n\nIt was long."), "{history:?}");
    assert_eq!(history[1..], ["second", "One.", "third", "Two."]);
    assert!(model.requests()[1][0].contains("Assistant: A long answer."), "what is summarised is one message");
    session.close();
    session.closed().await;
    let again = builder(&toml).open().await.unwrap().session(options(&folder, &model)).await.unwrap();
    assert_eq!(texts(&again.history()), history);
}

/// What is wrong with the project's catalogue of events is an error with its place, before anything is recorded.
#[tokio::test]
async fn a_catalogue_of_events_that_is_wrong_is_refused() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir_all(folder.path().join(".tidegate")).unwrap();
    let text = "schema_version = \"1.0.0\"\n[event_types.notice]\ncriticality = \"criticl\"\n";
    std::fs::write(folder.path().join(".tidegate/thread_events.toml"), text).unwrap();
    let error = host(&folder).await.session(options(&folder, &Scripted::new([]))).await.unwrap_err();
    let HostError::Config(found) = error else { panic!("{error}") };
    assert!(found.to_string().contains("thread_events.toml:3"), "{found}");
}
