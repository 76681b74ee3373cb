//! The published schemas are those that the reader checks against.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

fn up_to_date(name: &str, generated: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema").join(name);
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&file, generated).unwrap();
    }
    let published = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        published == generated,
        "{name} is not what the types say; `TIDEGATE_BLESS=1 cargo test -p tidegate-config --test it schema::` writes it anew"
    );
}

#[test]
fn operator_schema_is_up_to_date() {
    up_to_date("tidegate.schema.json", &tidegate_config::operator_schema());
}

#[test]
fn manifest_schema_is_up_to_date() {
    up_to_date("plugin.schema.json", &tidegate_config::manifest_schema());
}

#[test]
fn policy_schema_is_up_to_date() {
    up_to_date("policy.schema.json", &tidegate_config::policy_schema());
}

#[test]
fn event_schema_is_up_to_date() {
    up_to_date("thread_events.schema.json", &tidegate_config::event_schema());
}

#[test]
fn error_schema_is_up_to_date() {
    up_to_date("errors.schema.json", &tidegate_config::error_schema());
}

#[test]
fn thread_limit_schema_is_up_to_date() {
    up_to_date("thread_limits.schema.json", &tidegate_config::thread_limit_schema());
}

#[test]
fn agent_schema_is_up_to_date() {
    up_to_date("agent.schema.json", &tidegate_config::agent_schema());
}

/// A key without a description is useless in an editor.
#[test]
fn every_key_is_described() {
    let mut keys = 0;
    let schemas = [
        tidegate_config::operator_schema(),
        tidegate_config::manifest_schema(),
        tidegate_config::policy_schema(),
        tidegate_config::event_schema(),
        tidegate_config::error_schema(),
        tidegate_config::thread_limit_schema(),
        tidegate_config::agent_schema(),
    ];
    for schema in schemas {
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        let tables = schema["definitions"].as_object().unwrap().values().chain([&schema]);
        for (key, about) in tables.filter_map(|table| table["properties"].as_object()).flatten() {
            keys += 1;
            let words = about["description"].as_str().unwrap_or_default();
            assert!(words.ends_with('.') || words.ends_with('`'), "`{key}` is not described by a sentence: {about}");
        }
    }
    assert!(keys > 60, "only {keys} keys looked at");
}
