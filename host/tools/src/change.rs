//! A change to one file, computed first and applied later, and applied only if the file is still what it was computed from.

use std::path::{Component, Path};
use std::time::SystemTime;

use flow::ToolOutput;
use flow::ports::FileKind;

use crate::Failure;
use crate::blocking::Access;
use crate::text::{self, count, line_ends};
use crate::workspace::{Inside, Workspace};

/// The new content of a file, and what the file was when that was computed.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The path as the model wrote it.
    pub(crate) given: String,
    /// The file that the path led to.
    pub(crate) file: Inside,
    /// What was there.
    pub(crate) before: Before,
    /// What will be there.
    pub(crate) after: String,
    /// The result for the model, where it is not "created" or "replaced".
    pub(crate) done: Option<String>,
}

/// What a file was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// There was none.
    Missing,
    /// A text file with this content.
    Text(String),
    /// A file that is not text or too large to be compared: its size, and when it was last written.
    Other(u64, Option<SystemTime>),
}

impl Before {
    /// The current state of a path.
    ///
    /// # Errors
    /// It is a folder, a device or the like, or its metadata cannot be read.
    pub(crate) fn of(file: &Inside, access: &Access) -> Result<Self, Failure> {
        let name = &file.shown();
        let failed = |error| Failure(format!("`{name}` cannot be read: {error}"));
        let Some(status) = access.status(&file.absolute).map_err(failed)? else { return Ok(Self::Missing) };
        match status.kind {
            FileKind::File => {}
            FileKind::Folder => return Err(Failure(format!("`{name}` is a folder; name the file to write"))),
            _ => return Err(Failure(format!("`{name}` is not a regular file; only regular files are written"))),
        }
        Ok(text::read(file, access).map_or_else(|_| Self::Other(status.bytes, status.modified), Self::Text))
    }

    /// The text to compare with; `None` where there is none that could be shown.
    fn text(&self) -> Option<&str> {
        match self {
            Self::Missing => Some(""),
            Self::Text(text) => Some(text),
            Self::Other(..) => None,
        }
    }
}

impl Change {
    /// The change as a unified diff, whole; `None` for a new file, all of which is the argument.
    pub(crate) fn whole_diff(&self) -> Option<String> {
        let before = self.before.text().filter(|_| self.before != Before::Missing)?;
        text::whole_diff(&self.file.shown(), before, &self.after)
    }

    /// Whether the file has the new content already.
    pub(crate) fn is_done(&self) -> bool {
        matches!(&self.before, Before::Text(before) if *before == self.after)
    }

    /// What arguments and diff do not show.
    pub(crate) fn notes(&self) -> Vec<String> {
        let name = &self.file.shown();
        let mut notes = vec![match &self.before {
            Before::Missing => format!("creates the file `{name}`"),
            Before::Text(_) if self.is_done() => format!("`{name}` has this content already"),
            Before::Text(_) => format!("changes the file `{name}`"),
            Before::Other(bytes, _) => {
                format!(
                    "replaces the whole file `{name}`, which is not text ({}); there is no diff",
                    count_bytes(*bytes)
                )
            }
        }];
        if !same_words(&self.given, &self.file.relative) {
            notes.push(format!("the path `{}` leads to `{name}`", self.given));
        }
        notes.extend(self.besides());
        notes
    }

    /// What the change does besides, which neither its diff nor its size shows.
    fn besides(&self) -> Vec<String> {
        let lost = self.before.text().map(|before| line_ends::lost(before, &self.after)).unwrap_or_default();
        let mut besides: Vec<String> = lost.into_iter().map(str::to_owned).collect();
        if let Some(names) = names_of(&self.file.absolute).filter(|names| *names > 1) {
            besides.push(format!("it is one file with {names} names (hard links)"));
        }
        besides
    }

    /// Writes the new content.
    ///
    /// # Errors
    /// The path leads elsewhere by now, the file is not what it was, or it cannot be written.
    pub(crate) fn apply(&self, workspace: &Workspace, access: &Access) -> Result<ToolOutput, Failure> {
        let name = &self.file.shown();
        let now = workspace.resolve(&self.given)?;
        if now != self.file || Before::of(&now, access)? != self.before {
            return Err(Failure(format!(
                "`{name}` changed after this call was shown to the user; nothing was written. Read it and call again"
            )));
        }
        if self.is_done() {
            return Ok(said(format!("`{name}` has this content already; nothing was written")));
        }
        let failed = |error| Failure(format!("`{name}` cannot be written: {error}"));
        let besides = self.besides();
        access.write(&self.file.absolute, &self.after).map_err(failed)?;
        let size = format!("{}, {}", count(self.after.lines().count(), "line"), count(self.after.len(), "byte"));
        let verb = if self.before == Before::Missing { "created" } else { "replaced" };
        let done = self.done.clone().unwrap_or_else(|| format!("{verb} `{name}` ({size})"));
        let mut output = said(std::iter::once(done).chain(besides).collect::<Vec<_>>().join("; "));
        // If the old content was not text, or too large, there is no diff to show.
        output.diff = self.before.text().and_then(|before| text::diff(name, before, &self.after));
        Ok(output)
    }
}

/// How many names a file has; `None` where there is none on the disk.
#[cfg(unix)]
fn names_of(file: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    file.symlink_metadata().ok().map(|about| about.nlink())
}

#[cfg(not(unix))]
fn names_of(_: &Path) -> Option<u64> {
    None
}

/// Whether two paths have the same components, `.` left out.
fn same_words(a: &str, b: &str) -> bool {
    let words = |path| Path::new(path).components().filter(|part| *part != Component::CurDir);
    words(a).eq(words(b))
}

fn count_bytes(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

fn said(content: String) -> ToolOutput {
    ToolOutput { content, diff: None, is_error: false }
}
