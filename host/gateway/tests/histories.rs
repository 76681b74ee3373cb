//! The history that a client sends back: of each text that extensions have changed for it, the model gets exactly what it wrote.

use std::sync::{Arc, Mutex};

use guard::Caller;
use serde_json::{Value, json};
use tidegate_gateway::Memory;
use tidegate_kit::rule_set;
use wire::Wire;

use crate::plugins::{caller, first, mask, play, sent};
use crate::script::{Said, WIRES, stream, whole};

/// The texts of an answer, block by block, as the model writes them.
type Blocks = &'static [&'static str];

/// Answers without a stop.
const ANSWERS: [Blocks; 12] = [
    &["begin ", "second"],
    &["begin MASK ", "second"],
    &["begin ", "second MASK"],
    &["begin MASK ", "second MASK end"],
    &["begin\n", "second MASK"],
    &["begin MASK", "MASK"],
    &["begin MA", "SK second"],
    &["MA", "SK"],
    &["begin MA", "SK "],
    &["a MASK ", "b ", "c MASK"],
    &["a\nb MASK ", "c\nd MASK", "\n", "MASK"],
    &["MASK", "MASK", " ", "MASK"],
];

/// Answers that a rule stops at its word, with what the model writes when it is asked again, and what it has written that the client keeps.
const STOPPED: [(Blocks, Blocks, Blocks); 6] = [
    (&["begin forbidden"], &["second"], &["begin ", "second"]),
    (&["begin MASK forbidden"], &["second"], &["begin MASK ", "second"]),
    (&["begin forbidden"], &["second MASK"], &["begin ", "second MASK"]),
    (&["begin MASK forbidden"], &["second MASK end"], &["begin MASK ", "second MASK end"]),
    (&["line\nbegin MA forbidden"], &["SK second"], &["line\nbegin MA ", "SK second"]),
    (&["a MASK ", "b forbidden"], &["c MASK ", "d"], &["a MASK ", "b ", "c MASK ", "d"]),
];

/// Returns what a client keeps of an answer that was streamed: the messages or items of the model.
fn kept(wire: Wire, got: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(got);
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
    match wire {
        Wire::Anthropic => {
            let mut blocks: Vec<Value> = Vec::new();
            for event in events {
                match event["type"].as_str() {
                    Some("content_block_start") => {
                        assert_eq!(event["index"], blocks.len());
                        blocks.push(event["content_block"].clone());
                    }
                    Some("content_block_delta") => {
                        let block = &mut blocks[event["index"].as_u64().unwrap() as usize];
                        let more = event["delta"]["text"].as_str().unwrap();
                        block["text"] = json!(block["text"].as_str().unwrap().to_owned() + more);
                    }
                    _ => {}
                }
            }
            vec![json!({"role": "assistant", "content": blocks})]
        }
        Wire::OpenAiChat => {
            let texts = events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str());
            vec![json!({"role": "assistant", "content": texts.collect::<String>()})]
        }
        Wire::OpenAiResponses => {
            let end = events.iter().find(|event| event["type"] == "response.completed").unwrap();
            end["response"]["output"].as_array().unwrap().clone()
        }
    }
}

/// Returns what a client keeps of an answer that arrived as one body.
fn kept_whole(wire: Wire, got: &[u8]) -> Vec<Value> {
    let body: Value = serde_json::from_slice(got).unwrap();
    match wire {
        Wire::Anthropic => vec![json!({"role": "assistant", "content": body["content"]})],
        Wire::OpenAiChat => vec![body["choices"][0]["message"].clone()],
        Wire::OpenAiResponses => body["output"].as_array().unwrap().clone(),
    }
}

/// Returns the texts of messages of the model, block by block.
fn texts(messages: &[Value]) -> Vec<String> {
    let of = |message: &Value| match &message["content"] {
        Value::String(text) => vec![text.clone()],
        parts => parts.as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap().to_owned()).collect(),
    };
    messages.iter().flat_map(of).collect()
}

/// Returns the same messages with one text in all, as a part or as a string.
fn joined(wire: Wire, messages: &[Value], is_string: bool) -> Vec<Value> {
    let text = texts(messages).concat();
    let kind = if wire == Wire::OpenAiResponses { "output_text" } else { "text" };
    let content = if is_string { json!(text) } else { json!([{"type": kind, "text": text}]) };
    vec![json!({"type": "message", "role": "assistant", "content": content})]
}

/// Returns the texts of the model in a next request with this history, as they go upstream.
fn returned(caller: &Caller, memory: &Mutex<Memory>, wire: Wire, history: &[Value]) -> Vec<String> {
    let list = if wire == Wire::OpenAiResponses { "input" } else { "messages" };
    let mut body: Value = serde_json::from_str(&first(wire)).unwrap();
    let messages = body[list].as_array_mut().unwrap();
    messages.extend(history.iter().cloned());
    messages.push(json!({"role": "user", "content": "Go on."}));
    let up: Value = serde_json::from_str(&sent(caller, memory, wire, &body.to_string())).unwrap();
    let messages = up[list].as_array().unwrap();
    texts(&messages[1..messages.len() - 1])
}

/// Plays an answer, and checks that the model gets back what it has written of it, however the client joins that.
fn check((wire, is_stream, cut): (Wire, bool, usize), answers: &[Vec<u8>], written: &[&str]) {
    let set = rule_set(&[("no", "+++\ncondition = \"forbidden\"\n+++\nNever say it.")], |_| ());
    let (caller, memory) = (caller(vec![mask(&Arc::default())], true), Arc::new(Mutex::new(Memory::default())));
    let body = sent(&caller, &memory, wire, &first(wire));
    let (got, _) = play(&caller, &memory, (wire, &set), &body, answers, (is_stream, cut));
    let what = format!("{wire:?}, streamed: {is_stream}, {cut} bytes at once: {written:?}");
    let shown = if is_stream { kept(wire, &got) } else { kept_whole(wire, &got) };
    assert_eq!(texts(&shown).concat(), written.concat().replace("MASK", "key"), "{what}");
    let has_text = |text: &&str| !text.trim().is_empty();
    for history in [&shown, &joined(wire, &shown, false), &joined(wire, &shown, true)] {
        let back = returned(&caller, &memory, wire, history);
        let sent = texts(history);
        // Blocks of which nothing is left are in others.
        let is_same = sent.iter().map(String::as_str).filter(has_text).count()
            == written.iter().copied().filter(has_text).count();
        let (back, written) = if is_same {
            (back, written.iter().map(|text| (*text).to_owned()).collect())
        } else {
            (vec![back.concat()], vec![written.concat()])
        };
        assert_eq!(back, written, "{what}: {sent:?}");
    }
}

#[test]
fn the_model_gets_its_own_text_back() {
    for wire in WIRES {
        for (is_stream, cut) in [(true, 1 << 20), (true, 5), (false, 1 << 20)] {
            let answer = |number: usize, blocks: Blocks| {
                let said: Vec<Said<'_>> = blocks.iter().map(|text| Said::Text(text)).collect();
                if is_stream { stream(wire, number, &said, 3) } else { whole(wire, &said) }
            };
            let written = |blocks: Blocks| match wire {
                Wire::OpenAiChat => vec![blocks.concat()],
                _ => blocks.iter().map(|text| (*text).to_owned()).collect(),
            };
            let plays = |answers: &[Vec<u8>], blocks: Blocks| {
                let written = written(blocks);
                check((wire, is_stream, cut), answers, &written.iter().map(String::as_str).collect::<Vec<_>>());
            };
            for blocks in ANSWERS {
                plays(&[answer(1, blocks)], blocks);
            }
            for (begun, again, kept) in STOPPED {
                plays(&[answer(1, begun), answer(2, again)], if is_stream { kept } else { again });
            }
        }
    }
}

/// A line that runs over two parts of one message.
#[test]
fn parts_of_a_message_are_told_apart() {
    let parts = ["begin MASK ", "second MASK end"];
    let of = |kind: &str| parts.map(|text| json!({"type": kind, "text": text}));
    let message = json!({"role": "assistant", "content": of("text")});
    let chat = json!({"id": "c", "choices": [{"index": 0, "message": message}]});
    check((Wire::OpenAiChat, false, 1 << 20), &[chat.to_string().into_bytes()], &parts);
    let item = json!({"type": "message", "id": "i", "role": "assistant", "content": of("output_text")});
    let response = json!({"id": "r", "object": "response", "output": [item]});
    check((Wire::OpenAiResponses, false, 1 << 20), &[response.to_string().into_bytes()], &parts);
    let delta = |(number, text): (usize, &str)| json!({"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": number, "delta": text});
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "r", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "i", "role": "assistant", "content": []}}),
    ];
    events.extend(parts.into_iter().enumerate().map(delta));
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": response}));
    let answer: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    check((Wire::OpenAiResponses, true, 1 << 20), &[answer.into_bytes()], &parts);
}

/// A text that no answer of the model has become, such as the start of one that a rule has ended, leaves masked.
#[test]
fn what_is_not_the_models_alone_leaves_masked() {
    let set = rule_set(&[("no", "+++\ncondition = \"forbidden\"\naction = \"stop\"\n+++\nNever.")], |_| ());
    for wire in WIRES {
        let (caller, memory) = (caller(vec![mask(&Arc::default())], true), Arc::new(Mutex::new(Memory::default())));
        let answer = stream(wire, 1, &[Said::Text("begin MASK "), Said::Text("MASK forbidden")], 3);
        let (got, _) = play(&caller, &memory, (wire, &set), &first(wire), &[answer], (true, 5));
        let shown = kept(wire, &got);
        let text = texts(&shown).concat();
        assert!(text.starts_with("begin key key ") && text.contains("`no` stopped"), "{text}");
        assert_eq!(returned(&caller, &memory, wire, &shown).concat(), text.replace("key", "MASK"), "{wire:?}");
    }
}
