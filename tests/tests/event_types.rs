//! Every type of event is emitted: by a session of the corpus, or by a session of a real host here.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use config::events::{Catalogue, Variables};
use flow::ports::Journal as _;
use flow::{Event, EventKind, RunPosition, SourceFile};
use store::emission::EmissionPolicy;
use store::{JsonRecord, TranscriptStore};
use tempfile::TempDir;
use tidegate::event::StreamKind;
use tidegate::model::{Delta, Model, ModelError, ModelStream, StopReason};
use tidegate::prompt::Prompt;
use tidegate::tool::CallId;
use tidegate::{BoxFuture, Host, Operator, Session, SessionId, SessionOptions};

/// Written by hand: what is only there is emitted by nobody.
const BY_HAND: &str = "every-type.jsonl";

/// Types of the specification that nothing emits yet.
const PLANNED: [&str; 2] = ["child_thread_failed", "child_thread_started"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The types in the transcripts of the corpus, which are sessions of the real loop.
fn recorded() -> BTreeSet<String> {
    let mut types = BTreeSet::new();
    for file in std::fs::read_dir(root().join("corpus/transcripts")).unwrap().map(|entry| entry.unwrap().path()) {
        let is_recorded = file.extension().is_some_and(|extension| extension == "jsonl") && !file.ends_with(BY_HAND);
        if is_recorded {
            let text = std::fs::read_to_string(&file).unwrap();
            let read =
                |line: &str| serde_json::from_str::<JsonRecord>(line).unwrap()["type"].as_str().unwrap().to_owned();
            types.extend(text.lines().skip(1).map(read));
        }
    }
    types
}

/// The scripts of its calls of the guest's tool, one for each of its first answers; `plan ARGUMENTS` is a call of `plan`.
struct Calls(Mutex<VecDeque<&'static str>>);

struct Answer(VecDeque<Delta>);

impl Model for Calls {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "calls"
    }

    fn start<'a>(&'a self, _: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let mut scripts = self.0.lock().unwrap();
        let (kind, text, reason) = match scripts.pop_front() {
            Some(script) => {
                let (name, arguments) = match script.strip_prefix("plan ") {
                    Some(arguments) => ("plan", arguments.to_owned()),
                    None => ("run", serde_json::json!({"script": script}).to_string()),
                };
                let kind = StreamKind::Tool { call: CallId::new(format!("c{}", scripts.len())), name: name.into() };
                (kind, arguments, StopReason::ToolUse)
            }
            None => (StreamKind::Text, "done".to_owned(), StopReason::EndTurn),
        };
        let deltas = [
            Delta::BlockStart { block: 0, kind },
            Delta::Piece { block: 0, text },
            Delta::BlockEnd { block: 0 },
            Delta::Stop { reason },
        ];
        Box::pin(async move { Ok(Box::new(Answer(deltas.into())) as Box<dyn ModelStream>) })
    }
}

impl ModelStream for Answer {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

/// A folder with the guest that runs the script it gets.
fn guest() -> TempDir {
    let (source, folder) = (root().join("guests/conformance"), tempfile::tempdir().unwrap());
    std::fs::copy(source.join("plugin.toml"), folder.path().join("plugin.toml")).unwrap();
    let built = tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    std::fs::write(folder.path().join(tidegate_build::COMPONENT_FILE), built.bytes).unwrap();
    folder
}

async fn session(folder: &Path, guest: &Path, scripts: &[&'static str]) -> (Host, Session) {
    let text = format!(
        "[rules]\nbuiltin_rules = false\n[tools.permission]\nrun = \"allow\"\n[transcript]\nenabled = true\nfolder = {:?}\n\
         [[plugin]]\npath = {:?}\ngrants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n",
        folder.join("sessions").display().to_string(),
        guest.display().to_string()
    );
    let operator =
        Operator::of_source(&SourceFile::new("tidegate.toml", text)).unwrap_or_else(|wrong| panic!("{wrong}"));
    let host =
        Host::builder(operator).cache_dir(None).user_rules(None).open().await.unwrap_or_else(|error| panic!("{error}"));
    let model = Arc::new(Calls(Mutex::new(scripts.iter().copied().collect())));
    let options = SessionOptions::new(folder).id(SessionId::new("types")).model(model);
    let session = host.session(options).await.unwrap();
    (host, session)
}

/// What the transcript of a session with a compiled extension has: its tool writes state and a log line, and fails until its breaker opens.
async fn extended(types: &mut BTreeSet<String>) {
    let (folder, guest) = (tempfile::tempdir().unwrap(), guest());
    let scripts = ["!log hello\n!state-set key value", "!abort", "!abort", "!abort", "plan {\"entries\": []}"];
    std::fs::create_dir(folder.path().join(".tidegate")).unwrap();
    let declared = "schema_version = \"1.0.0\"\n[event_types.deployment]\npayload_schema = { type = \"object\" }\n";
    std::fs::write(folder.path().join(".tidegate/thread_events.toml"), declared).unwrap();
    let (host, session) = session(folder.path(), guest.path(), &scripts).await;
    session.prompt("go").report().await;
    session.emit("deployment", serde_json::json!({"target": "test"})).unwrap();
    session.close();
    session.closed().await;
    let records = host.transcripts().unwrap().read(&SessionId::new("types")).unwrap().records::<JsonRecord>();
    types.extend(records.map(|entry| entry.unwrap().record["type"].as_str().unwrap().to_owned()));
}

/// A session whose transcript is removed under it: what is emitted then is recorded nowhere.
async fn unrecorded(types: &mut BTreeSet<String>) {
    let (folder, guest) = (tempfile::tempdir().unwrap(), guest());
    let (_host, session) = session(folder.path(), guest.path(), &[]).await;
    std::fs::remove_dir_all(folder.path().join("sessions/types")).unwrap();
    let mut turn = session.prompt("go");
    while let Some(event) = turn.next().await {
        types.insert(event.kind.name().to_owned());
    }
}

/// A session whose catalogue asks for more than events have.
async fn strict(types: &mut BTreeSet<String>) {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "schema_version = \"1.0.0\"\n[event_types.notice.payload_schema]\nproperties.message = { maxLength = 3 }";
    let catalogue = Catalogue::of_sources(&[SourceFile::new("a.toml", text)]).unwrap_or_else(|found| panic!("{found}"));
    let policy = EmissionPolicy::new(catalogue.for_session(&Variables::default())).recording_violations();
    let store = TranscriptStore::new(folder.path(), "the test", Arc::new(system::SystemClock)).unwrap();
    let (id, kind) = (SessionId::new("strict"), EventKind::Notice { message: "longer".into() });
    let opened = store.open(&id, Arc::new(policy)).unwrap();
    opened.journal.append(&Event::new(0, 0, RunPosition::default(), kind));
    opened.journal.close().await.unwrap();
    let records = store.read(&id).unwrap().records::<JsonRecord>();
    types.extend(records.map(|entry| entry.unwrap().record["type"].as_str().unwrap().to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_of_event_is_emitted() {
    let mut types = recorded();
    extended(&mut types).await;
    unrecorded(&mut types).await;
    strict(&mut types).await;
    let catalogue = Catalogue::of_sources(&[]).unwrap_or_else(|found| panic!("{found}"));
    let declared = catalogue.types.keys().map(String::as_str).chain(EventKind::NAMES.iter().copied());
    let never: BTreeSet<&str> = declared.filter(|name| !types.contains(*name)).collect();
    assert_eq!(never, BTreeSet::from(PLANNED), "the types that no session emits");
}
