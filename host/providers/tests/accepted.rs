//! Servers of others, which validate requests, accept every conversation of the corpus in each wire format: one has the types of the vendors'
//! SDKs, one the OpenAPI documents that the vendors publish, and one is llama.cpp with a small model.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints its counts")]

use std::collections::HashSet;
use std::future::poll_fn;

use flow::{ModelError, Part, Prompt};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tidegate_providers::{HttpConfig, ProviderConfig, connect, encode};
use tidegate_servers::{Judge, RealModel, post};
use wire::Wire;

use crate::conversations::corpus::{of_items, of_transcripts};
use crate::conversations::random::{messages, tools};

const WIRES: [(Wire, &str); 3] =
    [(Wire::Anthropic, "/messages"), (Wire::OpenAiChat, "/chat/completions"), (Wire::OpenAiResponses, "/responses")];

/// Random conversations next to those of the corpus: as usual, or `TIDEGATE_TIMES` as many, as in the night.
fn random() -> usize {
    40 * std::env::var("TIDEGATE_TIMES").map_or(1, |times| times.parse().unwrap())
}

fn config(wire: Wire, base_url: &str) -> HttpConfig {
    let name = if wire == Wire::Anthropic { "claude-sonnet-4-5" } else { "gpt-5" };
    HttpConfig { base_url: Some(base_url.to_owned()), max_tokens: Some(1), ..HttpConfig::new(wire, name) }
}

/// Sends a conversation and reads the answer to its end.
async fn send(config: HttpConfig, prompt: &Prompt) -> Result<(), ModelError> {
    // A connection of its own: a server that closes an idle one has refused nothing.
    let model = connect(&ProviderConfig::Http(config)).unwrap();
    let mut stream = model.start(prompt).await?;
    while let Some(delta) = poll_fn(|cx| stream.poll_next(cx)).await {
        delta?;
    }
    Ok(())
}

/// A server accepts all of these conversations. What gives the same request is sent once.
async fn accepts(server: &str, wire: Wire, base_url: &str, conversations: &[(String, Prompt)]) {
    let config = config(wire, base_url);
    let (mut sent, mut refused) = (HashSet::new(), Vec::new());
    for (name, prompt) in conversations {
        if sent.insert(encode(&config, prompt).unwrap()) {
            refused.extend(send(config.clone(), prompt).await.err().map(|error| format!("{name}: {}", error.message)));
        }
    }
    let (conversations, sent, wire) = (conversations.len(), sent.len(), wire.as_str());
    println!("{wire}, {server}: {conversations} conversations, {sent} different requests, {} refused", refused.len());
    assert!(refused.is_empty(), "{wire}, {server}: {refused:#?}");
}

/// The conversations of the corpus and random ones, by name.
fn all() -> Vec<(String, Prompt)> {
    let mut all: Vec<(String, Prompt)> = crate::conversations::conversations()
        .into_iter()
        .map(|(name, prompt)| (format!("written {name}"), prompt))
        .collect();
    all.extend(of_items());
    all.extend(of_transcripts());
    let mut runner = TestRunner::deterministic();
    let conversation =
        (messages(), tools()).prop_map(|(messages, tools)| Prompt { messages, tools, ..Prompt::default() });
    all.extend(
        (0..random()).map(|number| (format!("random {number}"), conversation.new_tree(&mut runner).unwrap().current())),
    );
    all
}

#[tokio::test]
async fn servers_that_validate_accept_every_conversation() {
    let judge = Judge::start().unwrap();
    let all = all();
    for (wire, _) in WIRES {
        for (server, base_url) in judge.base_urls() {
            accepts(server, wire, &base_url, &all).await;
        }
    }
}

/// The model reads text alone, no reasoning that another server has sealed, and slowly: what its server looks into is the order of messages
/// and the arguments of calls.
fn is_for_llama((name, prompt): &(String, Prompt)) -> bool {
    let is_other = |part: &Part| matches!(part, Part::Image(_) | Part::Thinking { signature: Some(_), .. });
    ["written", "history", "arguments"].iter().any(|kind| name.starts_with(kind))
        && !prompt.messages.iter().any(|message| message.parts.iter().any(is_other))
}

#[tokio::test]
async fn a_real_model_accepts_every_conversation_of_text() {
    let server = RealModel::start().unwrap();
    let mut all = all();
    all.retain(is_for_llama);
    for (wire, path) in WIRES {
        let nothing = post(server.base_url(), &format!("/v1{path}"), &json!({"model": "m"})).unwrap();
        assert!(nothing.status >= 400, "{wire:?}: {nothing:?}");
        accepts("llama.cpp", wire, server.base_url(), &all).await;
    }
}

/// Requests that no client of ours sends, as a test of the servers: which format, what is wrong, the body.
fn invalid() -> Vec<(Wire, &'static str, Value)> {
    let chat = |messages: Value| json!({"model": "m", "stream": true, "messages": messages});
    let anthropic = |messages: Value| json!({"model": "m", "stream": true, "max_tokens": 1, "messages": messages});
    let responses = |input: Value| json!({"model": "m", "stream": true, "input": input});
    vec![
        (Wire::Anthropic, "no messages", json!({"model": "m", "stream": true, "max_tokens": 1})),
        (Wire::Anthropic, "a role", anthropic(json!([{"role": "nobody", "content": "Hi."}]))),
        (
            Wire::Anthropic,
            "a call without its name",
            anthropic(json!([{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]}])),
        ),
        (Wire::OpenAiChat, "no messages", json!({"model": "m", "stream": true})),
        (Wire::OpenAiChat, "a role", chat(json!([{"role": "nobody", "content": "Hi."}]))),
        (Wire::OpenAiChat, "a result without its call", chat(json!([{"role": "tool", "content": "Hi."}]))),
        (Wire::OpenAiResponses, "an input", responses(json!(7))),
        (
            Wire::OpenAiResponses,
            "a call without its arguments",
            responses(json!([{"type": "function_call", "name": "a"}])),
        ),
        (
            Wire::OpenAiResponses,
            "an image without its detail",
            responses(json!([{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}])),
        ),
    ]
}

#[test]
fn the_servers_refuse_what_is_invalid() {
    let judge = Judge::start().unwrap();
    for (wire, what, body) in invalid() {
        let path = WIRES.iter().find(|(other, _)| *other == wire).unwrap().1;
        for (server, base_url) in judge.base_urls() {
            let (base, below) = base_url.split_at(base_url.rfind(&format!("/{server}")).unwrap());
            let answer = post(base, &format!("{below}{path}"), &body).unwrap();
            assert_eq!(answer.status, 400, "{} {server}: {what}: {}", wire.as_str(), answer.body);
        }
    }
}
