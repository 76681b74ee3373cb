//! The layers of a catalogue: the default, and the files on top of it; what they say together, and which of them says what.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::Value;

use super::{SCHEMA_VERSION, defaults, merge, yaml};
use crate::document::{Document, Step, steps};
use crate::schema::TypedFile as _;
use crate::typed::CatalogueFile;
use crate::{Code, Diagnostic, Diagnostics, Location, SourceFile};

/// The default, read once: reading it takes longer than reading the files on top of it.
static DEFAULT: LazyLock<Result<Default, Diagnostics>> = LazyLock::new(|| {
    let (document, _, value) = read(&DEFAULT_SOURCE)?;
    Ok(Default { document, value })
});

/// The default of the program as a file, for places in it.
static DEFAULT_SOURCE: LazyLock<Arc<SourceFile>> =
    LazyLock::new(|| SourceFile::new("thread_events.toml of the program", defaults()));

#[derive(Debug)]
struct Default {
    document: Document<'static>,
    value: Value,
}

/// All files, and what they say together.
pub(super) struct Layers<'a> {
    default: &'static Default,
    /// The files on top of the default, lowest first.
    files: Vec<Document<'a>>,
    /// All of them, merged.
    pub(super) merged: CatalogueFile,
    /// The same as a value.
    value: Value,
    /// What is wrong, in the order it was found.
    pub(super) found: Vec<Diagnostic>,
}

impl<'a> Layers<'a> {
    /// Reads files on top of the default, lowest first.
    ///
    /// # Errors
    /// A file is not TOML or YAML, contradicts the schema of catalogues, or is of another version. Each file is reported with all of its
    /// problems.
    pub(super) fn read(sources: &'a [Arc<SourceFile>]) -> Result<Self, Diagnostics> {
        let default = DEFAULT.as_ref().map_err(Clone::clone)?;
        let (mut files, mut layers, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for source in sources {
            match read(source) {
                Ok((document, _, layer)) => {
                    files.push(document);
                    layers.push(layer);
                }
                Err(problems) => found.extend(problems.0),
            }
        }
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
        let mut value = default.value.clone();
        layers.into_iter().for_each(|layer| merge::merge(&mut value, layer));
        let merged = CatalogueFile::deserialize(&value).map_err(|error| {
            // Each layer fits the schema, and merging keeps the types of all keys but of those inside of a payload schema.
            Diagnostic::error(Code::ConfigUnknownValue, format!("the event catalogue cannot be merged: {error}"))
        })?;
        Ok(Self { default, files, merged, value, found })
    }

    /// The names of all event types.
    pub(super) fn types(&self) -> impl Iterator<Item = &'static str> + use<> {
        let types = self.default.value.get("event_types").and_then(Value::as_object);
        types.into_iter().flat_map(|types| types.keys().map(String::as_str))
    }

    /// Whether there is an event type of this name.
    pub(super) fn is_type(&self, name: &str) -> bool {
        self.default.value.get("event_types").is_some_and(|types| types.get(name).is_some())
    }

    /// The highest file that contains `path`; `None`: none does, so that the value is the default's.
    fn setter(&self, path: &[Step]) -> Option<&Document<'a>> {
        self.files.iter().rev().find(|document| document.find(path, false).is_some())
    }

    /// Whether a file, and not only the default, contains `path`.
    pub(super) fn is_overridden(&self, path: &[Step]) -> bool {
        self.setter(path).is_some()
    }

    /// Where the value of `path` differs from that of the default: `path` itself, or the first difference inside of a table. `None` where
    /// files repeat the default.
    pub(super) fn changed(&self, path: &[Step]) -> Option<Vec<Step>> {
        let [default, merged] = [&self.default.value, &self.value].map(|value| value_at(value, path));
        let (default, merged) = (default.unwrap_or(&Value::Null), merged.unwrap_or(&Value::Null));
        if default == merged || !self.is_overridden(path) {
            return None;
        }
        if let (Value::Object(_), Value::Object(members)) = (default, merged) {
            let inside = |key: &String| self.changed(&[path, &[Step::Key(key.clone())]].concat());
            return members.keys().find_map(inside).or_else(|| Some(path.to_vec()));
        }
        Some(path.to_vec())
    }

    /// The place of the value (or key) of `path` in the highest layer that contains it.
    pub(super) fn place(&self, path: &[Step], want_key: bool) -> Location {
        match (self.setter(path), want_key) {
            (Some(document), true) => document.key_place(path),
            (Some(document), false) => document.place(path),
            (None, true) => self.default.document.key_place(path),
            (None, false) => self.default.document.place(path),
        }
    }

    /// Notes an error at the value of `path`.
    pub(super) fn error(&mut self, code: Code, path: &[Step], message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(path, false);
        self.found.push(Diagnostic::error(code, message).at(place, "").help(help));
    }

    /// Notes an error at the key of `path`.
    pub(super) fn key_error(&mut self, code: Code, path: &[Step], message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(path, true);
        self.found.push(Diagnostic::error(code, message).at(place, "").help(help));
    }
}

fn value_at<'v>(mut value: &'v Value, path: &[Step]) -> Option<&'v Value> {
    for step in path {
        value = match step {
            Step::Key(key) => value.get(key)?,
            Step::Index(index) => value.get(index)?,
        };
    }
    Some(value)
}

/// A file as a tree, as typed, and as a value to be merged.
fn read(source: &Arc<SourceFile>) -> Result<(Document<'_>, CatalogueFile, Value), Diagnostics> {
    let is_yaml = source.path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    let tree = if is_yaml { yaml::read(source)? } else { Document::tree(source)? };
    let (mut document, typed) = Document::of_tree::<CatalogueFile>(source, tree, CatalogueFile::schema())?;
    check_version(&mut document, &typed.schema_version);
    if !document.found.is_empty() {
        return Err(Diagnostics(document.found));
    }
    let value = document.decode()?;
    Ok((document, typed, value))
}

/// A file of the same major version and at most our minor version has no key that we do not know.
fn check_version(document: &mut Document<'_>, version: &str) {
    let known = semver::Version::parse(SCHEMA_VERSION).ok();
    let is_known = match (semver::Version::parse(version), known) {
        (Ok(version), Some(known)) => version.major == known.major && version.minor <= known.minor,
        _ => false,
    };
    if !is_known {
        let message = format!("the version `{}` of event catalogues is not supported", version.escape_debug());
        let help = format!("this host reads version `{SCHEMA_VERSION}`");
        document.error(Code::EventsSchemaVersion, &steps!["schema_version"], message, help);
    }
}

/// The default as a value, for the comparison with the specification.
#[cfg(test)]
pub(super) fn default_value() -> Result<Value, Diagnostics> {
    DEFAULT.as_ref().map(|default| default.value.clone()).map_err(Clone::clone)
}
