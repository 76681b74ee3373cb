//! Sessions whose process ends at any moment of an answer with reasoning, text and calls, in three wire formats: the next process
//! sends a conversation that servers of others take, and that the vendors' own types allow.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::{Host, Operator, Session, SessionId, SessionOptions, TurnStatus};
use tidegate_kit::assert_valid;
use tidegate_servers::{Aimock, Judge, Llmock, RealModel, post};

/// Wire format, a model that `aimock` lets think, and the path of requests.
const WIRES: [(&str, &str, &str); 3] = [
    ("anthropic", "claude-sonnet-4-5", "/v1/messages"),
    ("openai-chat", "deepseek-r1", "/v1/chat/completions"),
    ("openai-responses", "gpt-5", "/v1/responses"),
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/turn/cuts.json")
}

/// A process of its own, as far as the session is concerned: a host that shares nothing with others but the folder.
async fn session(folder: &TempDir, (wire, model, _): (&str, &str, &str), base_url: &str) -> Session {
    let text = format!(
        "[provider]\nkind = \"{wire}\"\nmodel = \"{model}\"\nbase_url = \"{base_url}\"\nmax_tokens = 16\n\
         [rules]\nbuiltin_rules = false\n[transcript]\nenabled = true\nfolder = \"sessions\"\n"
    );
    let path = folder.path().join("tidegate.toml");
    std::fs::write(&path, text).unwrap();
    let operator = Operator::load(&path).unwrap_or_else(|wrong| panic!("{wrong}"));
    let host = Host::builder(operator).cache_dir(None).open().await.unwrap();
    host.session(SessionOptions::new(folder.path()).id(SessionId::new("test"))).await.unwrap()
}

async fn close(session: Session) {
    session.close();
    session.closed().await;
}

/// A workspace with the transcripts of another as they are on the disk now: what a process that dies now leaves behind.
fn as_left_behind(folder: &TempDir) -> TempDir {
    let left = tempfile::tempdir().unwrap();
    std::fs::write(left.path().join("notes.txt"), "hello\n").unwrap();
    let (from, to) = (folder.path().join("sessions"), left.path().join("sessions"));
    for session in std::fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        let to = to.join(session.file_name());
        std::fs::create_dir_all(&to).unwrap();
        // Its lock is that of a living process.
        std::fs::copy(session.path().join("transcript.jsonl"), to.join("transcript.jsonl")).unwrap();
    }
    left
}

/// Everything that a process can leave behind of one turn: the state of the disk at each of its events.
async fn cuts(wire: (&str, &str, &str), base_url: &str) -> Vec<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "hello\n").unwrap();
    let whole = session(&folder, wire, base_url).await;
    let mut turn = whole.prompt("What does the file say?");
    let mut left = Vec::new();
    while turn.next().await.is_some() {
        left.push(as_left_behind(&folder));
    }
    let report = turn.report().await;
    assert_eq!((report.status, report.place.step), (TurnStatus::Completed, 2), "{wire:?}");
    close(whole).await;
    left
}

/// `llmock` has Anthropic's routes below a folder. Unlike `aimock` it keeps bodies as they came.
fn llmock_url((wire, ..): (&str, &str, &str), llmock: &Llmock) -> String {
    let folder = if wire == "anthropic" { "/anthropic" } else { "" };
    format!("{}{folder}", llmock.base_url())
}

/// What of the answer is in a request, so that the cuts are known to be in all kinds of content.
fn kinds(body: &Value) -> [bool; 4] {
    let text = body.to_string();
    ["Stream interrupted", "I look at", "notes.txt", "It says"].map(|part| text.contains(part))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_cut_anywhere_continues_with_every_server() {
    let aimock = Aimock::start(&fixtures()).unwrap();
    let (llmock, model) = (Llmock::start_with(&["--response-style", "echo"]).unwrap(), RealModel::start().unwrap());
    let mut judge = Judge::start().unwrap();
    for wire in WIRES {
        let left = cuts(wire, aimock.base_url()).await;
        assert!(left.len() > 30, "{wire:?}: {}", left.len());
        let mut seen = [false; 4];
        for (number, folder) in left.iter().enumerate() {
            let at = format!("{}, cut at event {number}", wire.0);
            let resumed = session(folder, wire, &llmock_url(wire, &llmock)).await;
            llmock.scenario(&[json!({"type": "reply", "text": "All is said."})]).unwrap();
            let report = resumed.prompt("Go on.").report().await;
            assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "All is said."), "{at}");
            assert_valid(&resumed.history());
            close(resumed).await;
            let body = llmock.requests().unwrap().pop().unwrap()["body"].take();
            assert_eq!(judge.problems(wire.0, &body).unwrap(), Vec::<String>::new(), "{at}: {body:#}");
            kinds(&body).iter().zip(&mut seen).for_each(|(found, seen)| *seen |= found);
            let other = post(aimock.base_url(), wire.2, &body).unwrap();
            assert_eq!(other.status, 200, "{at}: {}", other.body);
            // It reads the whole prompt, which takes its time; and no server has to take reasoning that another one has sealed.
            if number % 8 == 0 && !body.to_string().contains("\"type\":\"reasoning\"") {
                let real = post(model.base_url(), wire.2, &body).unwrap();
                assert_eq!(real.status, 200, "{at}: {}", real.body);
            }
        }
        assert_eq!(seen, [true; 4], "{wire:?}: the cuts are in all kinds of content");
    }
}
