//! Whether a component is up to date: a list of all inputs with their digests is stored next to it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::{BuildError, Way, files};

/// First line of a list; another number here makes every older component stale.
const HEAD: &str = "tidegate-build 2";

/// Where a package's component and its list of inputs are.
pub(crate) struct Place {
    /// The path of the built component.
    pub(crate) component: PathBuf,
    list: PathBuf,
    package: PathBuf,
    way: String,
}

impl Place {
    /// The place of one package in a target folder: named after its folder, made unique by its whole path.
    pub(crate) fn new(package: &Path, target_dir: &Path, way: Option<&Way>) -> Self {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        let stem = target_dir.join("components").join(format!("{name}-{}", path_digest(package)));
        Self {
            component: stem.with_extension("wasm"),
            list: stem.with_extension("inputs"),
            package: package.to_owned(),
            way: way.map_or_else(|| "any".to_owned(), ToString::to_string),
        }
    }

    /// The component and its digest, where nothing that went into it has changed.
    pub(crate) fn fresh(&self) -> Option<(Vec<u8>, String)> {
        let list = fs::read_to_string(&self.list).ok()?;
        let bytes = fs::read(&self.component).ok()?;
        let digest = hex(&Sha256::digest(&bytes));
        let mut lines = list.lines();
        let head = [HEAD.to_owned(), format!("way {}", self.way), format!("component {digest}")];
        let same = head.iter().all(|line| lines.next() == Some(line))
            && lines
                .all(|line| line.split_once(' ').is_some_and(|(digest, path)| digest == digest_of(Path::new(path))));
        same.then_some((bytes, digest))
    }

    /// Writes the component, then its list. Returns the component's digest. An input that was written since the build `began` may not be
    /// what was compiled: then there is no list, and the next build compiles again.
    pub(crate) fn store(&self, bytes: &[u8], module: &Path, began: SystemTime) -> Result<String, BuildError> {
        let digest = hex(&Sha256::digest(bytes));
        let inputs = self.inputs(module)?;
        // Cargo writes the lock file itself, and what build scripts make is in the target folder.
        let target_dir = self.component.ancestors().nth(2).unwrap_or(Path::new("/"));
        let is_own = |input: &Path| input.ends_with("Cargo.lock") || input.starts_with(target_dir);
        let written = |input: &PathBuf| {
            let modified = input.metadata().and_then(|about| about.modified());
            !is_own(input) && modified.is_ok_and(|modified| modified >= began)
        };
        if inputs.iter().any(written) {
            drop(fs::remove_file(&self.list));
            files::write(&self.component, bytes)?;
            return Ok(digest);
        }
        let mut list = format!("{HEAD}\nway {}\ncomponent {digest}\n", self.way);
        for input in inputs {
            // Writing to a String cannot fail.
            let _ = writeln!(list, "{} {}", digest_of(&input), input.display());
        }
        files::write(&self.component, bytes)?;
        files::write(&self.list, list.as_bytes())?;
        Ok(digest)
    }

    /// What cargo compiled in, and the manifests that decide how.
    fn inputs(&self, module: &Path) -> Result<BTreeSet<PathBuf>, BuildError> {
        let dep_info = module.with_extension("d");
        let text = String::from_utf8_lossy(&files::read(&dep_info)?).into_owned();
        let mut inputs: BTreeSet<PathBuf> = prerequisites(&text).collect();
        let manifests: BTreeSet<PathBuf> = inputs
            .iter()
            .flat_map(|input| input.ancestors().skip(1))
            .map(|dir| dir.join("Cargo.toml"))
            .filter(|manifest| manifest.is_file())
            .collect();
        inputs.extend(manifests);
        // Also where they are not there yet: appearing is a change.
        let own =
            ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "rust-toolchain", ".cargo/config.toml", "build.rs"];
        inputs.extend(own.map(|name| self.package.join(name)));
        Ok(inputs)
    }
}

/// The files after the colon of a make rule; `\ ` is a space in a name.
fn prerequisites(rule: &str) -> impl Iterator<Item = PathBuf> + '_ {
    let files = rule.lines().next().and_then(|line| line.split_once(": ")).map_or("", |(_, files)| files);
    let mut names = vec![String::new()];
    let mut characters = files.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&' ') => {
                characters.next();
                if let Some(name) = names.last_mut() {
                    name.push(' ');
                }
            }
            ' ' => names.push(String::new()),
            other => {
                if let Some(name) = names.last_mut() {
                    name.push(other);
                }
            }
        }
    }
    names.into_iter().filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// Eight digits that identify a package by its folder.
pub(crate) fn path_digest(package: &Path) -> String {
    hex(&Sha256::digest(package.as_os_str().as_encoded_bytes())[..4])
}

/// The digest of a file as it is now; a file that cannot be read has `-`.
fn digest_of(path: &Path) -> String {
    fs::read(path).map_or_else(|_| "-".to_owned(), |bytes| hex(&Sha256::digest(&bytes)))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::with_capacity(2 * digest.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_are_one_file() {
        let found: Vec<PathBuf> = prerequisites("/t/a.wasm: /s/a\\ b.rs /s/c.rs\n\n/s/c.rs:\n").collect();
        assert_eq!(found, [PathBuf::from("/s/a b.rs"), PathBuf::from("/s/c.rs")]);
    }

    #[test]
    fn a_rule_without_files_has_none() {
        assert_eq!(prerequisites("").count(), 0);
        assert_eq!(prerequisites("/t/a.wasm:").count(), 0);
    }
}
