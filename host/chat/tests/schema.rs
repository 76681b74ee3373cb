//! The JSON Schema of what a chat shows: it is that of the types, and describes every field.

use std::fs;
use std::path::Path;

use serde_json::Value;

#[test]
fn the_schema_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/chat.schema.json");
    let generated = tidegate_chat::chat_schema();
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&file, &generated).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == generated,
        "the schema is not that of the types; `TIDEGATE_BLESS=1 cargo test -p tidegate-chat --test it schema::` writes it"
    );
}

#[test]
fn every_field_is_described() {
    let schema: Value = serde_json::from_str(&tidegate_chat::chat_schema()).unwrap();
    let mut fields = 0;
    for (name, of) in schema["definitions"].as_object().unwrap() {
        for (field, about) in of["properties"].as_object().into_iter().flatten() {
            let about = about["description"].as_str().unwrap_or_default();
            assert!(about.ends_with('.'), "`{name}.{field}` is not described by a sentence: {about:?}");
            fields += 1;
        }
    }
    assert!(fields > 50, "only {fields} fields");
}
