//! Arguments of tools: parsed strictly, with errors a model can act on; and their schemas, from the same types.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;

/// Parses the arguments of a call.
pub(crate) fn parse<T: DeserializeOwned + JsonSchema>(tool: &str, arguments: &str) -> Result<T, Failure> {
    // A model that has nothing to say may say nothing.
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    // An array would be taken as the arguments in their order; a model that writes one means something else.
    let parsed = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        Err("they are not a JSON object".to_owned())
    };
    parsed.map_err(|error| {
        let schema = schema::<T>();
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let all: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
        let needed = |name: &str| required.iter().any(|key| key == name);
        let (first, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| needed(name));
        let known = first.iter().chain(&rest).map(|(name, about)| {
            let kind = about["type"].as_str().unwrap_or("value");
            let optional = if needed(name) { "" } else { ", optional" };
            format!("`{name}` ({kind}{optional})")
        });
        let known = known.collect::<Vec<_>>().join(", ");
        Failure(format!("the arguments of `{tool}` are not valid: {error}. It takes an object with {known}."))
    })
}

/// The JSON Schema of a tool's arguments, without references and without keywords that providers do not support.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft07().for_deserialize();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(plain).transform(&mut schema);
    schema.to_value()
}

fn plain(schema: &mut Schema) {
    // An argument that is not needed is left out, never null; and formats of Rust's integers say nothing to a model.
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|word| word != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            schema.insert("type".to_owned(), one);
        }
    }
    for key in ["title", "format", "default"] {
        // `properties` can contain an argument of such a name; only annotations are texts or plain values.
        if schema.get(key).is_some_and(|value| !value.is_object()) {
            schema.remove(key);
        }
    }
}
