//! A workspace with agents, a host whose sessions are recorded, and a model that a script answers for.

use std::fs;
use std::sync::{Arc, Mutex};

use flow::{Event, EventKind};
use serde_json::Value;
use tempfile::TempDir;
use tidegate::model::Model;
use tidegate::question::{Answer, Confirm, Question};
use tidegate::record::Record;
use tidegate::transcript::TranscriptStore;
use tidegate::transcript::{Rebuild, Resumed};
use tidegate::{BoxFuture, Host, Operator, Session, SessionId, SessionOptions, TurnReport};
use tidegate_kit::{Script, ScriptedModel, calls};

/// An answer that starts an agent.
pub(crate) fn spawn(call: &str, agent: &str, task: &str) -> Script {
    let arguments = serde_json::json!({ "agent": agent, "task": task }).to_string();
    calls(&[(call, "spawn_agent", &arguments)], usize::MAX)
}

/// What `of` says of events, in order.
pub(crate) fn kinds(events: &[Event], of: impl Fn(&EventKind) -> Option<String>) -> Vec<String> {
    events.iter().filter_map(|event| of(&event.kind)).collect()
}

/// The types of records.
pub(crate) fn names(records: &[Value]) -> Vec<String> {
    records.iter().map(|record| record["type"].as_str().unwrap().to_owned()).collect()
}

/// A handler that gives one answer and keeps the questions.
pub(crate) struct Asked {
    answer: Answer,
    pub(crate) questions: Mutex<Vec<Question>>,
}

impl Asked {
    pub(crate) fn new(answer: Answer) -> Arc<Self> {
        Arc::new(Self { answer, questions: Mutex::default() })
    }
}

impl Confirm for Asked {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.questions.lock().unwrap().push(question.clone());
        let answer = self.answer.clone();
        Box::pin(async move { answer })
    }
}

pub(crate) struct Place {
    folder: TempDir,
    store: Mutex<Option<TranscriptStore>>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), store: Mutex::default() }
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join("work").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Declares an agent of the project.
    pub(crate) fn agent(&self, name: &str, front: &str, prompt: &str) {
        self.write(&format!(".tidegate/agents/{name}.md"), &format!("---\n{front}\n---\n{prompt}\n"));
    }

    pub(crate) fn main(&self) -> SessionId {
        SessionId::new("main-session")
    }

    pub(crate) async fn host(&self, model: &Arc<ScriptedModel>) -> Host {
        self.host_with(model, "").await
    }

    /// A host with these permissions, and other settings after them.
    pub(crate) async fn host_with(&self, model: &Arc<ScriptedModel>, settings: &str) -> Host {
        self.write("keep", "");
        let text = format!(
            "[rules]\nbuiltin_rules = false\n[transcript]\nenabled = true\nfolder = \"../sessions\"\n[turn]\nmax_retries = 0\n\
             [tools.permission]\n{settings}\n"
        );
        let path = self.folder.path().join("work/tidegate.toml");
        fs::write(&path, text).unwrap();
        let operator = Operator::load(&path).unwrap_or_else(|wrong| panic!("{wrong}"));
        let model = Arc::clone(model) as Arc<dyn Model>;
        let builder = Host::builder(operator).cache_dir(None).max_instances(4);
        let builder = builder.user_rules(Some(self.folder.path().join("user/rules")));
        let host = builder.model(model).open().await.unwrap();
        *self.store.lock().unwrap() = host.transcripts().cloned();
        host
    }

    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions::new(self.folder.path().join("work")).id(self.main())
    }

    pub(crate) async fn session(&self, host: &Host) -> Session {
        host.session(self.options()).await.unwrap()
    }

    pub(crate) async fn open(&self, model: &Arc<ScriptedModel>) -> Session {
        self.session(&self.host(model).await).await
    }

    pub(crate) async fn close(&self, session: Session) {
        session.close();
        session.closed().await;
    }

    /// Runs a turn to its end.
    pub(crate) async fn turn(&self, session: &Session, input: &str) -> (TurnReport, Vec<Event>) {
        let mut turn = session.prompt(input);
        let mut events = Vec::new();
        while let Some(event) = turn.next().await {
            events.push(event);
        }
        (turn.report().await, events)
    }

    /// The sessions of the agents that were started, in order.
    pub(crate) fn children_of(&self, events: &[Event]) -> Vec<SessionId> {
        let child = |event: &Event| match &event.kind {
            EventKind::ChildThreadStarted { child, .. } => Some(child.clone()),
            _ => None,
        };
        events.iter().filter_map(child).collect()
    }

    /// The session of the only agent that was started.
    pub(crate) fn child_of(&self, events: &[Event]) -> SessionId {
        let mut children = self.children_of(events);
        assert_eq!(children.len(), 1);
        children.remove(0)
    }

    pub(crate) fn transcripts(&self) -> TranscriptStore {
        self.store.lock().unwrap().clone().unwrap()
    }

    pub(crate) fn records(&self, id: &SessionId) -> Vec<Value> {
        let reader = self.transcripts().read(id).unwrap();
        reader.records::<Value>().map(|entry| entry.unwrap().record).collect()
    }

    /// What a session would continue from.
    pub(crate) fn rebuilt(&self, id: &SessionId) -> Resumed {
        let mut rebuild = Rebuild::default();
        for entry in self.transcripts().read(id).unwrap().records::<Record>() {
            rebuild.take(&entry.unwrap().record).unwrap();
        }
        rebuild.finish()
    }
}
