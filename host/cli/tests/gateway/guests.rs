//! A WebAssembly guest on the traffic of a gateway: one that fails in any way fails closed, and the next request works.

use serde_json::{Value, json};

use super::conversations::text;
use super::model::Model;
use super::plain;
use super::running::{Answer, Running};
use crate::support::{Place, out};

/// A word that must be on one side only.
const SECRET: &str = "secret-word";

const CALLBACKS: &str = "[\"on_input_messages\", \"on_plain_text\", \"on_tool_result\"]";

/// Returns a gateway with the guest that does what texts say.
fn running(model: &Model, entry: &str) -> (Running, Place) {
    let (place, plugin) = Place::with_guest();
    let plugin = format!(
        "{plugin}{entry}\n[plugin.limits]\ncallback_ms = 300\ntext_ms = 300\n\
         [plugin.settings]\nmode = \"observe\"\nunit = \"whole\"\nonly = {CALLBACKS}\n"
    );
    let closed = if entry.is_empty() { format!("closed = {CALLBACKS}\n") } else { String::new() };
    place.write("tidegate.toml", &plain(model, &(plugin + &closed)));
    (Running::start(&place), place)
}

/// The text with a script that fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    Input,
    Answer,
    Result,
}

/// Sends messages; the model says this.
fn ask(running: &Running, messages: &[Value], say: &str) -> Answer {
    let tools = json!([{"name": "Bash", "description": "Runs it.", "input_schema": {"type": "object"}}]);
    let body = json!({"model": "m", "stream": true, "messages": messages, "tools": tools, "metadata": {"say": say}});
    running.ask("POST", "/v1/messages", &[], &body.to_string())
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// Returns a new conversation with a script in this place, and the words of the model.
fn case(number: usize, place: Where, script: &str) -> (Vec<Value>, String) {
    let script = format!("{SECRET}\n{script}\n");
    let first = format!("Case {number}.");
    match place {
        Where::Input => (vec![user(&format!("{first}\n{script}"))], "Fine.".to_owned()),
        Where::Answer => (vec![user(&first)], script),
        Where::Result => {
            let id = format!("toolu_{number}");
            let call = json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]);
            let result = json!([{"type": "tool_result", "tool_use_id": id, "content": script}]);
            let messages = [
                user(&first),
                json!({"role": "assistant", "content": call}),
                json!({"role": "user", "content": result}),
            ];
            (messages.into(), "Fine.".to_owned())
        }
    }
}

/// The scripts that fail, each with the cause that the log names, and the one that the client of a required plugin reads in an answer.
const FAILURES: [(&str, &str, &str); 6] = [
    ("!abort", "trap", "(trap)"),
    ("!panic no", "panic", "(panic)"),
    ("!recurse", "trap", "(trap)"),
    ("!loop", "300 ms", "(timeout)"),
    ("!memory 64", "memory", "(memory_limit)"),
    ("!error no", "failed", "(returned_error)"),
];

#[test]
fn a_guest_that_fails_fails_closed_and_the_next_request_works() {
    let model = Model::start();
    for required in [false, true] {
        let (running, _place) = running(&model, if required { "required = true" } else { "" });
        let mut number = 0;
        for place in [Where::Input, Where::Answer, Where::Result] {
            for (script, cause, told) in FAILURES {
                number += 1;
                let (messages, say) = case(number, place, script);
                let what = format!("{place:?}, {script}, required: {required}");
                let (asked, logged) = (model.seen().len(), running.log().len());
                let answer = ask(&running, &messages, &say);
                let said = text(&answer);
                assert_eq!(answer.status, 200, "{what}: {answer:?}");
                assert!(answer.body.contains("event: message_stop"), "{what}: the message has no end: {answer:?}");
                assert!(said.contains("conformance"), "{what}: it does not name the cause: {said}");
                assert!(!said.contains(SECRET), "{what}: {said}");
                let is_told = said.contains(told) || !required || place != Where::Answer;
                assert!(is_told, "{what}: it does not name the cause: {said}");
                let sent = model.seen()[asked..].to_vec();
                assert_eq!(sent.len(), usize::from(place == Where::Answer), "{what}: {sent:?}");
                assert!(running.log_has(logged, cause), "{what}: {}", &running.log()[logged..]);
                // The client repeats all of it.
                let answer =
                    json!({"role": "assistant", "content": if said.is_empty() { "-".to_owned() } else { said }});
                let more: Vec<Value> = messages.iter().cloned().chain([answer, user("Go on.")]).collect();
                if place != Where::Result {
                    let (asked, said) = (model.seen().len(), text(&ask(&running, &more, "It goes on.")));
                    assert_eq!(said, "It goes on.", "{what}");
                    let (_, sent) = model.seen()[asked].clone();
                    assert!(place == Where::Answer || !sent.contains(SECRET), "{what}: {sent}");
                }
                let said = text(&ask(&running, &[user(&format!("Next to {number}."))], "All is well."));
                assert_eq!(said, "All is well.", "{what}");
            }
        }
    }
}

/// The powers `history` and `tools` have the conversation and the tools that the request has, as the model gets them.
#[test]
fn a_guest_reads_the_conversation_and_the_tools() {
    let model = Model::start();
    let (running, place) = running(&model, "");
    let gap = "the tools that it provides are not offered (`run`)";
    let told = format!("plugin conformance in front of another agent: {gap}");
    assert!(running.log_has(0, &told), "{}", running.log());
    let doctor = out(&place.run(&["doctor"]));
    assert!(doctor.contains(&format!("gateway plugin conformance: in front of other agents: {gap}")), "{doctor}");
    let call = json!([{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]);
    let before = [
        user("!replace What is here?"),
        json!({"role": "assistant", "content": call}),
        json!({"role": "user", "content": result}),
        json!({"role": "assistant", "content": "One file."}),
    ];
    let asked = |script: &str| {
        let messages: Vec<Value> = before.iter().cloned().chain([user(script)]).collect();
        text(&ask(&running, &messages, "Fine."))
    };
    let history = asked("!history 0 9");
    let texts = ["What is here?", "I look.", "command", "a.txt", "One file."];
    let places: Vec<Option<usize>> = texts.iter().map(|text| history.find(text)).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?}: {history}");
    assert!(!history.contains("!replace") && !history.contains("!history"), "{history}");
    assert_eq!(asked("!history-length"), "4");
    let tools = asked("!tools");
    assert!(tools.contains("Bash") && tools.contains("Runs it.") && !tools.contains("\"run\""), "{tools}");
    // In the answer, the conversation has the input.
    let said = text(&ask(&running, &[user("Say it.")], "!history 0 9\n"));
    assert!(said.contains("Say it."), "{said}");
}
