//! Schemas of tools: the rules that all three vendors have at their top.

use serde_json::Value;

use super::Found;

pub(super) fn judge(path: &str, schema: &Value, found: &mut Found<'_>) {
    if schema["type"] != "object" {
        found.add(path, format!("schema must have a 'type': 'object', got {}", schema["type"]));
    }
    for key in ["oneOf", "anyOf", "allOf", "enum", "not", "$ref"] {
        if schema.get(key).is_some() {
            found.add(path, format!("schema does not support {key} at the top level"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if properties.is_none() && found.wire != "anthropic" {
        found.add(path, "object schema missing properties");
    }
    for (name, property) in properties.into_iter().flatten() {
        if !found.limit("property_name").is_null() {
            found.identifier(&format!("{path}.properties"), "property_name", &Value::from(name.as_str()));
        }
        if property["type"] == "array" && property.get("items").is_none() && found.wire != "anthropic" {
            found.add(format!("{path}.properties.{name}"), "array schema missing items");
        }
    }
}
