//! `tidegate plugin build --watch`: builds a plugin again whenever its source changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::{plugin, say};

/// Time between two looks at the source.
const LOOK: Duration = Duration::from_millis(300);

/// Folders within folders that are looked into.
const MAX_DEPTH: u32 = 16;

/// What a build writes.
const BUILT: [&str; 3] = ["target", "component.wasm", "Cargo.lock"];

/// The files of a plugin's source, with when each was changed and its size.
type Source = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Builds the plugin in `folder` now and after each change, until the program is ended. A build that fails is reported, and the
/// component of the last one that succeeded stays.
///
/// # Errors
/// Standard output is gone, or the folder is.
pub(crate) fn build(common: &Common, folder: &Path) -> Result<Exit, Failure> {
    let mut changes = Changes::default();
    loop {
        let source = source(folder);
        if source.is_empty() {
            return Err(Failure::setup(format_args!("there are no files in {}", flat(&folder.display().to_string()))));
        }
        if changes.are_complete(source) {
            match plugin::build(common, folder) {
                Ok(_) => {}
                Err(failure) if failure.is_silent() => return Err(failure),
                Err(failure) => drop(failure.report()),
            }
            say::note("waiting for changes of the source; Ctrl+C ends");
        }
        sleep(LOOK);
    }
}

/// What was built, and what the last look has found.
#[derive(Debug, Default)]
struct Changes {
    built: Option<Source>,
    seen: Option<Source>,
}

impl Changes {
    /// Takes what a look has found, and returns whether it is to be built now: the first at once, a change when two looks find the same. A
    /// file that is being written is empty or half of one for a moment.
    fn are_complete(&mut self, source: Source) -> bool {
        let is_new = self.built.as_ref() != Some(&source);
        let is_still = self.built.is_none() || self.seen.as_ref() == Some(&source);
        if is_new && is_still {
            self.built = Some(source.clone());
        }
        self.seen = Some(source);
        is_new && is_still
    }
}

/// All files of the folder but hidden ones and what is built.
fn source(folder: &Path) -> Source {
    let mut source = Source::new();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            if name.starts_with('.') || BUILT.contains(&name.as_ref()) || name.ends_with(".partial") {
                continue;
            }
            // Links are followed: what they lead to is source too.
            let Ok(about) = std::fs::metadata(&path) else { continue };
            if about.is_dir() && depth < MAX_DEPTH {
                open.push((path, depth + 1));
            } else if about.is_file() {
                source.insert(path, (about.modified().ok(), about.len()));
            }
        }
    }
    source
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Changes, Source, source};
    use std::fs;

    #[test]
    fn what_is_still_being_written_is_not_built() {
        let of = |bytes| Source::from([("lib.rs".into(), (None, bytes))]);
        let mut changes = Changes::default();
        let looks = [(9, true), (9, false), (0, false), (5, false), (5, true), (5, false), (9, false), (9, true)];
        for (look, (bytes, built)) in looks.into_iter().enumerate() {
            assert_eq!(changes.are_complete(of(bytes)), built, "look {look}");
        }
    }

    #[test]
    fn what_is_built_and_hidden_files_are_no_source() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["src/deep/a.rs", "plugin.toml", "target/x", "component.wasm", ".git/x", "component.1-2.partial"] {
            fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
            fs::write(folder.path().join(file), "x").unwrap();
        }
        let before = source(folder.path());
        let names: Vec<_> = before.keys().map(|path| path.strip_prefix(folder.path()).unwrap().to_owned()).collect();
        assert_eq!(names, ["plugin.toml", "src/deep/a.rs"].map(Into::<std::path::PathBuf>::into));
        fs::write(folder.path().join("component.wasm"), "more").unwrap();
        assert_eq!(source(folder.path()), before);
        fs::write(folder.path().join("src/deep/a.rs"), "more").unwrap();
        assert_ne!(source(folder.path()), before);
    }
}
