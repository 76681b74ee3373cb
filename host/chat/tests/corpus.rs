//! The cases of the corpus, state by state; and that a front end may reconnect anywhere.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use serde_json::{Value, json};
use tidegate_chat::{ChatSession, SavedChat};

use crate::support::{Case, compare, corpus, files, state, states};

/// All recorded sessions: the cases, and the transcripts that reports are tested with.
fn sessions() -> Vec<(String, Case)> {
    let cases = files("chat", ".jsonl").into_iter().filter(|(name, _)| !name.ends_with(".states"));
    let all = cases.chain(files("transcripts", ".jsonl"));
    all.map(|(name, text)| (name.clone(), Case::read(&name, &text))).collect()
}

#[test]
fn each_case_gives_its_states() {
    for (name, text) in files("chat", ".jsonl") {
        if name.ends_with(".states") {
            continue;
        }
        let lines = states(&name, &Case::read(&name, &text));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        compare(&corpus("chat").join(format!("{name}.states.jsonl")), &text);
    }
}

#[test]
fn recorded_sessions_give_their_last_states() {
    for (name, text) in files("transcripts", ".jsonl") {
        let case = Case::read(&name, &text);
        let end = states(&name, &case).pop().unwrap();
        let text = format!("{}\n", serde_json::to_string_pretty(&end["state"]).unwrap());
        compare(&corpus("chat").join(format!("transcripts/{name}.json")), &text);
    }
}

/// Sessions in every render mode, as the state at their end.
fn modes(case: &Case) -> Vec<Value> {
    let modes = ["at_end", "message", "block", "streaming"];
    let set = |mode: &str| {
        let mut options = if case.options.is_null() { json!({}) } else { case.options.clone() };
        options["render_mode"] = mode.into();
        options
    };
    modes.into_iter().map(set).collect()
}

#[test]
fn every_mode_shows_the_same_at_the_end_and_reports_each_change() {
    for (name, case) in sessions() {
        let ends = modes(&case).into_iter().map(|options| {
            let case = Case { options, ..case.clone() };
            states(&name, &case).pop().unwrap()["state"]["messages"].clone()
        });
        let ends: Vec<Value> = ends.collect();
        // A recording that ends in the middle of a turn shows less in other modes.
        let whole = ends.windows(2).all(|pair| pair[0] == pair[1]);
        assert!(whole || name.starts_with("open-"), "{name}");
    }
}

/// Case 9: reconnecting after every event, through the saved state as JSON, or with the events that were missed.
#[test]
fn a_front_end_that_reconnects_anywhere_has_the_same_state_at_the_end() {
    for (name, case) in sessions() {
        let events = case.events();
        let mut whole = case.chat();
        events.iter().for_each(|event| _ = whole.process(event));
        let end = state(&whole.snapshot());
        let mut server = ChatSession::default();
        for cut in 0..=events.len() {
            if let Some(event) = cut.checked_sub(1).and_then(|last| events.get(last)) {
                let _changed = server.process(event);
            }
            let saved = serde_json::to_string(&server.save()).unwrap();
            let saved: SavedChat = serde_json::from_str(&saved).unwrap();
            assert_eq!(saved, server.save(), "{name}: {cut}");
            let mut chat = case.chat();
            if case.options.get("initial_messages").is_none() {
                let _changed = chat.restore(saved);
                // The backlog may begin too early: what is known is not taken twice.
                events[cut.saturating_sub(3)..].iter().for_each(|event| _ = chat.process(event));
                assert_eq!(state(&chat.snapshot()), end, "{name}: snapshot after {cut} events");
            }
            let mut chat = case.chat();
            events[..cut].iter().chain(&events).for_each(|event| _ = chat.process(event));
            assert_eq!(state(&chat.snapshot()), end, "{name}: backlog after {cut} events");
        }
    }
}

/// What a front end shows does not depend on how many events a lagging subscription has joined.
#[test]
fn joined_deltas_give_the_same_state() {
    for (name, case) in sessions() {
        let events = case.events();
        let end = |events: &[flow::Event]| {
            let mut chat = case.chat();
            events.iter().for_each(|event| _ = chat.process(event));
            state(&chat.snapshot())
        };
        let mut joined: Vec<flow::Event> = Vec::new();
        for event in &events {
            match (joined.last_mut(), &event.kind) {
                (Some(last), flow::EventKind::CognitionOutDelta { text: more, .. }) if last.place == event.place => {
                    if let flow::EventKind::CognitionOutDelta { text, .. } = &mut last.kind {
                        text.push_str(more);
                        last.seq = event.seq;
                        continue;
                    }
                    joined.push(event.clone());
                }
                _ => joined.push(event.clone()),
            }
        }
        assert_eq!(end(&joined), end(&events), "{name}");
    }
}

/// Deltas are droppable: without any of them, the answers are the same once they are recorded.
#[test]
fn lost_deltas_are_made_good_by_the_answer() {
    let is_delta = |event: &flow::Event| matches!(event.kind, flow::EventKind::CognitionOutDelta { .. });
    for (name, case) in sessions() {
        let texts = |keep: &dyn Fn(usize, &flow::Event) -> bool| -> Vec<String> {
            let mut chat = case.chat();
            let events = case.events();
            let kept = events.iter().enumerate().filter(|(index, event)| keep(*index, event));
            kept.for_each(|(_, event)| _ = chat.process(event));
            // A message that was void as a whole is not there without its deltas.
            let messages = chat.snapshot().messages;
            messages.messages().map(|message| message.text()).filter(|text| !text.is_empty()).collect()
        };
        if name.starts_with("open-") {
            continue;
        }
        let all = texts(&|_, _| true);
        assert_eq!(texts(&|_, event| !is_delta(event)), all, "{name}");
        for odd in 0..3 {
            assert_eq!(texts(&|index, event| !is_delta(event) || index % 3 == odd), all, "{name}");
        }
    }
}
