//! What the JSON Schemas of this workspace have in common.

use schemars::Schema;
use serde_json::Value;

/// Removes `null` from a schema: in our files and records an unknown or unneeded value is left out. It is for the schema itself and not
/// for those inside of it; see [`RecursiveTransform`](schemars::transform::RecursiveTransform).
pub fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|word| word != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            schema.insert("type".to_owned(), one);
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.retain(|branch| branch.get("type").is_none_or(|word| word != "null"));
        if let [_] = branches.as_slice() {
            let branches = schema.remove("anyOf").unwrap_or_default();
            schema.insert("allOf".to_owned(), branches);
        }
    }
}
