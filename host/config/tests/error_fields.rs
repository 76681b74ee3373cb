//! Changes every field of every entry and policy of the default table of error classes, and observes the change.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use flow::{ErrorPattern, RetryPolicy, RetryTable, SourceFile};
use serde_json::{Value, json};
use tidegate_config::errors::{defaults, of_sources};

fn with(change: &Value) -> RetryTable {
    let mut tree = change.clone();
    tree["schema_version"] = json!("1.0.0");
    let text = toml::to_string(&tree).unwrap();
    of_sources(&[SourceFile::new("a.toml", text.clone())]).unwrap_or_else(|found| panic!("{text}\n{found}"))
}

/// Another value of a condition, and of the class.
fn other_condition(key: &str, value: &Value) -> Value {
    match key {
        "class" => json!(if value == "budget" { "cancelled" } else { "budget" }),
        "kind" => json!(["recording"]),
        "status" => json!([418, "420-421"]),
        "should_retry" => json!(!value.as_bool().unwrap()),
        "provider" | "type" | "code" => json!(["changed"]),
        _ => json!("changed"),
    }
}

fn condition(of: &ErrorPattern, key: &str) -> String {
    match key {
        "class" => of.class.to_string(),
        "kind" => format!("{:?}", of.kinds),
        "provider" => format!("{:?}", of.providers),
        "status" => format!("{:?}", of.statuses),
        "type" => format!("{:?}", of.types),
        "code" => format!("{:?}", of.codes),
        "message" => format!("{:?}", of.message),
        "should_retry" => format!("{:?}", of.should_retry),
        other => panic!("`{other}` is a key that this test does not know"),
    }
}

fn other_policy(key: &str) -> Value {
    match key {
        "policy" | "fallback" => json!("fixed"),
        "headers" => json!(["retry-after"]),
        "base" => json!("7s"),
        "max" => json!("77s"),
        "jitter" => json!(0.7),
        _ => json!(7),
    }
}

fn field(of: &RetryPolicy, key: &str) -> String {
    match key {
        "policy" => of.wait.to_string(),
        "fallback" => of.fallback.to_string(),
        "headers" => format!("{:?}", of.headers),
        "base" => format!("{:?}", of.base),
        "max" => format!("{:?}", of.max),
        "jitter" => of.jitter.to_string(),
        "max_retries" => of.max_retries.to_string(),
        other => panic!("`{other}` is a key that this test does not know"),
    }
}

/// The default, and every other key that an entry can have: one at a time, nothing else changes.
#[test]
fn every_field_of_every_entry_counts() {
    let tree: Value = toml::from_str(defaults()).unwrap();
    let default = of_sources(&[]).unwrap();
    let mut keys = BTreeSet::new();
    for (at, entry) in tree["errors"]["class"].as_array().unwrap().iter().enumerate() {
        let own = entry.as_object().unwrap().iter();
        let added = [("provider", json!("")), ("type", json!("")), ("code", json!("")), ("message", json!(""))];
        let all = own.map(|(key, value)| (key.clone(), value.clone()));
        for (key, value) in all.chain(added.map(|(key, value)| (key.to_owned(), value))).filter(|(key, _)| key != "id")
        {
            let mut changed = json!({"id": entry["id"]});
            changed[&key] = other_condition(&key, &value);
            let table = with(&json!({"class": [changed]}));
            for (place, (old, new)) in default.patterns().iter().zip(table.patterns()).enumerate() {
                if place == at {
                    assert_ne!(condition(old, &key), condition(new, &key), "`{key}` of {} has no effect", entry["id"]);
                } else {
                    assert_eq!(old, new, "`{key}` of {} changes another entry", entry["id"]);
                }
            }
            keys.insert(key);
        }
    }
    assert_eq!(keys.len(), 8, "not every key was changed: {keys:?}");
}

#[test]
fn every_field_of_every_policy_counts() {
    let tree: Value = toml::from_str(defaults()).unwrap();
    let default = of_sources(&[]).unwrap();
    let mut count = 0;
    for (class, policy) in tree["errors"]["retry"].as_object().unwrap() {
        let class_of = flow::ErrorClass::from_word(class).unwrap();
        for key in policy.as_object().unwrap().keys() {
            let table = with(&json!({"retry": {class: {key: other_policy(key)}}}));
            let (old, new) = (default.policy(class_of).unwrap(), table.policy(class_of).unwrap());
            assert_ne!(field(old, key), field(new, key), "`{key}` of {class} has no effect");
            assert_eq!(table.patterns(), default.patterns());
            count += 1;
        }
    }
    assert_eq!(count, 14);
    // The policies of the other classes are read as well.
    for class in flow::ErrorClass::ALL {
        let table = with(&json!({"retry": {class.as_str(): {"policy": "fixed", "max_retries": 9}}}));
        assert_eq!(table.policy(*class).unwrap().max_retries, 9, "{class}");
        let off = with(&json!({"retry": {class.as_str(): {"policy": "none"}}}));
        assert!(off.policy(*class).is_none(), "{class}");
    }
}

/// Without jitter, the policies of the default are those that a session has without a table.
#[test]
fn the_default_waits_as_a_session_without_a_table() {
    let table = with(&json!({"retry": {"transient": {"jitter": 0}, "rate_limited": {"jitter": 0}}}));
    for class in flow::ErrorClass::ALL {
        assert_eq!(table.policy(*class), RetryTable::default().policy(*class), "{class}");
    }
}
