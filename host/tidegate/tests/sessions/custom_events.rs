//! Events of declared types, which the program that embeds the host emits; and what a thread is started with.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::event::{EmitError, ThreadMode};
use tidegate::model::Model;
use tidegate::{EventKind, Session, SessionId, SessionOptions};

use super::support::{Answer, Scripted, builder};

const DECLARED: &str = "schema_version = \"1.0.0\"\n[event_types.deployment]\nemit_config.condition = \"turn.max_steps == 50\"\n\
    payload_schema = { type = \"object\", required = [\"target\"], properties.target = { type = \"string\" } }\n\
    [event_types.silent]\nemit_config.condition = \"turn.max_steps == 1\"\npayload_schema = { type = \"object\" }\n";

/// A workspace that declares types.
fn workspace(file: &str, text: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    folder
}

async fn session(folder: &Path, is_recorded: bool) -> (Session, Option<tidegate::transcript::TranscriptStore>) {
    let sessions = folder.join("sessions");
    let toml = format!("[transcript]\nenabled = {is_recorded}\nfolder = {:?}\n", sessions.display().to_string());
    let host = builder(&toml).open().await.unwrap();
    let model: Arc<dyn Model> = Scripted::new([Answer::Text("done")]);
    let inputs = [("ticket".to_owned(), json!(7))];
    let options = SessionOptions::new(folder).id(SessionId::new("s")).model(model);
    let session = host.session(options.thread_mode(ThreadMode::Channel).inputs(inputs)).await.unwrap();
    (session, host.transcripts().cloned())
}

#[tokio::test]
async fn an_event_of_a_declared_type_reaches_subscribers_and_the_transcript() {
    for is_recorded in [true, false] {
        let folder = workspace(".tidegate/thread_events.toml", DECLARED);
        let (session, store) = session(folder.path(), is_recorded).await;
        let mut events = session.subscribe();
        session.prompt("go").report().await;
        session.emit("deployment", json!({"target": "test"})).unwrap();
        // Its condition is about the transcript alone.
        session.emit("silent", json!({})).unwrap();
        let wrong = session.emit("deployment", json!({"target": 1})).unwrap_err();
        assert!(matches!(&wrong, EmitError::Payload(_)) && wrong.to_string().contains("/target"), "{wrong}");
        let unknown = session.emit("deploy", json!({})).unwrap_err().to_string();
        assert!(unknown.contains("`deployment`, `silent`"), "{unknown}");
        // Nobody emits events of the program in its place.
        assert!(session.emit("notice", json!({"message": "forged"})).is_err());
        session.close();
        session.closed().await;
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            if let EventKind::CustomEvent { event_type, plugin: None, payload } = event.kind {
                seen.push((event_type, Value::clone(&payload)));
            }
        }
        assert_eq!(seen, [("deployment".to_owned(), json!({"target": "test"})), ("silent".to_owned(), json!({}))]);
        let Some(store) = store else { continue };
        let records = store.read(&SessionId::new("s")).unwrap().records::<Value>();
        let records: Vec<Value> = records.map(|entry| entry.unwrap().record).collect();
        let custom = records.iter().filter(|record| record["type"] == "custom_event");
        let custom: Vec<&Value> = custom.map(|record| &record["payload"]).collect();
        assert_eq!(custom, [&json!({"event_type": "deployment", "payload": {"target": "test"}})]);
        let started = &records[0]["payload"];
        assert_eq!((&started["thread_mode"], &started["inputs"]), (&json!("channel"), &json!({"ticket": 7})));
    }
}

/// A file of another program declares types, too; what of it is not used is said once.
#[tokio::test]
async fn a_file_for_another_program_is_read_and_what_is_left_out_is_said() {
    let text = "extends: somewhere/events.yaml\nevent_types:\n  my_custom_event:\n    category: custom\n    payload_schema: {type: object}\n";
    let folder = workspace(".ai/config/thread_events.yaml", text);
    let (session, _) = session(folder.path(), true).await;
    let mut turn = session.prompt("go");
    let mut notices = Vec::new();
    while let Some(event) = turn.next().await {
        if let EventKind::Notice { message } = event.kind {
            notices.push(message);
        }
    }
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("thread_events.yaml:1") && notices[0].contains("unknown key `extends`"), "{notices:?}");
    session.emit("my_custom_event", json!({"message": "hello"})).unwrap();
}
