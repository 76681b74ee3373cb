//! An editor that does not read what the agent sends.

use serde_json::json;

use super::editor::{Editor, shown};
use super::model::Model;
use super::place;

/// Chunks of the answer: an update for each is fifty times what a pipe takes.
const WORDS: usize = 20_000;

#[test]
fn what_an_editor_does_not_read_is_joined_and_not_queued() {
    let model = Model::start();
    let place = place(&model);
    place.write("a.txt", "the end");
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    let mut id = 0;
    editor.unread(|editor| {
        id = editor.prompt(&session, &format!("flood {WORDS} a.txt"));
        // The result of the call is sent when all of the answer was received.
        while model.requests.lock().unwrap().len() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    });
    assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    let updates = editor.updates();
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk").count();
    assert!(chunks < WORDS / 20, "{chunks} updates");
    let text = shown(&updates);
    let (words, result) = text.split_at(WORDS * 5);
    assert!(words == "word ".repeat(WORDS) && result.contains("the end"), "{} bytes and {result}", words.len());
}
