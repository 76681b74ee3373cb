//! Layers of a configuration file: the default of the program, and the files on top of it; what they say together, and which of them
//! says what.

use std::sync::Arc;

use flow::Severity;
use schemars::Schema;
use serde_json::Value;
use toml::Spanned;
use toml::de::DeTable;

use crate::document::{Document, Step};
use crate::schema::TypedFile;
use crate::{Code, Diagnostic, Diagnostics, Layer, LayerKind, Location, SourceFile, layer_reader, merge};

/// A table of `tidegate.toml` that overrides a default of the program, and that a file of its own can have, too.
pub(crate) trait Layered: TypedFile {
    /// Files of the kind, in errors: `event catalogues`.
    const FILES: &'static str;
    /// The version of the format, as `schema_version` of a file of its own has it.
    const VERSION: &'static str;
    /// Of the error about another version.
    const VERSION_CODE: Code;
    /// The keys of a file of its own, each with its place in `tidegate.toml`.
    const IN_SETTINGS: &'static [(&'static str, [&'static str; 2])];
    /// The keys whose entries have names of their own, and are many: event types, prices.
    const NAMED: &'static [&'static str];

    /// The default, read once in a process: reading it takes longer than reading the files on top of it.
    fn default_layer() -> &'static Result<DefaultLayer, Diagnostics>;

    /// The schema of a file of its own.
    fn file_schema() -> &'static Schema;

    /// Reads a file of its own as a tree.
    fn tree(source: &Arc<SourceFile>) -> Result<Spanned<DeTable<'_>>, Diagnostics> {
        Document::tree(source)
    }

    /// Puts `over` on top of `base`.
    fn merge(base: &mut Value, over: Value) {
        merge::merge(base, over);
    }
}

/// What one of them says on top of the default, and what is done about what it cannot have.
#[derive(Clone, Debug)]
pub struct LayerFile {
    /// Who has written it, and for whom.
    pub(crate) origin: LayerOrigin,
    /// Whose layer of settings it is.
    pub(crate) kind: LayerKind,
    /// The file of its own.
    pub(crate) own: Option<Arc<SourceFile>>,
    /// The `tidegate.toml`, whose table counts where both set a key.
    pub(crate) settings: Option<Arc<SourceFile>>,
}

/// Who has written a file of a layer, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerOrigin {
    /// The user of this program: everything that is wrong is an error.
    User,
    /// The project, for this program. What a session must not lose, and what has no effect, is reported and left out: a project must not
    /// keep a session from starting.
    Project,
    /// The project, for another program with the same format. Keys that this program does not know are reported and left out, too.
    Foreign,
}

impl LayerFile {
    /// A file of its own.
    pub fn new(source: &Arc<SourceFile>, origin: LayerOrigin) -> Self {
        let kind = if origin == LayerOrigin::User { LayerKind::User } else { LayerKind::Workspace };
        Self { origin, kind, own: Some(Arc::clone(source)), settings: None }
    }

    /// A file of its own of the user.
    pub fn of_user(source: &Arc<SourceFile>) -> Self {
        Self::new(source, LayerOrigin::User)
    }

    /// The table of a `tidegate.toml`. That of a workspace is the project's, whether it is trusted or not.
    pub fn of_settings(layer: &Layer) -> Self {
        let is_project = layer.kind == LayerKind::Workspace;
        let origin = if is_project { LayerOrigin::Project } else { LayerOrigin::User };
        Self { origin, kind: layer.kind, own: None, settings: Some(Arc::clone(&layer.source)) }
    }

    /// Both of them; `None` where there is neither.
    pub(crate) fn of_both(own: Option<Self>, settings: Option<Self>) -> Option<Self> {
        match (own, settings) {
            (Some(own), Some(settings)) => Some(Self { settings: settings.settings, ..own }),
            (own, settings) => own.or(settings),
        }
    }

    /// Those of the user.
    pub(crate) fn of_users(files: &[Self]) -> Vec<Self> {
        files.iter().filter(|file| file.origin == LayerOrigin::User).cloned().collect()
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
        let document = layer_reader::read_table::<T>(source)?;
        let value = document.decode()?;
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
    pub(crate) files: Vec<File<'a>>,
    /// All of them, merged.
    pub(crate) merged: T,
    /// The same as a value.
    value: Value,
    /// What is wrong, in the order it was found.
    pub(crate) found: Vec<Diagnostic>,
    /// What is left out of files of projects.
    refused: Vec<Refused>,
    /// What is wrong with files of projects, and was left out.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// A file of a layer that was read.
pub(crate) struct File<'a> {
    pub(crate) document: Document<'a>,
    pub(crate) value: Value,
    origin: LayerOrigin,
    pub(crate) kind: LayerKind,
}

/// Something in a file that is not used.
struct Refused {
    path: Vec<Step>,
    diagnostic: Diagnostic,
}

impl<'a, T: Layered> Layers<'a, T> {
    /// Reads files on top of the default, lowest first.
    ///
    /// # Errors
    /// A file cannot be parsed, contradicts the schema, or is of another version. Each file is reported with all of its problems.
    pub(crate) fn read(sources: &'a [LayerFile]) -> Result<Self, Diagnostics> {
        let default = T::default_layer().as_ref().map_err(Clone::clone)?;
        let (mut files, mut found, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        for layer in sources {
            let read = layer_reader::read::<T>(layer).and_then(|(document, noted)| {
                let value = document.decode()?;
                Ok((document, value, noted))
            });
            match read {
                Ok((document, value, noted)) => {
                    warnings.extend(noted);
                    files.push(File { document, value, origin: layer.origin, kind: layer.kind });
                }
                Err(problems) => found.extend(problems.0),
            }
        }
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
        let (merged, value) = merged::<T>(default, &files)?;
        Ok(Self { default, files, merged, value, found, refused: Vec::new(), warnings })
    }

    /// Leaves out what was refused in files of projects, and merges again. Returns whether there was anything.
    ///
    /// # Errors
    /// What remains cannot be merged.
    pub(crate) fn leave_out(&mut self) -> Result<bool, Diagnostics> {
        let refused = std::mem::take(&mut self.refused);
        let is_any = !refused.is_empty();
        for Refused { path, diagnostic } in refused {
            let lenient = self.files.iter_mut().rev().filter(|file| file.origin != LayerOrigin::User);
            let mut holders = lenient.filter(|file| value_at(&file.value, &path).is_some());
            match holders.next().map(|file| remove(&mut file.value, &path)) {
                Some(()) => self.warnings.push(diagnostic),
                // It is the user's after all, or an earlier one has taken it along.
                None => self.found.push(as_error(diagnostic)),
            }
        }
        (self.merged, self.value) = merged::<T>(self.default, &self.files)?;
        Ok(is_any)
    }

    /// Notes what a file of a project sets to another value than a file of the user does, below these keys. A table of the name `whole` is
    /// one value.
    pub(crate) fn refuse_over_users(&mut self, code: Code, below: &[&str], whole: &str) {
        let mut paths = Vec::new();
        let users = self.files.iter().filter(|file| file.origin == LayerOrigin::User);
        for file in users {
            for key in below {
                leaves(file.value.get(key), whole, &mut vec![Step::from(*key)], &mut paths);
            }
        }
        for path in paths {
            let of_user = |file: &&File<'_>| file.origin == LayerOrigin::User;
            let value = |file: &File<'_>| value_at(&file.value, &path).cloned();
            let users = self.files.iter().rev().filter(of_user).find_map(value);
            let others = self.files.iter().rev().filter(|file| !of_user(file));
            // Each is asked: one that is left out uncovers the one below.
            let is_other = |file: &File<'_>| value(file).is_some_and(|value| Some(value) != users);
            if others.clone().any(is_other) && self.origin(&path).is_some_and(|origin| origin != LayerOrigin::User) {
                let name = path.iter().map(Step::to_string).collect::<Vec<_>>().join(".");
                let message = format!("the user has set `{name}`, and a project does not change it");
                self.refuse(code, (&path, true), message, "remove the key");
            }
        }
    }

    /// What all layers say together, as a value.
    pub(crate) fn merged_value(&self) -> &Value {
        &self.value
    }

    /// What the highest file of a project says.
    pub(crate) fn of_project(&self) -> Option<&Value> {
        self.files.iter().rev().find(|file| file.origin != LayerOrigin::User).map(|file| &file.value)
    }

    /// The default of the program as a value.
    pub(crate) fn default_value(&self) -> &'static Value {
        &self.default.value
    }

    /// All layers, highest first, each with its value.
    pub(crate) fn highest_first(&self) -> impl Iterator<Item = (&Document<'a>, &Value)> {
        let default: (&Document<'a>, &Value) = (&self.default.document, &self.default.value);
        self.files.iter().rev().map(|file| (&file.document, &file.value)).chain([default])
    }

    /// The highest file that contains `path`; `None`: none does, so that the value is the default's.
    fn setter(&self, path: &[Step]) -> Option<&Document<'a>> {
        self.files.iter().rev().find(|file| value_at(&file.value, path).is_some()).map(|file| &file.document)
    }

    /// Who has written the highest file that contains `path`; `None`: it is the default.
    pub(crate) fn origin(&self, path: &[Step]) -> Option<LayerOrigin> {
        self.files.iter().rev().find(|file| value_at(&file.value, path).is_some()).map(|file| file.origin)
    }

    /// Notes that something of a file cannot be used, at the value of `path` or at its key: an error, or in a file of a project a warning
    /// about what is left out.
    pub(crate) fn refuse(
        &mut self,
        code: Code,
        (path, is_key): (&[Step], bool),
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let place = self.place(path, is_key);
        if self.origin(path).is_none_or(|origin| origin == LayerOrigin::User) {
            return self.error_at(code, place, message, help);
        }
        // What is left out for one reason needs no other.
        if self.refused.iter().any(|one| path.starts_with(&one.path)) {
            return;
        }
        let diagnostic = Diagnostic::warning(code, message).at(place, "left out").help(help);
        self.refused.push(Refused { path: path.to_vec(), diagnostic });
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

/// The paths of all values that are no tables, or tables of the name `whole`.
fn leaves(value: Option<&Value>, whole: &str, path: &mut Vec<Step>, into: &mut Vec<Vec<Step>>) {
    match value {
        Some(Value::Object(members)) if path.last() != Some(&Step::from(whole)) => {
            for (key, value) in members {
                path.push(Step::Key(key.clone()));
                leaves(Some(value), whole, path, into);
                path.pop();
            }
        }
        Some(_) => into.push(path.clone()),
        None => {}
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

fn remove(value: &mut Value, path: &[Step]) {
    let Some((last, before)) = path.split_last() else { return };
    let mut at = value;
    for step in before {
        let next = match step {
            Step::Key(key) => at.get_mut(key),
            Step::Index(index) => at.get_mut(index),
        };
        let Some(next) = next else { return };
        at = next;
    }
    match (at, last) {
        (Value::Object(members), Step::Key(key)) => drop(members.remove(key)),
        (Value::Array(items), Step::Index(index)) if *index < items.len() => drop(items.remove(*index)),
        _ => {}
    }
}

/// The default with the files on top.
fn merged<T: Layered>(default: &DefaultLayer, files: &[File<'_>]) -> Result<(T, Value), Diagnostics> {
    let mut value = default.value.clone();
    files.iter().for_each(|file| T::merge(&mut value, file.value.clone()));
    let merged = T::deserialize(&value).map_err(|error| {
        // Each layer fits the schema, and merging keeps the types of all keys whose values the schema describes.
        Diagnostic::error(Code::ConfigUnknownValue, format!("{} cannot be merged: {error}", T::FILES))
    })?;
    Ok((merged, value))
}

fn as_error(mut refused: Diagnostic) -> Diagnostic {
    refused.severity = Severity::Error;
    refused
}
