//! A workspace, and sessions in it that are recorded and whose questions wait for front ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flow::{Event, EventKind};
use tempfile::TempDir;
use tidegate::model::Model;
use tidegate::question::Question;
use tidegate::{Host, Operator, Session, SessionId, SessionOptions};
use tidegate_kit::ScriptedModel;

pub(crate) struct Place {
    _folder: Option<TempDir>,
    root: PathBuf,
}

impl Place {
    /// `settings`: permissions, and tables after them.
    pub(crate) fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir(&root).unwrap();
        let text = format!(
            "[rules]\nbuiltin_rules = false\n[transcript]\nenabled = true\nfolder = \"../sessions\"\n[turn]\nmax_retries = 0\n\
             [tools.permission]\n{settings}\n"
        );
        fs::write(root.join("tidegate.toml"), text).unwrap();
        Self { _folder: Some(folder), root }
    }

    /// The place of another process.
    pub(crate) fn at(root: &Path) -> Self {
        Self { _folder: None, root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn rule(&self, name: &str, text: &str) {
        self.put(&format!(".tidegate/rules/{name}.md"), text);
    }

    /// The content of a file; empty where there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap_or_default()
    }

    /// The session of the place, as a process of its own has it.
    pub(crate) async fn session(&self, model: &Arc<ScriptedModel>) -> Session {
        let operator = Operator::load(&self.root.join("tidegate.toml")).unwrap_or_else(|wrong| panic!("{wrong}"));
        let builder = Host::builder(operator).cache_dir(None).user_rules(None).max_instances(4);
        let host = builder.model(Arc::clone(model) as Arc<dyn Model>).open().await.unwrap();
        let options = SessionOptions::new(&self.root).id(SessionId::new("asked")).questions_wait();
        host.session(options).await.unwrap()
    }

    pub(crate) async fn close(&self, session: Session) {
        session.close();
        session.closed().await;
    }
}

/// Waits until so many questions are open.
pub(crate) async fn pending(session: &Session, count: usize) -> Vec<Question> {
    loop {
        let open = session.pending_questions();
        if open.len() == count {
            return open;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The arguments of `write_file`.
pub(crate) fn write(path: &str, content: &str) -> String {
    serde_json::json!({"path": path, "content": content}).to_string()
}

/// The arguments of `edit_file`.
pub(crate) fn edit(path: &str, old: &str, new: &str) -> String {
    serde_json::json!({"path": path, "old_text": old, "new_text": new}).to_string()
}

/// Which question was decided how, and by whom.
pub(crate) fn decisions(events: &[Event]) -> Vec<String> {
    let one = |event: &Event| match &event.kind {
        EventKind::ToolConfirmationResolved { question, decision, by, .. } => {
            Some(format!("{question} {} {by}", decision.as_str()))
        }
        _ => None,
    };
    events.iter().filter_map(one).collect()
}
