//! Changes every field of every entry of the default event catalogue, and observes the change: in the catalogue, in what a session
//! gets of it, or as an error at the place of the change.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use flow::SourceFile;
use serde_json::{Map, Value, json};
use tidegate_config::events::{Catalogue, Required, Type, Variables, defaults};

/// A place in the default: the keys that lead to it.
type Path = Vec<String>;

/// The places of all values that are no tables.
fn leaves(value: &Value, path: &mut Path, found: &mut Vec<(Path, Value)>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                path.push(key.clone());
                leaves(value, path, found);
                path.pop();
            }
        }
        value => found.push((path.clone(), value.clone())),
    }
}

/// Another value that the place can have.
fn changed(path: &[String], value: &Value) -> Value {
    let key = path.last().unwrap().as_str();
    let is_schema = path.iter().any(|key| key == "payload_schema");
    match (key, value) {
        (_, Value::Bool(flag)) => json!(!flag),
        (_, Value::Number(number)) => json!(number.as_f64().unwrap() + 1.0),
        (_, Value::Array(_)) if key == "milestones" => json!([7]),
        (_, Value::Array(_)) => json!(["changed"]),
        ("type", Value::String(old)) if is_schema => json!(if old == "boolean" { "null" } else { "boolean" }),
        ("category", _) => json!(if value == "tool" { "host" } else { "tool" }),
        ("criticality", _) => json!(if value == "critical" { "droppable" } else { "critical" }),
        ("durability", _) => json!(if value == "guaranteed" { "best_effort" } else { "guaranteed" }),
        ("throttle", _) => json!("7s"),
        ("condition" | "required_if", _) => json!("turn.max_steps == 7"),
        ("aggregate", _) => json!("never"),
        _ => json!("changed"),
    }
}

/// The default with one value changed, as a file on top of it.
fn load(path: &[String], value: &Value) -> Result<Catalogue, String> {
    let mut tree = value.clone();
    for key in path.iter().rev() {
        tree = Value::Object(Map::from_iter([(key.clone(), tree)]));
    }
    if path != ["schema_version"] {
        tree["schema_version"] = json!("1.0.0");
    }
    let source = SourceFile::new("a.toml", toml::to_string(&tree).unwrap());
    Catalogue::of_sources(&[source]).map_err(|found| {
        let codes = found.0.iter().map(|one| one.code.as_str());
        codes.collect::<Vec<_>>().join(" ")
    })
}

/// The resolved field of a type, as far as it is no schema.
fn field(of: &Type, key: &str) -> String {
    match key {
        "category" => of.category.clone(),
        "criticality" => of.criticality.clone(),
        "description" => of.description.clone(),
        "emit_on_error" => of.emit_on_error.to_string(),
        "async" => format!("{:?}", of.emit.is_async),
        "throttle" => format!("{:?}", of.emit.throttle),
        "condition" => format!("{:?}", of.emit.condition),
        "milestones" => format!("{:?}", of.emit.milestones),
        "accumulate_on_error" => of.emit.accumulate_on_error.to_string(),
        "aggregate" => format!("{:?}", of.emit.aggregate),
        other => panic!("`{other}` is a key that this test does not know"),
    }
}

/// What a change must cause.
#[derive(Debug, PartialEq)]
enum Effect {
    /// The type has another value, and so has the catalogue of a session.
    Session,
    /// Only the description of the catalogue changes.
    Description,
    /// The file is refused with this code.
    Refused(&'static str),
}

fn expected(default: &Catalogue, path: &[String]) -> Effect {
    let keys: Vec<&str> = path.iter().map(String::as_str).collect();
    match keys.as_slice() {
        ["schema_version"] => Effect::Refused("events-schema-version"),
        ["categories", _] | ["criticality_levels", _, "description"] => Effect::Description,
        // The levels of required types cannot become droppable, and contradictions are refused.
        ["criticality_levels", "critical", "durability"] => Effect::Description,
        ["criticality_levels", "critical", _] | ["criticality_levels", "droppable", "durability"] => {
            Effect::Refused("events-incomplete")
        }
        ["criticality_levels", "droppable", "fallback"] => Effect::Refused("config-unknown-value"),
        ["criticality_levels", ..] => Effect::Session,
        ["event_types", _, "required" | "required_if"] => Effect::Refused("events-unsafe"),
        ["event_types", name, rest @ ..] => match (&default.types[*name].required, rest) {
            (_, ["payload_schema", "type"]) => Effect::Refused("events-"),
            (Required::Always, ["criticality" | "emit_on_error"] | ["payload_schema", ..]) => {
                Effect::Refused("events-unsafe")
            }
            (Required::If(_), ["payload_schema", ..]) => Effect::Refused("events-unsafe"),
            _ => Effect::Session,
        },
        _ => panic!("a place that this test does not know: {path:?}"),
    }
}

#[test]
fn every_field_of_every_entry_has_an_effect() {
    let default = Catalogue::of_sources(&[]).unwrap();
    let tree: Value = toml::from_str(defaults()).unwrap();
    let mut all = vec![(vec!["schema_version".to_owned()], json!("1.0.0"))];
    leaves(&tree["events"], &mut Vec::new(), &mut all);
    let mut variables = Variables::default();
    // Otherwise nothing about reasoning could have an effect.
    variables.reasoning_returned = false;
    let before = default.for_session(&variables);
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (path, value) in &all {
        let new = changed(path, value);
        let result = load(path, &new);
        let effect = expected(&default, path);
        match (&effect, result) {
            (Effect::Refused(code), Err(found)) => {
                assert!(found.starts_with(code), "{path:?} = {new}: {found}");
                *counts.entry("refused").or_default() += 1;
            }
            (Effect::Description, Ok(after)) => {
                assert_ne!(after, default, "{path:?} = {new}");
                *counts.entry("description").or_default() += 1;
            }
            (Effect::Session, Ok(after)) => {
                assert_ne!(after.for_session(&variables), before, "{path:?} = {new}");
                if path[0] == "event_types" {
                    only_one_changed(&default, &after, path, &new);
                }
                *counts.entry("session").or_default() += 1;
            }
            (effect, result) => panic!("{path:?} = {new}: {effect:?} expected, got {:?}", result.err()),
        }
    }
    assert!(all.len() > 400, "only {} values", all.len());
    assert!(counts["session"] > 200 && counts["refused"] > 100 && counts["description"] > 10, "{counts:?}");
}

/// The field at `path` has another value, and nothing else has.
fn only_one_changed(default: &Catalogue, after: &Catalogue, path: &[String], new: &Value) {
    let (old, now) = (&default.types[&path[1]], &after.types[&path[1]]);
    let mut restored = after.clone();
    *restored.types.get_mut(&path[1]).unwrap() = old.clone();
    assert_eq!(restored, *default, "{path:?}");
    if path[2] == "payload_schema" {
        let pointer: String = path[3..].iter().map(|key| format!("/{key}")).collect();
        assert_eq!(now.payload_schema.pointer(&pointer), Some(new), "{path:?}");
    } else {
        let key = path.last().unwrap();
        assert_ne!(field(old, key), field(now, key), "{path:?}");
    }
}
