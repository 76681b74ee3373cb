//! Text that was shown and does not count any more, where several rules stop the answer of one step.

use std::time::Duration;

use serde_json::{Value, json};

use super::editor::Editor;
use super::model::Model;
use super::place;
use crate::support::Place;

const REWINDS: &str = "+++\ncondition = 'stop-\\d'\ncontext = \"rewind\"\nscope = \"text\"\n+++\nContinue.\n";
const KEEPS: &str = "+++\ncondition = 'keep-\\d'\ncontext = \"keep\"\nscope = \"text\"\n+++\nContinue.\n";

/// A workspace with rules of all context modes.
fn ruled(model: &Model, prefill: bool) -> Place {
    let place = place(model);
    place.write(".tidegate/rules/rewinds.md", REWINDS);
    place.write(".tidegate/rules/keeps.md", KEEPS);
    let file = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write(
        "tidegate.toml",
        &file.replace("[rules]\n", &format!("prefill = {prefill}\n[rules]\nrepeat_mode = \"always\"\n")),
    );
    place
}

/// The messages as an editor has them that acts on what is retracted: an id and a text each. What `load` sends begins with the prompt, and
/// replaces what the editor had.
fn messages(updates: &[Value]) -> Vec<(String, String)> {
    let loaded = updates.iter().rposition(|update| update["sessionUpdate"] == "user_message_chunk");
    let mut messages: Vec<(String, String)> = Vec::new();
    for update in &updates[loaded.unwrap_or(0)..] {
        if update["sessionUpdate"] == "agent_message_chunk" {
            let (id, text) = (update["messageId"].as_str().unwrap(), update["content"]["text"].as_str().unwrap());
            match messages.iter_mut().find(|(known, _)| known == id) {
                Some((_, known)) => known.push_str(text),
                None => messages.push((id.to_owned(), text.to_owned())),
            }
        }
        if let Some(retracted) = update["_meta"].get("tidegate/retracted") {
            let id = retracted["messageId"].as_str().unwrap();
            let kept = usize::try_from(retracted["keptBytes"].as_u64().unwrap()).unwrap();
            let (_, text) = messages.iter_mut().find(|(known, _)| known == id).unwrap();
            assert!(kept < text.len(), "nothing of {text:?} is retracted: {retracted}");
            text.truncate(kept);
        }
    }
    messages.retain(|(_, text)| !text.is_empty());
    messages
}

/// What an editor shows after updates.
fn text(updates: &[Value]) -> String {
    messages(updates).into_iter().map(|(_, text)| text).collect()
}

fn load(editor: &mut Editor, place: &Place, session: &str) {
    editor.updates();
    editor.request("session/load", json!({"sessionId": session, "cwd": place.path(""), "mcpServers": []}));
}

/// Where an editor loads the session.
#[derive(Clone, Copy, Debug)]
enum Loads {
    Never,
    /// While this attempt writes.
    In(usize),
    /// After the one before this attempt.
    Before(usize),
}

/// Runs a prompt of attempts. Returns what an editor shows then, and what one shows that loads the session afterwards.
fn run(model: &Model, place: &Place, attempts: &[&str], loads: Loads) -> [String; 2] {
    let before = model.requests.lock().unwrap().len();
    let go = place.path(&format!("go-{before}"));
    let command = |(number, text): (usize, &&str)| match loads {
        Loads::In(attempt) if attempt == number => format!("wait {} {text}", go.display()),
        Loads::Before(attempt) if attempt == number => format!("late {} {text}", go.display()),
        _ => format!("say {text}"),
    };
    let commands: Vec<String> = attempts.iter().enumerate().map(command).collect();
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({"_meta": {"tidegate/retracted": true}}), &place.path(""));
    let id = editor.prompt(&session, &format!("attempts {}", commands.join(" | ")));
    match loads {
        Loads::Never => {}
        Loads::In(_) => drop(editor.update(|update| update["content"]["text"] == "Working ")),
        Loads::Before(attempt) => {
            // The request is sent when the record of the attempt before has been.
            while model.requests.lock().unwrap().len() <= before + attempt {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
    if !matches!(loads, Loads::Never) {
        load(&mut editor, place, &session);
        std::fs::write(&go, "").unwrap();
    }
    assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    let live = text(&editor.updates());
    load(&mut editor, place, &session);
    [live, text(&editor.updates())]
}

const FIRST: &str = "First line.\nSecond stop-1 more";
const KEPT: &str = "Other keep-1 more";

#[test]
fn an_editor_shows_what_is_kept_of_several_attempts_wherever_it_loads_the_session() {
    let model = Model::start();
    // A model that continues an answer, and one that is told what was kept of it.
    for (prefill, line) in [(true, "First line."), (false, "First line.\n")] {
        let place = ruled(&model, prefill);
        let discarded = if prefill { "" } else { line };
        for (attempts, expected) in [
            (&[FIRST, "Other as an AI language model, and more.", "Last."][..], format!("{discarded}Last.")),
            (&[FIRST, KEPT, "More\nline stop-2 and more", "Last."], format!("{line}Other More{}Last.", &line[11..])),
            (&[FIRST, KEPT, "More as an AI language model.", "Last."], format!("{line}Other Last.")),
        ] {
            let case = format!("{prefill} {attempts:?}");
            let [live, loaded] = run(&model, &place, attempts, Loads::Never);
            assert_eq!((live, loaded), (expected.clone(), expected), "{case}");
            let numbers = 0..attempts.len();
            for loads in numbers.flat_map(|attempt| [Loads::Before(attempt), Loads::In(attempt)]) {
                let [live, loaded] = run(&model, &place, attempts, loads);
                assert_eq!(live, loaded, "{loads:?} {case}");
                assert!(loaded.ends_with("Last."), "{loads:?} {case}: {loaded}");
            }
        }
    }
}
