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
    assert!(own(&["Hello"]).is_fixed() && !own(&["Hello"]).is_side_request() && own(&["a", "b", "c"]).begins());
    assert_eq!(own(&["Hello"]).root(), own(&["a", "b", "c"]).root());
    // What a client that names its session has said before may have changed.
    let session = [("session-id", "7f")];
    let edited = |more: &Value, headers: &[(&str, &str)]| {
        let of = |texts: &[&str]| trail(Wire::Anthropic, texts, more, headers, "key").points().to_vec();
        (of(&["Hello!", "Hi", "Go"]), of(&["Hello", "Hi", "Go on"]))
    };
    let (changed, same) = edited(&json!({}), &session);
    assert_eq!((&changed, &same), (&claude.points().to_vec(), &changed));
    // Conversations can share a key of the provider's cache: what is in them counts as well.
    let (changed, same) = edited(&json!({"prompt_cache_key": "7f"}), &[]);
    let (_, plain) = edited(&json!({}), &[]);
    assert!(changed != same && same != plain && changed != claude.points());
}

#[test]
fn a_question_next_to_a_conversation_is_one() {
    let session = [("session-id", "7f")];
    let tools = json!({"tools": [{"name": "Read"}]});
    assert!(trail(Wire::Anthropic, &["Title?"], &json!({"tools": []}), &session, "key").is_side_request());
    assert!(!trail(Wire::Anthropic, &["Hello"], &tools, &session, "key").is_side_request());
    assert!(!trail(Wire::Anthropic, &["a", "b", "c"], &json!({}), &session, "key").is_side_request());
    assert!(
        !plain(Wire::Anthropic, &["Title?"]).is_side_request(),
        "a program without tools has conversations as well"
    );
    let cached = json!({"prompt_cache_key": "7f"});
    assert!(
        !trail(Wire::Anthropic, &["Hello"], &cached, &[], "key").is_side_request(),
        "and so has one with a key for caches"
    );
}

/// A question without tools can be the first turn of a conversation: the next request repeats it with its answer.
#[test]
fn a_question_next_to_a_conversation_can_be_continued() {
    let session = [("session-id", "7f")];
    let (none, tools) = (json!({}), json!({"tools": [{"name": "Read"}]}));
    for wire in WIRES {
        let of = |texts: &[&str], more: &Value| trail(wire, texts, more, &session, "key");
        let side = of(&["Hello"], &none);
        let point = side.answered("Hi there.\n", std::iter::empty());
        for (texts, more, continues) in [
            (&["Hello", "Hi there.", "Go on"][..], &none, true),
            (&["Hello", "Hi there.", "Go on", "Well", "More"], &none, true),
            (&["Hello", "Hi there.", "Go on"], &tools, true),
            (&["Hello", "Hi.", "Go on"], &none, false),
            // The client's own conversation has the same answer, and other words before it.
            (&["Hello, you", "Hi there.", "Go on"], &tools, false),
        ] {
            let next = of(texts, more);
            assert_eq!(next.first() == Some(point.as_str()), continues, "{wire:?} {texts:?}");
            assert!(!next.points().contains(&point), "{wire:?}: it is found as a conversation");
        }
        let other = trail(wire, &["Hello", "Hi there.", "Go on"], &none, &session, "other");
        assert_ne!(other.first(), Some(point.as_str()), "{wire:?}: another client");
        assert_eq!(trail(wire, &["Hello", "Hi there.", "Go on"], &none, &[], "key").first(), None, "{wire:?}: no name");
        assert_eq!(side.first(), None);
    }
}

/// A whole answer with a call for each id, and the client's next request, in which each call has the other id.
fn called(wire: Wire, arguments: &str, ids: &[(Value, &str)], names: (&[(&str, &str)], &str)) -> (Received, Trail) {
    let (mut calls, mut given, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for (id, own) in ids {
        let input: Value = serde_json::from_str(arguments).unwrap();
        let other = |id: &Value| match wire {
            Wire::Anthropic => json!({"type": "tool_use", "id": id, "name": "Read", "input": input}),
            Wire::OpenAiChat => {
                json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": arguments}})
            }
            Wire::OpenAiResponses => {
                json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": arguments})
            }
        };
        calls.push(other(id));
        // Clients parse arguments and write them again.
        let mut resent = other(&json!(own));
        let written = json!(input.to_string());
        match wire {
            Wire::OpenAiChat => resent["function"]["arguments"] = written,
            Wire::OpenAiResponses => resent["arguments"] = written,
            Wire::Anthropic => {}
        }
        given.push(resent);
        results.push(match wire {
            Wire::Anthropic => json!({"type": "tool_result", "tool_use_id": own, "content": "x"}),
            Wire::OpenAiChat => json!({"role": "tool", "tool_call_id": own, "content": "x"}),
            Wire::OpenAiResponses => json!({"type": "function_call_output", "call_id": own, "output": "x"}),
        });
    }
    let user = json!({"role": "user", "content": "Hello"});
    let (body, messages) = match wire {
        Wire::Anthropic => (
            json!({"content": calls}),
            vec![user, json!({"role": "assistant", "content": given}), json!({"role": "user", "content": results})],
        ),
        Wire::OpenAiChat => {
            let answer = |calls: &[Value]| json!({"role": "assistant", "content": null, "tool_calls": calls});
            let messages = [vec![user, answer(&given)], results].concat();
            (json!({"choices": [{"message": answer(&calls)}]}), messages)
        }
        Wire::OpenAiResponses => (json!({"output": calls}), [vec![user], given, results].concat()),
    };
    let mut received = Received::new(wire, false);
    received.push(body.to_string().as_bytes());
    let request = json!({"messages": messages, "input": messages});
    let header = |name: &str| names.0.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    (received, Trail::of(wire, &request, header, None, names.1.as_bytes()))
}

/// Where a server leaves out the ids of calls, its client has others than the decoder.
#[test]
fn an_answer_is_found_without_the_ids_of_its_calls() {
    let (null, session) = (Value::Null, [("session-id", "7f")]);
    let own = |id: &str| json!(id);
    for wire in WIRES {
        for headers in [&[][..], &session[..]] {
            let first = trail(wire, &["Hello"], &json!({"tools": [{"name": "Read"}]}), headers, "key");
            for (name, ids, is_point, is_name) in [
                ("its own", vec![(own("toolu_1"), "toolu_1")], true, false),
                ("none", vec![(null.clone(), "made-up")], false, true),
                ("empty ones", vec![(own(""), "a"), (own(""), "b")], false, true),
                ("one of two", vec![(own("toolu_1"), "toolu_1"), (null.clone(), "b")], false, true),
                // The form of those that the decoder mints.
                ("numbers", vec![(own("call_0"), "call_0")], true, true),
                ("other ids of the client", vec![(own("toolu_1"), "other")], false, false),
            ] {
                let (received, next) = called(wire, r#"{"path": "a", "at": 1}"#, &ids, (headers, "key"));
                let answer = received.finish();
                let point = first.answered(&answer.text(), answer.calls());
                assert_eq!(next.points() == [point], is_point, "{wire:?} {headers:?} {name}");
                let named = first.answered_without_ids(&answer);
                assert_eq!(named.is_some(), is_name, "{wire:?} {headers:?} {name}");
                let is_found = named.is_some() && named.as_deref() == next.without_ids();
                assert_eq!(is_found, is_name, "{wire:?} {headers:?} {name}");
            }
            let named = |arguments: &str, key: &str| {
                let (received, next) = called(wire, arguments, &[(null.clone(), "b")], (headers, key));
                let first = trail(wire, &["Hello"], &json!({"tools": [{"name": "Read"}]}), headers, key);
                (first.answered_without_ids(&received.finish()).unwrap(), next.without_ids().unwrap().to_owned())
            };
            let one = named(r#"{"a": 1, "b": 2}"#, "key");
            assert_eq!(one, named(r#"{"b": 2, "a": 1}"#, "key"), "{wire:?}: the order of members");
            for other in [named(r#"{"a": 2, "b": 2}"#, "key"), named(r#"{"a": 1, "b": 2}"#, "other")] {
                assert!(other.0 == other.1 && other.0 != one.0, "{wire:?} {headers:?}");
            }
        }
    }
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
