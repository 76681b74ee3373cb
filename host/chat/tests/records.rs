//! The reader of records against their writer: both ways from an event to a state give the same.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use flow::{Event, EventKind};
use proptest::prelude::*;
use record::{Line, Record, RecordError, json};
use tidegate_chat::{ChatSession, SavedChat};

use crate::support::random::session;
use crate::support::{files, state};

/// The event as a front end in another process gets it.
fn through_record(event: &Event) -> Option<Event> {
    let record = Record::read(json(event, "thread").to_string().as_bytes()).unwrap();
    record.event().unwrap()
}

proptest! {
    #[test]
    fn a_session_is_the_same_through_records(events in session()) {
        let (mut direct, mut read) = (ChatSession::default(), ChatSession::default());
        for event in &events {
            let _changed = direct.process(event);
            if let Some(same) = through_record(event) {
                prop_assert_eq!((same.seq, same.at_ms, same.place), (event.seq, event.at_ms, event.place));
                let _changed = read.process(&same);
            }
            prop_assert_eq!(state(&direct.snapshot()), state(&read.snapshot()), "{:?}", event);
        }
    }
}

/// Every type that a primitive uses is read, and no other.
#[test]
fn the_types_that_have_an_event_are_those_of_the_guide() {
    let text = files("transcripts", ".jsonl")["every-type"].clone();
    let used: Vec<String> = text
        .lines()
        .filter_map(|line| match Line::read(line.as_bytes()).unwrap() {
            Line::Record(record) => record.event().unwrap().map(|event| event.kind.name().to_owned()),
            _ => None,
        })
        .collect();
    let guide = include_str!("../README.md");
    let named = |row: &str| -> Vec<String> {
        row.split('`').skip(1).step_by(2).filter(|name| EventKind::NAMES.contains(name)).map(str::to_owned).collect()
    };
    let (mut listed, mut without) = (Vec::new(), Vec::new());
    for line in guide.lines().filter(|line| line.starts_with("| `")) {
        let (events, effect) = line.split_once(" | ").unwrap();
        if effect.starts_with("nothing") { &mut without } else { &mut listed }.extend(named(events));
    }
    for name in EventKind::NAMES {
        let name = (*name).to_owned();
        assert!(listed.contains(&name) != without.contains(&name), "{name} has no row of its own in the guide");
        assert_eq!(used.contains(&name), listed.contains(&name), "{name}");
    }
}

#[test]
fn what_is_not_a_record_is_an_error_that_says_where() {
    let read = |line: &str| Line::read(line.as_bytes());
    assert_eq!(read(r#"{"format":"tidegate-transcript","version":1}"#).unwrap(), Line::Header);
    assert!(matches!(read("{"), Err(RecordError::Json(_))));
    assert!(matches!(read(r#"{"seq":1}"#), Err(RecordError::Line(_))));
    let line = |kind: &str, payload: &str| {
        let place = r#""seq":7,"ts":0,"thread_id":"t","turn":1,"step":1,"attempt":1"#;
        let record = Record::read(format!(r#"{{{place},"type":"{kind}","payload":{payload}}}"#).as_bytes());
        record.and_then(|record| record.event()).map_err(|error| error.to_string())
    };
    assert_eq!(line("a_later_type", "{}"), Ok(None));
    for (kind, payload, problem) in [
        ("input_received", "{}", "the payload of `input_received` is not valid: missing field `text`"),
        ("input_received", r#"{"text":"a","role":"nobody","hidden":false}"#, "record 7: `role` of"),
        ("cognition_out", r#"{"text":"a","author":{"extension":"a b"}}"#, "`author`"),
        ("cognition_out", r#"{"text":"a","retained":"start"}"#, "`retained_bytes`"),
        ("cognition_out", r#"{"text":"a","blocks":[{"stream":"tool","complete":true}]}"#, "`call_id`"),
        ("cognition_out", r#"{"text":"a","blocks":[{"stream":"smell","complete":true}]}"#, "`stream`"),
    ] {
        let error = line(kind, payload).unwrap_err();
        assert!(error.contains(problem) && error.contains(&format!("of `{kind}` is")), "{error}");
    }
    // A status of a later version ends the turn all the same.
    let event = line("turn_finish", r#"{"status":"paused"}"#).unwrap().unwrap();
    let mut chat = ChatSession::default();
    let _changed = chat.process(&event);
    assert_eq!(&*chat.snapshot().error.unwrap().message, "the turn ended as `paused`");
}

/// What turns took and how they ended is in a saved chat, and which of them runs the calls that the end of a process has left in another one.
#[test]
fn a_saved_chat_has_what_turns_took() {
    let all = files("chat", ".jsonl");
    let turns = |name: &str| {
        let mut chat = ChatSession::default();
        for line in all[name].lines().filter(|line| line.contains("\"type\"")) {
            let Line::Record(record) = Line::read(line.as_bytes()).unwrap() else { continue };
            let _changed = record.event().unwrap().map(|event| chat.process(&event));
        }
        let saved: SavedChat = serde_json::from_value(serde_json::to_value(chat.save()).unwrap()).unwrap();
        saved.turns().iter().map(|turn| (turn.number, turn.continues, turn.status.clone())).collect::<Vec<_>>()
    };
    let completed = Some("completed".into());
    assert_eq!(turns("asked-again"), [(1, None, None), (2, Some(1), completed)]);
    let text = files("transcripts", ".jsonl")["every-type"].clone();
    let mut chat = ChatSession::default();
    for line in text.lines() {
        let Line::Record(record) = Line::read(line.as_bytes()).unwrap() else { continue };
        let _changed = record.event().unwrap().map(|event| chat.process(&event));
    }
    let recorded = text.lines().filter(|line| line.contains("step_finish")).map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["payload"]["tokens"]["output_tokens"].as_u64().unwrap_or(0)
    });
    let known = chat.save().turns().iter().filter_map(|turn| turn.tokens.output).sum::<u64>();
    assert!(known > 0 && known == recorded.sum::<u64>(), "{:?}", chat.save().turns());
}

/// Nothing in a state is what an extension kept from the user, and no hidden message is.
#[test]
fn a_state_contains_neither_originals_nor_hidden_messages() {
    let mut read = 0;
    for folder in ["chat", "chat/transcripts"] {
        let states = if folder == "chat" { files(folder, ".states.jsonl") } else { files(folder, ".json") };
        for (name, text) in states {
            read += 1;
            for secret in ["sk-", "utilise", "secret instruction", "hidden reminder", "system-interrupt"] {
                assert!(!text.contains(secret), "{name} contains {secret}");
            }
        }
    }
    assert!(read > 25, "{read} files");
    let sources: String =
        [files("chat", ".jsonl"), files("transcripts", ".jsonl")].into_iter().flatten().map(|(_, text)| text).collect();
    for secret in ["sk-", "utilise", "secret instruction", "hidden reminder", "system-interrupt"] {
        assert!(sources.contains(secret), "no session contains {secret}");
    }
}
