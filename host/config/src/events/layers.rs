//! The layers of a catalogue: the default, and the files on top of it.

use std::sync::{Arc, LazyLock};

use schemars::Schema;
use serde_json::Value;
use toml::Spanned;
use toml::de::DeTable;

use super::{FILE, SCHEMA_VERSION, defaults};
use crate::document::Document;
use crate::layers::{DefaultLayer, Layered};
use crate::schema::{TypedFile as _, versioned};
use crate::typed::CatalogueFile;
use crate::{Code, Diagnostics, SourceFile, yaml};

/// All files, and what they say together.
pub(crate) type Layers<'a> = crate::layers::Layers<'a, CatalogueFile>;

impl Layered for CatalogueFile {
    const FILES: &'static str = "event catalogues";
    const VERSION: &'static str = SCHEMA_VERSION;
    const VERSION_CODE: Code = Code::EventsSchemaVersion;
    const IN_SETTINGS: &'static [(&'static str, [&'static str; 2])] = &[
        ("event_types", ["events", "event_types"]),
        ("criticality_levels", ["events", "criticality_levels"]),
        ("categories", ["events", "categories"]),
    ];
    const NAMED: &'static [&'static str] = &["event_types", "criticality_levels", "categories"];

    fn default_layer() -> &'static Result<DefaultLayer, Diagnostics> {
        static SOURCE: LazyLock<Arc<SourceFile>> =
            LazyLock::new(|| SourceFile::new("events of the program", defaults()));
        static DEFAULT: LazyLock<Result<DefaultLayer, Diagnostics>> =
            LazyLock::new(|| DefaultLayer::read::<CatalogueFile>(&SOURCE));
        &DEFAULT
    }

    fn file_schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(|| versioned(CatalogueFile::schema(), FILE));
        &SCHEMA
    }

    fn tree(source: &Arc<SourceFile>) -> Result<Spanned<DeTable<'_>>, Diagnostics> {
        let is_yaml = source.path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        if is_yaml { yaml::read(source, Code::EventsYaml) } else { Document::tree(source) }
    }
}

impl Layers<'_> {
    /// The names of all event types.
    pub(super) fn types(&self) -> impl Iterator<Item = &'static str> + use<> {
        let types = self.default_value().get("event_types").and_then(Value::as_object);
        types.into_iter().flat_map(|types| types.keys().map(String::as_str))
    }

    /// Whether sessions are rebuilt from an event type, whatever files say.
    pub(super) fn is_required(&self, name: &str) -> bool {
        let of = self.default_value().get("event_types").and_then(|types| types.get(name));
        of.and_then(|of| of.get("required")) == Some(&Value::Bool(true))
    }

    /// Whether the program has an event type of this name.
    pub(super) fn is_type(&self, name: &str) -> bool {
        self.default_value().get("event_types").is_some_and(|types| types.get(name).is_some())
    }
}

/// The default as a value, for the comparison with the specification.
#[cfg(test)]
pub(super) fn default_value() -> Result<Value, Diagnostics> {
    CatalogueFile::default_layer().as_ref().map(|default| default.value().clone()).map_err(Clone::clone)
}
