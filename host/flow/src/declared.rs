//! Which arguments of a tool name files, according to the tool's own schema.

use serde_json::Value;

use crate::ToolSpec;

/// How deep a schema is followed.
const MAX_DEPTH: u32 = 16;

impl ToolSpec {
    /// The arguments that name files, such as `target` or `edits[].file`: string properties of the format `path`,
    /// `file-path` or `directory-path` in the schema. Sorted; empty where the schema declares none.
    pub fn declared_paths(&self) -> Vec<String> {
        fields(&self.parameters)
    }

    /// The names of all its arguments that have a value of their own, such as `command` or `edits[].new_text`, according to its schema.
    pub fn arguments(&self) -> ToolArguments {
        let mut out = ToolArguments { names: Vec::new(), are_all: true };
        walk(&self.parameters, &self.parameters, "", 0, &mut |at, schema| out.note(at, schema));
        out.names.sort_unstable();
        out.names.dedup();
        out
    }

    /// Whether no call of the tool names a file: it declares none, takes no other arguments than its schema lists, and
    /// none of these is called a path.
    pub fn names_no_file(&self) -> bool {
        self.declared_paths().is_empty() && names_no_path(&self.parameters)
    }
}

/// The arguments of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolArguments {
    /// Their names, sorted.
    pub names: Vec<String>,
    /// The schema permits no others.
    pub are_all: bool,
}

impl ToolArguments {
    fn note(&mut self, at: &str, schema: &Value) {
        let has = |key: &str| schema.get(key).is_some();
        let is = |name: &str| match &schema["type"] {
            Value::Array(names) => names.iter().any(|one| one == name),
            one => one == name,
        };
        if has("properties") || is("object") {
            self.are_all &= has("properties") && schema["additionalProperties"] == Value::Bool(false);
        } else if is("array") {
            self.are_all &= has("items");
        } else if !["$ref", "anyOf", "oneOf", "allOf"].into_iter().any(has) {
            self.are_all &= has("type") || has("enum") || has("const");
            self.names.extend((!at.is_empty()).then(|| at.to_owned()));
        }
    }
}

/// Whether an object takes only properties that are listed, and none is called a path. What the schema leaves open can be one.
fn names_no_path(schema: &Value) -> bool {
    let Some(properties) = schema["properties"].as_object() else { return false };
    let is_closed = |schema: &Value| schema["additionalProperties"] == Value::Bool(false);
    let is_scalar = |name: &Value| matches!(name.as_str(), Some("string" | "integer" | "number" | "boolean" | "null"));
    let is_plain = |value: &Value| match &value["type"] {
        Value::Array(names) => names.iter().all(is_scalar),
        name => is_scalar(name),
    };
    let is_fine = |(name, value): (&String, &Value)| {
        let name = name.to_ascii_lowercase();
        let of_list = value["type"] == "array" && is_plain(&value["items"]) && !name.ends_with("paths");
        (is_plain(value) && !name.ends_with("path")) || of_list
    };
    is_closed(schema) && properties.iter().all(is_fine)
}

fn fields(schema: &Value) -> Vec<String> {
    let mut out = Vec::new();
    walk(schema, schema, "", 0, &mut |at, schema| {
        let names_a_file = matches!(schema["format"].as_str(), Some("path" | "file-path" | "directory-path"));
        out.extend((names_a_file && !at.is_empty()).then(|| at.to_owned()));
    });
    out.sort_unstable();
    out.dedup();
    out
}

/// Calls `visit` for each part of a schema, with the place of the value that it is about.
fn walk(root: &Value, schema: &Value, at: &str, depth: u32, visit: &mut dyn FnMut(&str, &Value)) {
    if depth > MAX_DEPTH {
        return;
    }
    visit(at, schema);
    // Definitions of the schema itself; others cannot be looked up here.
    if let Some(pointer) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'))
        && let Some(definition) = root.pointer(pointer)
    {
        walk(root, definition, at, depth + 1, visit);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let inside = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        walk(root, property, &inside, depth + 1, visit);
    }
    if schema["items"].is_object() {
        walk(root, &schema["items"], &format!("{at}[]"), depth + 1, visit);
    }
    for choice in ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten() {
        walk(root, choice, at, depth + 1, visit);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fields;
    use crate::ToolSpec;

    #[test]
    fn paths_are_found_wherever_the_schema_declares_them() {
        let schema = json!({
            "type": "object",
            "$defs": { "File": { "type": "string", "format": "file-path" } },
            "properties": {
                "target": { "type": "string", "format": "path" },
                "path": { "type": "string" },
                "maybe": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/File" }] },
                "files": { "type": "array", "items": { "$ref": "#/$defs/File" } },
                "edits": { "type": "array", "items": {
                    "type": "object", "properties": { "into": { "type": "string", "format": "directory-path" } },
                } },
            },
        });
        assert_eq!(fields(&schema), ["edits[].into", "files[]", "maybe", "target"]);
        assert!(fields(&json!({ "properties": { "path": { "type": "string" } } })).is_empty());
    }

    #[test]
    fn arguments_are_named_as_rules_name_them() {
        let arguments = |parameters: serde_json::Value| {
            let found = ToolSpec { name: "t".into(), description: String::new(), parameters }.arguments();
            (found.names.join(" "), found.are_all)
        };
        let text = json!({ "type": "string" });
        let object = |properties: serde_json::Value| json!({ "type": "object", "properties": properties, "additionalProperties": false });
        let edit = object(json!({ "new_text": text, "line": { "type": ["integer", "null"] } }));
        let maybe = json!({ "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/Kind" }] });
        let mut all = object(json!({ "path": text, "kind": maybe, "edits": { "type": "array", "items": edit } }));
        all["$defs"] = json!({ "Kind": { "enum": ["a", "b"] } });
        assert_eq!(arguments(all), ("edits[].line edits[].new_text kind path".to_owned(), true));
        for open in [
            json!({ "type": "object", "properties": { "path": text } }),
            json!({ "type": "object" }),
            object(json!({ "path": text, "more": { "type": "object" } })),
            object(json!({ "path": text, "more": {} })),
            object(json!({ "path": text, "more": { "type": "array" } })),
        ] {
            assert!(!arguments(open.clone()).1, "{open}");
        }
    }

    #[test]
    fn a_schema_that_holds_itself_is_followed_for_a_while() {
        let schema = json!({ "$ref": "#/$defs/node", "$defs": { "node": {
            "properties": { "file": { "format": "path" }, "next": { "$ref": "#/$defs/node" } },
        } } });
        assert!(fields(&schema).contains(&"next.file".to_owned()));
    }
}
