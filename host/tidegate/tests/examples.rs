//! The examples, run for real: what they print and what they leave behind.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::duplicate_mod, reason = "each example has the module for itself")]
#![allow(dead_code, reason = "the programs' own entry points are not called")]

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Instant;

#[path = "../examples/chat.rs"]
mod chat;
#[path = "../examples/editor.rs"]
mod editor;
#[path = "../examples/embed.rs"]
mod embed;
#[path = "../examples/front_end.rs"]
mod front_end;
#[path = "../examples/many.rs"]
mod many;

/// What was written, and when.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<(Instant, String)>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().push((Instant::now(), String::from_utf8(bytes.to_vec()).unwrap()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn text(&self) -> String {
        self.0.lock().unwrap().iter().map(|(_, text)| text.as_str()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chat_streams_while_it_runs() {
    let session = chat::open(None).await.unwrap();
    let out = Written::default();
    chat::chat(&session, "good day to you\nand again\n".as_bytes(), out.clone()).await.unwrap();
    assert_eq!(out.text(), "You said: good day to you\nYou said: and again\n");
    let written = out.0.lock().unwrap();
    let word = |word: &str| written.iter().find(|(_, text)| text.trim() == word).unwrap().0;
    // Each word was written when it came, and not with the others.
    assert!(["You", "said:", "good", "day", "to"].iter().all(|earlier| word(earlier) < word("you")), "{written:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_changes_its_buffer_after_a_question_and_stops_the_model() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.rs"), "fn main() {}\n").unwrap();
    let out = Written::default();
    let buffer = editor::edit(folder.path(), out.clone()).await.unwrap();
    assert_eq!(buffer, "fn main() { print(); } // not saved\n");
    assert_eq!(std::fs::read_to_string(folder.path().join("main.rs")).unwrap(), "fn main() {}\n");
    let text = out.text();
    for part in [
        "* diagnostics\n",
        "* edit_file\n",
        "? edit_file in session ",
        "-fn main() { prnt(); } // not saved\n+fn main() { print(); } // not saved\n",
        "The name of the function is corrected.\n= Completed\n",
        "= Cancelled after 8 messages\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_sessions_run_at_once_on_one_engine() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(many::many(folder.path()).await.unwrap(), many::Outcome { completed: 200, at_home: 200 });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_front_end_answers_a_question_and_draws_the_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let out = Written::default();
    front_end::run(folder.path(), "Write hello.txt", out.clone()).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("hello.txt")).unwrap(), "Hello!\n");
    let text = out.text();
    let (asked, drawn) = text.split_once('\n').unwrap();
    assert_eq!(asked, r#"? write_file {"path": "hello.txt", "content": "Hello!\n"}"#);
    assert_eq!(drawn, "you: Write hello.txt\nagent: \n  write_file Done\nagent: The file is there.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedder_has_an_extension_a_rule_and_two_models() {
    let folder = tempfile::tempdir().unwrap();
    let out = Written::default();
    embed::run(folder.path(), out.clone()).await.unwrap();
    let shown = "[no-promise]Order #### is late. (completed)\n[now prepared]\nIt arrives on day #. (completed)\n";
    assert_eq!(out.text(), shown);
}
