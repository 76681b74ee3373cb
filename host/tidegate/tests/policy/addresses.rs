//! Every way to send something, or a key, to where the policy does not permit it.

use std::sync::Arc;

use tidegate::Host;
use tidegate::model::Model;

use super::Machine;
use crate::sessions::support::Scripted;

const POLICY: &str = "addresses = [\"https://api.anthropic.com\", \"http://127.0.0.1:8080\", \"redis://127.0.0.1\"]\n\
                      key_env = [\"ANTHROPIC_API_KEY\", \"PATH\"]\n";

const OPENAI: &str = "[provider]\nkind = \"openai-chat\"\nmodel = \"m\"\n";
const ANTHROPIC: &str = "[provider]\nkind = \"anthropic\"\nmodel = \"m\"\n";

/// Settings, and what the policy does not permit; `None`: it permits all of it.
const SETTINGS: [(&str, &str, Option<&str>); 16] = [
    (ANTHROPIC, "api_key_env = \"PATH\"\n", None),
    (ANTHROPIC, "api_key_env = \"\"\n", None),
    (ANTHROPIC, "base_url = \"https://API.Anthropic.com:443/v1\"\napi_key_env = \"PATH\"\n", None),
    (OPENAI, "base_url = \"http://127.0.0.1:8080/v1\"\n", None),
    (OPENAI, "base_url = \"http://0x7f.1:8080\"\napi_key_env = \"PATH\"\n", None),
    // The vendor's own address is one like any other, and so is its usual variable.
    (OPENAI, "api_key_env = \"PATH\"\n", Some("https://api.openai.com for the provider")),
    (
        OPENAI,
        "base_url = \"http://127.0.0.1:8080\"\napi_key_env = \"OPENAI_API_KEY\"\n",
        Some("the variable OPENAI_API_KEY for `api_key_env`"),
    ),
    (OPENAI, "base_url = \"http://127.0.0.1:8081\"\n", Some("http://127.0.0.1:8081 for")),
    (OPENAI, "base_url = \"https://127.0.0.1:8080\"\n", Some("https://127.0.0.1:8080 for")),
    (OPENAI, "base_url = \"http://localhost:8080\"\n", Some("http://localhost:8080 for")),
    (OPENAI, "base_url = \"https://evil.example/api.anthropic.com\"\n", Some("https://evil.example for")),
    (
        OPENAI,
        "base_url = \"https://api.anthropic.com.evil.example\"\n",
        Some("https://api.anthropic.com.evil.example for"),
    ),
    (OPENAI, "base_url = \"http://api.anthropic.com\"\n", Some("http://api.anthropic.com for")),
    (ANTHROPIC, "api_key_env = \"HOME\"\n", Some("the variable HOME for")),
    ("[state]\nbackend = \"redis\"\n", "url_env = \"HOME\"\n", Some("the variable HOME for `url_env`")),
    ("[state]\nbackend = \"redis\"\n", "", Some("the variable TIDEGATE_REDIS_URL for `url_env`")),
];

#[tokio::test]
async fn nothing_is_sent_to_an_address_and_no_key_is_read_that_the_policy_does_not_permit() {
    let machine = Machine::new(POLICY);
    for (table, keys, refused) in SETTINGS {
        let settings = format!("{table}{keys}");
        // With a model of the embedder it is the same: sessions can choose the provider's.
        let model = Scripted::new([]) as Arc<dyn Model>;
        let with_model = machine.builder(&settings).model(model);
        let found = [machine.builder(&settings).open().await, with_model.open().await].map(|opened| opened.err());
        let Some(part) = refused else {
            assert!(found.iter().all(Option::is_none), "{settings}: {found:?}");
            continue;
        };
        for error in found {
            let error = error.unwrap_or_else(|| panic!("the policy permits {settings}")).to_string();
            let line = if part.starts_with("the variable") { 2 } else { 1 };
            let place = format!("policy.toml:{line}:");
            for part in ["error[config-policy]", "does not permit", part, &place, "it permits"] {
                assert!(error.contains(part), "{part} is not in\n{error}");
            }
        }
        let doctor = machine.builder(&settings).doctor(machine.path("work")).await;
        assert!(doctor.iter().any(|check| check.detail.contains(part)), "{settings}: {doctor:?}");
    }
}

#[tokio::test]
async fn an_empty_list_permits_none_and_a_recording_needs_none() {
    let machine = Machine::new("addresses = []\nkey_env = []\n");
    let refused = machine.builder(&format!("{ANTHROPIC}api_key_env = \"\"\n")).open().await.unwrap_err().to_string();
    assert!(refused.contains("it permits none"), "{refused}");
    machine.write("answers.jsonl", "");
    let recording = "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n";
    let error = machine.builder(recording).open().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(!error.contains("policy"), "{error}");
    // Without a policy it is the operator's decision alone.
    let settings = machine.operator(&format!("{OPENAI}base_url = \"http://localhost:1\"\n"));
    let builder = Host::builder(settings).cache_dir(None).max_instances(4).user_rules(None);
    builder.policy_file(machine.path("etc/none.toml")).open().await.unwrap();
}
