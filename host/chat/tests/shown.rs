//! Front ends that get the shown stream have the states of those that get records, but for the differences of the guide.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use flow::Event;
use record::{Line, Shown, read_event};
use serde_json::{Value, json};

use tidegate_chat::ChatSession;

use crate::support::{Case, Input, files, state, take};

/// Sessions that were written by hand, in which an answer has a text that no delta has shown, or a call that ran has no
/// duration.
const NO_DELTAS: [&str; 8] = [
    "children",
    "children-inputs",
    "delivered-again",
    "every-type",
    "inputs-again",
    "prompt-returned",
    "redacted",
    "tools",
];

/// The event as a front end gets it that reads the shown stream; `None`: nothing of it was shown, or no primitive uses it.
fn shown(event: &Event) -> Option<Event> {
    read_event(Shown::of(event, "thread")?.json()).unwrap()
}

fn input(input: &Input) -> Option<Input> {
    Some(match input {
        Input::Event(event) => Input::Event(shown(event)?),
        Input::Child(child, event) => Input::Child(child.clone(), shown(event)?),
        other => other.clone(),
    })
}

/// A state without what the shown stream does not have.
fn common(mut state: Value) -> Value {
    let messages = state["messages"].as_array_mut().unwrap();
    reduce(messages);
    for child in state["children"].as_array_mut().unwrap() {
        reduce(child["messages"].as_array_mut().unwrap());
    }
    state
}

fn reduce(messages: &mut Vec<Value>) {
    // Messages of the host and the conversation that another one has taken the place of are the model's.
    messages.retain(|message| message["author"] != "host" && !message["id"].as_str().unwrap().starts_with("h-"));
    for message in messages.iter_mut() {
        let fields = message.as_object_mut().unwrap();
        fields.remove("notes");
        for call in fields.get_mut("calls").and_then(Value::as_array_mut).into_iter().flatten() {
            // Why a call did not run.
            if call.get("duration_ms").is_none() {
                for key in ["output", "summary"] {
                    call.as_object_mut().unwrap().remove(key);
                }
            }
        }
    }
}

/// Without calls that nothing has happened to yet, of which the shown stream has nothing, and messages of nothing else; and without the order
/// of calls and their spelling.
fn without_proposed(mut state: Value) -> Value {
    let lists = |state: &mut Value, change: &dyn Fn(&mut Vec<Value>)| {
        change(state["messages"].as_array_mut().unwrap());
        for child in state["children"].as_array_mut().unwrap() {
            change(child["messages"].as_array_mut().unwrap());
        }
    };
    lists(&mut state, &|messages| {
        for message in messages.iter_mut() {
            let Some(calls) = message.get_mut("calls").and_then(Value::as_array_mut) else { continue };
            calls.retain(|call| {
                let never =
                    call["status"] == "proposed" || call["status"] == "cancelled" && call.get("started_ms").is_none();
                !never
            });
            calls.sort_by_key(|call| call["call"].to_string());
            for call in calls.iter_mut() {
                let arguments = call["arguments"].as_str().unwrap_or_default();
                let value = if call["status"] == "not_run" {
                    Value::Null
                } else {
                    serde_json::from_str(arguments).unwrap_or(json!(arguments))
                };
                call["arguments"] = value;
            }
            if calls.is_empty() {
                message.as_object_mut().unwrap().remove("calls");
            }
            if message["blocks"] == json!([]) {
                message["at_ms"] = json!(0);
            }
        }
        messages.retain(|one| {
            one["blocks"] != json!([])
                || one.get("calls").is_some()
                || one["author"] != "assistant"
                || one.get("partial").is_some()
        });
    });
    state
}

/// Without the text of answers.
fn without_answers(mut state: Value) -> Value {
    state.as_object_mut().unwrap().remove("streaming");
    let children = state["children"].as_array_mut().unwrap().iter_mut().map(|child| child["messages"].take());
    let lists: Vec<Value> = children.collect();
    let lists = [state["messages"].take()].into_iter().chain(lists);
    state["lists"] = lists
        .map(|list| {
            let mut messages = list.as_array().unwrap().clone();
            messages.retain(|one| one["author"] != "assistant" || one.get("calls").is_some());
            for message in messages.iter_mut().filter(|one| one["author"] == "assistant") {
                (message["blocks"], message["at_ms"]) = (json!([]), json!(0));
                for call in message["calls"].as_array_mut().unwrap() {
                    call.as_object_mut().unwrap().retain(|key, _| !["output", "summary"].contains(&key.as_str()));
                }
            }
            messages
        })
        .collect::<Vec<_>>()
        .into();
    state
}

#[test]
fn the_shown_stream_gives_the_states_of_the_records() {
    let cases = files("chat", ".jsonl").into_iter().filter(|(name, _)| !name.ends_with(".states"));
    for (name, text) in cases.chain(files("transcripts", ".jsonl")) {
        let case = Case::read(&name, &text);
        let (mut whole, mut part) = (case.chat(), case.chat());
        for (number, line) in &case.lines {
            let _changed = take(&mut whole, &case.options, line);
            if let Some(line) = input(line) {
                let _changed = take(&mut part, &case.options, &line);
            }
            let states = [whole.snapshot(), part.snapshot()].map(|one| {
                let state = without_proposed(common(state(&one)));
                if NO_DELTAS.contains(&name.as_str()) { without_answers(state) } else { state }
            });
            assert_eq!(states[1], states[0], "{name}:{number}: {line:?}");
            assert_eq!(json!(part.take_commands()), json!(whole.take_commands()), "{name}:{number}");
        }
    }
}

/// Whoever reads the shown stream can begin with the state of a chat that has read the records.
#[test]
fn a_state_that_is_shown_is_continued_by_the_shown_stream() {
    let is_event = |line: &&Input| matches!(line, Input::Event(_) | Input::Child(..));
    let cases = files("chat", ".jsonl").into_iter().filter(|(name, _)| !name.ends_with(".states"));
    for (name, text) in cases.chain(files("transcripts", ".jsonl")) {
        let case = Case::read(&name, &text);
        let lines: Vec<&Input> = case.lines.iter().map(|(_, line)| line).filter(is_event).collect();
        let given = |chat: &ChatSession| {
            let state = without_proposed(state(&chat.snapshot()));
            if NO_DELTAS.contains(&name.as_str()) { without_answers(state) } else { state }
        };
        let read = |chat: &mut ChatSession, lines: &[&Input]| {
            lines.iter().filter_map(|line| input(line)).for_each(|line| drop(take(chat, &Value::Null, &line)));
        };
        let (mut whole, mut part, mut end) = (ChatSession::default(), ChatSession::default(), ChatSession::default());
        read(&mut end, &lines);
        for cut in 0..lines.len() {
            let saved = serde_json::to_string(&whole.save().shown()).unwrap();
            let mut again = ChatSession::default();
            let _changed = again.restore(serde_json::from_str(&saved).unwrap());
            assert_eq!(given(&again), given(&part), "{name}: after {cut} lines");
            read(&mut again, &lines[cut..]);
            assert_eq!(given(&again), given(&end), "{name}: at the end, from {cut} lines");
            let _changed = take(&mut whole, &Value::Null, lines[cut]);
            read(&mut part, &lines[cut..=cut]);
        }
    }
}

/// A reader without code for other types has the events of the reader of all records.
#[test]
fn a_line_gives_the_event_of_its_record() {
    for (name, text) in files("chat", ".jsonl").into_iter().chain(files("transcripts", ".jsonl")) {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let records = lines.map(|mut line| if line.get("record").is_some() { line["record"].take() } else { line });
        for line in records.filter(|line| line.get("type").is_some()) {
            let whole = match Line::of(line.clone()).unwrap() {
                Line::Record(record) => record.event().unwrap(),
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(read_event(line.clone()).unwrap(), whole, "{name}: {line}");
        }
    }
}
