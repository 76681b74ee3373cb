//! Layers of a configuration file: the default of the program, and the files on top of it; what they say together, and which of them
//! says what.

use std::sync::Arc;

use serde_json::Value;
use toml::Spanned;
use toml::de::DeTable;

use crate::document::{Document, Step, steps};
use crate::merge;
use crate::schema::TypedFile;
use crate::{Code, Diagnostic, Diagnostics, Location, SourceFile};

/// A kind of file that overrides a default of the program.
pub(crate) trait Layered: TypedFile {
    /// Files of the kind, in errors: `event catalogues`.
    const FILES: &'static str;
    /// The version of the format, as `schema_version` has it.
    const VERSION: &'static str;
    /// Of the error about another version.
    const VERSION_CODE: Code;

    /// The default, read once in a process: reading it takes longer than reading the files on top of it.
    fn default_layer() -> &'static Result<DefaultLayer, Diagnostics>;

    /// The `schema_version` of a file.
    fn version(&self) -> &str;

    /// Reads a file as a tree.
    fn tree(source: &Arc<SourceFile>) -> Result<Spanned<DeTable<'_>>, Diagnostics> {
        Document::tree(source)
    }

    /// Puts `over` on top of `base`.
    fn merge(base: &mut Value, over: Value) {
        merge::merge(base, over);
    }
}

/// The default of the program.
#[derive(Debug)]
pub(crate) struct DefaultLayer {
    document: Document<'static>,
    value: Value,
}

impl DefaultLayer {
    /// Reads the default.
    ///
    /// # Errors
    /// As those of a file.
    pub(crate) fn read<T: Layered>(source: &'static Arc<SourceFile>) -> Result<Self, Diagnostics> {
        let (document, value) = read::<T>(source)?;
        Ok(Self { document, value })
    }

    /// The default as a value.
    #[cfg(test)]
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }
}

/// All files, and what they say together.
pub(crate) struct Layers<'a, T> {
    default: &'static DefaultLayer,
    /// The files on top of the default, lowest first, each with its value.
    files: Vec<(Document<'a>, Value)>,
    /// All of them, merged.
    pub(crate) merged: T,
    /// The same as a value.
    value: Value,
    /// What is wrong, in the order it was found.
    pub(crate) found: Vec<Diagnostic>,
}

impl<'a, T: Layered> Layers<'a, T> {
    /// Reads files on top of the default, lowest first.
    ///
    /// # Errors
    /// A file cannot be parsed, contradicts the schema, or is of another version. Each file is reported with all of its problems.
    pub(crate) fn read(sources: &'a [Arc<SourceFile>]) -> Result<Self, Diagnostics> {
        let default = T::default_layer().as_ref().map_err(Clone::clone)?;
        let (mut files, mut found) = (Vec::new(), Vec::new());
        for source in sources {
            match read::<T>(source) {
                Ok(layer) => files.push(layer),
                Err(problems) => found.extend(problems.0),
            }
        }
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
        let mut value = default.value.clone();
        files.iter().for_each(|(_, layer)| T::merge(&mut value, layer.clone()));
        let merged = T::deserialize(&value).map_err(|error| {
            // Each layer fits the schema, and merging keeps the types of all keys whose values the schema describes.
            Diagnostic::error(Code::ConfigUnknownValue, format!("{} cannot be merged: {error}", T::FILES))
        })?;
        Ok(Self { default, files, merged, value, found })
    }

    /// The default of the program as a value.
    pub(crate) fn default_value(&self) -> &'static Value {
        &self.default.value
    }

    /// All layers, highest first, each with its value.
    pub(crate) fn highest_first(&self) -> impl Iterator<Item = (&Document<'a>, &Value)> {
        let default: (&Document<'a>, &Value) = (&self.default.document, &self.default.value);
        self.files.iter().rev().map(|(document, value)| (document, value)).chain([default])
    }

    /// The highest file that contains `path`; `None`: none does, so that the value is the default's.
    fn setter(&self, path: &[Step]) -> Option<&Document<'a>> {
        self.files.iter().rev().map(|(document, _)| document).find(|document| document.find(path, false).is_some())
    }

    /// Whether a file, and not only the default, contains `path`.
    pub(crate) fn is_overridden(&self, path: &[Step]) -> bool {
        self.setter(path).is_some()
    }

    /// Where the value of `path` differs from that of the default: `path` itself, or the first difference inside of a table. `None` where
    /// files repeat the default.
    pub(crate) fn changed(&self, path: &[Step]) -> Option<Vec<Step>> {
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
    pub(crate) fn place(&self, path: &[Step], want_key: bool) -> Location {
        match (self.setter(path), want_key) {
            (Some(document), true) => document.key_place(path),
            (Some(document), false) => document.place(path),
            (None, true) => self.default.document.key_place(path),
            (None, false) => self.default.document.place(path),
        }
    }

    /// Notes an error at the value of `path`.
    pub(crate) fn error(&mut self, code: Code, path: &[Step], message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(path, false);
        self.error_at(code, place, message, help);
    }

    /// Notes an error at the key of `path`.
    pub(crate) fn key_error(&mut self, code: Code, path: &[Step], message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(path, true);
        self.error_at(code, place, message, help);
    }

    /// Notes an error at a place.
    pub(crate) fn error_at(
        &mut self,
        code: Code,
        place: Location,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
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

/// A file as a tree, and as a value to be merged.
fn read<T: Layered>(source: &Arc<SourceFile>) -> Result<(Document<'_>, Value), Diagnostics> {
    let (mut document, typed) = Document::of_tree::<T>(source, T::tree(source)?, T::schema())?;
    check_version::<T>(&mut document, typed.version());
    if !document.found.is_empty() {
        return Err(Diagnostics(document.found));
    }
    let value = document.decode()?;
    Ok((document, value))
}

/// A file of the same major version and at most our minor version has no key that we do not know.
fn check_version<T: Layered>(document: &mut Document<'_>, version: &str) {
    let known = semver::Version::parse(T::VERSION).ok();
    let is_known = match (semver::Version::parse(version), known) {
        (Ok(version), Some(known)) => version.major == known.major && version.minor <= known.minor,
        _ => false,
    };
    if !is_known {
        let message = format!("the version `{}` of {} is not supported", version.escape_debug(), T::FILES);
        let help = format!("this host reads version `{}`", T::VERSION);
        document.error(T::VERSION_CODE, &steps!["schema_version"], message, help);
    }
}
