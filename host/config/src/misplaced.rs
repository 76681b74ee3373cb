//! Files with the name of a configuration file at places where nothing reads them.

use std::path::{Path, PathBuf};

use crate::presence::is_there;
use crate::{Code, Diagnostic, OPERATOR_FILE, errors, events, misspelt, thread_limits};

/// The formats that somebody may have written a file in.
const FORMATS: [&str; 4] = ["toml", "yaml", "yml", "json"];

/// A kind of file.
struct Kind {
    /// Its name without the format.
    stem: &'static str,
    /// The names that are read.
    read: &'static [&'static str],
    /// No other program has files of this name.
    is_own: bool,
    /// The name that is proposed.
    file: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind { stem: "thread_events", read: &[events::FILE, events::YAML_FILE], is_own: true, file: events::FILE },
    Kind { stem: "thread_limits", read: &[thread_limits::FILE], is_own: true, file: thread_limits::FILE },
    Kind { stem: "errors", read: &[errors::FILE], is_own: false, file: errors::FILE },
];

/// A warning for each file of the user (`user`: `tidegate` in the configuration folder) and of a workspace that nothing reads, with the place
/// where it would be read.
pub fn misplaced(user: Option<&Path>, workspace: &Path) -> Vec<Diagnostic> {
    let project = workspace.join(".tidegate");
    let mut found = Vec::new();
    for kind in &KINDS {
        for folder in [project.as_path()].into_iter().chain(user) {
            let names = kind.names(folder, |name| !kind.read.contains(&name));
            found.extend(names.iter().map(|file| warning(file, &folder.join(kind.file))));
        }
        if !kind.is_own {
            continue;
        }
        let foreign = workspace.join(events::FOREIGN_FOLDER);
        let is_read_there = |name: &str| kind.stem == "thread_events" && name == events::YAML_FILE;
        let above = user.and_then(Path::parent);
        let elsewhere =
            kind.names(workspace, |_| true).into_iter().chain(kind.names(&foreign, |name| !is_read_there(name)));
        found.extend(elsewhere.map(|file| warning(&file, &project.join(kind.file))));
        let (above, user) = (above.map(|above| kind.names(above, |_| true)), user.unwrap_or(&project));
        found.extend(above.into_iter().flatten().map(|file| warning(&file, &user.join(kind.file))));
    }
    let near = [project.as_path()].into_iter().chain(user).flat_map(misspelt::in_folder);
    let near = near.chain(misspelt::folders(workspace, ".tidegate"));
    found.extend(near.map(|(file, target)| warning(&file, &target)));
    let inner = project.join(OPERATOR_FILE);
    if is_there(&inner).unwrap_or(false) {
        found.push(warning(&inner, &workspace.join(OPERATOR_FILE)));
    }
    found
}

impl Kind {
    /// The files of the kind in a folder that nothing reads there.
    fn names(&self, folder: &Path, is_unread: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let names = FORMATS.iter().map(|format| format!("{}.{format}", self.stem)).filter(|name| is_unread(name));
        names.map(|name| folder.join(name)).filter(|file| is_there(file).unwrap_or(false)).collect()
    }
}

fn warning(file: &Path, target: &Path) -> Diagnostic {
    let message = format!("`{}` is not read", file.display());
    let target = resolved(target);
    let help = format!("it has an effect as `{target}`");
    Diagnostic::warning(Code::ConfigNotRead, message).help(help)
}

/// A path in which `..` is resolved by its text.
fn resolved(path: &Path) -> String {
    flow::text::normal_path(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::misplaced;

    /// With this file alone, this is reported: a path, and where it would be read.
    fn holds(file: &str, reported: Option<(&str, &str)>) {
        let place = tempfile::tempdir().expect("a folder");
        let path = |name: &str| place.path().join(name);
        std::fs::create_dir_all(path(file).parent().unwrap_or(Path::new("/"))).expect("a folder");
        std::fs::write(path(file), "").expect("a file");
        let found = misplaced(Some(&path("home/tidegate")), &path("work"));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected = reported.map(|(what, target)| {
            let (what, target) = (path(what).display().to_string(), path(target).display().to_string());
            format!("warning[config-not-read]: `{what}` is not read; it has an effect as `{target}`")
        });
        assert_eq!(found, Vec::from_iter(expected), "{file}");
    }

    /// One row per case: a file, and where it would be read; `None`: it is read, or is no such file.
    #[test]
    fn a_file_that_nothing_reads_is_reported_with_its_place() {
        for (file, target) in [
            ("work/.tidegate/thread_events.toml", None),
            ("work/.tidegate/thread_events.yaml", None),
            ("work/.tidegate/thread_limits.toml", None),
            ("work/.tidegate/errors.toml", None),
            ("work/.ai/config/thread_events.yaml", None),
            ("home/tidegate/thread_events.yaml", None),
            ("home/tidegate/errors.toml", None),
            ("work/errors.toml", None),
            ("work/.ai/config/errors.yaml", None),
            ("home/errors.toml", None),
            ("work/tidegate.toml", None),
            ("work/thread_events.toml", Some("work/.tidegate/thread_events.toml")),
            ("work/thread_events.yaml", Some("work/.tidegate/thread_events.toml")),
            ("work/thread_limits.toml", Some("work/.tidegate/thread_limits.toml")),
            ("work/.tidegate/thread_events.yml", Some("work/.tidegate/thread_events.toml")),
            ("work/.tidegate/thread_limits.yaml", Some("work/.tidegate/thread_limits.toml")),
            ("work/.tidegate/errors.yaml", Some("work/.tidegate/errors.toml")),
            ("work/.tidegate/errors.json", Some("work/.tidegate/errors.toml")),
            ("work/.ai/config/thread_events.toml", Some("work/.tidegate/thread_events.toml")),
            ("work/.ai/config/thread_limits.yaml", Some("work/.tidegate/thread_limits.toml")),
            ("work/.tidegate/tidegate.toml", Some("work/tidegate.toml")),
            ("home/thread_events.toml", Some("home/tidegate/thread_events.toml")),
            ("home/tidegate/thread_limits.yaml", Some("home/tidegate/thread_limits.toml")),
        ] {
            holds(file, target.map(|target| (file, target)));
        }
    }

    /// One row per case: a file, what is reported of it, and where it would be read.
    #[test]
    fn a_misspelt_name_is_reported_with_the_right_one() {
        for (file, reported) in [
            ("work/.tidegate/rules/rule.md", None),
            ("work/.tidegate/agents/reviewer.md", None),
            ("work/.tidegate/notes.md", None),
            ("work/.tidegate/cache/errors.log", None),
            ("work/.tidegates.md", None),
            ("work/.tidegat/other.md", None),
            ("work/tidegate/rules/a.md", None),
            ("work/.tidegate/rules.md", Some(("work/.tidegate/rules.md", "work/.tidegate/rules/NAME.md"))),
            ("work/.tidegate/rule.mdc", Some(("work/.tidegate/rule.mdc", "work/.tidegate/rules/NAME.md"))),
            ("work/.tidegate/rules.toml", Some(("work/.tidegate/rules.toml", "work/.tidegate/rules/NAME.md"))),
            ("work/.tidegate/rule/a.md", Some(("work/.tidegate/rule", "work/.tidegate/rules"))),
            ("work/.tidegate/Rules/a.md", Some(("work/.tidegate/Rules", "work/.tidegate/rules"))),
            ("work/.tidegate/agent/a.md", Some(("work/.tidegate/agent", "work/.tidegate/agents"))),
            ("work/.tidegate/agents.md", Some(("work/.tidegate/agents.md", "work/AGENTS.md"))),
            ("work/.tidegate/error.toml", Some(("work/.tidegate/error.toml", "work/.tidegate/errors.toml"))),
            (
                "work/.tidegate/thread-limits.toml",
                Some(("work/.tidegate/thread-limits.toml", "work/.tidegate/thread_limits.toml")),
            ),
            (
                "work/.tidegate/thread_event.yaml",
                Some(("work/.tidegate/thread_event.yaml", "work/.tidegate/thread_events.toml")),
            ),
            ("work/.tide-gate/rules/a.md", Some(("work/.tide-gate", "work/.tidegate"))),
            ("home/tidegate/rule/a.md", Some(("home/tidegate/rule", "home/tidegate/rules"))),
        ] {
            holds(file, reported);
        }
    }
}
