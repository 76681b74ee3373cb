//! Shapes of a request in which a text could get past the callbacks that ask for all of it.

use std::sync::{Arc, Mutex};

use flow::{Callback, ResultAnswer, TextAnswer, TextUnit};
use serde_json::{Value, json};
use tidegate_gateway::Memory;
use wire::Wire;

use crate::plugins::{caller, first, mask, none, play, plugin, sent};
use crate::script::{Said, WIRES, stream};

fn masked(wire: Wire, body: &Value) -> String {
    sent(&caller(vec![mask(&Arc::default())], true), &Mutex::default(), wire, &body.to_string())
}

#[test]
fn a_text_is_no_data_because_it_begins_like_some() {
    for text in ["data: the key", "data:image/png;base64,QUJD the key", "data:,key", "data:text/plain;base64,key"] {
        let body = json!({"system": text, "messages": [{"role": "user", "content": "a"}]});
        let expected = body.to_string().replace("key", "MASK");
        assert_eq!(masked(Wire::Anthropic, &body), expected);
    }
    let user = |part: Value| json!({"messages": [{"role": "user", "content": [part]}]});
    for url in ["data:image/png;base64,a key", "data:;base64,key!", "https://key"] {
        let body = user(json!({"type": "image_url", "image_url": {"url": url}}));
        assert_eq!(masked(Wire::OpenAiChat, &body), body.to_string().replace("key", "MASK"));
    }
    let body = user(json!({"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,key+/="}}));
    assert_eq!(masked(Wire::OpenAiChat, &body), body.to_string());
    let body = user(json!({"type": "other", "data": "a key"}));
    assert_eq!(masked(Wire::Anthropic, &body), body.to_string().replace("key", "MASK"));
}

#[test]
fn only_signed_reasoning_passes() {
    let thinking = |signature: &str| {
        json!({"messages": [{"role": "assistant", "content": [
        {"type": "thinking", "thinking": "the key", "signature": signature}]}]})
    };
    assert_eq!(masked(Wire::Anthropic, &thinking("c2ln")), thinking("c2ln").to_string());
    assert_eq!(masked(Wire::Anthropic, &thinking("")), thinking("").to_string().replace("key", "MASK"));
    let item = |more: Value| {
        json!({"input": [{"type": "reasoning", "id": "rs_1", "encrypted_content": more,
        "summary": [{"type": "summary_text", "text": "the key"}]}]})
    };
    assert_eq!(masked(Wire::OpenAiResponses, &item(json!("b"))), item(json!("b")).to_string());
    assert_eq!(masked(Wire::OpenAiResponses, &item(Value::Null)), item(Value::Null).to_string().replace("key", "MASK"));
    let chat = json!({"messages": [{"role": "assistant", "content": "a", "reasoning_content": "the key"}]});
    assert_eq!(masked(Wire::OpenAiChat, &chat), chat.to_string().replace("key", "MASK"));
}

#[test]
fn numbers_and_names_in_arguments_are_texts() {
    let body = json!({"input": [{"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["a"],
        "env": {"name": "the key", "id": "a key", "status": "key"}}}]});
    assert_eq!(masked(Wire::OpenAiResponses, &body), body.to_string().replace("key", "MASK"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let caller = caller(vec![mask(&asked)], true);
    let card = 4_111_111_111_111_111_u64;
    let anthropic = json!({"max_tokens": 32_000_000, "messages": [{"role": "assistant", "content": [
        {"type": "tool_use", "id": "t", "name": "pay", "input": {"card": card, "n": 12}}]}]});
    let chat = json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "pay", "arguments": json!({"card": card, "n": 12}).to_string()}}]}]});
    for (wire, body) in [(Wire::Anthropic, anthropic), (Wire::OpenAiChat, chat)] {
        assert_eq!(sent(&caller, &Mutex::default(), wire, &body.to_string()), body.to_string());
        let asked = std::mem::take(&mut *asked.lock().unwrap());
        assert!(asked.iter().any(|one| one.ends_with(&card.to_string())), "{asked:?}");
        assert!(!asked.iter().any(|one| one.ends_with("12") || one.ends_with("32000000")), "{asked:?}");
    }
}

/// What a callback makes of a number is a string in its place.
#[test]
fn a_number_can_be_replaced() {
    let mut own = plugin(Callback::InputMessages);
    own.input = Some(Box::new(|mut messages: Vec<flow::Message>| {
        for message in &mut messages {
            *message = flow::Message::user(message.plain_text().replace("41111111", "MASK"));
        }
        Ok(flow::InputAnswer::Replace(messages))
    }));
    let body = "{\"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"p\",\"input\":{\"a\":[41111111]}}]}]}";
    let up = sent(&caller(vec![own], true), &Mutex::default(), Wire::Anthropic, body);
    assert_eq!(up, body.replace("41111111", "\"MASK\""));
}

/// Where no callback gets requests, too.
#[test]
fn only_the_words_of_the_model_become_what_it_wrote() {
    for wire in WIRES {
        let mut own = plugin(Callback::PlainText(TextUnit::Line.into()));
        own.text = Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(text.replace("secret", "shown")))));
        let (caller, memory) = (caller(vec![own], false), Arc::<Mutex<Memory>>::default());
        let answer = stream(wire, 1, &[Said::Text("A secret.")], 3);
        play(&caller, &memory, (wire, &none()), &first(wire), &[answer], (true, 9));
        let list = if wire == Wire::OpenAiResponses { "input" } else { "messages" };
        let said = |role: &str, text: &str| json!({"role": role, "content": text});
        let body = |answer: &str| {
            let messages = [said("user", "My key, 1.0"), said("assistant", answer), said("user", "A shown.")];
            json!({ list: messages }).to_string()
        };
        assert_eq!(sent(&caller, &memory, wire, &body("A shown.")), body("A secret."), "{wire:?}");
    }
}

#[test]
fn each_string_of_a_result_is_given_to_the_callbacks() {
    let responses = |output: Value| json!({"input": [{"type": "shell_call_output", "call_id": "c", "output": output}]});
    let anthropic = |part: Value| {
        json!({"messages": [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": [part]}]}]})
    };
    for (wire, body) in [
        (
            Wire::OpenAiResponses,
            responses(json!([{"stdout": "a key", "stderr": "key 2", "outcome": {"type": "exit", "exit_code": 0}}])),
        ),
        (Wire::OpenAiResponses, responses(json!({"text": "the key", "more": {"x": ["key"]}}))),
        (
            Wire::Anthropic,
            anthropic(json!({"type": "document", "title": "key 1",
                "source": {"type": "text", "media_type": "text/plain", "data": "a key"}})),
        ),
        (
            Wire::Anthropic,
            anthropic(json!({"type": "search_result", "source": "http://key", "title": "key",
                "content": [{"type": "text", "text": "a key"}]})),
        ),
    ] {
        let caller = caller(vec![mask(&Arc::default())], false);
        let up = sent(&caller, &Mutex::default(), wire, &body.to_string());
        assert_eq!(up, body.to_string().replace("key", "MASK"));
    }
    // Pictures are no texts.
    let body = responses(json!([{"type": "input_image", "image_url": "data:image/png;base64,key="}]));
    let mut own = plugin(Callback::ToolResult);
    own.result = Some(Box::new(|given| {
        assert!(given.content.is_empty(), "{given:?}");
        Ok(ResultAnswer::default())
    }));
    let up = sent(&caller(vec![own], false), &Mutex::default(), Wire::OpenAiResponses, &body.to_string());
    assert_eq!(up, body.to_string());
}

/// The model wrote other words in each answer, and in each block, that the client has as the same.
#[test]
fn equal_words_of_two_answers_have_an_original_each() {
    let wire = Wire::Anthropic;
    let mut own = plugin(Callback::PlainText(TextUnit::Line.into()));
    own.text =
        Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(if text.starts_with('P') { "Alice".into() } else { text }))));
    let (caller, memory) = (caller(vec![own], false), Arc::<Mutex<Memory>>::default());
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let body = |said: &[Value]| json!({"messages": said}).to_string();
    let (mut shown, mut expected) = (Vec::new(), Vec::new());
    for (number, original) in ["Alice", "P1", "P2"].into_iter().enumerate() {
        let user = said("user", &format!("Turn {number}."));
        shown.push(user.clone());
        expected.push(user);
        let up = sent(&caller, &memory, wire, &body(&shown));
        assert_eq!(up, body(&expected));
        let answer = stream(wire, 1, &[Said::Text(original)], 3);
        play(&caller, &memory, (wire, &none()), &up, &[answer], (true, 9));
        shown.push(said("assistant", "Alice"));
        expected.push(said("assistant", original));
    }
    // An answer that is written again, whose first form passed: the real words do not leave.
    let again = body(&shown[..1]);
    let answer = stream(wire, 1, &[Said::Text("P3")], 3);
    play(&caller, &memory, (wire, &none()), &again, &[answer], (true, 9));
    let up = sent(&caller, &memory, wire, &body(&shown[..2]));
    assert!(up.contains("P3") && !up.contains("Alice"), "{up}");
}

/// A plugin drops the first input of a conversation: its answer is the first all the same.
#[test]
fn a_dropped_message_moves_no_answer() {
    let mut own = plugin(Callback::InputMessages);
    own.callbacks.push((Callback::PlainText(TextUnit::Line.into()), 50));
    own.text = Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(text.replace("P1", "Alice")))));
    own.input = Some(Box::new(|messages: Vec<flow::Message>| {
        let kept = messages.into_iter().filter(|one| !one.plain_text().contains("drop")).collect();
        Ok(flow::InputAnswer::Replace(kept))
    }));
    let (caller, memory, wire) = (caller(vec![own], false), Arc::<Mutex<Memory>>::default(), Wire::Anthropic);
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let mut shown = vec![
        said("user", "a"),
        said("assistant", "1"),
        said("user", "drop"),
        said("assistant", "2"),
        said("user", "b"),
    ];
    let body = |said: &[Value]| json!({"messages": said}).to_string();
    let up = sent(&caller, &memory, wire, &body(&shown));
    assert!(!up.contains("drop"), "{up}");
    play(&caller, &memory, (wire, &none()), &up, &[stream(wire, 1, &[Said::Text("P1")], 3)], (true, 9));
    shown.extend([said("assistant", "Alice"), said("user", "c")]);
    let up = sent(&caller, &memory, wire, &body(&shown));
    assert!(up.contains("P1") && !up.contains("Alice"), "{up}");
}

/// Of a conversation that was compacted, what it had before is forgotten when it is much.
#[test]
fn the_memory_has_a_size() {
    let caller = caller(vec![mask(&Arc::default())], true);
    let (memory, mut stored) = (Mutex::<Memory>::default(), Memory::default());
    let body = |turn: u32| {
        let text = format!("{turn} key {}", "x".repeat(100_000));
        let messages: Vec<Value> =
            (0..10).map(|at| json!({"role": "user", "content": format!("{at} {text}")})).collect();
        json!({"messages": messages}).to_string()
    };
    for turn in 0..6 {
        let up = sent(&caller, &memory, Wire::Anthropic, &body(turn));
        assert_eq!(up, body(turn).replace("key", "MASK"));
        stored.merge(memory.lock().unwrap().clone());
        for kept in [&stored, &memory.lock().unwrap().clone()] {
            let bytes = serde_json::to_vec(kept).unwrap().len();
            assert!(bytes > 900_000 && bytes < 4_500_000, "{turn}: {bytes}");
        }
    }
}
