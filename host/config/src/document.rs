//! A TOML file as a tree with source spans, checked against the schema of its type; or several files, one on top of the other.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use schemars::Schema;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::schema::TypedFile;
use crate::sources::{Sources, moved};
use crate::{Code, Diagnostic, Diagnostics, Location, SourceFile, check, mask};

/// One step of a path into the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into a table.
    Key(String),
    /// Into an array.
    Index(usize),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Index(index) => write!(f, "{index}"),
        }
    }
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A path from literals: `steps!["plugin", 0, "path"]`.
macro_rules! steps {
    ($($step:expr),* $(,)?) => { [$($crate::document::Step::from($step)),*] };
}
pub(crate) use steps;

/// The tree, its sources, and what was found wrong so far.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    sources: Sources<'a>,
    root: Spanned<DeValue<'a>>,
    /// What is wrong, in the order it was found.
    pub(crate) found: Vec<Diagnostic>,
}

impl<'a> Document<'a> {
    /// Reads the text and decodes it as `T`.
    ///
    /// # Errors
    /// All syntax errors; or else all that contradicts the schema of `T`: unknown keys, wrong types, values out of range,
    /// missing keys.
    pub(crate) fn read<T: TypedFile>(source: &'a Arc<SourceFile>) -> Result<(Self, T), Diagnostics> {
        Self::of_tree(source, Self::tree(source)?, T::schema())
    }

    /// The same, but for elements of the list `key`: one that contradicts the schema is left out, so that it costs none of the others.
    /// Returns what was left out.
    ///
    /// # Errors
    /// As for [`Document::read`], with what is wrong with those elements.
    pub(crate) fn read_apart<T: TypedFile>(
        source: &'a Arc<SourceFile>,
        key: &str,
    ) -> Result<(Self, T, Vec<LeftOut>), Diagnostics> {
        let mut root = Self::tree(source)?;
        let shown = mask::masked(source, &root, true);
        let mut left_out = Vec::new();
        if let Some(DeValue::Array(elements)) = root.get_mut().get_mut(key).map(Spanned::get_mut) {
            for element in std::mem::replace(elements, DeArray::new()) {
                match check::check_element(&shown, &element, T::schema().as_value(), key) {
                    found if found.is_empty() => elements.push(element),
                    found => left_out.push(LeftOut::of(&element, found)),
                }
            }
        }
        let read = Self::of_tree(source, root, T::schema());
        let (document, typed) = read.map_err(|mut wrong| {
            wrong.0.extend(left_out.iter().flat_map(|one| one.found.iter().cloned()));
            wrong
        })?;
        Ok((document, typed, left_out))
    }

    /// Reads the text as a tree.
    ///
    /// # Errors
    /// All syntax errors.
    pub(crate) fn tree(source: &'a Arc<SourceFile>) -> Result<Spanned<DeTable<'a>>, Diagnostics> {
        let (root, errors) = DeTable::parse_recoverable(&source.text);
        if errors.is_empty() {
            return Ok(root);
        }
        let shown = mask::masked(source, &root, false);
        let report =
            |error| duplicate(source, &shown, error).unwrap_or_else(|| syntax(Code::ConfigSyntax, &shown, error));
        Err(Diagnostics(errors.iter().map(report).collect()))
    }

    /// Decodes a tree of `source` as `T`, whose schema is given. The tree need not have been written as TOML.
    ///
    /// # Errors
    /// All that contradicts the schema of `T`, as for [`Document::read`].
    pub(crate) fn of_tree<T: DeserializeOwned>(
        source: &'a Arc<SourceFile>,
        root: Spanned<DeTable<'a>>,
        schema: &Schema,
    ) -> Result<(Self, T), Diagnostics> {
        let shown = mask::masked(source, &root, true);
        Self::of_shown((source, shown), root, schema)
    }

    /// The same for a tree that is a part of the file, which diagnostics show as `shown`.
    ///
    /// # Errors
    /// As for [`Document::of_tree`].
    pub(crate) fn of_shown<T: DeserializeOwned>(
        (source, shown): (&'a Arc<SourceFile>, Arc<SourceFile>),
        root: Spanned<DeTable<'a>>,
        schema: &Schema,
    ) -> Result<(Self, T), Diagnostics> {
        let found = check::check(&shown, &root, schema.as_value());
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
        // The schema was held; what is left for serde to refuse is what a schema cannot say.
        let value = T::deserialize(toml::de::Deserializer::from(root.clone()));
        let value = value.map_err(|error| Diagnostics::from(syntax(Code::ConfigUnknownValue, &shown, &error)))?;
        let root = Spanned::new(root.span(), DeValue::Table(root.into_inner()));
        Ok((Self { sources: Sources::of(source, shown), root, found: Vec::new() }, value))
    }

    /// Puts documents on top of each other, the lowest first. `put` puts the table of one on top of what those below it say; a place in
    /// either leads to the file that it is in.
    pub(crate) fn stacked(
        layers: impl IntoIterator<Item = Self>,
        put: impl Fn(&mut DeTable<'a>, DeTable<'a>, &Sources<'a>),
    ) -> Self {
        let (mut sources, mut root, mut found) = (Sources::default(), DeTable::new(), Vec::new());
        for layer in layers {
            let begin = sources.add(layer.sources);
            if let DeValue::Table(table) = moved(layer.root, begin).into_inner() {
                put(&mut root, table, &sources);
            }
            found.extend(layer.found);
        }
        Self { sources, root: Spanned::new(0..0, DeValue::Table(root)), found }
    }

    /// The place of what `path` leads to; of the last step that exists, where it leads nowhere.
    pub(crate) fn place(&self, path: &[Step]) -> Location {
        self.walk(path, false)
    }

    /// The place of a value of the tree.
    pub(crate) fn place_of(&self, value: &Spanned<DeValue<'_>>) -> Location {
        self.sources.location(value.span())
    }

    /// The place of the key that `path` ends with, rather than of its value.
    pub(crate) fn key_place(&self, path: &[Step]) -> Location {
        self.walk(path, true)
    }

    /// The place of the key or of the value that `path` leads to; `None` where it leads nowhere.
    pub(crate) fn find(&self, path: &[Step], want_key: bool) -> Option<Location> {
        let mut at = self.root.get_ref();
        for step in path {
            at = enter(at, step)?.1.get_ref();
        }
        Some(self.walk(path, want_key))
    }

    /// Decodes the whole tree once more, as another type.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, Diagnostics> {
        let tree = toml::de::ValueDeserializer::from(self.root.clone());
        T::deserialize(tree).map_err(|error| {
            let place = self.sources.location(error.span().unwrap_or(0..0));
            syntax_at(Code::ConfigUnknownValue, place, &error).into()
        })
    }

    /// The whole document as a tree.
    pub(crate) fn root(&self) -> &DeValue<'a> {
        self.root.get_ref()
    }

    /// The folder of the file that contains what `path` leads to.
    pub(crate) fn folder(&self, path: &[Step]) -> &'a Path {
        self.sources.folder(self.span(path, false).start)
    }

    fn walk(&self, path: &[Step], want_key: bool) -> Location {
        self.sources.location(self.span(path, want_key))
    }

    fn span(&self, path: &[Step], want_key: bool) -> Range<usize> {
        let mut span = self.root.span();
        let mut at = self.root.get_ref();
        for (depth, step) in path.iter().enumerate() {
            let Some((key, value)) = enter(at, step) else { break };
            let last = depth + 1 == path.len();
            span = if want_key && last { key.unwrap_or_else(|| value.span()) } else { value.span() };
            at = value.get_ref();
        }
        span
    }

    /// Notes an error at `path`.
    pub(crate) fn error(&mut self, code: Code, path: &[Step], message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(path);
        self.found.push(Diagnostic::error(code, message).at(place, "").help(help));
    }
}

/// An element of a list that contradicts its schema.
#[derive(Debug)]
pub(crate) struct LeftOut {
    /// Its `name`, if it has one.
    pub(crate) name: String,
    /// It says `required = true`.
    pub(crate) required: bool,
    /// What is wrong with it.
    pub(crate) found: Vec<Diagnostic>,
}

impl LeftOut {
    fn of(element: &Spanned<DeValue<'_>>, found: Vec<Diagnostic>) -> Self {
        let get = |key: &str| element.get_ref().as_table().and_then(|table| table.get(key)).map(Spanned::get_ref);
        let name = match get("name") {
            Some(DeValue::String(name)) => name.trim().to_owned(),
            _ => String::new(),
        };
        Self { name, required: matches!(get("required"), Some(DeValue::Boolean(true))), found }
    }
}

type Entered<'t, 'a> = (Option<Range<usize>>, &'t Spanned<DeValue<'a>>);

fn enter<'t, 'a>(at: &'t DeValue<'a>, step: &Step) -> Option<Entered<'t, 'a>> {
    match (at, step) {
        (DeValue::Table(table), Step::Key(key)) => {
            let (key, value) = table.get_key_value(key.as_str())?;
            Some((Some(key.span()), value))
        }
        (DeValue::Array(array), Step::Index(index)) => Some((None, array.get(*index)?)),
        _ => None,
    }
}

/// A key that is set twice, with both places.
fn duplicate(source: &Arc<SourceFile>, shown: &Arc<SourceFile>, error: &toml::de::Error) -> Option<Diagnostic> {
    let found = rules::Duplicate::of(&source.text, error)?;
    let again = Diagnostic::error(Code::ConfigSyntax, found.message()).help(found.help());
    let again = again.at(Location::new(shown, error.span()?), rules::AGAIN);
    Some(match found.first {
        Some(first) => again.at(Location::new(shown, first), rules::FIRST),
        None => again,
    })
}

/// An error of the TOML reader or of serde, with its place.
fn syntax(code: Code, source: &Arc<SourceFile>, error: &toml::de::Error) -> Diagnostic {
    syntax_at(code, Location::new(source, error.span().unwrap_or(0..0)), error)
}

fn syntax_at(code: Code, place: Location, error: &toml::de::Error) -> Diagnostic {
    let mut lines = error.message().lines();
    let message = lines.next().unwrap_or("this is not TOML").to_owned();
    let rest = lines.collect::<Vec<_>>().join(" ");
    let diagnostic = Diagnostic::error(code, message).at(place, "");
    if rest.is_empty() { diagnostic } else { diagnostic.help(rest) }
}
