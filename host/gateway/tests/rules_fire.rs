//! Where a rule fires, the client gets one message, and no byte of what was stopped.

use std::sync::Arc;
use std::time::Duration;

use rules::{RuleSession, RuleSet};
use serde_json::Value;
use tidegate_gateway::{Exchange, Then};
use tidegate_kit::rule_set;
use wire::Wire;

use crate::script::{CUTS, Said, WIRES, play, read, request, stream, whole};

fn forbidden(lines: &str) -> Arc<RuleSet> {
    let rule = format!("+++\ncondition = \"forbidden\"\n{lines}\n+++\nNever say it.");
    rule_set(&[("no-forbidden", &rule)], |_| ())
}

/// The texts of the messages that a request adds to the client's own, each after its role.
fn added(wire: Wire, body: &[u8]) -> Vec<(String, String)> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let key = if wire == Wire::OpenAiResponses { "input" } else { "messages" };
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap().to_owned(),
    };
    let role = |message: &Value| message["role"].as_str().unwrap().to_owned();
    body[key].as_array().unwrap().iter().skip(1).map(|message| (role(message), text(message))).collect()
}

#[test]
fn an_answer_that_is_stopped_goes_on_in_the_same_message() {
    for wire in WIRES {
        for step in [1, 4, 100] {
            let first = stream(wire, 1, &[Said::Text("One line.\nforbidden words"), Said::Call("{}")], step);
            let second = stream(wire, 2, &[Said::Text("Fine.\n"), Said::Call("{\"path\":\"a\"}")], step);
            for cut in CUTS {
                let seen = play(wire, &forbidden(""), &[first.clone(), second.clone()], true, cut);
                let text = String::from_utf8_lossy(&seen.bytes);
                assert_eq!((&seen.then, seen.requests.len()), (&Then::End, 2), "{text}");
                assert!(!text.contains("forb"), "{text}");
                assert_eq!(
                    read(wire, &seen.bytes),
                    ("One line.\nFine.\n".to_owned(), vec!["{\"path\":\"a\"}".to_owned()])
                );
                assert_eq!(seen.requests[0], request(wire));
                let added = added(wire, &seen.requests[1]);
                let roles: Vec<&str> = added.iter().map(|(role, _)| role.as_str()).collect();
                assert_eq!((roles.as_slice(), added[0].1.as_str()), (&["assistant", "user"][..], "One line."));
                assert!(added[1].1.contains("Never say it.") && added[1].1.contains("has been kept"), "{added:?}");
                assert_eq!(seen.fired, ["no-forbidden"]);
                // One id of the message from its beginning to its end, as clients expect.
                assert!(!text.contains("msg_2") && !text.contains("chatcmpl-2") && !text.contains("resp_2"), "{text}");
            }
        }
    }
}

#[test]
fn reasoning_that_is_stopped_is_not_begun() {
    for wire in WIRES {
        let first = stream(wire, 1, &[Said::Thinking("I may say forbidden things."), Said::Text("Hm.")], 4);
        let second = stream(wire, 2, &[Said::Thinking("Better."), Said::Text("Fine.")], 4);
        for cut in CUTS {
            let seen = play(wire, &forbidden("scope = \"thinking\""), &[first.clone(), second.clone()], true, cut);
            let text = String::from_utf8_lossy(&seen.bytes);
            assert!(!text.contains("I ma") && !text.contains("forb"), "{text}");
            assert_eq!(read(wire, &seen.bytes).0, "Fine.");
            let added = added(wire, &seen.requests[1]);
            assert_eq!(added.iter().map(|(role, _)| role.as_str()).collect::<Vec<_>>(), ["user"]);
        }
    }
}

#[test]
fn a_call_that_is_refused_never_begins() {
    for wire in WIRES {
        for action in ["block", "interrupt"] {
            let action = if action == "block" { "action = \"block\"" } else { "" };
            let set = forbidden(&format!("scope = \"tool\"\n{action}"));
            let call = "{\"path\":\"a\",\"content\":\"forbidden\"}";
            let first = stream(wire, 1, &[Said::Text("I write."), Said::Call("{\"path\":\"b\"}"), Said::Call(call)], 5);
            let second = stream(wire, 2, &[Said::Text(" Done."), Said::Call("{\"path\":\"c\"}")], 5);
            for cut in CUTS {
                let seen = play(wire, &set, &[first.clone(), second.clone()], true, cut);
                let text = String::from_utf8_lossy(&seen.bytes);
                assert!(!text.contains("forb") && !text.contains("_1_1") && !text.contains("_1_2"), "{text}");
                let read = read(wire, &seen.bytes);
                assert_eq!(read, ("I write. Done.".to_owned(), vec!["{\"path\":\"c\"}".to_owned()]));
            }
        }
    }
}

#[test]
fn an_answer_that_is_stopped_for_good_says_so() {
    for wire in WIRES {
        for before in ["", "One line.\n"] {
            let first = stream(wire, 1, &[Said::Text(&format!("{before}forbidden"))], 4);
            for cut in CUTS {
                let seen = play(wire, &forbidden("action = \"stop\""), std::slice::from_ref(&first), true, cut);
                assert_eq!((&seen.then, seen.requests.len()), (&Then::End, 1));
                let (text, _) = read(wire, &seen.bytes);
                assert!(text.starts_with(before.trim_end()) && !text.contains("forb "), "{text}");
                assert!(text.ends_with("[Tidegate: the rule `no-forbidden` stopped this answer.]"), "{text}");
            }
        }
    }
}

#[test]
fn a_whole_body_that_is_stopped_is_not_sent() {
    for wire in WIRES {
        for (lines, bad) in [
            ("", Said::Text("One. forbidden")),
            ("scope = \"tool\"\naction = \"block\"", Said::Call("{\"content\":\"forbidden\"}")),
        ] {
            let (first, second) = (whole(wire, &[Said::Text("A."), bad]), whole(wire, &[Said::Text("Fine.")]));
            let seen = play(wire, &forbidden(lines), &[first, second.clone()], false, 5);
            assert_eq!((&seen.bytes, &seen.then, seen.requests.len()), (&second, &Then::End, 2));
            let added = added(wire, &seen.requests[1]);
            assert_eq!(added.iter().map(|(role, _)| role.as_str()).collect::<Vec<_>>(), ["user"]);
        }
        let stopped = play(wire, &forbidden("action = \"stop\""), &[whole(wire, &[Said::Text("forbidden")])], false, 5);
        let text = String::from_utf8_lossy(&stopped.bytes);
        assert!(text.contains("stopped this answer") && !text.contains("forbidden\""), "{text}");
        serde_json::from_str::<Value>(&text).unwrap();
    }
}

/// What cannot be read cannot be checked: it is not passed on. The message ends in the client's own protocol, so that it does not ask again.
#[test]
fn what_cannot_be_checked_ends_the_message() {
    for wire in WIRES {
        let good = stream(wire, 1, &[Said::Text("One line.\n")], 100);
        let events = good.split_inclusive(|byte| *byte == b'\n').take(9).collect::<Vec<_>>().concat();
        let event: &[u8] = match wire {
            Wire::Anthropic => b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"forbid\n\n",
            Wire::OpenAiChat | Wire::OpenAiResponses => b"data: {\"type\":\"response.output_text.delta\",\"forbid\n\n",
        };
        let seen = play(wire, &forbidden(""), &[[&events, event, b"data: more\n\n"].concat()], true, 11);
        let text = String::from_utf8_lossy(&seen.bytes);
        assert!(!text.contains("\"forbid"), "{text}");
        let (text, _) = read(wire, &seen.bytes);
        assert!(text.contains("[Tidegate: this answer ends here, because"), "{text}");
        assert_eq!(seen.then, Then::End);
    }
}

/// What repeats the text of a frame is not sent before all of the text is; what has more than the rules read is not sent at all.
#[test]
fn nothing_beside_the_text_gives_it_away() {
    let chunk =
        |choices: Value| format!("data: {}\n\n", serde_json::json!({"id": "1", "model": "m", "choices": choices}));
    let said = |text: &str| {
        let logprobs = serde_json::json!({"content": [{"token": text, "logprob": -0.1}]});
        serde_json::json!([{"index": 0, "delta": {"content": text}, "logprobs": logprobs, "finish_reason": null}])
    };
    let stream = [chunk(said("Fine. forb")), chunk(said("idden")), "data: [DONE]\n\n".to_owned()].concat().into_bytes();
    let seen = play(Wire::OpenAiChat, &forbidden("action = \"stop\""), &[stream], true, 7);
    let text = String::from_utf8_lossy(&seen.bytes);
    assert!(!text.contains("forb\"") && !text.contains("idden\"") && text.contains("stopped this answer"), "{text}");

    let event = |delta: &str| {
        let data = serde_json::json!({"type": "response.output_text.delta", "delta": delta, "item_id": "i", "output_index": 0,
            "logprobs": [{"token": delta, "logprob": -0.1}]});
        format!("data: {data}\n\n")
    };
    let stream = [event("Fine. forb"), event("idden")].concat().into_bytes();
    let seen = play(Wire::OpenAiResponses, &forbidden("action = \"stop\""), &[stream], true, 7);
    let text = String::from_utf8_lossy(&seen.bytes);
    assert!(!text.contains("Fine. forb") && text.contains("stopped this answer"), "{text}");

    let other = serde_json::json!([{"index": 1, "delta": {"content": "forbidden"}, "finish_reason": null}]);
    let seen = play(Wire::OpenAiChat, &forbidden(""), &[chunk(other).into_bytes()], true, 7);
    let text = String::from_utf8_lossy(&seen.bytes);
    assert!(!text.contains("forbidden") && text.contains("it has several choices"), "{text}");
}

#[test]
fn a_whole_body_ends_as_one_when_the_model_cannot_be_asked_again() {
    for wire in WIRES {
        let mut exchange = Exchange::new(wire, request(wire).into(), "m", RuleSession::new(forbidden("")));
        exchange.begin(false);
        let first = exchange.receive(&whole(wire, &[Said::Text("forbidden")]), Duration::ZERO);
        assert!(first.send.is_empty() && exchange.end(Duration::ZERO).then == Then::Ask);
        let last = exchange.give_up("its server answered with status 500");
        serde_json::from_slice::<Value>(&last.send).unwrap();
        assert!(String::from_utf8_lossy(&last.send).contains("because its server answered with status 500"));
        assert_eq!(exchange.notices(), ["an answer was ended, because its server answered with status 500"]);
    }
}
