//! The JSON Schemas of our files: what the reader checks against is what editors are given.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::layers::Layered as _;
use crate::typed::{
    AgentFile, CatalogueFile, ErrorsFile, MachinePolicyFile, ManifestFile, OperatorFile, ThreadLimitsFile,
};

/// The schema of `plugin.toml` as JSON text, with a line end.
pub fn manifest_schema() -> String {
    text(ManifestFile::schema())
}

/// The schema of `tidegate.toml` as JSON text, with a line end.
pub fn operator_schema() -> String {
    text(OperatorFile::schema())
}

/// The schema of `policy.toml` as JSON text, with a line end.
pub fn policy_schema() -> String {
    text(MachinePolicyFile::schema())
}

/// The schema of `thread_events.toml` as JSON text, with a line end.
pub fn event_schema() -> String {
    text(CatalogueFile::file_schema())
}

/// The schema of `errors.toml` as JSON text, with a line end.
pub fn error_schema() -> String {
    text(ErrorsFile::file_schema())
}

/// The schema of `thread_limits.toml` as JSON text, with a line end.
pub fn thread_limit_schema() -> String {
    text(ThreadLimitsFile::file_schema())
}

/// The schema of the front matter of an agent file as JSON text, with a line end.
pub fn agent_schema() -> String {
    text(AgentFile::schema())
}

/// What the whole of a file is read as.
pub(crate) trait TypedFile: DeserializeOwned + JsonSchema {
    /// The schema that every file of this type is checked against, generated once in a process.
    fn schema() -> &'static Schema;
}

impl TypedFile for ManifestFile {
    fn schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(of::<ManifestFile>);
        &SCHEMA
    }
}

impl TypedFile for OperatorFile {
    fn schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(of::<OperatorFile>);
        &SCHEMA
    }
}

impl TypedFile for MachinePolicyFile {
    fn schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(of::<MachinePolicyFile>);
        &SCHEMA
    }
}

impl TypedFile for CatalogueFile {
    fn schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(of::<CatalogueFile>);
        &SCHEMA
    }
}

impl TypedFile for ErrorsFile {
    fn schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(of::<ErrorsFile>);
        &SCHEMA
    }
}

impl TypedFile for ThreadLimitsFile {
    fn schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(of::<ThreadLimitsFile>);
        &SCHEMA
    }
}

impl TypedFile for AgentFile {
    fn schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(of::<AgentFile>);
        &SCHEMA
    }
}

/// The schema of a file that contains a table of `tidegate.toml` alone, with the version of its format.
pub(crate) fn versioned(table: &Schema, file: &str) -> Schema {
    let mut schema = table.clone();
    let version = serde_json::json!({"type": "string", "description": "The version of this format: `1.0.0`."});
    if let Some(properties) = schema.pointer_mut("/properties").and_then(Value::as_object_mut) {
        properties.insert("schema_version".to_owned(), version);
    }
    schema.insert("title".to_owned(), file.into());
    schema.insert("required".to_owned(), serde_json::json!(["schema_version"]));
    schema
}

/// The schema of one type. Draft 7 is what TOML editors read without trouble.
fn of<T: JsonSchema>() -> Schema {
    let mut schema = SchemaSettings::draft07().for_deserialize().into_generator().into_root_schema_for::<T>();
    // TOML has no null: a key that is not needed is left out.
    RecursiveTransform(flow::schema::without_null).transform(&mut schema);
    // A rule file is named by its file name and has its body below; in a manifest both are keys.
    if let Some(rule) = schema.pointer_mut("/definitions/RuleSpec").and_then(Value::as_object_mut) {
        rule.insert("required".to_owned(), serde_json::json!(["name", "body"]));
    }
    schema
}

fn text(schema: &Schema) -> String {
    format!("{:#}\n", schema.as_value())
}
