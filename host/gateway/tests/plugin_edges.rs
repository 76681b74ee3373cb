//! Shapes in which a text could get past the callbacks, or be changed twice.

use std::sync::{Arc, Mutex};

use flow::{CallAnswer, Callback, InputAnswer, Message};
use serde_json::{Value, json};
use wire::Wire;

use crate::plugins::{caller, first, mask, none, play, plugin, sent};
use crate::script::{CUTS, Said, WIRES, read, stream, whole};

/// Two requests at once get the same replacement, whichever is ready first.
#[test]
fn what_is_replaced_is_replaced_once() {
    let number = Arc::new(Mutex::new(0));
    let mut own = plugin(Callback::InputMessages);
    own.input = Some(Box::new(move |mut messages: Vec<Message>| {
        let mut number = number.lock().unwrap();
        *number += 1;
        messages[0] = Message::user(format!("{} ({number})", messages[0].plain_text()));
        Ok(InputAnswer::Replace(messages))
    }));
    let (caller, memory) = (caller(vec![own], false), Mutex::default());
    let body = |text: &str| format!("{{\"messages\":[{text}]}}");
    let (yes, fine) = ("{\"role\":\"user\",\"content\":\"yes\"}", "{\"role\":\"assistant\",\"content\":\"Fine.\"}");
    assert_eq!(sent(&caller, &memory, Wire::Anthropic, &body(yes)), body(yes).replace("yes", "yes (1)"));
    assert_eq!(sent(&caller, &memory, Wire::Anthropic, &body(yes)), body(yes).replace("yes", "yes (1)"));
    // The same words said again are another input.
    let again = sent(&caller, &memory, Wire::Anthropic, &body(&format!("{yes},{fine},{yes}")));
    assert!(again.contains("yes (1)") && again.contains("yes (2)"), "{again}");
    // Another number of texts in a message.
    let parts = "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"b\"}]}";
    let spread = sent(&caller, &memory, Wire::Anthropic, &body(parts));
    assert_eq!(
        spread,
        body("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"ab (3)\"},{\"type\":\"image\"}]}")
    );
}

/// A placeholder in two blocks of text, in two strings of a call, and in one whose quotes are escaped.
#[test]
fn what_is_split_over_blocks_is_put_together() {
    let wire = Wire::Anthropic;
    for cut in CUTS {
        let asked = Arc::default();
        let caller = caller(vec![mask(&asked)], true);
        let said =
            [Said::Text("It is MA"), Said::Text("SK."), Said::Call("{\"a\":\"\\\"MASK\\\"\\n\",\"b\":[\"MASK\"]}")];
        let answer = stream(wire, 1, &said, 2);
        let (got, _) = play(&caller, &Arc::default(), (wire, &none()), &first(wire), &[answer], (true, cut));
        let text = String::from_utf8_lossy(&got);
        let (words, calls) = read(wire, &got);
        assert_eq!(
            (words.as_str(), calls[0].as_str()),
            ("It is key.", "{\"a\":\"\\\"key\\\"\\n\",\"b\":[\"key\"]}"),
            "{text}"
        );
        // The second block has what is left of it.
        assert_eq!(text.matches("\"type\":\"text\",\"text\":\"\"").count(), 2, "{text}");
    }
}

/// In the stream of each wire format, whose arguments come in one part.
#[test]
fn a_call_of_a_tool_without_json_gets_its_new_input() {
    for wire in [Wire::OpenAiChat, Wire::OpenAiResponses] {
        for cut in CUTS {
            let asked = Arc::default();
            let caller = caller(vec![mask(&asked)], true);
            let (got, _) = play(&caller, &Arc::default(), (wire, &none()), &first(wire), &[custom(wire)], (true, cut));
            let text = String::from_utf8_lossy(&got);
            assert!(text.contains("*** key\\n\\\"x\\\"") && !text.contains("MASK"), "{text}");
        }
    }
}

/// Returns an answer with a call whose input is a patch.
fn custom(wire: Wire) -> Vec<u8> {
    let input = "*** MASK\n\"x\"";
    let (one, two) = input.split_at(6);
    let events = if wire == Wire::OpenAiChat {
        let chunk = |delta: Value, reason: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        let call = |input: &str| json!({"tool_calls": [{"index": 0, "custom": {"input": input}}]});
        let mut begin = call("");
        (begin["tool_calls"][0]["id"], begin["tool_calls"][0]["type"]) = (json!("call_1"), json!("custom"));
        begin["tool_calls"][0]["custom"]["name"] = json!("patch");
        vec![
            chunk(begin, Value::Null),
            chunk(call(one), Value::Null),
            chunk(call(two), Value::Null),
            chunk(json!({}), json!("tool_calls")),
        ]
    } else {
        let item = |input: &str| json!({"id": "i", "type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": input});
        let delta = |part: &str| json!({"type": "response.custom_tool_call_input.delta", "item_id": "i", "output_index": 0, "delta": part});
        vec![
            json!({"type": "response.created", "response": {"id": "r", "output": []}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": item("")}),
            delta(one),
            delta(two),
            json!({"type": "response.custom_tool_call_input.done", "item_id": "i", "output_index": 0, "input": input}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item(input)}),
            json!({"type": "response.completed", "response": {"id": "r", "output": [item(input)]}}),
        ]
    };
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

/// Text that is only in the end of an item is given to callbacks; what they cannot be given is not passed on.
#[test]
fn text_without_deltas_is_changed_or_not_shown() {
    let caller = caller(vec![mask(&Arc::default())], true);
    let parts = json!([{"type": "output_text", "text": "One MASK."}, {"type": "output_text", "text": "Two MASK."}]);
    let item = json!({"type": "message", "id": "i", "role": "assistant", "content": parts});
    let events = [
        json!({"type": "response.created", "response": {"id": "r", "output": []}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r", "output": [item]}}),
    ];
    for (sent, expected) in [
        (vec![&events[0], &events[1], &events[2]], "{\"type\":\"output_text\",\"text\":\"Two key.\"}"),
        (vec![&events[0], &events[2]], "because a part of its text is written in a way"),
    ] {
        let answer = sent.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes();
        let wire = Wire::OpenAiResponses;
        let (got, _) = play(&caller, &Arc::default(), (wire, &none()), &first(wire), &[answer], (true, 50));
        let text = String::from_utf8_lossy(&got);
        assert!(!text.contains("MASK") && text.contains(expected), "{text}");
    }
}

#[test]
fn what_extensions_did_is_counted_once() {
    let wire = Wire::OpenAiChat;
    let mut fails = plugin(Callback::InputMessages);
    fails.input = Some(Box::new(|_| Err("it trapped".to_owned())));
    let caller = caller(vec![mask(&Arc::default()), fails], false);
    sent(&caller, &Mutex::default(), wire, &first(wire));
    let counts = || -> Vec<(String, u64, u64)> {
        let tallies = caller.take_tallies();
        tallies.map(|(plugin, tally)| (plugin.to_string(), tally.changed, tally.failed)).collect()
    };
    assert_eq!(counts(), [("mask".to_owned(), 1, 0), ("p".to_owned(), 0, 1)]);
    assert_eq!(counts(), [("mask".to_owned(), 0, 0), ("p".to_owned(), 0, 0)]);
}

/// A callback that denies a call quotes what another one has put into it for the client.
#[test]
fn words_about_a_refused_call_leave_masked() {
    for wire in WIRES {
        for (is_stream, rejects) in [(true, false), (false, false), (true, true)] {
            let mut denies = plugin(Callback::ToolCall);
            denies.callbacks = vec![(Callback::ToolCall, 10)];
            denies.call = Some(Box::new(|asked| {
                let deny = || CallAnswer::Deny { reason: format!("not {}", asked.call.arguments), shown: None };
                Ok(if asked.call.arguments.contains("\"a ") { deny() } else { CallAnswer::Pass })
            }));
            let mut masks = mask(&Arc::default());
            if rejects {
                masks.input = Some(Box::new(|_| Ok(InputAnswer::Reject("no".to_owned()))));
            }
            let caller = caller(vec![masks, denies], true);
            let make = |given: &str, number| match is_stream {
                true => stream(wire, number, &[Said::Call(given)], 4),
                false => whole(wire, &[Said::Call(given)]),
            };
            let answers = [make("{\"p\":\"a MASK\"}", 1), make("{\"p\":\"b\"}", 2)];
            let body = first(wire).replace("key", "own");
            let (_, requests) = play(&caller, &Arc::default(), (wire, &none()), &body, &answers, (is_stream, 50));
            let expected = if rejects { "an extension refused it" } else { "a MASK" };
            assert!(requests[1].contains(expected) && !requests[1].contains("key"), "{}", requests[1]);
        }
    }
}
