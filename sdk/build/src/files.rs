//! Files and folders: where a build reads and writes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::BuildError;

/// The package's folder, absolute and without links, so that one package has one name.
pub(crate) fn package_dir(dir: &Path) -> Result<PathBuf, BuildError> {
    if !dir.exists() {
        return Err(BuildError::NoFolder { dir: dir.to_owned() });
    }
    if !dir.join("Cargo.toml").is_file() {
        return Err(BuildError::NoPackage { dir: dir.to_owned() });
    }
    fs::canonicalize(dir).map_err(|source| BuildError::File { doing: "read", path: dir.to_owned(), source })
}

/// The path from the root, links left as they are.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, BuildError> {
    std::path::absolute(path).map_err(|source| BuildError::File { doing: "read", path: path.to_owned(), source })
}

/// `target/guests` of the nearest workspace above the package; without one `tidegate/guests` in the user's cache folder, so
/// that plugins in different places compile the SDK once; without that `target/guests` of the package itself.
pub(crate) fn default_target_dir(package: &Path) -> PathBuf {
    target_dir(package, user_cache())
}

fn target_dir(package: &Path, cache: Option<PathBuf>) -> PathBuf {
    let is_workspace = |dir: &&Path| {
        fs::read_to_string(dir.join("Cargo.toml"))
            .is_ok_and(|text| text.lines().any(|line| line.trim_start().starts_with("[workspace")))
    };
    match (package.ancestors().skip(1).find(is_workspace), cache) {
        (None, Some(cache)) => cache.join("tidegate").join("guests"),
        (workspace, _) => workspace.unwrap_or(package).join("target").join("guests"),
    }
}

/// The folder for what can be made again.
fn user_cache() -> Option<PathBuf> {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let below_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(below_home)))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    fs::read(path).map_err(|source| BuildError::File { doing: "read", path: path.to_owned(), source })
}

/// Writes a file atomically: under another name first, then renamed.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let error = |source| BuildError::File { doing: "write", path: path.to_owned(), source };
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(error)?;
    }
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    let partial = path.with_extension(format!("{}-{thread}.partial", std::process::id()));
    fs::write(&partial, bytes).map_err(error)?;
    fs::rename(&partial, path).map_err(error)
}

/// Dates a file as written now.
pub(crate) fn touch(path: &Path) -> Result<(), BuildError> {
    let error = |source| BuildError::File { doing: "date", path: path.to_owned(), source };
    let file = File::options().write(true).open(path).map_err(error)?;
    file.set_modified(std::time::SystemTime::now()).map_err(error)
}

/// Waits until no other process builds in this folder. Dropping the file, or the end of the process, lets the next
/// one in.
pub(crate) fn lock(target_dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<File, BuildError> {
    let path = target_dir.join("build.lock");
    let error = |source| BuildError::File { doing: "lock", path: path.clone(), source };
    fs::create_dir_all(target_dir).map_err(error)?;
    let file = File::options().create(true).append(true).open(&path).map_err(error)?;
    if file.try_lock().is_err() {
        progress(&format!("waiting for another build in {}", target_dir.display()));
        file.lock().map_err(error)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot set up its files has failed")]

    use super::*;

    #[test]
    fn plugins_outside_of_a_workspace_share_a_folder() {
        let root = std::env::temp_dir().join(format!("tidegate-build-{}", std::process::id()));
        let (inside, outside, cache) = (root.join("ws/plugins/a"), root.join("b"), root.join("cache"));
        [&inside, &outside].into_iter().for_each(|dir| fs::create_dir_all(dir).unwrap());
        fs::write(root.join("ws/Cargo.toml"), "[workspace]\n").unwrap();
        assert_eq!(target_dir(&inside, Some(cache.clone())), root.join("ws/target/guests"));
        assert_eq!(target_dir(&outside, Some(cache.clone())), cache.join("tidegate/guests"));
        assert_eq!(target_dir(&outside, None), outside.join("target/guests"));
        fs::remove_dir_all(&root).unwrap();
    }
}
