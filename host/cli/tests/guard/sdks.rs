//! The official SDKs behind the gateway: each reads every kind of answer that it makes, streaming and whole, and none receives forbidden
//! text.

use std::collections::BTreeMap;
use std::process::Stdio;

use serde_json::{Value, json};
use tidegate_servers::{RealModel, Scripted, ensure_judge, ensure_sdks_js, node_of};

use super::{FORBIDDEN, source};
use crate::support::{Place, err};

const POISON: &str =
    "+++\ncondition = \"poison\"\nscope = \"text\"\naction = \"stop\"\nrepeat = \"always\"\n+++\nNot that.\n";

/// The expected result of a client for a case of `scripted.py`.
struct Case {
    name: &'static str,
    /// Its text in a stream, and as a whole body.
    text: [String; 2],
    thought: &'static str,
    calls: Value,
    /// Upstream requests for one request of the client.
    attempts: usize,
}

fn cases() -> [Case; 9] {
    let write = json!(["write", {"path": "a.txt", "content": "harmless"}]);
    let case = |name, text: [&str; 2], thought, calls, attempts| {
        let text = text.map(str::to_owned);
        Case { name, text, thought, calls, attempts }
    };
    let fine = "These are fine.\n";
    let start = "Hello.\nNow the ";
    let spent = "[Tidegate: the rule `no-forbidden` stopped this answer.]";
    let poison = "[Tidegate: the rule `no-poison` stopped this answer.]";
    let unread = "[Tidegate: this answer ends here, because a part of it could not be read, and so not be checked.]";
    let no_json = "[Tidegate: this answer ends here, because it is not JSON, so that it cannot be checked.]";
    [
        case("passed", [fine, fine], "", json!([]), 1),
        case("text", [&format!("{start}{fine}"), fine], "", json!([]), 2),
        case("reasoning", [fine, fine], "Let me see.", json!([]), 1),
        case("thought", [fine, fine], "I see.", json!([]), 2),
        case("calls", ["I write.\n"; 2], "", json!([write, ["read", {"path": "b.txt"}]]), 1),
        case("argument", ["I write.\nAgain.\n", "Again.\n"], "", json!([write]), 2),
        case("always", [&format!("{}{spent}", start.repeat(4)), spent], "", json!([]), 4),
        case("stop", [&format!("Hello.\nThis is {poison}"), poison], "", json!([]), 1),
        case("unreadable", [&format!("Hello.\n{unread}"), no_json], "", json!([]), 1),
    ]
}

/// Returns the expected result of an SDK for a case.
fn expected(case: &Case, sdk: &str, is_stream: bool) -> Value {
    let has_calls = case.calls != json!([]);
    let (end, signature) = match (sdk, has_calls) {
        ("anthropic", false) => ("end_turn", json!("c2lnbmVk")),
        ("anthropic", true) => ("tool_use", json!("c2lnbmVk")),
        ("openai chat", true) => ("tool_calls", Value::Null),
        ("openai responses", _) => ("completed", Value::Null),
        (_, true) => ("tool-calls", Value::Null),
        _ => ("stop", if sdk == "ai anthropic" { json!("c2lnbmVk") } else { Value::Null }),
    };
    // A text of the gateway is a block of its own, in formats with blocks.
    let text = case.text[usize::from(!is_stream)].as_str();
    let is_joined = sdk.ends_with("chat") && is_stream;
    let text = if is_joined { text.replace("[Tidegate", "\n\n[Tidegate") } else { text.to_owned() };
    let thought = match case.thought {
        "" => json!([]),
        // Its types have no reasoning.
        _ if sdk.ends_with("chat") => json!([]),
        thought => json!([[thought, signature]]),
    };
    json!({"text": text, "thought": thought, "calls": case.calls, "end": end})
}

/// Runs a client behind the gateway, and returns its output. The rules have stopped answers.
fn guarded(client: &[&str], upstream: &str, rules: &[(&str, &str)]) -> BTreeMap<String, Value> {
    let openai = format!("{upstream}/v1");
    let place = Place::with(rules);
    place.write("tidegate.toml", "[rules]\non_budget = \"stop\"\nmax_interrupts_per_turn = 3\n");
    let mut command = place.command(&["guard", "--anthropic-url", upstream, "--openai-url", &openai, "--"]);
    command.args(client).env("TIDEGATE_TEST_NODE_MODULES", ensure_sdks_js().unwrap()).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).contains("stopped and asked again"), "{}", err(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn python() -> [String; 2] {
    let python = ensure_judge().unwrap().join("bin/python");
    [python.display().to_string(), source("sdks.py").display().to_string()]
}

fn node() -> [String; 2] {
    let node = node_of(&ensure_sdks_js().unwrap());
    [node.display().to_string(), source("sdks.mjs").display().to_string()]
}

/// Every SDK gets the expected result of every case, with the expected number of requests for each case and endpoint, streaming and whole.
fn all_cases(client: &[String; 2], sdks: &[&str], asked: [usize; 2]) {
    let (model, cases) = (Scripted::start().unwrap(), cases());
    let client: Vec<&str> = client.iter().map(String::as_str).chain(cases.iter().map(|case| case.name)).collect();
    let seen = guarded(&client, model.base_url(), &[("no-forbidden", FORBIDDEN), ("no-poison", POISON)]);
    assert_eq!(seen.len(), cases.len() * sdks.len() * 2);
    let requests = model.requests().unwrap();
    for case in &cases {
        for (sdk, mode) in sdks.iter().flat_map(|sdk| [(sdk, "stream"), (sdk, "whole")]) {
            let key = format!("{}/{sdk}/{mode}", case.name);
            assert_eq!(seen[&key], expected(case, sdk, mode == "stream"), "{key}");
        }
        for (path, stream) in
            ["messages", "completions", "responses"].into_iter().flat_map(|path| [(path, true), (path, false)])
        {
            let is_asked = |one: &&Value| {
                one["case"] == case.name && one["stream"] == stream && one["path"].as_str().unwrap().ends_with(path)
            };
            let reminded: Vec<_> =
                requests.iter().filter(is_asked).map(|one| one["reminders"].as_u64().unwrap()).collect();
            // A whole body of Chat Completions has no reasoning.
            let is_unseen = case.name == "thought" && path == "completions" && !stream;
            let attempts = if is_unseen { 1 } else { case.attempts };
            let each = asked[usize::from(!stream)];
            for reminders in 0..8 {
                let count = reminded.iter().filter(|one| **one == reminders).count();
                let wanted = if (reminders as usize) < attempts { each } else { 0 };
                assert_eq!(count, wanted, "{} {path} {stream}: {reminded:?}", case.name);
            }
        }
    }
}

#[test]
fn the_python_sdks_read_every_answer() {
    all_cases(&python(), &["anthropic", "openai chat", "openai responses"], [2, 1]);
}

#[test]
fn the_typescript_sdks_read_every_answer() {
    let sdks = ["anthropic", "openai chat", "openai responses", "ai anthropic", "ai chat", "ai responses"];
    all_cases(&node(), &sdks, [2, 2]);
}

/// A small model cannot be scripted: forbidden text is in nothing that a client gets.
#[test]
fn the_sdks_are_guarded_from_a_real_model() {
    let model = RealModel::start().unwrap();
    let rule =
        "+++\ncondition = '(?i)\\bthe\\b'\nscope = \"text\"\nrepeat = \"always\"\n+++\nDo not use the article.\n";
    for client in [python(), node()] {
        let client = [client[0].as_str(), &client[1], "real", "m", "Tell me about the sea and the moon."];
        let seen = guarded(&client, model.base_url(), &[("no-article", rule)]);
        assert!(seen.len() >= 6, "{seen:?}");
        for (sdk, answer) in seen {
            let text = answer["text"].as_str().unwrap();
            let said = text.split("[Tidegate: the rule `no-article`").next().unwrap();
            assert!(!text.is_empty(), "{sdk}");
            let words = said.split(|c: char| !c.is_alphanumeric() && c != '_');
            assert!(words.clone().all(|word| !word.eq_ignore_ascii_case("the")), "{sdk}: {text}");
        }
    }
}
