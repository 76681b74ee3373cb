//! Conversations as they are sent: the bodies of `tests/corpus/providers/requests`, exactly, in each wire format; and
//! what all formats promise for any conversation.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use flow::{AdditionId, Message, Origin, Prompt, Role};
use serde_json::{Value, json};
use tidegate_providers::{HttpConfig, encode};
use wire::Wire;

use crate::conversations::{conversations, kept, message, plain, prompt, text, tools};

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

fn body(wire: Wire, prompt: &Prompt) -> Value {
    let mut config = HttpConfig::new(wire, if wire == Wire::Anthropic { "claude-sonnet-4-5" } else { "gpt-5" });
    if wire == Wire::OpenAiChat {
        config.base_url = Some("http://127.0.0.1:1/v1".into());
    }
    serde_json::from_slice(&encode(&config, prompt).unwrap()).unwrap()
}

#[test]
fn bodies_are_those_of_the_corpus() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/providers/requests");
    let bless = std::env::var_os("BLESS").is_some();
    let mut read = 0;
    for (name, prompt) in conversations() {
        for wire in WIRES {
            let path = format!("{folder}/{name}.{}.json", wire.as_str());
            let got = serde_json::to_string_pretty(&body(wire, &prompt)).unwrap() + "\n";
            if bless {
                fs::write(&path, &got).unwrap();
            }
            let expected = fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{path}: {cause}"));
            assert_eq!(got, expected, "{path}");
            read += 1;
        }
    }
    assert_eq!(read, 27);
}

/// The model gets an addition around the user's input in the same message as the input.
#[test]
fn additions_around_the_input_are_joined_with_it() {
    let added = |index, words: &str| {
        let origin = Origin::Addition(AdditionId { plugin: "a".parse().unwrap(), index });
        Message { hidden: true, ..Message::text(Role::User, origin, words) }
    };
    let separate = prompt(vec![added(0, "Before."), Message::user("Go."), added(1, "After.")]);
    let joined = prompt(vec![message(Role::User, vec![text("Before."), text("Go."), text("After.")])]);
    for wire in WIRES {
        assert_eq!(body(wire, &separate), body(wire, &joined));
    }
}

#[test]
fn options_reach_the_body() {
    let config = HttpConfig {
        max_tokens: Some(100),
        thinking_budget: Some(5000),
        effort: Some("low".into()),
        ..HttpConfig::new(Wire::Anthropic, "m")
    };
    let body = |config: &HttpConfig, prompt: &Prompt| -> Value {
        serde_json::from_slice(&encode(config, prompt).unwrap()).unwrap()
    };
    let long = Prompt { max_tokens: Some(20_000), ..plain() };
    assert_eq!(body(&config, &long)["thinking"], json!({"type": "enabled", "budget_tokens": 5000}));
    assert_eq!(body(&config, &long)["max_tokens"], 20_000);
    assert_eq!(body(&config, &plain())["max_tokens"], 100);
    assert_eq!(body(&config, &plain())["thinking"], Value::Null, "too little is left for thinking");
    assert_eq!(body(&HttpConfig::new(Wire::Anthropic, "m"), &plain())["max_tokens"], 8192);

    let chat = HttpConfig { wire: Wire::OpenAiChat, ..config.clone() };
    assert_eq!(body(&chat, &plain())["max_completion_tokens"], 100);
    assert_eq!(body(&chat, &plain())["reasoning_effort"], "low");
    let other = HttpConfig { base_url: Some("http://127.0.0.1:1".into()), ..chat };
    assert_eq!(body(&other, &plain())["max_tokens"], 100);
    assert_eq!(body(&other, &plain())["max_completion_tokens"], Value::Null);

    let responses = HttpConfig { wire: Wire::OpenAiResponses, ..config };
    assert_eq!(body(&responses, &plain())["reasoning"], json!({"effort": "low", "summary": "auto"}));
    assert_eq!(body(&responses, &plain())["max_output_tokens"], 100);
    assert_eq!(body(&responses, &Prompt { max_tokens: Some(1), ..plain() })["max_output_tokens"], 16);
    assert_eq!(body(&responses, &plain())["include"], json!(["reasoning.encrypted_content"]));
    let old = HttpConfig { model: "gpt-4o-mini".into(), ..responses };
    assert_eq!(body(&old, &plain())["include"], Value::Null);
}

#[test]
fn signed_thinking_goes_back_byte_for_byte() {
    let body = body(Wire::Anthropic, &tools());
    let expected = json!({
        "type": "thinking",
        "thinking": "Two files\n to read. ",
        "signature": "EqQBCgIYAhIM1gbcDa9GJwZA==",
    });
    assert_eq!(body["messages"][1]["content"][0], expected);
    assert!(!self::body(Wire::Anthropic, &kept()).to_string().contains("Half a thou"));
}
