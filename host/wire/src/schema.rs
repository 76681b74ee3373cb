//! Schemas of tools as providers take them.
//!
//! Vendors demand an object at the top, without alternatives, and validate against JSON Schema 2020-12, in which some spellings of earlier
//! drafts are errors. A call is checked against the tool's own schema, whatever the model is told here.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// Keys that no vendor takes at the top, or that would contradict what is put there.
const NOT_AT_TOP: [&str; 9] = ["$schema", "$ref", "oneOf", "anyOf", "allOf", "enum", "const", "not", "nullable"];

/// The schema of a tool's arguments, changed where a provider would refuse it.
pub(crate) fn parameters(schema: &Value) -> Cow<'_, Value> {
    let is_object = schema["type"] == "object" && schema["properties"].is_object();
    let is_taken = is_object && !NOT_AT_TOP.iter().any(|key| schema.get(key).is_some());
    let mut taken = if is_taken { schema.clone() } else { as_object(schema) };
    describe_names(&mut taken);
    modernise(&mut taken);
    if taken == *schema { Cow::Borrowed(schema) } else { Cow::Owned(taken) }
}

/// A schema of an object with what a schema says about one.
fn as_object(schema: &Value) -> Value {
    let mut top = Map::new();
    merge(schema, schema, &mut top, 0);
    NOT_AT_TOP.iter().for_each(|key| drop(top.remove(*key)));
    top.insert("type".to_owned(), json!("object"));
    top.entry("properties").or_insert_with(|| json!({}));
    Value::Object(top)
}

/// Alternatives inside of alternatives, at most.
const DEEPEST: usize = 8;

/// Adds what a schema says about an object to `top`: that of a reference and of all alternatives, since the model has to know each
/// argument. Required is what all alternatives require.
fn merge(schema: &Value, root: &Value, top: &mut Map<String, Value>, depth: usize) {
    let Value::Object(map) = schema else { return };
    if depth > DEEPEST {
        return;
    }
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties", Value::Object(more)) => properties(top).extend(more.clone()),
            ("required", Value::Array(more)) => require(top, more),
            ("$ref", Value::String(path)) => {
                let target = path.strip_prefix('#').and_then(|path| root.pointer(path));
                target.into_iter().for_each(|target| merge(target, root, top, depth + 1));
            }
            ("allOf", Value::Array(all)) => all.iter().for_each(|one| merge(one, root, top, depth + 1)),
            ("anyOf" | "oneOf", Value::Array(some)) => alternatives(some, root, top, depth),
            _ => {
                top.entry(key).or_insert_with(|| value.clone());
            }
        }
    }
}

fn alternatives(some: &[Value], root: &Value, top: &mut Map<String, Value>, depth: usize) {
    let mut required: Option<Vec<Value>> = None;
    for one in some {
        let mut own = Map::new();
        merge(one, root, &mut own, depth + 1);
        let demands = own.remove("required").and_then(|list| list.as_array().cloned()).unwrap_or_default();
        required = Some(match required {
            None => demands,
            Some(before) => before.into_iter().filter(|name| demands.contains(name)).collect(),
        });
        if let Some(Value::Object(more)) = own.remove("properties") {
            let known = properties(top);
            for (name, value) in more {
                known.entry(name).or_insert(value);
            }
        }
    }
    require(top, &required.unwrap_or_default());
}

fn properties(top: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let entry = top.entry("properties").or_insert_with(|| json!({}));
    if !entry.is_object() {
        *entry = json!({});
    }
    match entry {
        Value::Object(map) => map,
        _ => unreachable!("an object was just put there"),
    }
}

fn require(top: &mut Map<String, Value>, more: &[Value]) {
    if more.is_empty() {
        return;
    }
    let required = top.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(known) = required {
        let new: Vec<Value> = more.iter().filter(|name| !known.contains(name)).cloned().collect();
        known.extend(new);
    }
}

/// Whether Anthropic takes an argument of this name: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".
fn is_name(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(is_known)
}

/// Arguments whose names cannot be sent as such are named in the description: a call can have them all the same.
fn describe_names(schema: &mut Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    if properties.keys().all(|name| is_name(name)) {
        return;
    }
    let (known, others): (Map<_, _>, Map<_, _>) =
        std::mem::take(properties).into_iter().partition(|(name, _)| is_name(name));
    *properties = known;
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(is_name));
    }
    let before = schema["description"].as_str().unwrap_or_default();
    let all = format!("{before}\nMore arguments, as a JSON Schema: {}", json!({"properties": others}));
    schema["description"] = all.trim_start().into();
}

/// Rewrites what earlier drafts wrote otherwise: exclusive bounds as booleans, tuples as lists of items, `required` in the property. An
/// array says what it consists of.
fn modernise(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
                if let Some(Value::Bool(is_exclusive)) = map.get(exclusive).cloned() {
                    map.remove(exclusive);
                    let bound = is_exclusive.then(|| map.remove(bound)).flatten();
                    bound.into_iter().for_each(|bound| drop(map.insert(exclusive.to_owned(), bound)));
                }
            }
            if map.get("required").is_some_and(Value::is_boolean) {
                map.remove("required");
            }
            if map.get("items").is_some_and(Value::is_array)
                && let Some(tuple) = map.remove("items")
            {
                map.insert("prefixItems".to_owned(), tuple);
            }
            if map.get("type").is_some_and(|kind| kind == "array") {
                map.entry("items").or_insert_with(|| json!({}));
            }
            map.values_mut().for_each(modernise);
        }
        Value::Array(list) => list.iter_mut().for_each(modernise),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::parameters;

    #[test]
    fn what_providers_take_is_not_touched() {
        let schema = json!({
            "type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/b"}]}}, "$defs": {"b": {}}
        });
        assert!(matches!(parameters(&schema), Cow::Borrowed(_)));
    }

    #[test]
    fn what_they_refuse_is_said_otherwise() {
        let (a, b) = (json!({"type": "string"}), json!({"type": "integer"}));
        let cases = [
            (json!(null), json!({"type": "object", "properties": {}})),
            (
                json!({"type": "object", "properties": {"a": a, "b c": b}, "required": ["b c"]}),
                json!({
                    "type": "object", "properties": {"a": a}, "required": [],
                    "description": "More arguments, as a JSON Schema: {\"properties\":{\"b c\":{\"type\":\"integer\"}}}"
                }),
            ),
            (json!({}), json!({"type": "object", "properties": {}})),
            (
                json!({"type": "object", "required": [], "additionalProperties": false}),
                json!({"type": "object", "properties": {}, "additionalProperties": false}),
            ),
            (
                json!({"anyOf": [
                    {"type": "object", "properties": {"a": a, "b": b}, "required": ["a", "b"]},
                    {"type": "object", "properties": {"a": b, "c": b}, "required": ["c", "a"]},
                ]}),
                json!({"type": "object", "properties": {"a": a, "b": b, "c": b}, "required": ["a"]}),
            ),
            (
                json!({"allOf": [{"properties": {"a": a}, "required": ["a"]}, {"properties": {"b": b}, "required": ["b"]}]}),
                json!({"type": "object", "properties": {"a": a, "b": b}, "required": ["a", "b"]}),
            ),
            (
                json!({"$ref": "#/definitions/in", "definitions": {"in": {"type": "object", "properties": {"a": a}}}}),
                json!({
                    "type": "object", "properties": {"a": a},
                    "definitions": {"in": {"type": "object", "properties": {"a": a}}},
                }),
            ),
            (json!({"$ref": "#"}), json!({"type": "object", "properties": {}})),
            (
                json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {
                    "a": {"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
                    "b": {"type": "array", "items": [a, b]},
                    "c": {"type": "array"},
                    "d": {"type": "string", "required": true},
                }}),
                json!({"type": "object", "properties": {
                    "a": {"type": "number", "exclusiveMinimum": 1, "maximum": 9},
                    "b": {"type": "array", "prefixItems": [a, b], "items": {}},
                    "c": {"type": "array", "items": {}},
                    "d": {"type": "string"},
                }}),
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(*parameters(&schema), expected, "{schema}");
            assert_eq!(*parameters(&expected), expected, "once is enough");
        }
    }
}
