//! The files of the repository, as git knows them (and new ones that it does not ignore).

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file; `text` is empty if it is not text.
#[derive(Debug)]
pub(crate) struct File {
    /// From the top folder, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn sample(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is what a generator writes from a text that is checked itself: nobody can split or word it.
    pub(crate) fn is_generated(&self) -> bool {
        self.path.starts_with("sdk/rust/src/bindings/")
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the files that git tracks or would track.
pub(crate) fn files() -> Vec<File> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
    let output = Command::new("git").args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
    let read = |path: &str| {
        // A file that git still lists and that has just been removed is ignored.
        let bytes = std::fs::read(root().join(path)).ok()?;
        Some(File { path: path.to_owned(), text: String::from_utf8(bytes).unwrap_or_default() })
    };
    names.split('\0').filter(|name| !name.is_empty()).filter_map(read).collect()
}

#[test]
fn the_files_are_those_of_the_repository() {
    let files = files();
    let own = files.iter().find(|file| file.path == "tests/tests/tidy/tree.rs");
    assert!(own.is_some_and(|file| file.text == include_str!("tree.rs")));
    assert!(files.iter().any(File::is_generated) && !own.unwrap().is_generated());
    assert!(
        files.iter().any(|file| file.path == "Cargo.lock")
            && !files.iter().any(|file| file.path.starts_with("target/"))
    );
}
