//! Reads what a turn did from its events and its history.

use std::sync::Arc;

use flow::{CallId, Event, Message, Part, Role};
use serde_json::Value;

/// The events as a snapshot lists them: a line each with its position (turn, step and attempt), its type and what its record says.
/// Numbers that depend on the machine (durations) are `_`.
pub fn listing(events: &[Event]) -> String {
    let line = |event: &Event| {
        let mut record = record::json(event, "thread");
        let place = event.place;
        let mut line = format!("{}.{}.{} {}", place.turn, place.step, place.attempt, record["type"].as_str().unwrap());
        for (key, value) in record["payload"].as_object_mut().unwrap() {
            steady(key, value);
            line.push_str(&format!(" {key}={value}"));
        }
        line + "\n"
    };
    events.iter().map(line).collect()
}

/// Replaces the durations in a value of a record.
fn steady(key: &str, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| steady(key, value)),
        Value::Array(values) => values.iter_mut().for_each(|value| steady(key, value)),
        Value::Number(_) if key.starts_with("duration") || key.ends_with("_ms") => *value = "_".into(),
        _ => {}
    }
}

/// The transcript of a thread says what its conversation is: one that is rebuilt from all its events, through the lines of a
/// transcript, is this one.
pub fn assert_rebuilt(events: &[Event], history: &[Arc<Message>]) {
    let mut rebuild = turn::rebuild::Rebuild::default();
    for event in events {
        let line = serde_json::to_vec(&record::Record::of(event, "thread")).unwrap();
        rebuild.take(&record::Record::read(&line).unwrap()).unwrap();
    }
    let resumed = rebuild.finish();
    assert_eq!(resumed.problems, Vec::<String>::new());
    assert_eq!(resumed.history, history, "what is rebuilt, and the conversation");
}

/// What was shown of an attempt, joined.
pub fn shown(events: &[Event]) -> String {
    let delta = |event: &Event| match &event.kind {
        flow::EventKind::CognitionOutDelta { text, .. } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

/// All events that are there.
pub fn drain(subscription: &mut turn::Subscription) -> Vec<Event> {
    std::iter::from_fn(|| subscription.try_next()).collect()
}

/// What a provider would send of a message: words, `call NAME ARGUMENTS`, `result [BLOCKS]`.
pub fn said(message: &Message) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Image(image) => format!("image {image}"),
        Part::Thinking { text, .. } => format!("<{text}>"),
        Part::ToolCall(call) => format!("call {} {}", call.name, call.arguments),
        Part::ToolResult(result) => format!("result {:?}", result.content),
    };
    message.parts.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// A provider takes this conversation: no empty message, every call answered by the message after it and by no other.
pub fn assert_valid(history: &[Arc<Message>]) {
    let mut open: Vec<CallId> = Vec::new();
    for message in history {
        assert!(!said(message).trim().is_empty(), "an empty message: {history:#?}");
        if message.role == Role::Assistant {
            let words = |part: &Part| !matches!(part, Part::Thinking { .. });
            assert!(message.parts.iter().any(words), "reasoning alone: {history:#?}");
        }
        let answered: Vec<CallId> = message
            .parts
            .iter()
            .filter_map(|part| if let Part::ToolResult(result) = part { Some(result.call.clone()) } else { None })
            .collect();
        assert_eq!(open, answered, "calls and the results after them: {history:#?}");
        open = message.tool_calls().map(|call| call.id.clone()).collect();
    }
    assert!(open.is_empty(), "calls without results: {history:#?}");
}

/// What a front end has on its screen at the end that takes back what is void: it appends each chunk, and truncates
/// to the kept part when an answer was incomplete.
pub fn kept_on_screen(events: &[Event]) -> String {
    let (mut accepted, mut answer) = (String::new(), String::new());
    for event in events {
        match &event.kind {
            flow::EventKind::CognitionOutDelta { text, .. } => answer.push_str(text),
            flow::EventKind::CognitionOut { partial: Some(partial), .. } => {
                assert_eq!(partial.shown_bytes, answer.len() as u64, "shown: {answer:?}");
                answer.truncate(usize::try_from(partial.kept_bytes).unwrap());
            }
            flow::EventKind::CognitionOut { partial: None, .. } => accepted.push_str(&std::mem::take(&mut answer)),
            _ => {}
        }
    }
    accepted
}

/// The callbacks' reports, as `plugin callback outcome`.
pub fn reports(events: &[Event]) -> Vec<String> {
    let report = |event: &Event| match &event.kind {
        flow::EventKind::ExtensionCallback(report) => {
            let outcome = match &report.outcome {
                flow::CallbackOutcome::Passed => "passed".to_owned(),
                flow::CallbackOutcome::Changed => "changed".to_owned(),
                flow::CallbackOutcome::Skipped(why) => format!("skipped: {why}"),
                flow::CallbackOutcome::NotPermitted(why) => format!("not permitted: {why}"),
                flow::CallbackOutcome::Ignored(why) => format!("ignored: {why}"),
                flow::CallbackOutcome::Failed(failure) => format!("failed: {}", failure.message),
            };
            Some(format!("{} {} {outcome}", report.plugin, report.callback.as_str()))
        }
        _ => None,
    };
    events.iter().filter_map(report).collect()
}
