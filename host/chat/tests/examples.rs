//! The examples of the guide run, and print what they say.
#![allow(clippy::unwrap_used, reason = "tests may panic")]
#![allow(clippy::duplicate_mod, reason = "each example is a program of its own and has the events")]

#[path = "../examples/level_0.rs"]
mod level_0;
#[path = "../examples/level_1.rs"]
mod level_1;
#[path = "../examples/level_2.rs"]
mod level_2;
#[path = "../examples/level_3.rs"]
mod level_3;

fn printed(run: impl FnOnce(&mut Vec<u8>) -> Result<(), Box<dyn std::error::Error>>) -> String {
    let mut out = Vec::new();
    run(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn level_0_draws_the_conversation() {
    let out = printed(level_0::run);
    for line in ["you: Run the tests and push", "agent: I read the file, run the tests and push.", "  shell NotRun"] {
        assert!(out.contains(line), "{line:?} is not in\n{out}");
    }
    assert!(!out.contains("TODO") && !out.contains("should work"), "void text is drawn as valid\n{out}");
}

#[test]
fn level_1_answers_by_policy_and_sends_the_queue() {
    let out = printed(level_1::run);
    let lines: Vec<&str> = out.lines().filter(|line| !line.starts_with("mode")).collect();
    assert_eq!(lines[..2], ["prompt: Write a function that adds one", "prompt: Run the tests and push"]);
    assert!(lines[2].starts_with("answer to question-1: Deny"), "{out}");
    assert!(out.contains("mode: Thinking") && out.contains("mode: Ready") && !out.contains("mode: Asking"), "{out}");
}

#[test]
fn level_2_shows_text_and_calls() {
    let out = printed(level_2::run);
    assert!(out.contains("I have not run the tests.") && out.contains("\n? shell") && out.contains("- shell not run"));
}

#[test]
fn level_3_counts_what_is_void() {
    let out = printed(level_3::run);
    assert_eq!(out.lines().next(), Some("turn 1 step 1: stopped by rule no-todo, 8 shown bytes are void"));
    assert_eq!(out.lines().count(), 4, "{out}");
}
