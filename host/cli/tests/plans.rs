//! The plan that the model shows with its tool `plan`, in a terminal and in the records.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Place, Say, code, err, out, recording};

const PLAN: &str = r#"{"entries": [{"content": "Read the code", "status": "completed"},
    {"content": "Change\u001b[31m it", "status": "in_progress"}, {"content": "Test it", "status": "pending"}]}"#;

const LIST: &str = "  Plan, 1 of 3 done\n  [x] Read the code\n  [>] Change\\u{1b}[31m it\n  [ ] Test it\n";

#[test]
fn a_plan_is_a_list() {
    let place = Place::new();
    place.write("answers.jsonl", &recording(&[&[Say::Call("plan", PLAN)], &[Say::Text("Done.")]]));
    place.write("op.toml", "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n");
    let ran = place.run(&["run", "go", "--session", "one", "--config", "op.toml"]);
    assert_eq!((code(&ran), out(&ran).as_str()), (0, "Done.\n"), "{}", err(&ran));
    let said = err(&ran);
    assert!(said.contains(&format!("● plan\n{LIST}")) && !said.contains("entries"), "{said}");
    let shown = out(&place.run(&["session", "show", "one", "--config", "op.toml"]));
    assert!(shown.contains(LIST), "{shown}");
}
