//! What an editor does with the library: it offers a tool of its own, lends its unsaved buffers to the file tools, shows the change
//! before it is made and answers the question, and stops the model in the middle of a sentence.
//!
//! `cargo run -p tidegate --example editor`
#![allow(clippy::print_stdout, reason = "an example at the terminal")]

mod support;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tidegate::question::{Confirm, Preview, Question};
use tidegate::tool::{
    DiskFiles, FileStatus, Files, Permission, PreparedCall, Progress, ToolCall, ToolOutput, ToolSpec, Tools,
};
use tidegate::{BoxFuture, EventKind, Host, Operator, SessionOptions};

use support::{Answer, Prepared};

/// The buffers of the editor over the files on the disk: what is open is read from its buffer and changed in it.
#[derive(Clone, Debug, Default)]
struct Buffers(Arc<Mutex<BTreeMap<PathBuf, String>>>);

impl Buffers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<PathBuf, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self, path: &Path) -> Option<String> {
        self.all().get(path).cloned()
    }
}

impl Files for Buffers {
    fn status<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Option<FileStatus>>> {
        match self.text(path) {
            Some(text) => Box::pin(async move { Ok(Some(FileStatus::file(text.len() as u64))) }),
            None => DiskFiles.status(path),
        }
    }

    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        match self.text(path) {
            Some(text) => Box::pin(async move { Ok(text.into_bytes()) }),
            None => DiskFiles.read(path),
        }
    }

    fn write<'a>(&'a self, path: &'a Path, content: &'a str) -> BoxFuture<'a, io::Result<()>> {
        match self.all().get_mut(path) {
            Some(text) => content.clone_into(text),
            None => return DiskFiles.write(path, content),
        }
        Box::pin(async { Ok(()) })
    }

    fn unsaved<'a>(&'a self) -> BoxFuture<'a, io::Result<Vec<PathBuf>>> {
        let all = self.all().keys().cloned().collect();
        Box::pin(async { Ok(all) })
    }
}

/// A tool of the editor: the diagnostics of its language server.
struct Diagnostics;

impl Tools for Diagnostics {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "diagnostics".to_owned(),
            description: "Lists the errors that the language server reports.".to_owned(),
            parameters: json!({"type": "object", "properties": {}, "additionalProperties": false}),
        }]
    }

    fn prepare<'a>(&'a self, _: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(List)
    }
}

struct List;

impl PreparedCall for List {
    fn permission(&self) -> Permission {
        Permission::Allow
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        Box::pin(async { Preview::default() })
    }

    fn run<'a>(&'a mut self, _: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        let content = "main.rs:1: cannot find function `prnt` in this scope".to_owned();
        Box::pin(async { ToolOutput { content, diff: None, is_error: false } })
    }
}

/// The dialog of the editor. Here the user agrees to every change of `main.rs`.
struct Dialog(Mutex<Box<dyn Write + Send>>);

impl Confirm for Dialog {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, tidegate::question::Answer> {
        Box::pin(async move {
            let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let diff = question.preview.diff.as_deref().unwrap_or("(no diff)");
            // A dialog that cannot be shown is not an agreement.
            match write!(out, "? {} in session {}:\n{diff}", question.call.name, question.session) {
                Ok(()) if diff.contains("main.rs") => tidegate::question::Answer::Approve,
                _ => tidegate::question::Answer::Deny { reason: "I did not expect this change".to_owned() },
            }
        })
    }
}

/// The answers of the example's model: it looks, changes, reports, and then talks too long.
fn answers() -> [Answer; 4] {
    let edit = json!({"path": "main.rs", "old_text": "prnt", "new_text": "print"});
    [
        Answer::Call("diagnostics", "{}".to_owned()),
        Answer::Call("edit_file", edit.to_string()),
        Answer::Text("The name of the function is corrected.".to_owned()),
        Answer::Text("The history of printing begins long ago, ".repeat(200)),
    ]
}

/// Runs the editor in `workspace`; returns the text of its buffer at the end.
pub(crate) async fn edit(workspace: &Path, out: impl Write + Clone + Send + 'static) -> Result<String, Box<dyn Error>> {
    let main = workspace.canonicalize()?.join("main.rs");
    let buffers = Buffers::default();
    buffers.all().insert(main.clone(), "fn main() { prnt(); } // not saved\n".to_owned());

    let host = Host::builder(Operator::default()).user_rules(None).open().await?;
    let options = SessionOptions::new(workspace)
        .model(Prepared::new(answers(), Duration::from_millis(5)))
        .tools(Arc::new(Diagnostics))
        .files(Arc::new(buffers.clone()))
        .confirm(Arc::new(Dialog(Mutex::new(Box::new(out.clone())))));
    let session = host.session(options).await?;
    let mut out = out;

    let mut turn = session.prompt("Fix the error.");
    while let Some(event) = turn.next().await {
        match event.kind {
            EventKind::CognitionOutDelta { text, .. } => write!(out, "{text}")?,
            EventKind::ToolCallStart { tool, .. } => writeln!(out, "* {tool}")?,
            _ => {}
        }
    }
    writeln!(out, "\n= {:?}", turn.report().await.status)?;

    let mut turn = session.prompt("What is printing?");
    let mut words = 0;
    while let Some(event) = turn.next().await {
        if let EventKind::CognitionOutDelta { .. } = event.kind {
            words += 1;
            if words == 3 {
                session.cancel();
            }
        }
    }
    writeln!(out, "= {:?} after {} messages", turn.report().await.status, session.history().len())?;
    session.close();
    Ok(buffers.text(&main).unwrap_or_default())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let workspace = std::env::temp_dir().join(format!("tidegate-editor-{}", std::process::id()));
    std::fs::create_dir(&workspace)?;
    std::fs::write(workspace.join("main.rs"), "fn main() {}\n")?;
    let done = edit(&workspace, Stdout).await;
    std::fs::remove_dir_all(&workspace)?;
    println!("the buffer: {}", done?);
    Ok(())
}

/// Standard output, as a value that can be cloned.
#[derive(Clone, Copy)]
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
