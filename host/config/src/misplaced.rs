//! Files with the name of a configuration file at places where nothing reads them.

use std::path::{Path, PathBuf};

use crate::presence::is_there;
use crate::{Code, Diagnostic, OPERATOR_FILE, errors, events, thread_limits};

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
    let help = format!("it has an effect as `{}`", target.display());
    Diagnostic::warning(Code::ConfigNotRead, message).help(help)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::misplaced;

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
            let place = tempfile::tempdir().expect("a folder");
            let path = |name: &str| place.path().join(name);
            std::fs::create_dir_all(path(file).parent().unwrap_or(Path::new("/"))).expect("a folder");
            std::fs::write(path(file), "").expect("a file");
            let found = misplaced(Some(&path("home/tidegate")), &path("work"));
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            let expected = target.map(|target| {
                let (file, target) = (path(file).display().to_string(), path(target).display().to_string());
                format!("warning[config-not-read]: `{file}` is not read; it has an effect as `{target}`")
            });
            assert_eq!(found, Vec::from_iter(expected), "{file}");
        }
    }
}
