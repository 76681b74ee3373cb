//! The policy of the machine, in an editor: no mode and no answer goes beyond it.
#![cfg(target_os = "linux")]

use serde_json::json;

use super::editor::{Editor, Sent};
use super::model::Model;
use super::{place, set};
use crate::support::machine::under;

#[test]
fn the_mode_that_approves_asks_all_the_same_and_what_is_denied_stays_denied() {
    let model = Model::start();
    let place = place(&model);
    set(&place, "[tools.permission]\n\"*\" = \"allow\"\n");
    let policy = "[tools.permission]\nwrite_file = \"ask\"\n\"write_file(secret*)\" = \"deny\"\n";
    let mut editor = Editor::start(under(policy, &place.command(&["acp"])));
    editor.answers = Box::new(|_, params| {
        let options = params["options"].as_array().unwrap().clone();
        assert!(options.iter().all(|option| option["kind"] != "allow_always"), "{options:?}");
        let once = options.iter().find(|option| option["kind"] == "allow_once").unwrap();
        Ok(json!({"outcome": {"outcome": "selected", "optionId": once["optionId"]}}))
    });
    let session = editor.open(json!({}), &place.path(""));
    editor.request("session/set_mode", json!({"sessionId": session, "modeId": "approve"}));
    for (prompt, questions) in [("write a.txt one", 1), ("write a.txt two", 2), ("write secret.txt one", 2)] {
        editor.ask(&session, prompt);
        let asked =
            |sent: &&Sent| matches!(sent, Sent::Request { method, .. } if method == "session/request_permission");
        assert_eq!(editor.traffic.iter().filter(asked).count(), questions, "{prompt}");
    }
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "two");
    assert!(!place.path("secret.txt").exists());
}
