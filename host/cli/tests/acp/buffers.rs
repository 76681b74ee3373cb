//! Files of the client: buffers that are not saved, in searches and below a folder that is a link.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use serde_json::{Value, json};

use super::editor::Editor;
use super::model::Model;
use super::place;

/// The requests of the agent, by method and path.
type Asked = Rc<RefCell<Vec<(String, String)>>>;

/// Gives the editor these buffers, and returns what it is asked for.
fn buffers(editor: &mut Editor, buffers: &[(PathBuf, &str)]) -> Asked {
    let text: BTreeMap<String, String> =
        buffers.iter().map(|(path, text)| (path.display().to_string(), (*text).to_owned())).collect();
    let (text, asked) = (RefCell::new(text), Asked::default());
    let seen = Rc::clone(&asked);
    editor.answers = Box::new(move |method, params| {
        let path = params["path"].as_str().unwrap_or_default().to_owned();
        seen.borrow_mut().push((method.to_owned(), path.clone()));
        match method {
            "fs/read_text_file" => match text.borrow().get(&path) {
                Some(text) => Ok(json!({"content": text})),
                None => Err(json!({"code": -32002, "message": "no such buffer"})),
            },
            "fs/write_text_file" => {
                text.borrow_mut().insert(path, params["content"].as_str().unwrap().to_owned());
                Ok(json!({}))
            }
            _ => Err(json!({"code": -32601, "message": "unknown"})),
        }
    });
    asked
}

const FILES: &str = "write_file=allow";

fn client() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}, "session": {"notices": {}}})
}

#[test]
fn a_search_asks_the_client_for_the_files_that_the_session_has_read_or_written() {
    let model = Model::start();
    let place = place(&model);
    for name in ["read.txt", "written.txt", "other.txt"] {
        place.write(name, "on the disk\n");
    }
    let mut editor = Editor::start(place.command(&["acp", "--permission", FILES]));
    let session = editor.open(client(), &place.path(""));
    let path = |name: &str| place.path("").canonicalize().unwrap().join(name);
    let asked = buffers(
        &mut editor,
        &[(path("read.txt"), "in a buffer\n"), (path("other.txt"), "in a buffer\n"), (path("written.txt"), "old\n")],
    );
    editor.ask(&session, "read read.txt");
    editor.ask(&session, "write written.txt in a buffer");
    asked.borrow_mut().clear();
    let (_, found) = editor.ask(&session, "search buffer|disk");
    for line in ["read.txt:1:in a buffer", "written.txt:1:in a buffer", "other.txt:1:on the disk"] {
        assert!(found.contains(line), "{line} in {found}");
    }
    let mut files: Vec<String> = asked.borrow().iter().map(|(_, path)| path.clone()).collect();
    files.sort();
    assert_eq!(files, [path("read.txt"), path("written.txt")].map(|path| path.display().to_string()));
}

#[test]
fn a_file_that_the_client_does_not_give_is_read_from_the_disk_and_reported_once() {
    let model = Model::start();
    let place = place(&model);
    place.write("a.txt", "on the disk");
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(client(), &place.path(""));
    buffers(&mut editor, &[]);
    for count in [1, 0] {
        editor.updates();
        let id = editor.prompt(&session, "read a.txt");
        editor.response(id).unwrap();
        let updates = editor.updates();
        assert!(super::editor::shown(&updates).contains("on the disk"), "{updates:?}");
        let notices: Vec<&Value> = updates.iter().filter(|update| update["sessionUpdate"] == "notice").collect();
        assert_eq!(notices.len(), count, "{notices:?}");
        assert!(notices.iter().all(|notice| notice["title"].as_str().unwrap().contains("a.txt")), "{notices:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_client_gets_paths_as_it_has_opened_their_folder() {
    let model = Model::start();
    let place = place(&model);
    let links = tempfile::tempdir().unwrap();
    let link = links.path().canonicalize().unwrap().join("link");
    std::os::unix::fs::symlink(place.path(""), &link).unwrap();
    place.write("a.txt", "on the disk");
    let mut editor = Editor::start(place.command(&["acp", "--permission", FILES]));
    let session = editor.open(client(), &link);
    let file = link.join("a.txt");
    let asked = buffers(&mut editor, &[(file.clone(), "in a buffer")]);
    assert!(editor.ask(&session, "read a.txt").1.contains("in a buffer"));
    editor.ask(&session, "write a.txt changed");
    let written = ("fs/write_text_file".to_owned(), file.display().to_string());
    assert!(asked.borrow().contains(&written), "{:?}", asked.borrow());
    let listed = editor.request("session/list", json!({"cwd": link}));
    assert_eq!((&listed["sessions"][0]["sessionId"], &listed["sessions"][0]["cwd"]), (&json!(session), &json!(link)));
}
