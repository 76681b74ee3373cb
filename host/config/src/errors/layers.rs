//! The layers of the table: the default, and the files on top of it.

use std::sync::{Arc, LazyLock};

use schemars::Schema;
use serde_json::Value;

use super::{FILE, SCHEMA_VERSION, defaults};
use crate::document::steps;
use crate::layers::{DefaultLayer, Layered};
use crate::merge::merge;
use crate::schema::{TypedFile as _, versioned};
use crate::typed::ErrorsFile;
use crate::{Code, Diagnostics, Location, SourceFile};

/// All files, and what they say together.
pub(crate) type Layers<'a> = crate::layers::Layers<'a, ErrorsFile>;

impl Layered for ErrorsFile {
    const FILES: &'static str = "tables of error classes";
    const VERSION: &'static str = SCHEMA_VERSION;
    const VERSION_CODE: Code = Code::ErrorsSchemaVersion;
    const IN_SETTINGS: &'static [(&'static str, [&'static str; 2])] =
        &[("class", ["errors", "class"]), ("retry", ["errors", "retry"])];
    const NAMED: &'static [&'static str] = &["class"];

    fn default_layer() -> &'static Result<DefaultLayer, Diagnostics> {
        static SOURCE: LazyLock<Arc<SourceFile>> =
            LazyLock::new(|| SourceFile::new("errors of the program", defaults()));
        static DEFAULT: LazyLock<Result<DefaultLayer, Diagnostics>> =
            LazyLock::new(|| DefaultLayer::read::<ErrorsFile>(&SOURCE));
        &DEFAULT
    }

    fn file_schema() -> &'static Schema {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(|| versioned(ErrorsFile::schema(), FILE));
        &SCHEMA
    }

    /// The first entry that matches decides: a new entry at the end would never do so against a wider one of the default.
    fn merge(base: &mut Value, mut over: Value) {
        let entries = over.as_object_mut().and_then(|over| over.remove("class"));
        merge(base, over);
        let (Some(Value::Array(entries)), Some(Value::Array(known))) = (entries, base.get_mut("class")) else { return };
        let mut new = Vec::new();
        for entry in entries {
            match known.iter_mut().find(|known| known.get("id") == entry.get("id")) {
                Some(known) => merge(known, entry),
                None => new.push(entry),
            }
        }
        known.splice(..0, new);
    }
}

impl Layers<'_> {
    /// The place of a key of an entry in the highest layer that has it; of its id, where none has. `index`: of an element, where the value
    /// is a list.
    pub(super) fn entry_place(&self, id: &str, key: &str, index: usize) -> Option<Location> {
        let place = |key: &str| {
            self.highest_first().find_map(|(document, value)| {
                let entries = value.get("class")?.as_array()?;
                let is_it = |entry: &Value| entry.get("id").is_some_and(|of| of == id) && entry.get(key).is_some();
                Some(document.place(&steps!["class", entries.iter().position(is_it)?, key, index]))
            })
        };
        place(key).or_else(|| place("id"))
    }

    /// The places of ids that a file has twice, each with the id.
    pub(super) fn repeated_ids(&self) -> Vec<(String, Location)> {
        let mut found = Vec::new();
        for (document, value) in self.highest_first() {
            let entries = value.get("class").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let ids: Vec<&str> = entries.iter().filter_map(|entry| entry.get("id")?.as_str()).collect();
            let again = ids.iter().enumerate().filter(|(at, id)| ids[..*at].contains(id));
            found.extend(again.map(|(at, id)| ((*id).to_owned(), document.place(&steps!["class", at, "id"]))));
        }
        found
    }
}
