//! Paths a model writes, and the real places inside the workspace that they mean.
//!
//! A path is resolved as the system would: link by link, `..` after the link it follows. What exists is canonicalised,
//! what does not exist yet may only be plain names below it; the result must lie in the canonical workspace. A link
//! that leads nowhere is refused, since writing through it would create a file wherever it points.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::Failure;
use crate::text;

/// The folder the tools work in.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

/// A place inside the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    /// Absolute, links resolved.
    pub(crate) absolute: PathBuf,
    /// Relative to the workspace, with `/`; `.` is the workspace itself.
    pub(crate) relative: String,
    /// Whether something is there.
    pub(crate) exists: bool,
}

impl Inside {
    /// The path for an answer.
    pub(crate) fn shown(&self) -> String {
        text::shown(&self.relative).into_owned()
    }
}

impl Workspace {
    /// Opens an existing folder.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a folder"));
        }
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The real place that `given` (relative to the workspace, or absolute and inside it) means.
    pub(crate) fn resolve(&self, given: &str) -> Result<Inside, Failure> {
        if given.is_empty() {
            return Err(Failure::new(
                "the path is empty; write one relative to the workspace, `.` for the workspace itself",
            ));
        }
        if given.contains('\0') {
            return Err(Failure::new("the path contains a NUL byte, which is not allowed in file names"));
        }
        self.check()?;
        let asked = self.root.join(given);
        let components: Vec<Component<'_>> = asked.components().collect();
        let (existing, taken) = self.existing(&components, given)?;
        let mut absolute = existing;
        for component in components.iter().skip(taken) {
            match component {
                Component::Normal(name) => absolute.push(name),
                Component::CurDir => {}
                _ => {
                    let what = format!(
                        "`{given}` goes up (`..`) from a folder that does not exist; write the path without it"
                    );
                    return Err(Failure(what));
                }
            }
        }
        let Ok(relative) = absolute.strip_prefix(&self.root) else { return Err(outside(given)) };
        let relative = shown(relative);
        Ok(Inside { absolute, relative, exists: taken == components.len() })
    }

    /// Whether the folder is still there.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let why = match fs::metadata(&self.root) {
            Ok(about) if about.is_dir() => return Ok(()),
            Ok(_) => "it is not a folder any more".to_owned(),
            Err(error) => error.to_string(),
        };
        let root = self.root.display();
        Err(Failure(format!(
            "the folder of the workspace, `{root}`, cannot be used any more: {why}. Create it again, or end the session"
        )))
    }

    /// The canonical form of the longest beginning that exists, and how many components that is.
    fn existing(&self, components: &[Component<'_>], given: &str) -> Result<(PathBuf, usize), Failure> {
        for taken in (1..=components.len()).rev() {
            let prefix: PathBuf = components.iter().take(taken).collect();
            if fs::symlink_metadata(&prefix).is_err() {
                continue;
            }
            return match prefix.canonicalize() {
                Ok(real) => Ok((real, taken)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Err(Failure(format!("`{given}` goes through a link that leads nowhere; name the file itself")))
                }
                Err(error) => Err(Failure(format!("`{given}` cannot be resolved: {error}"))),
            };
        }
        Err(outside(given))
    }

    /// The path relative to the workspace without looking at the disk: `..` and `.` taken out by name. `None` where it
    /// leaves the workspace by name alone.
    pub(crate) fn by_name(&self, given: &str) -> Option<String> {
        let asked = Path::new(given);
        let inside = if asked.is_absolute() { asked.strip_prefix(&self.root).ok()? } else { asked };
        let mut parts = PathBuf::new();
        for component in inside.components() {
            match component {
                Component::Normal(name) => parts.push(name),
                Component::CurDir => {}
                Component::ParentDir => {
                    if !parts.pop() {
                        return None;
                    }
                }
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(shown(&parts))
    }

    /// How a path found below the workspace is shown.
    pub(crate) fn relative(&self, absolute: &Path) -> String {
        shown(absolute.strip_prefix(&self.root).unwrap_or(absolute))
    }
}

fn outside(given: &str) -> Failure {
    Failure(format!("`{given}` is outside of the workspace; tools reach only files inside it, links included"))
}

fn shown(relative: &Path) -> String {
    let text = relative.to_string_lossy();
    // Elsewhere it is a character of a name.
    let text = if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() };
    if text.is_empty() { ".".to_owned() } else { text }
}
