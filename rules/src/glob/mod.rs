//! File globs with the meaning that they have in the hosts whose rule files are read: lists, exclusions (`!*.test.ts`),
//! folders (`src/`), anchors (`./src`, `/src`), extended globs (`@(a|b)`), file names with brackets (`[slug].tsx`).
//!
//! What cannot be given its meaning is an error: a glob that silently matches nothing switches a guard off.

mod foreign;
mod list;
mod read;
mod void;

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use flow::text::normal_path;
use globset::{GlobBuilder, GlobSet};

pub(crate) use list::{parts, quoted_words, split};
use read::Forms;
pub(crate) use void::are_void;

/// Why a value cannot be used, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidScope {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl InvalidScope {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for InvalidScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

/// A file glob. `*` stops at `/`, `**` does not. A glob without a `/` is tried against the name of the file alone, too.
#[derive(Clone, Debug)]
pub struct Glob {
    text: String,
    /// In a list: what it matches is left out.
    excludes: bool,
    forms: Forms,
    /// Compiled on first use: it takes longer than everything else in a rule, and most scopes are never tested.
    compiled: Arc<OnceLock<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    any: GlobSet,
    absolute: GlobSet,
    except: GlobSet,
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::read(text).map_err(|invalid| invalid.to_string())
    }

    pub(crate) fn read(text: &str) -> Result<Self, InvalidScope> {
        let forms = read::forms(text)?;
        Ok(Self { text: text.to_owned(), excludes: false, forms, compiled: Arc::default() })
    }

    /// The glob as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Tries every way to write `path`: as given, without `./`, absolute, relative to `workspace`, base name alone; `.`,
    /// `..` and doubled separators are resolved by the text alone. A glob that begins with `./` or `/` is tried against the
    /// path in the workspace only, and with `/` against the absolute path.
    pub fn matches(&self, path: &str, workspace: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| Compiled::of(&self.forms));
        let given = path.replace('\\', "/");
        let relative = relative_path(&given, workspace);
        let absolute = if is_absolute(&relative) || workspace.is_empty() {
            normal_path(&given)
        } else {
            normal_path(&format!("{}/{relative}", root(workspace)))
        };
        let mut candidates = vec![relative.as_str()];
        let base = relative.rsplit('/').next().unwrap_or(&relative);
        let (normal, up) = (normal_path(&given), self.forms.leads_out.then(|| from_workspace(&absolute, workspace)));
        if !self.forms.anchored {
            candidates.extend([base, normal.as_str(), absolute.as_str()]);
            // What a path is written as must not decide what is left out.
            candidates.extend((!self.excludes).then_some(given.as_str()));
        }
        candidates.extend(up.as_deref());
        let any = candidates.iter().any(|one| compiled.any.is_match(one)) || compiled.absolute.is_match(&absolute);
        any && !candidates.iter().any(|one| compiled.except.is_match(one))
    }

    /// Whether it is a glob that every file matches.
    fn is_universal(&self) -> bool {
        !self.excludes && matches!(self.text.trim_start_matches("./"), "*" | "**" | "**/*" | "**/**" | "*.*" | "**/*.*")
    }

    /// The globs of the paths that it matches, each of a whole path in the workspace.
    fn whole_paths(&self) -> impl Iterator<Item = globset::Glob> {
        let is_whole = |glob: &globset::Glob| self.forms.anchored || glob.glob().contains('/');
        let whole = move |glob: &globset::Glob| if is_whole(glob) { glob.clone() } else { below_any_folder(glob) };
        self.forms.any.iter().chain(&self.forms.absolute).map(whole)
    }

    /// The same as globs of absolute paths: every way to write a path is an end of its absolute path.
    fn anywhere(&self) -> impl Iterator<Item = globset::Glob> {
        self.forms.any.iter().map(below_any_folder).chain(self.forms.absolute.iter().cloned())
    }
}

impl Compiled {
    fn of(forms: &Forms) -> Self {
        let set = |globs: &[globset::Glob]| {
            let mut set = GlobSet::builder();
            for glob in globs {
                set.add(glob.clone());
            }
            // Each was compiled alone, and their length is bounded.
            set.build().unwrap_or_else(|_| GlobSet::empty())
        };
        Self { any: set(&forms.any), absolute: set(&forms.absolute), except: set(&forms.except) }
    }
}

/// A list of globs: a path has to match one of those that include, and none of those that exclude (`!GLOB`). Where all of
/// them exclude, every other path matches.
#[derive(Clone, Debug, Default)]
pub struct Globs(Vec<Glob>);

impl Globs {
    /// Reads a list in one string, such as `src/**/*.ts, !**/*.test.ts`.
    pub(crate) fn read(text: &str) -> Result<Self, InvalidScope> {
        let mut globs = Self::default();
        for token in split(text)? {
            globs.add(&token)?;
        }
        Ok(globs)
    }

    /// A list of one glob.
    pub(crate) fn one(text: &str) -> Result<Self, InvalidScope> {
        let mut globs = Self::default();
        if !text.trim().is_empty() {
            globs.add(text.trim())?;
        }
        Ok(globs)
    }

    /// Adds a glob, or with `!` before it an exclusion.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), InvalidScope> {
        let glob = match exclusion(text) {
            Some(rest) => Glob { text: text.to_owned(), excludes: true, ..Glob::read(rest)? },
            None => Glob::read(text)?,
        };
        self.0.push(glob);
        Ok(())
    }

    /// Whether a path matches the list. Any path matches an empty one.
    pub fn matches(&self, path: &str, workspace: &str) -> bool {
        let mut included = self.including().peekable();
        (included.peek().is_none() || included.any(|glob| glob.matches(path, workspace)))
            && !self.excluding().any(|glob| glob.matches(path, workspace))
    }

    /// Whether every file matches it.
    pub(crate) fn is_universal(&self) -> bool {
        self.excluding().next().is_none() && self.0.iter().any(Glob::is_universal)
    }

    pub(crate) fn including(&self) -> impl Iterator<Item = &Glob> {
        self.0.iter().filter(|glob| !glob.excludes)
    }

    pub(crate) fn excluding(&self) -> impl Iterator<Item = &Glob> {
        self.0.iter().filter(|glob| glob.excludes)
    }
}

impl Deref for Globs {
    type Target = [Glob];

    fn deref(&self) -> &[Glob] {
        &self.0
    }
}

/// What is excluded, where a glob is an exclusion. `!(a|b)` is an extended glob.
pub(crate) fn exclusion(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('!')?;
    (!rest.starts_with('(')).then(|| rest.trim_start())
}

fn below_any_folder(glob: &globset::Glob) -> globset::Glob {
    build(&format!("**/{}", glob.glob())).unwrap_or_else(|_| glob.clone())
}

/// Compiles one glob of plain syntax.
fn build(text: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(text).literal_separator(true).empty_alternates(true).build()
}

/// `path` as it is shown: `/` between parts, without `.`, `..` and doubled separators, relative to `workspace` where it
/// lies in it.
pub(crate) fn relative_path(path: &str, workspace: &str) -> String {
    let path = normal_path(&path.replace('\\', "/"));
    let workspace = root(workspace);
    if workspace.is_empty() {
        return path;
    }
    // `../work/a` may lead back into the workspace.
    let full = if path.starts_with("../") { normal_path(&format!("{workspace}/{path}")) } else { path.clone() };
    let inside = full.strip_prefix(&workspace).and_then(|rest| rest.strip_prefix('/'));
    inside.map_or(path, str::to_owned)
}

/// An absolute path as it is written from the workspace, with `..` where it is outside.
fn from_workspace(absolute: &str, workspace: &str) -> String {
    let root = root(workspace);
    let (from, to): (Vec<&str>, Vec<&str>) = (root.split('/').collect(), absolute.split('/').collect());
    let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..", from.len() - shared);
    up.chain(to[shared..].iter().copied()).collect::<Vec<_>>().join("/")
}

/// The workspace without a `/` at its end.
fn root(workspace: &str) -> String {
    let root = normal_path(&workspace.replace('\\', "/"));
    root.trim_end_matches('/').to_owned()
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.as_bytes().get(1) == Some(&b':')
}
