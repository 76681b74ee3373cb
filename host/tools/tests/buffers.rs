//! Tools over files that an embedder brings: an editor with unsaved buffers over a disk.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flow::ports::{BoxFuture, FileStatus, Files, Tools};
use serde_json::{Value, json};
use tidegate_tools::{BuiltinTools, DiskFiles};

use crate::common::{World, call};

/// Buffers over the disk. A buffer hides the file of its path.
#[derive(Default)]
struct Buffers(Mutex<BTreeMap<PathBuf, String>>);

impl Buffers {
    fn text(&self, path: &Path) -> Option<String> {
        self.0.lock().unwrap().get(path).cloned()
    }

    fn open(&self, path: &Path, text: &str) {
        self.0.lock().unwrap().insert(path.to_owned(), text.to_owned());
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
            // An editor in another process answers later.
            Some(text) => Box::pin(async move {
                tokio::task::yield_now().await;
                Ok(text.into_bytes())
            }),
            None => DiskFiles.read(path),
        }
    }

    fn write<'a>(&'a self, path: &'a Path, content: &'a str) -> BoxFuture<'a, io::Result<()>> {
        match self.text(path) {
            Some(_) => {
                self.open(path, content);
                Box::pin(async { Ok(()) })
            }
            None => DiskFiles.write(path, content),
        }
    }

    fn unsaved<'a>(&'a self) -> BoxFuture<'a, io::Result<Vec<PathBuf>>> {
        let all = self.0.lock().unwrap().keys().cloned().collect();
        Box::pin(async { Ok(all) })
    }
}

struct Editor {
    world: World,
    buffers: Arc<Buffers>,
    tools: BuiltinTools,
}

impl Editor {
    /// `a.txt` is on the disk and changed in a buffer; `new/b.txt` was never saved; `c.txt` is on the disk alone.
    fn new() -> Self {
        let world = World::new();
        world.file("a.txt", "old words\n").file("c.txt", "words of the disk\n");
        let buffers = Arc::new(Buffers::default());
        let tools = world.tools.with_files(Arc::clone(&buffers) as Arc<dyn Files>);
        let editor = Self { world, buffers, tools };
        editor.buffers.open(&editor.real("a.txt"), "new words\n");
        editor.buffers.open(&editor.real("new/b.txt"), "unsaved words\n");
        editor
    }

    fn real(&self, relative: &str) -> PathBuf {
        self.tools.workspace().join(relative)
    }

    async fn call(&self, tool: &str, arguments: Value) -> String {
        self.tools.prepare(&call(tool, arguments)).run(&|_| {}).await.content
    }
}

#[tokio::test]
async fn reading_and_searching_see_buffers() {
    let editor = Editor::new();
    for (path, text) in [("a.txt", "new words\n"), ("new/b.txt", "unsaved words\n"), ("c.txt", "words of the disk\n")] {
        assert_eq!(editor.call("read_file", json!({"path": path})).await, text);
    }
    let found = editor.call("grep", json!({"pattern": "words"})).await;
    assert_eq!(found, "a.txt:1:new words\nc.txt:1:words of the disk\nnew/b.txt:1:unsaved words");
    let in_new = "new/b.txt:1:unsaved words";
    assert_eq!(editor.call("grep", json!({"pattern": "words", "path": "new/b.txt"})).await, in_new);
    assert_eq!(editor.call("grep", json!({"pattern": "words", "path": "new"})).await, in_new);
    assert_eq!(editor.call("grep", json!({"pattern": "words", "glob": "new/*"})).await, in_new);
    assert_eq!(editor.call("find", json!({"pattern": "b.*"})).await, "new/b.txt");
    editor.buffers.open(&editor.real("d.txt"), "four");
    let listed = editor.call("list_dir", json!({})).await;
    assert!(listed.contains("a.txt (10 bytes)\nc.txt (18 bytes)\nd.txt (4 bytes)"), "{listed}");
    let listed = editor.call("list_dir", json!({"path": "new"})).await;
    assert!(listed.starts_with("b.txt ("), "a folder that only a buffer is in: {listed}");
}

#[tokio::test]
async fn changes_go_into_buffers_and_to_the_disk_where_there_is_none() {
    let editor = Editor::new();
    for path in ["a.txt", "new/b.txt", "c.txt"] {
        editor.call("edit_file", json!({"path": path, "old_text": "words", "new_text": "lines"})).await;
    }
    assert_eq!(editor.buffers.text(&editor.real("a.txt")).unwrap(), "new lines\n");
    assert_eq!(editor.buffers.text(&editor.real("new/b.txt")).unwrap(), "unsaved lines\n");
    assert_eq!(editor.world.read("a.txt"), "old words\n", "only the editor saves a buffer");
    assert_eq!(editor.world.read("c.txt"), "lines of the disk\n");
    assert!(!editor.world.path("new").exists(), "a buffer that is not saved makes no folder");
    editor.call("write_file", json!({"path": "more/d.txt", "content": "saved"})).await;
    assert_eq!(editor.world.read("more/d.txt"), "saved");
}

/// A question shows the change to the buffer, and an edit of the buffer between question and run makes the call fail.
#[tokio::test]
async fn questions_are_about_buffers() {
    let editor = Editor::new();
    let edit = call("edit_file", json!({"path": "a.txt", "old_text": "new", "new_text": "newer"}));
    let mut prepared = editor.tools.prepare(&edit);
    let diff = prepared.preview().await.diff.unwrap();
    assert!(diff.contains("-new words\n+newer words\n"), "{diff}");
    editor.buffers.open(&editor.real("a.txt"), "typed meanwhile\n");
    let output = prepared.run(&|_| {}).await;
    assert!(output.is_error && output.content.contains("changed after this call was shown"), "{}", output.content);
    assert_eq!(editor.buffers.text(&editor.real("a.txt")).unwrap(), "typed meanwhile\n");
}

/// Where a path leads is decided on the disk, whatever buffers there are.
#[tokio::test]
async fn buffers_open_no_way_out_of_the_workspace() {
    let editor = Editor::new();
    editor.buffers.open(&editor.world.outside(), "a buffer outside");
    editor.buffers.open(&editor.real("../outside.txt"), "a buffer outside");
    for (tool, arguments) in [
        ("read_file", json!({"path": "../outside.txt"})),
        ("grep", json!({"pattern": "buffer"})),
        ("find", json!({"pattern": "outside*"})),
    ] {
        let said = editor.call(tool, arguments).await;
        let names = said.lines().any(|line| line.ends_with("outside.txt"));
        assert!(!said.contains("a buffer outside") && !names, "{said}");
    }
}

/// Files of an editor that does not answer; reports when the caller stopped waiting.
struct Silent(Arc<tokio::sync::Notify>);

struct Waits(Arc<tokio::sync::Notify>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Files for Silent {
    fn status<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, io::Result<Option<FileStatus>>> {
        let waits = Waits(Arc::clone(&self.0));
        Box::pin(async move {
            let _waits = waits;
            std::future::pending().await
        })
    }

    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        DiskFiles.read(path)
    }

    fn write<'a>(&'a self, path: &'a Path, content: &'a str) -> BoxFuture<'a, io::Result<()>> {
        DiskFiles.write(path, content)
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_thread_waiting() {
    let (world, released) = (World::new(), Arc::new(tokio::sync::Notify::new()));
    let tools = world.tools.with_files(Arc::new(Silent(Arc::clone(&released))));
    let read = call("read_file", json!({"path": "a.txt"}));
    let mut prepared = tools.prepare(&read);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(50), prepared.run(&|_| {})).await;
    assert!(waited.is_err());
    released.notified().await;
}
