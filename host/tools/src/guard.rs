//! Paths that other programs execute or trust. Writing one asks, also where the tool is allowed in general.
//!
//! The list is data, `guarded.toml`; the embedder adds the files that it trusts itself. A path is compared as a careless file
//! system would see it, so that no spelling is a detour: without case, without trailing dots and blanks, without the
//! characters that some file systems ignore, and cut at `:`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use crate::workspace::Workspace;

/// A file or folder that the embedder trusts, in addition to `guarded.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedPath {
    /// The file or folder; without effect where it is outside of the workspace.
    pub path: PathBuf,
    /// What trusts it: completes "`PATH` ...".
    pub reason: String,
}

/// The list as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    guard: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    reason: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    globs: Vec<String>,
}

/// The built-in list, ready to be searched.
#[derive(Debug)]
struct Builtin {
    /// By name: the reason.
    names: BTreeMap<String, String>,
    globs: GlobSet,
    /// By the glob's index: the glob and the reason.
    of_glob: Vec<(String, String)>,
}

/// The list, or why the file that is compiled in cannot be used.
static BUILTIN: LazyLock<Result<Builtin, String>> = LazyLock::new(|| parse(include_str!("guarded.toml")));

fn parse(text: &str) -> Result<Builtin, String> {
    let listed: Listed = toml::from_str(text).map_err(|error| error.to_string())?;
    let (mut names, mut globs, mut of_glob) = (BTreeMap::new(), GlobSetBuilder::new(), Vec::new());
    for entry in listed.guard {
        for name in entry.names {
            if name != folded(&name) || names.insert(name.clone(), entry.reason.clone()).is_some() {
                return Err(format!("`{name}` is not case-folded, or is listed twice"));
            }
        }
        for glob in entry.globs {
            let built = GlobBuilder::new(&glob).literal_separator(true).build();
            globs.add(built.map_err(|error| error.to_string())?);
            of_glob.push((glob, entry.reason.clone()));
        }
    }
    Ok(Builtin { names, globs: globs.build().map_err(|error| error.to_string())?, of_glob })
}

/// All guarded paths of a workspace.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    /// Components of a path relative to the workspace, as compared; and the reason.
    more: Vec<(Vec<String>, String)>,
    is_off: bool,
}

/// Why a path is guarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Completes "`PATH` ...".
    pub(crate) reason: String,
    /// What a permission has to name to be about this path on purpose: consecutive components.
    key: Vec<Key>,
    /// The key is the end of the path: what is in a folder of that name is not guarded by it.
    is_file: bool,
}

/// A component of what a permission has to name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    /// A path component of exactly this name.
    Exactly(String),
    /// Each component that matches the glob; `fixed` is the longest part of the glob without a wildcard.
    Like { glob: String, fixed: String },
}

impl Guards {
    pub(crate) fn new(workspace: &Workspace, more: &[GuardedPath]) -> Self {
        let inside = |one: &GuardedPath| {
            let path = std::path::absolute(&one.path).ok()?;
            let relative = workspace.resolve(path.to_str()?).ok()?.relative;
            // The workspace itself would guard everything.
            (relative != ".").then(|| (components(&relative), one.reason.clone()))
        };
        Self { more: more.iter().filter_map(inside).collect(), is_off: false }
    }

    /// No path is guarded.
    pub(crate) fn none() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// Why one of the forms of a path is guarded; `None` where none is.
    pub(crate) fn find(&self, forms: &[String]) -> Option<Hit> {
        let forms = if self.is_off { &[] } else { forms };
        forms.iter().find_map(|form| self.find_one(&components(form)))
    }

    fn find_one(&self, path: &[String]) -> Option<Hit> {
        let builtin = match &*BUILTIN {
            Ok(builtin) => builtin,
            // Cannot happen while the test of the list passes; if it did, everything would be guarded.
            Err(error) => return Some(Hit::exactly(&format!("cannot be checked: {error}"), path)),
        };
        if let Some((key, reason)) = self.more.iter().find(|(prefix, _)| path.starts_with(prefix)) {
            return Some(Hit::exactly(reason, key));
        }
        for name in path {
            if let Some(reason) = builtin.names.get(name) {
                return Some(Hit::exactly(reason, std::slice::from_ref(name)));
            }
            if is_short_name(name) {
                let reason = "can be the short name of another file, which may be guarded";
                return Some(Hit::exactly(reason, std::slice::from_ref(name)));
            }
        }
        let first = builtin.globs.matches(path.join("/")).into_iter().next()?;
        let (glob, reason) = builtin.of_glob.get(first)?;
        let key = glob.split('/').filter(|component| *component != "**").map(Key::of_glob).collect();
        Some(Hit { reason: reason.clone(), key, is_file: !glob.ends_with("/**") })
    }
}

impl Hit {
    fn exactly(reason: &str, components: &[String]) -> Self {
        let key = components.iter().cloned().map(Key::Exactly).collect();
        Self { reason: reason.to_owned(), key, is_file: false }
    }

    /// Whether a permission's pattern is about this path on purpose and not by the width of a wildcard: it has no wildcard,
    /// or names what is guarded.
    pub(crate) fn is_named_by(&self, pattern: &str) -> bool {
        if !pattern.contains(is_wildcard) {
            return true;
        }
        let parts: Vec<&str> = pattern.split('/').collect();
        let names = |window: &[&str]| window.iter().zip(&self.key).all(|(part, key)| key.is_named_by(part));
        let mut windows = parts.windows(self.key.len().max(1));
        match (self.key.is_empty(), self.is_file) {
            (true, _) => false,
            (false, true) => windows.next_back().is_some_and(names),
            (false, false) => windows.any(names),
        }
    }
}

impl Key {
    fn of_glob(component: &str) -> Self {
        if !component.contains(is_wildcard) {
            return Self::Exactly(component.to_owned());
        }
        // Of two parts of the same length it is the first that distinguishes the file from others: `mise.*.toml`.
        let longest = component.split(is_wildcard).rev().max_by_key(|part| part.len()).unwrap_or("");
        Self::Like { glob: component.to_owned(), fixed: longest.trim_end_matches('.').to_owned() }
    }

    /// Whether a component of a pattern names this one. Its text between wildcards counts as a whole: `repo.git` does not
    /// name `.git`.
    fn is_named_by(&self, part: &str) -> bool {
        let mut texts = part.split(|c| is_wildcard(c) || c == ',').map(folded).filter(|text| !text.is_empty());
        match self {
            Self::Exactly(name) => texts.any(|text| text == *name) && fits(&folded(part), name),
            Self::Like { glob, fixed } => texts.any(|text| text == *fixed || fits(glob, &text)),
        }
    }
}

fn fits(glob: &str, name: &str) -> bool {
    Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(name))
}

fn is_wildcard(c: char) -> bool {
    matches!(c, '*' | '?' | '[' | ']' | '{' | '}')
}

/// A path's components as they are compared.
fn components(path: &str) -> Vec<String> {
    let path = path.replace('\\', "/");
    let plain = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    plain.map(folded).collect()
}

/// A component as the most careless file system sees it.
fn folded(component: &str) -> String {
    // An alternate data stream of NTFS belongs to its file.
    let name = component.split(':').next().filter(|name| !name.is_empty()).unwrap_or(component);
    let seen = name.chars().filter(|c| !is_ignored(*c)).flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    let seen: String = seen.collect();
    seen.trim_end_matches(['.', ' ']).to_owned()
}

/// Characters that HFS+ ignores in names.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// A name such as `GIT~1`, which FAT and NTFS give to a file with a longer one.
fn is_short_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let Some((head, number)) = stem.rsplit_once('~') else { return false };
    !head.is_empty() && stem.len() <= 8 && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn find(path: &str) -> Option<Hit> {
        Guards::default().find(&[path.to_owned()])
    }

    #[test]
    fn the_list_can_be_used_and_every_reason_is_a_predicate() {
        let builtin = BUILTIN.as_ref().unwrap_or_else(|error| panic!("guarded.toml: {error}"));
        let reasons: BTreeSet<&String> =
            builtin.names.values().chain(builtin.of_glob.iter().map(|(_, reason)| reason)).collect();
        assert!(reasons.len() >= 15, "{reasons:?}");
        for reason in reasons {
            let verb = reason.split(' ').next().unwrap_or_default();
            assert!(verb.ends_with('s') && !reason.ends_with('.'), "{reason}");
        }
        for (bad, why) in [
            ("[[guard]]\nreason = \"r\"\nnames = [\"A\"]", "not case-folded"),
            ("[[guard]]\nreason = \"r\"\nnames = [\"a\", \"a\"]", "listed twice"),
            ("[[guard]]\nreason = \"r\"\nglobs = [\"[\"]", "unclosed"),
            ("[[guard]]\nreasons = \"r\"", "unknown field"),
        ] {
            assert!(parse(bad).is_err_and(|error| error.contains(why)), "{bad}");
        }
    }

    #[test]
    fn no_spelling_is_a_detour() {
        for path in [
            ".git/hooks/pre-commit",
            ".GIT/config",
            "sub/.Git",
            ".git./config",
            ".git /config",
            ".git::$INDEX_ALLOCATION/config",
            ".g\u{200c}it/config",
            ".git\\hooks\\x",
            "GIT~1/config",
            "vendor/HEAD",
            ".envrc",
            "a/.ENVRC",
            ".vs\u{200d}code/tasks.json",
            "mafile/../.VSCODE/tasks.json",
            "Makefile",
            "ma\u{212a}efile",
            "pac\u{212a}age.json",
            "ta\u{17f}kfile.yml",
            "Dockerfile",
            "docker/Dockerfile.dev",
            "x.CSPROJ",
            ".github/workflows/a/b.yml",
            ".cargo/config.toml",
            "build.rs.",
            "BUILD",
            ".tidegate/rules/a.md",
            "docs/tidegate.toml",
        ] {
            assert!(find(path).is_some(), "{path}");
        }
        for path in [
            "src/main.rs",
            "README.md",
            ".gitignore",
            "docs/git/notes.md",
            "build/out.txt",
            "src/head.rs",
            ".github/ISSUE_TEMPLATE.md",
            "src/makefile.rs",
            "environment.rs",
            "hooks/useThing.js",
            "notes~.txt",
            "a.env",
            "package.json.md",
            "workspace/a.rs",
        ] {
            // `makefile.*` is guarded on purpose.
            assert!(find(path).is_none() || path == "src/makefile.rs", "{path}: {:?}", find(path));
        }
    }

    #[test]
    fn only_a_pattern_that_names_the_path_is_about_it() {
        for (path, pattern, named) in [
            (".git/hooks/pre-commit", ".git/hooks/*", true),
            (".git/hooks/pre-commit", "**/.git/**", true),
            (".git/hooks/pre-commit", ".GIT/**", true),
            (".git/hooks/pre-commit", "**", false),
            (".git/hooks/pre-commit", "*/hooks/*", false),
            (".git/hooks/pre-commit", ".git/hooks/pre-commit", true),
            ("web/package.json", "web/*.json", false),
            ("web/package.json", "web/package.json", true),
            ("web/package.json", "**/{package,tsconfig}.json", false),
            ("web/package.json", "**/package.json", true),
            ("a/x.csproj", "**/*.csproj", true),
            ("a/x.csproj", "a/*", false),
            (".env.local", ".env*", true),
            (".github/workflows/ci.yml", ".github/**", false),
            (".github/workflows/ci.yml", ".github/workflows/*.yml", true),
            ("Dockerfile.dev", "Dockerfile*", true),
            ("me.github.io/.git/hooks/pre-commit", "me.github.io/**", false),
            ("me.github.io/.git/hooks/pre-commit", "*.github.io/**", false),
            ("me.github.io/.git/hooks/pre-commit", "me.git*/**", false),
            ("me.github.io/.git/hooks/pre-commit", "me.github.io/.git/**", true),
            ("repo.git/.git/config", "repo.git/**", false),
            ("makefiles/Makefile", "makefiles/**", false),
            ("makefiles/Makefile", "makefiles/*file", false),
            ("makefiles/Makefile", "*/Makefile", true),
            ("headers/HEAD", "headers/**", false),
            ("head/HEAD", "head/*", false),
            ("headers/HEAD", "**/HEAD", true),
            ("gradle-docs/gradle/x", "gradle-docs/**", false),
            ("a/gradle/x", "*/{gradle,docs}/**", true),
            ("a/x.csproj", "*/x.csproj", true),
            ("a/x.csproj", "a/x.cs*", false),
            ("x.csproj.d/a.csproj", "x.csproj.d/**", false),
            ("b.mk/a.mk", "b.mk/*", false),
            ("mise.local.toml", "*.toml", false),
            ("mise.local.toml", "mise*.toml", true),
        ] {
            assert_eq!(find(path).map(|hit| hit.is_named_by(pattern)), Some(named), "{path} {pattern}");
        }
    }
}
