//! A TOML file as a tree with source spans, checked against the schema of its type.

use std::ops::Range;
use std::sync::Arc;

use schemars::Schema;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::schema::TypedFile;
use crate::{Code, Diagnostic, Diagnostics, Location, SourceFile, check, mask};

/// One step of a path into the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into a table.
    Key(String),
    /// Into an array.
    Index(usize),
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

/// The tree, its source, and what was found wrong so far.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    source: &'a Arc<SourceFile>,
    /// The source as diagnostics show it, without secrets.
    shown: Arc<SourceFile>,
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
        Err(Diagnostics(errors.iter().map(|error| syntax(Code::ConfigSyntax, &shown, error)).collect()))
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
        let found = check::check(&shown, &root, schema.as_value());
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
        // The schema was held; what is left for serde to refuse is what a schema cannot say.
        let value = T::deserialize(toml::de::Deserializer::from(root.clone()));
        let value = value.map_err(|error| Diagnostics::from(syntax(Code::ConfigUnknownValue, &shown, &error)))?;
        let root = Spanned::new(root.span(), DeValue::Table(root.into_inner()));
        Ok((Self { source, shown, root, found: Vec::new() }, value))
    }

    /// The place of what `path` leads to; of the last step that exists, where it leads nowhere.
    pub(crate) fn place(&self, path: &[Step]) -> Location {
        self.walk(path, false)
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
        T::deserialize(tree).map_err(|error| syntax(Code::ConfigUnknownValue, &self.shown, &error).into())
    }

    fn walk(&self, path: &[Step], want_key: bool) -> Location {
        let mut span = self.root.span();
        let mut at = self.root.get_ref();
        for (depth, step) in path.iter().enumerate() {
            let Some((key, value)) = enter(at, step) else { break };
            let last = depth + 1 == path.len();
            span = if want_key && last { key.unwrap_or_else(|| value.span()) } else { value.span() };
            at = value.get_ref();
        }
        Location::new(&self.shown, span)
    }

    /// The file as diagnostics show it, without secrets. It has the same bytes at the same places.
    pub(crate) fn shown(&self) -> &Arc<SourceFile> {
        &self.shown
    }

    /// The whole text.
    pub(crate) fn source(&self) -> &'a Arc<SourceFile> {
        self.source
    }

    /// Notes an error at `path`.
    pub(crate) fn error(&mut self, code: Code, path: &[Step], message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(path);
        self.found.push(Diagnostic::error(code, message).at(place, "").help(help));
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

/// An error of the TOML reader or of serde, with its place.
fn syntax(code: Code, source: &Arc<SourceFile>, error: &toml::de::Error) -> Diagnostic {
    let mut lines = error.message().lines();
    let message = lines.next().unwrap_or("this is not TOML").to_owned();
    let rest = lines.collect::<Vec<_>>().join(" ");
    let diagnostic = Diagnostic::error(code, message).at(Location::new(source, error.span().unwrap_or(0..0)), "");
    if rest.is_empty() { diagnostic } else { diagnostic.help(rest) }
}
