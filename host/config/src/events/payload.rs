//! Whether the schema of a payload is a JSON Schema that the host can work with.

use std::error::Error;

use boon::{CompileError, Compiler, Draft, Schemas, UrlLoader};
use serde_json::{Map, Value};

/// Schemas inside of each other. The compiler needs some kilobytes of stack for each.
const MAX_DEPTH: usize = 24;

/// Keywords that lead to another schema. A catalogue is read from projects, and a few kilobytes of nested references could take longer
/// than anybody waits.
const REFUSED: [&str; 8] =
    ["$ref", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"];

/// Values in all schemas of a file, those of the program left out. Each takes some memory and time of the check of each payload.
const MAX_VALUES: usize = 20_000;

/// Patterns in them. One can take up to 10 MB of memory.
const MAX_PATTERNS: usize = 32;

/// What to do about a schema that cannot be used.
pub(crate) const HELP: &str = "see https://json-schema.org/draft/2020-12 for what a schema can contain";

/// What the schemas of one file use up of what they can have together.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    values: usize,
    patterns: usize,
}

/// Names the schema inside of the compiler; nothing is loaded from it.
const LOCATION: &str = "tidegate://event/payload";

/// Why a schema cannot be used.
pub(super) struct Refusal {
    /// Where in the schema: a JSON pointer.
    pub(super) pointer: String,
    /// The reason, in one sentence without its subject.
    pub(super) why: String,
}

/// Checks a schema, whose cost is added to `cost`.
///
/// # Errors
/// The first reason why it cannot be used.
pub(super) fn check(schema: &Map<String, Value>, cost: &mut Cost) -> Result<(), Refusal> {
    if schema.get("type") != Some(&Value::from("object")) {
        let why = "is not the schema of a table: `type` must be \"object\"".to_owned();
        return Err(Refusal { pointer: "/type".to_owned(), why });
    }
    let schema = Value::Object(schema.clone());
    walk(&schema, 0, &mut String::new(), cost)?;
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.use_loader(Box::new(Nothing));
    compiler.add_resource(LOCATION, schema).map_err(|error| refusal(&error))?;
    compiler.compile(LOCATION, &mut Schemas::new()).map(drop).map_err(|error| refusal(&error))
}

fn walk(value: &Value, depth: usize, pointer: &mut String, cost: &mut Cost) -> Result<(), Refusal> {
    let refuse = |pointer: &str, why| Err(Refusal { pointer: pointer.to_owned(), why });
    if depth > MAX_DEPTH {
        return refuse(pointer, format!("has more than {MAX_DEPTH} levels of nesting"));
    }
    cost.values += 1;
    if cost.values > MAX_VALUES {
        return refuse(pointer, format!("makes more than {MAX_VALUES} values in all schemas of the file"));
    }
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let length = pointer.len();
    for (key, value) in children {
        pointer.extend(["/", &key]);
        if REFUSED.contains(&key.as_str()) {
            return refuse(pointer, format!("refers to another schema with `{key}`; write the schema out"));
        }
        cost.patterns += match (key.as_str(), value) {
            ("pattern", Value::String(_)) => 1,
            ("patternProperties", Value::Object(patterns)) => patterns.len(),
            _ => 0,
        };
        if cost.patterns > MAX_PATTERNS {
            return refuse(pointer, format!("makes more than {MAX_PATTERNS} patterns in all schemas of the file"));
        }
        walk(value, depth + 1, pointer, cost)?;
        pointer.truncate(length);
    }
    Ok(())
}

/// A schema refers to nothing outside of itself: no file is read and no server is asked.
struct Nothing;

impl UrlLoader for Nothing {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err("a schema can refer to itself only".into())
    }
}

fn refusal(error: &CompileError) -> Refusal {
    let CompileError::ValidationError { src, .. } = error else {
        let why = format!("is not a JSON Schema: {}", error.to_string().replace(LOCATION, ""));
        return Refusal { pointer: String::new(), why };
    };
    let mut innermost = src;
    while let Some(cause) = innermost.causes.first() {
        innermost = cause;
    }
    // The first line: what follows explains the position in a pattern.
    let reason = innermost.kind.to_string();
    let reason = reason.lines().next().unwrap_or_default().trim_end_matches(": regex parse error:");
    let pointer = innermost.instance_location.to_string();
    Refusal { why: format!("is not a JSON Schema: at `{pointer}`, {reason}"), pointer }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use flow::{ErrorClass, Limit, SuspendReason, ThreadMode};

    use super::super::layers::default_value;
    use super::{Cost, check};

    /// Only schemas that a file changes are checked when a catalogue is read.
    #[test]
    fn the_schemas_of_the_default_are_valid() {
        let default = default_value().unwrap();
        let types = default["event_types"].as_object().unwrap();
        for (name, of) in types {
            let schema = of["payload_schema"].as_object().unwrap();
            assert!(check(schema, &mut Cost::default()).is_ok(), "{name}");
            let required = schema.get("required").map(|list| list.as_array().unwrap().clone()).unwrap_or_default();
            for key in required {
                let key = key.as_str().unwrap();
                assert!(schema["properties"].get(key).is_some(), "{name} requires `{key}` and does not describe it");
            }
        }
        assert!(types.len() >= 49);
    }

    /// A word that the program knows and the catalogue does not would be a record that is not valid.
    #[test]
    fn the_words_of_the_default_are_those_of_the_program() {
        let default = default_value().unwrap();
        let words = |of: &str, key: &str| {
            let words = &default["event_types"][of]["payload_schema"]["properties"][key]["enum"];
            words
                .as_array()
                .unwrap_or_else(|| panic!("{of}.{key}"))
                .iter()
                .map(|word| word.as_str().unwrap().to_owned())
        };
        let all = |words: &[&'static str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let limits: Vec<&str> = Limit::ALL.iter().map(|limit| limit.code()).collect();
        for (of, key, expected) in [
            ("error_classified", "category", all(&ErrorClass::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>())),
            ("thread_started", "thread_mode", all(&ThreadMode::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>())),
            (
                "thread_suspended",
                "suspend_reason",
                all(&SuspendReason::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>()),
            ),
            ("limit_escalation_requested", "limit_code", all(&limits)),
        ] {
            assert_eq!(words(of, key).collect::<Vec<_>>(), expected, "{of}.{key}");
        }
    }
}
