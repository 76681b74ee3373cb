//! A text file that was read, and places in it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text of a file, and the path to show for it.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path as it was given; diagnostics show it so.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

impl SourceFile {
    /// A file whose text is in memory already.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { path: path.into(), text: text.into() })
    }

    /// The folder that contains the file. Relative paths in the file are relative to it.
    pub fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        }
    }

    /// The path with `/` on every system, so that the same file gives the same output everywhere.
    pub fn shown(&self) -> String {
        let path = self.path.display().to_string();
        // Elsewhere a backslash is a character of the name.
        if cfg!(windows) { path.replace('\\', "/") } else { path }
    }
}

/// A range of bytes in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file that the bytes belong to.
    pub file: Arc<SourceFile>,
    /// Its bytes, counted from 0; may be empty.
    pub span: Range<usize>,
}

impl Location {
    /// A range of `file`, limited to the length of its text.
    pub fn new(file: &Arc<SourceFile>, span: Range<usize>) -> Self {
        let end = span.end.min(file.text.len());
        Self { file: Arc::clone(file), span: span.start.min(end)..end }
    }

    /// The line the range begins on, counted from 1.
    pub fn line(&self) -> usize {
        self.file.text.bytes().take(self.span.start).filter(|byte| *byte == b'\n').count() + 1
    }

    /// The column the range begins in, in characters, counted from 1. A byte order mark is not a character.
    pub fn column(&self) -> usize {
        let before = &self.file.text[..self.file.text.floor_char_boundary(self.span.start)];
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.trim_start_matches('\u{feff}').chars().count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::{Location, SourceFile};

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let file = SourceFile::new("a.md", "\u{feff}+++\né = 'ü'\n");
        let at = |byte: usize| {
            let location = Location::new(&file, byte..byte);
            (location.line(), location.column())
        };
        assert_eq!((at(0), at(3), at(7), at(9), at(999)), ((1, 1), (1, 1), (2, 1), (2, 2), (3, 1)));
        // Inside of a character.
        assert_eq!(at(8), (2, 1));
    }
}
