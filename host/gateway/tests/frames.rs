//! Frames that callbacks change: what else is in them stays.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::{Callback, OutputMode, TextAnswer, TextOptions, TextUnit};
use rules::RuleSession;
use serde_json::{Value, json};
use tidegate_gateway::{Exchange, Filtered, Then};
use tidegate_kit::{Plugin, ready};
use wire::Wire;

use crate::plugins::{caller, first, mask, none, play, plugin};
use crate::script::CUTS;

fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn received(wire: Wire, plugin: impl Fn() -> Plugin, answer: &str) -> Vec<String> {
    let play = |cut| {
        let caller = caller(vec![plugin()], false);
        let answers = [answer.as_bytes().to_vec()];
        let (got, _) = play(&caller, &Arc::default(), (wire, &none()), &first(wire), &answers, (true, cut));
        String::from_utf8(got).unwrap()
    };
    CUTS.into_iter().map(play).collect()
}

fn masking() -> Plugin {
    mask(&Arc::default())
}

fn chunk(text: &str, reason: &Value) -> String {
    json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}).to_string()
}

#[test]
fn other_fields_and_comments_stay() {
    for end in ["\n", "\r\n"] {
        let frame =
            |text: &str| format!(": note{end}id: 7{end}data: {}{end}retry: 5{end}{end}", chunk(text, &Value::Null));
        let rest = format!("data: {}\n\ndata: [DONE]\n\n", chunk("", &json!("stop")));
        for got in received(Wire::OpenAiChat, masking, &(frame("A MASK.\n") + &rest)) {
            assert_eq!(got, frame("A key.\n") + &rest);
        }
    }
}

#[test]
fn the_last_frame_needs_no_blank_line() {
    for end in ["", "\n", "\n\n"] {
        let made = |word: &str| {
            let (text, stop) = (chunk(&format!("A {word}.\n"), &Value::Null), chunk("", &json!("stop")));
            format!("data: {text}\n\ndata: {stop}\n\ndata: [DONE]{end}")
        };
        for got in received(Wire::OpenAiChat, masking, &made("MASK")) {
            assert_eq!(got.trim_end(), made("key").trim_end(), "{end:?}");
        }
    }
}

/// The text of the answer is the name of a status.
#[test]
fn only_texts_are_replaced_at_the_end() {
    let part = |text: &str| json!({"type": "output_text", "text": text});
    let item = |text: &str| json!({"type": "message", "id": "i", "status": "MASK", "content": [part(text)]});
    let made = |text: &str| {
        events(&[
            json!({"type": "response.created", "response": {"id": "r", "output": []}}),
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}),
            json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": text}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item(text)}),
            json!({"type": "response.completed", "response": {"id": "r", "status": "MASK", "output": [item(text)]}}),
        ])
    };
    for got in received(Wire::OpenAiResponses, masking, &made("MASK")) {
        assert_eq!(got, made("key"));
    }
}

/// Reasoning that comes only with the end of its part, or of its item.
#[test]
fn reasoning_that_did_not_stream_is_given_too() {
    let options = TextOptions { unit: TextUnit::Line, answer: false, thinking: true };
    let thinks = || Plugin {
        text: Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(text.replace("MASK", "key"))))),
        ..plugin(Callback::PlainText(options))
    };
    let at = |kind: &str, more: Value| {
        let mut event = json!({"type": kind, "output_index": 0, "summary_index": 0, "content_index": 0});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let item = |text: &str| {
        let (summary, content) =
            (json!([{"type": "summary_text", "text": text}]), json!([{"type": "reasoning_text", "text": text}]));
        json!({"type": "reasoning", "id": "i", "summary": summary, "content": content})
    };
    let ends = |text: &str| {
        vec![
            vec![at("response.reasoning_text.done", json!({"text": text}))],
            vec![at("response.reasoning_summary_part.done", json!({"part": {"type": "summary_text", "text": text}}))],
            vec![at("response.content_part.done", json!({"part": {"type": "reasoning_text", "text": text}}))],
            vec![],
        ]
    };
    for case in 0..4 {
        let made = |text: &str| {
            let mut all = vec![json!({"type": "response.created", "response": {"id": "r", "output": []}})];
            all.extend(ends(text).swap_remove(case));
            all.push(at("response.output_item.done", json!({"item": item(text)})));
            all.push(json!({"type": "response.completed", "response": {"id": "r", "output": [item(text)]}}));
            events(&all)
        };
        for got in received(Wire::OpenAiResponses, thinks, &made("The MASK")) {
            assert_eq!(got, made("The key"), "{case}");
        }
    }
}

/// An answer that fails in its middle is no answer: nobody gets the whole of it, and nothing of it is remembered.
#[test]
fn what_fails_in_its_middle_is_not_accepted() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let mut sees = plugin(Callback::LlmOutput(OutputMode::Observe));
    sees.output = Some(Box::new(move |_| {
        *count.lock().unwrap() += 1;
        Ok(flow::OutputAnswer::default())
    }));
    let caller = caller(vec![sees], false);
    let wire = Wire::OpenAiChat;
    let exchange = Exchange::new(wire, first(wire).into(), "m", RuleSession::new(none()));
    let mut own = Filtered::new(exchange, "m", Some(caller), Arc::default());
    own.begin(true);
    let failed =
        format!("data: {}\n\ndata: {{\"error\":{{\"message\":\"overloaded\"}}}}\n\n", chunk("Half", &Value::Null));
    let next = ready(own.receive(failed.as_bytes(), Duration::ZERO));
    assert_eq!((String::from_utf8(next.send).unwrap(), next.then), (failed, Then::End));
    assert!(!own.exchange().is_accepted() && !own.exchange().is_closed());
    assert_eq!(*asked.lock().unwrap(), 0);
}
