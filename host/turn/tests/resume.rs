//! Sessions that are cut anywhere and continue: the conversation is one that providers take, and what follows is what would have followed.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::{Delta, Event, EventKind, Message, StopReason, StreamKind};
use record::Record;
use serde_json::{Value, json};
use tidegate_kit::{AtOnce, Script, ScriptedModel, assert_valid, calls, drain, rule_set, say, text, tool};
use tidegate_turn as turn;
use turn::rebuild::{Rebuild, Resumed};
use turn::{CancellationToken, Session};

/// The end of the text of an answer whose process ended.
const MARK: &str = "\n\n[Stream interrupted: the process ended]";

/// The transcripts of the corpus that sessions have recorded, and the one that is written by hand.
fn corpus() -> Vec<(String, Vec<Record>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/transcripts");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
    assert!(files.len() > 4, "{files:?}");
    let read = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        let records = text.lines().skip(1).map(|line| Record::read(line.as_bytes()).unwrap()).collect();
        (file.file_stem().unwrap().to_string_lossy().into_owned(), records)
    };
    files.iter().map(read).collect()
}

/// Rebuilds what can be: a record that cannot be used is left out, as a repair does.
fn rebuilt<'r>(records: impl IntoIterator<Item = &'r Record>) -> Resumed {
    let mut rebuild = Rebuild::default();
    records.into_iter().for_each(|record| drop(rebuild.take(record)));
    rebuild.finish()
}

fn check(resumed: &Resumed, cut: impl std::fmt::Display) {
    let valid = std::panic::catch_unwind(|| assert_valid(&resumed.history));
    assert!(valid.is_ok(), "{cut}: {:#?}", resumed.history);
    assert_eq!(resumed.history.len(), resumed.history_turns.len(), "{cut}");
}

#[test]
fn every_prefix_of_a_transcript_is_a_conversation_that_providers_take() {
    for (name, records) in corpus() {
        let mut rebuild = Rebuild::default();
        for (number, record) in records.iter().enumerate() {
            rebuild.take(record).unwrap_or_else(|error| panic!("{name}: {error}"));
            check(&rebuild.clone().finish(), format_args!("{name}, the first {} records", number + 1));
        }
    }
}

/// What a repair can leave: any record can be the damaged one, or any two.
#[test]
fn a_transcript_without_any_of_its_records_is_a_conversation_that_providers_take() {
    for (name, records) in corpus() {
        for (one, two) in (0..records.len()).flat_map(|one| (one..records.len()).map(move |two| (one, two))) {
            let left = records.iter().enumerate().filter(|(number, _)| *number != one && *number != two);
            let resumed = rebuilt(left.map(|(_, record)| record));
            check(&resumed, format_args!("{name}, without the records {one} and {two}"));
        }
    }
}

/// An embedder can put any history in place.
#[test]
fn calls_and_results_that_are_apart_are_left_out() {
    let part = |kind: &str, id: &str| match kind {
        "call" => json!({"kind": "tool_call", "call_id": id, "tool": "read", "arguments": "{}"}),
        "result" => json!({"kind": "tool_result", "call_id": id, "content": ["x"], "is_error": false}),
        _ => json!({"kind": kind, "text": id}),
    };
    let message = |role: &str, parts: &[(&str, &str)]| {
        let parts: Vec<Value> = parts.iter().map(|(kind, id)| part(kind, id)).collect();
        json!({"role": role, "author": "user", "hidden": false, "parts": parts})
    };
    let messages = [
        message("tool", &[("result", "0")]),
        message("user", &[("text", "go")]),
        message("assistant", &[("text", "I read."), ("call", "1"), ("call", "2")]),
        message("tool", &[("result", "3"), ("result", "2"), ("result", "2")]),
        message("assistant", &[("thinking", "Hm."), ("call", "4")]),
        message("user", &[("text", "and")]),
        message("assistant", &[("call", "5")]),
        message("tool", &[("result", "5")]),
    ];
    let line = json!({
        "seq": 0, "ts": 0, "thread_id": "t", "turn": 3, "step": 0, "attempt": 0,
        "type": "history_replaced", "payload": {"messages": messages},
    });
    let resumed = rebuilt([&Record::read(line.to_string().as_bytes()).unwrap()]);
    check(&resumed, "replaced");
    let texts: Vec<String> = resumed.history.iter().map(|message| tidegate_kit::said(message)).collect();
    let expected = ["go", "I read.\ncall read {}", "result [\"x\"]", "and", "call read {}", "result [\"x\"]"];
    assert_eq!(texts, expected);
    let problem =
        "5 calls without a result, or results without a call, are left out of the conversation: providers refuse them";
    assert_eq!(resumed.problems, [problem]);
}

const INPUTS: [&str; 5] = ["Hello", "Read it", "Write it", "Think", "Goodbye"];

/// The answers of each turn: text, calls, an answer that a rule stops, signed reasoning before a call, and text.
fn scripts(turn: usize) -> Vec<Script> {
    let thought = || {
        let (kind, call) = (StreamKind::Thinking, tool("t3", "read"));
        let signature = Delta::Signature { block: 0, data: "signed".into(), redacted: false };
        Script::Say(
            vec![
                Delta::Start { model: None },
                Delta::BlockStart { block: 0, kind },
                Delta::Piece { block: 0, text: "I should look ".into() },
                Delta::Piece { block: 0, text: "again.".into() },
                signature,
                Delta::BlockEnd { block: 0 },
                Delta::BlockStart { block: 1, kind: call },
                Delta::Piece { block: 1, text: "{}".into() },
                Delta::BlockEnd { block: 1 },
                Delta::Stop { reason: StopReason::ToolUse },
            ],
            Some(Ok(())),
        )
    };
    match turn {
        0 => vec![text("Hello, what can I do?", 4)],
        1 => vec![calls(&[("t1", "read", "{\"path\":\"a\"}"), ("t2", "steps", "{}")], 5), text("It says nothing.", 4)],
        2 => vec![text("A FORBIDDEN word.", 3), text("A word.", 2)],
        3 => vec![thought(), text("I was right.", 5)],
        _ => vec![say("Goodbye.")],
    }
}

/// Runs the turns from `first` on, and returns their events, with those of the end, and the conversation.
async fn run(first: usize, resumed: Option<Resumed>) -> (Vec<Event>, Vec<Arc<Message>>) {
    let rules = rule_set(&[("no-forbidden", "+++\ncondition = 'FORBIDDEN'\n+++\nNever say it.")], |_| {});
    let model = ScriptedModel::new((first..INPUTS.len()).flat_map(scripts));
    let mut session: Session = tidegate_kit::session(&model, vec![], rules).with_journal(Arc::new(AtOnce), resumed);
    let mut events = session.subscribe();
    for input in &INPUTS[first..] {
        let report = session.run(vec![Message::user(*input)], &CancellationToken::new()).await;
        assert_eq!(report.status, flow::TurnStatus::Completed, "{input}");
    }
    let history = session.history();
    session.close().await;
    (drain(&mut events), history)
}

/// What the records of turns say: all but where they are in the thread, and what begins and ends the work of a process. Chunks of text
/// are joined: a subscriber that is late gets several as one.
fn said(events: &[Event], from_turn: u32) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for event in events.iter().filter(|event| event.place.turn >= from_turn) {
        let mut record = record::json(event, "thread");
        if record["type"].as_str().unwrap().starts_with("thread_") {
            continue;
        }
        let place = event.place;
        // The results of calls that the end of a process interrupted, which precede the first step of the next turn.
        if matches!(event.kind, EventKind::ToolCallResult { .. }) && place.step == 0 {
            continue;
        }
        if let EventKind::CognitionOutDelta { text, .. } = &event.kind {
            let chunk = json!([place.turn, place.step, place.attempt, "text"]);
            let text = match all.pop_if(|last| last.as_array().unwrap().starts_with(chunk.as_array().unwrap())) {
                Some(last) => format!("{}{text}", last[4].as_str().unwrap()),
                None => text.clone(),
            };
            all.push(json!([place.turn, place.step, place.attempt, "text", text]));
            continue;
        }
        let payload = record["payload"].as_object_mut().unwrap();
        // Numbers in the thread, what a killed process has spent, and turns that have finished, which its last one has not.
        ["duration_ms", "waited_ms", "turn_number", "charged"].iter().for_each(|key| drop(payload.remove(*key)));
        let rule_records = payload.get_mut("records").and_then(Value::as_array_mut);
        rule_records.into_iter().flatten().for_each(|one| one["turn"] = 0.into());
        all.push(json!([place.turn, place.step, place.attempt, record["type"], record["payload"]]));
    }
    all
}

/// The conversation of the turn in which the process ended: each of its messages, or the start of an answer, marked.
fn assert_start(cut: usize, found: &[Arc<Message>], whole: &[Arc<Message>]) {
    let mut whole = whole.iter();
    for message in found {
        let is_marked = message.plain_text().ends_with(MARK);
        let same = |one: &&Arc<Message>| if is_marked { one.role == message.role } else { *one == message };
        let is_known = whole.any(|one| same(&one));
        // Of calls without all of their results those with one remain.
        let is_part = message.tool_calls().next().is_some() || message.role == flow::Role::Tool;
        assert!(is_known || is_part || is_marked, "cut at {cut}: {message:?} is in no uninterrupted session");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_cut_at_any_record_continues_as_if_it_had_not_been() {
    let (events, whole) = run(0, None).await;
    assert!(events.len() > 60, "only {} events", events.len());
    let turn_of = |rebuilt: &Resumed, turn: u32| {
        let of_turn = rebuilt.history.iter().zip(&rebuilt.history_turns).filter(move |(_, own)| **own == turn);
        of_turn.map(|(message, _)| Arc::clone(message)).collect::<Vec<_>>()
    };
    let records: Vec<Record> = events.iter().map(|event| Record::of(event, "thread")).collect();
    let complete = rebuilt(&records);
    assert_eq!(complete.history, whole);
    let mut marked = 0;
    for cut in 1..records.len() {
        let resumed = rebuilt(&records[..cut]);
        check(&resumed, format_args!("cut at {cut}"));
        let (turns, is_interrupted) = (resumed.turns, resumed.is_interrupted);
        for turn in 1..=turns {
            let (found, whole) = (turn_of(&resumed, turn), turn_of(&complete, turn));
            if turn == turns && is_interrupted {
                assert_start(cut, &found, &whole);
                marked += usize::from(found.iter().any(|message| message.plain_text().ends_with(MARK)));
            } else {
                assert_eq!(found, whole, "cut at {cut}: turn {turn} had ended");
            }
        }
        if turns as usize == INPUTS.len() {
            continue;
        }
        let start = resumed.history.clone();
        let (after, history) = run(turns as usize, Some(resumed)).await;
        assert_valid(&history);
        assert_eq!(history[..start.len()], start, "cut at {cut}");
        assert_eq!(after[0].seq, events[cut - 1].seq + 1, "the numbers of events continue");
        let (after, expected) = (said(&after, turns + 1), said(&events, turns + 1));
        for (found, expected) in after.iter().zip(&expected) {
            assert_eq!(found, expected, "cut at {cut}");
        }
        assert_eq!(after.len(), expected.len(), "cut at {cut}");
    }
    assert!(marked > 15, "only {marked} answers were cut");
    let names = |name: &str| events.iter().any(|event| event.kind.name() == name);
    assert!(names("ttsr_injection") && names("cognition_reasoning") && names("tool_call_result"));
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::CognitionOutDelta { .. })));
}
