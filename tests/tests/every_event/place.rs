//! The servers of a recorded turn with reasoning, text and calls, and sessions that ask them, as processes of their own.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::{Host, Operator, Session, SessionId, SessionOptions, TurnStatus};
use tidegate_kit::assert_valid;
use tidegate_servers::{Aimock, Judge, Llmock, RealModel, post};

/// Wire format, a model that `aimock` lets think, and the path of requests.
pub(crate) type Wire = (&'static str, &'static str, &'static str);

pub(crate) const WIRES: [Wire; 3] = [
    ("anthropic", "claude-sonnet-4-5", "/v1/messages"),
    ("openai-chat", "deepseek-r1", "/v1/chat/completions"),
    ("openai-responses", "gpt-5", "/v1/responses"),
];

/// The input of the recorded turn.
pub(crate) const QUESTION: &str = "What does the file say?";

/// Independent servers, and a judge of what they are sent.
pub(crate) struct Servers {
    pub(crate) aimock: Aimock,
    llmock: Llmock,
    model: RealModel,
    judge: Judge,
}

impl Servers {
    pub(crate) fn start() -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/turn/cuts.json");
        let llmock = Llmock::start_with(&["--response-style", "echo"]).unwrap();
        let (aimock, model) = (Aimock::start(&fixtures).unwrap(), RealModel::start().unwrap());
        Self { aimock, llmock, model, judge: Judge::start().unwrap() }
    }

    /// Another process continues what is in a folder with the prompt "Go on.": all servers take what it sends, which is returned. `number`:
    /// of the folder; the slowest server is asked about some.
    pub(crate) async fn accept(&mut self, folder: &TempDir, wire: Wire, number: usize, at: &str) -> Value {
        let resumed = session(folder, wire, &llmock_url(wire, &self.llmock)).await;
        self.llmock.scenario(&[json!({"type": "reply", "text": "All is said."})]).unwrap();
        let report = resumed.prompt("Go on.").report().await;
        assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "All is said."), "{at}");
        assert_valid(&resumed.history());
        close(resumed).await;
        let body = self.llmock.requests().unwrap().pop().unwrap()["body"].take();
        assert_eq!(self.judge.problems(wire.0, &body).unwrap(), Vec::<String>::new(), "{at}: {body:#}");
        let other = post(self.aimock.base_url(), wire.2, &body).unwrap();
        assert_eq!(other.status, 200, "{at}: {}", other.body);
        // It reads the whole prompt, which takes its time; and no server has to take reasoning that another one has sealed.
        if number.is_multiple_of(8) && !body.to_string().contains("\"type\":\"reasoning\"") {
            let real = post(self.model.base_url(), wire.2, &body).unwrap();
            assert_eq!(real.status, 200, "{at}: {}", real.body);
        }
        body
    }
}

/// `llmock` has Anthropic's routes below a folder. Unlike `aimock` it keeps bodies as they came.
fn llmock_url((wire, ..): Wire, llmock: &Llmock) -> String {
    let folder = if wire == "anthropic" { "/anthropic" } else { "" };
    format!("{}{folder}", llmock.base_url())
}

/// A process of its own, as far as the session is concerned: a host that shares nothing with others but the folder.
pub(crate) async fn session(folder: &TempDir, (wire, model, _): Wire, base_url: &str) -> Session {
    let text = format!(
        "[provider]\nkind = \"{wire}\"\nmodel = \"{model}\"\nbase_url = \"{base_url}\"\nmax_tokens = 16\n\
         [rules]\nbuiltin_rules = false\n[transcript]\nenabled = true\nfolder = \"sessions\"\n"
    );
    let path: PathBuf = folder.path().join("tidegate.toml");
    std::fs::write(&path, text).unwrap();
    let operator = Operator::load(&path).unwrap_or_else(|wrong| panic!("{wrong}"));
    let host = Host::builder(operator).cache_dir(None).open().await.unwrap();
    host.session(SessionOptions::new(folder.path()).id(SessionId::new("test"))).await.unwrap()
}

pub(crate) async fn close(session: Session) {
    session.close();
    session.closed().await;
}

/// A workspace with the file that the recorded turn reads.
pub(crate) fn workspace() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "hello\n").unwrap();
    folder
}
