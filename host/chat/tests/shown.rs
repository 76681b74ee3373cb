//! What a front end shows is the same from records and from the shown stream, but for what the shown stream does not have.

use flow::EventKind;
use record::{LineReader, Shown};
use serde_json::{Value, json};
use tidegate_chat::{ChatSession, ChatState};

use super::support::{Case, Input, state};

/// The state without what the shown stream leaves out: notes of extensions, messages of the host and of a conversation that was taken over, calls
/// that are only proposed, arguments and output of calls that did not run, and the message of an answer that has nothing else.
fn comparable(chat: &ChatState) -> Value {
    let mut state = state(chat);
    let lists = |state: &mut Value, change: &dyn Fn(&mut Vec<Value>)| {
        change(state["messages"].as_array_mut().unwrap());
        for child in state["children"].as_array_mut().unwrap() {
            change(child["messages"].as_array_mut().unwrap());
        }
    };
    lists(&mut state, &|messages| {
        for message in messages.iter_mut() {
            let message = message.as_object_mut().unwrap();
            message.remove("notes");
            let calls = message.get_mut("calls").and_then(Value::as_array_mut);
            let Some(calls) = calls else { continue };
            calls.retain(|call| {
                call["status"] != "proposed" && !(call["status"] == "cancelled" && call.get("started_ms").is_none())
            });
            for call in calls.iter_mut().filter(|call| call.get("duration_ms").is_none()) {
                let call = call.as_object_mut().unwrap();
                call.remove("output");
                call.insert("arguments".to_owned(), json!("{}"));
                call.remove("summary");
            }
            // They are in the order in which they are known.
            calls.sort_by_key(|call| call["call"].to_string());
            if calls.is_empty() {
                message.remove("calls");
            }
        }
        // A message without text begins when something of it is known.
        for message in messages.iter_mut().filter(|message| message["blocks"] == json!([])) {
            message["at_ms"].take();
        }
        let is_inherited = |message: &Value| message["id"].as_str().is_some_and(|id| id.starts_with("h-"));
        messages.retain(|message| message["author"] != "host" && !is_inherited(message));
        messages.retain(|message| {
            message["blocks"] != json!([]) || message.get("calls").is_some() || message.get("images").is_some()
        });
    });
    state
}

/// Arguments as a JSON value: a record of a call has them as such.
fn with_values(mut state: Value) -> Value {
    for message in state["messages"].as_array_mut().unwrap() {
        for call in message.get_mut("calls").and_then(Value::as_array_mut).into_iter().flatten() {
            let text = call["arguments"].as_str().unwrap_or_default();
            call["arguments"] = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        }
    }
    state
}

/// Whether the deltas of a session have all of its answers, and its calls their durations, as those of a real one have.
fn is_whole(case: &Case) -> bool {
    let mut reader = LineReader::default();
    case.events().iter().all(|event| {
        let read = Shown::of(event, "t").and_then(|line| reader.take(line.json()).unwrap());
        match (&event.kind, read.map(|event| event.kind)) {
            (
                EventKind::CognitionOut { text, shown, partial, .. },
                Some(EventKind::CognitionOut { text: read, .. }),
            ) => {
                let seen = shown.as_ref().unwrap_or(text);
                let bytes =
                    partial.as_ref().map_or(seen.len(), |partial| usize::try_from(partial.shown_bytes).unwrap());
                seen.get(..bytes.min(seen.len())) == Some(&read)
            }
            // A call that ran has a duration.
            (EventKind::ToolCallResult { duration_ms: None, is_error: false, .. }, _) => false,
            _ => true,
        }
    })
}

#[test]
fn records_and_the_shown_stream_give_the_same_states() {
    let mut compared = 0;
    for (name, case) in super::corpus::sessions() {
        if !is_whole(&case) {
            continue;
        }
        let (mut whole, mut shown): (ChatSession, ChatSession) = Default::default();
        let mut reader = LineReader::default();
        for (number, input) in &case.lines {
            let Input::Event(event) = input else { continue };
            let _changed = whole.process(event);
            let Some(line) = Shown::of(event, "t") else { continue };
            let text = serde_json::to_vec(&line).unwrap();
            let read = reader.read(&text).unwrap_or_else(|error| panic!("{name}:{number}: {error}"));
            if let Some(event) = read {
                let _changed = shown.process(&event);
            }
            let [whole, shown] = [&whole, &shown].map(|chat| with_values(comparable(&chat.snapshot())));
            assert_eq!(shown, whole, "{name}:{number}: {}", line.json());
            compared += 1;
        }
    }
    assert!(compared > 500, "{compared}");
}
