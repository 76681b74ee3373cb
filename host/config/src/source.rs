//! A text file that was read, and places in it. Diagnostics point here.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file's text and the name to show for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as it was asked for; diagnostics show it so.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

impl Source {
    /// A source from text that is there already.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { path: path.into(), text: text.into() })
    }

    /// The folder the file is in; relative paths in the file begin there.
    pub fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        }
    }
}

/// A range of bytes in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub source: Arc<Source>,
    /// Its bytes, counted from 0; may be empty.
    pub span: Range<usize>,
}

impl Place {
    /// A place in `source`, cut to what the text has.
    pub fn new(source: &Arc<Source>, span: Range<usize>) -> Self {
        let end = span.end.min(source.text.len());
        Self { source: Arc::clone(source), span: span.start.min(end)..end }
    }

    /// The line the place begins on, counted from 1.
    pub fn line(&self) -> usize {
        self.source.text.bytes().take(self.span.start).filter(|byte| *byte == b'\n').count() + 1
    }
}
