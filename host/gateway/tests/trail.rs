//! Which requests are one conversation: what the client calls it, and how its messages begin.

use serde_json::{Value, json};
use tidegate_gateway::{Received, Trail, Wire};

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

/// Returns a request with these texts, of the user and the model in turns, and headers.
fn trail(wire: Wire, texts: &[&str], more: &Value, headers: &[(&str, &str)], credential: &str) -> Trail {
    let message = |(at, text): (usize, &&str)| {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        json!({"role": role, "content": text})
    };
    let messages: Vec<Value> = texts.iter().enumerate().map(message).collect();
    let mut request = json!({"model": "m", "messages": messages, "input": messages});
    let fields = more.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
    request.as_object_mut().unwrap().extend(fields);
    let header = |name: &str| headers.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    Trail::of(wire, &request, header, Some("x-own"), credential.as_bytes())
}

fn plain(wire: Wire, texts: &[&str]) -> Trail {
    trail(wire, texts, &Value::Null, &[], "key")
}

#[test]
fn an_answer_leads_to_the_next_request() {
    for wire in WIRES {
        let first = plain(wire, &["Hello"]);
        assert!(first.begins() && !first.continues_turn() && !first.is_named());
        let point = first.answered("Hi there.\n", std::iter::empty());
        let second = plain(wire, &["Hello", "Hi there.", "Go on"]);
        assert_eq!(second.points(), [point], "{wire:?}");
        assert_eq!(second.root(), first.root());
        let third = plain(wire, &["Hello", "Hi there.", "Go on", "Well", "More"]);
        assert_eq!(third.points(), [second.points(), &[second.answered("Well", std::iter::empty())]].concat());
        // Another answer, or other words of the user behind it, are another conversation.
        assert_ne!(plain(wire, &["Hello", "Hi.", "Go on"]).points(), second.points());
        let edited = plain(wire, &["Hello", "Hi there.", "Stop", "Well", "More"]);
        assert_eq!(edited.points()[0], third.points()[0]);
        assert_ne!(edited.points()[1], third.points()[1]);
    }
}

#[test]
fn what_clients_change_is_not_compared() {
    let parts = |marks: bool| {
        let mut text = json!({"type": "text", "text": "Hello"});
        if marks {
            text["cache_control"] = json!({"type": "ephemeral"});
        }
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}});
        let answer = json!([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "I read."}, call]);
        let answer = if marks { answer } else { json!([answer[1], answer[2]]) };
        let reminder = json!({"type": "text", "text": format!("<system-reminder>{marks}</system-reminder>")});
        let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"});
        let messages = json!([
            {"role": "user", "content": [reminder, text]}, {"role": "assistant", "content": answer},
            {"role": "user", "content": [result]},
        ]);
        let request = json!({"system": marks.to_string(), "messages": messages});
        Trail::of(Wire::Anthropic, &request, |_| None, None, b"key")
    };
    assert_eq!(parts(true), parts(false));
    assert!(parts(true).continues_turn());
    let first = plain(Wire::Anthropic, &["Hello"]);
    assert_eq!(parts(true).points(), [first.answered("I read.", ["toolu_1"].into_iter())]);
}

#[test]
fn names_and_credentials_keep_conversations_apart() {
    let of = |headers: &[(&str, &str)], more: Value, credential: &str| {
        trail(Wire::Anthropic, &["Hello", "Hi", "Go on"], &more, headers, credential)
    };
    let claude = of(&[("x-claude-code-session-id", "7f")], json!({}), "key");
    assert!(claude.is_named());
    // Each names the same session.
    for (headers, more) in [
        (&[("session-id", "7f")][..], json!({})),
        (&[][..], json!({"metadata": {"user_id": "user_ab_account__session_7f"}})),
        (&[][..], json!({"metadata": {"user_id": r#"{"device_id":"d","session_id":"7f"}"#}})),
        (&[][..], json!({"prompt_cache_key": "7f"})),
    ] {
        assert_eq!(of(headers, more.clone(), "key").points(), claude.points(), "{headers:?} {more}");
    }
    let others = [
        of(&[("x-claude-code-session-id", "80")], json!({}), "key"),
        of(&[("x-claude-code-session-id", "7f")], json!({}), "other"),
        of(&[], json!({}), "key"),
        of(&[], json!({"metadata": {"user_id": "customer-5"}}), "key"),
        of(&[], json!({}), "other"),
    ];
    for other in &others {
        assert_ne!(other.points(), claude.points());
        assert_ne!(other.root(), claude.root());
        assert!(!format!("{other:?}").contains("other"), "no credential is in it");
    }
    assert_eq!(others[2].points(), others[3].points(), "a user is no conversation");
    // The operator's own header says which conversation it is, whatever is in it.
    let own =
        |texts: &[&str]| trail(Wire::Anthropic, texts, &json!({}), &[("x-own", "7f"), ("session-id", "80")], "key");
    assert!(own(&["Hello"]).is_fixed() && !own(&["Hello"]).is_aside() && own(&["a", "b", "c"]).begins());
    assert_eq!(own(&["Hello"]).root(), own(&["a", "b", "c"]).root());
    // What a client that names its session has said before may have changed.
    let edited = trail(Wire::Anthropic, &["Hello!", "Hi", "Go"], &json!({"prompt_cache_key": "7f"}), &[], "key");
    assert_eq!(edited.points(), claude.points());
}

#[test]
fn a_question_next_to_a_conversation_is_one() {
    let session = [("session-id", "7f")];
    let tools = json!({"tools": [{"name": "Read"}]});
    assert!(trail(Wire::Anthropic, &["Title?"], &json!({"tools": []}), &session, "key").is_aside());
    assert!(!trail(Wire::Anthropic, &["Hello"], &tools, &session, "key").is_aside());
    assert!(!trail(Wire::Anthropic, &["a", "b", "c"], &json!({}), &session, "key").is_aside());
    assert!(!plain(Wire::Anthropic, &["Title?"]).is_aside(), "a program without tools has conversations as well");
}

#[test]
fn what_was_sent_is_what_the_client_gives_back() {
    let events = [
        ("response.created", json!({"type": "response.created", "response": {"id": "resp_1", "model": "gpt"}})),
        (
            "response.output_item.added",
            json!({"type": "response.output_item.added", "output_index": 0,
            "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": []}}),
        ),
        (
            "response.output_text.delta",
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0,
            "item_id": "msg_1", "delta": "I patch. "}),
        ),
        (
            "response.output_item.done",
            json!({"type": "response.output_item.done", "output_index": 0,
            "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "I patch. "}]}}),
        ),
        (
            "response.output_item.added",
            json!({"type": "response.output_item.added", "output_index": 1,
            "item": {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "apply_patch", "input": ""}}),
        ),
        (
            "response.custom_tool_call_input.delta",
            json!({"type": "response.custom_tool_call_input.delta", "output_index": 1,
            "item_id": "ctc_1", "delta": "*** Begin"}),
        ),
        (
            "response.output_item.done",
            json!({"type": "response.output_item.done", "output_index": 1,
            "item": {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "apply_patch", "input": "*** Begin"}}),
        ),
        (
            "response.completed",
            json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed",
            "usage": {"input_tokens": 5, "output_tokens": 7}}}),
        ),
    ];
    let mut received = Received::new(Wire::OpenAiResponses, true);
    for (name, data) in events {
        received.push(format!("event: {name}\ndata: {data}\n\n").as_bytes());
    }
    let answer = received.finish();
    assert_eq!((answer.text().as_str(), answer.calls().collect::<Vec<_>>()), ("I patch. ", vec!["call_1"]));
    assert_eq!((answer.id.as_deref(), answer.usage.output), (Some("resp_1"), Some(7)));
    let first = plain(Wire::OpenAiResponses, &["Hello"]);
    let point = first.answered(&answer.text(), answer.calls());
    let input = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "reasoning", "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I patch. "}]},
        {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "Done"},
    ]);
    let second = Trail::of(Wire::OpenAiResponses, &json!({"input": input}), |_| None, None, b"key");
    assert_eq!(second.points(), [point]);
    assert!(second.continues_turn());
    let by_id = json!({"input": "Go on", "previous_response_id": "resp_1"});
    let by_id = Trail::of(Wire::OpenAiResponses, &by_id, |_| None, None, b"key");
    assert_eq!(by_id.previous(), Some(first.response("resp_1").as_str()));
    assert!(!by_id.begins());
}

#[test]
fn whole_bodies_are_read_as_well() {
    let body = json!({"id": "msg_1", "model": "m", "usage": {"input_tokens": 3, "output_tokens": 4}, "content": [
        {"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
    ]});
    let mut received = Received::new(Wire::Anthropic, false);
    received.push(body.to_string().as_bytes());
    let answer = received.finish();
    assert_eq!((answer.text().as_str(), answer.calls().collect::<Vec<_>>()), ("Hi", vec!["toolu_1"]));
    assert_eq!((answer.usage.input, answer.usage.output), (Some(3), Some(4)));
}

#[test]
fn what_is_asked_is_what_follows_the_last_answer() {
    let messages = json!([
        {"role": "user", "content": "Read it"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "x = 1"}], "is_error": true},
            {"type": "text", "text": "And now?"},
        ]},
    ]);
    let body = json!({"model": "m", "messages": messages}).to_string();
    let asked = tidegate_gateway::Asked::of(Wire::Anthropic, body.as_bytes());
    let texts: Vec<String> = asked.messages.iter().map(flow::Message::plain_text).collect();
    assert_eq!(texts, ["And now?"]);
    let [(tool, result)] = &asked.results[..] else { panic!("{asked:?}") };
    assert_eq!((tool.as_str(), result.call.as_str(), result.is_error), ("Read", "toolu_1", true));
    assert_eq!(result.content, ["x = 1"]);
    let text = json!({"model": "m", "input": "Hello"}).to_string();
    assert_eq!(tidegate_gateway::Asked::of(Wire::OpenAiResponses, text.as_bytes()).messages[0].plain_text(), "Hello");
    assert_eq!(tidegate_gateway::Asked::of(Wire::OpenAiChat, b"{").messages, []);
}
