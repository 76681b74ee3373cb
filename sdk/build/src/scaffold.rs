//! A new plugin from a template: the files of a package that builds, has a passing test and can be tried without a key.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The files of a new plugin: their paths in its folder, and their contents with `{{name}}` and `{{sdk}}` to be filled in.
const FILES: [(&str, &str); 5] = [
    ("Cargo.toml", include_str!("../template/Cargo.toml.txt")),
    ("plugin.toml", include_str!("../template/plugin.toml.txt")),
    ("src/lib.rs", include_str!("../template/lib.rs.txt")),
    (".gitignore", "/target\n/component.wasm\n"),
    (RECORDING, include_str!("../template/hello.jsonl")),
];

/// The recorded answer in a new plugin's folder: it replaces a model, so that the plugin can be tried without a key.
pub const RECORDING: &str = "hello.jsonl";

/// Words that cargo or Rust refuse as the name of a package.
const RESERVED: [&str; 13] = [
    "tidegate-sdk",
    "test",
    "core",
    "std",
    "alloc",
    "proc-macro",
    "fn",
    "impl",
    "mod",
    "self",
    "struct",
    "trait",
    "use",
];

/// Why no plugin was created. Nothing has been written, except for [`ScaffoldError::Write`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaffoldError {
    /// The folder's name cannot be the plugin's id and its package's name.
    #[error("`{name}` cannot be the name of a plugin: {why}")]
    Name {
        /// The last part of the given path.
        name: String,
        /// Which rule it breaks.
        why: &'static str,
    },
    /// There is something already where the plugin would go.
    #[error("{} already exists; choose another name, or remove it first", .folder.display())]
    Exists {
        /// The folder that was to be created.
        folder: PathBuf,
    },
    /// The SDK was not found near the new folder.
    #[error(
        "cannot find the SDK next to {}: name it with --sdk FOLDER (the clone of Tidegate, or `sdk/rust` in it)",
        .folder.display()
    )]
    NoSdk {
        /// The folder that was to be created.
        folder: PathBuf,
    },
    /// The given folder is not the SDK.
    #[error(
        "{} is not the SDK: neither its Cargo.toml nor that of `sdk/rust` in it names the package `tidegate-sdk`; name the clone of Tidegate",
        .folder.display()
    )]
    NotSdk {
        /// The given folder.
        folder: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Creates a plugin in `folder`, which must not exist; its last part is the plugin's id. Returns the created files.
///
/// `sdk` is the folder of the SDK, or the repository that contains it. Without it, `sdk/rust` is searched in every folder above the new one, and in a folder
/// `tidegate` next to any of them.
///
/// # Errors
/// The name is not allowed, the folder exists, the SDK is not found, or a file cannot be written.
pub fn create_plugin(folder: &Path, sdk: Option<&Path>) -> Result<Vec<PathBuf>, ScaffoldError> {
    let folder = whole(folder).map_err(|source| ScaffoldError::Write { path: folder.to_owned(), source })?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(why) = refused(&name) {
        return Err(ScaffoldError::Name { name, why });
    }
    if folder.symlink_metadata().is_ok() {
        return Err(ScaffoldError::Exists { folder });
    }
    let sdk = match sdk {
        Some(given) => sdk_in(given).ok_or_else(|| ScaffoldError::NotSdk { folder: given.to_owned() })?,
        None => find_sdk(&folder).ok_or_else(|| ScaffoldError::NoSdk { folder: folder.clone() })?,
    };
    let sdk = toml::Value::from(relative(&folder, &sdk)).to_string();
    let mut written = Vec::new();
    for (file, text) in FILES {
        let path = folder.join(file);
        // The name has no braces, so nothing is filled in twice.
        let text = text.replace("{{name}}", &name).replace("{{sdk}}", &sdk);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(|source| ScaffoldError::Write { path: parent.to_owned(), source })?;
        fs::write(&path, text).map_err(|source| ScaffoldError::Write { path: path.clone(), source })?;
        written.push(path);
    }
    Ok(written)
}

/// Why a name cannot be both the id of a plugin and the name of a package.
fn refused(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > 64 {
        return Some("it must have 1 to 64 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Some("only letters, digits and hyphens are allowed");
    }
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Some("it must begin with a letter, because cargo wants it so");
    }
    RESERVED.contains(&name).then_some("Rust or cargo reserve this word")
}

/// The path from the root, with links and `..` resolved as far as it exists, and the rest by name.
fn whole(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let real = |above: &Path| Some((path.strip_prefix(above).ok()?.to_owned(), above.canonicalize().ok()?));
    let Some((rest, mut whole)) = path.ancestors().find_map(real) else { return Ok(path) };
    for part in rest.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    Ok(whole)
}

fn is_sdk(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok().and_then(|text| text.parse::<toml::Table>().ok());
    manifest.is_some_and(|manifest| {
        let name = manifest.get("package").and_then(|package| package.get("name"));
        name.and_then(toml::Value::as_str) == Some("tidegate-sdk")
    })
}

/// The SDK in a folder that a user named: the folder itself, or `sdk/rust` of the repository.
fn sdk_in(given: &Path) -> Option<PathBuf> {
    [given.to_owned(), given.join("sdk/rust")].into_iter().find(|place| is_sdk(place))
}

fn find_sdk(folder: &Path) -> Option<PathBuf> {
    let places = folder.ancestors().skip(1).flat_map(|above| [above.join("sdk/rust"), above.join("tidegate/sdk/rust")]);
    places.into_iter().find(|place| is_sdk(place))
}

/// `target` as seen from `folder`, with `/`; absolute where the two have no folder in common.
fn relative(folder: &Path, target: &Path) -> String {
    let target = whole(target).unwrap_or_else(|_| target.to_owned());
    let (from, to): (Vec<_>, Vec<_>) = (folder.components().collect(), target.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    if from[..common].iter().all(|part| matches!(part, Component::RootDir | Component::Prefix(_))) {
        return target.to_string_lossy().into_owned();
    }
    let up = from[common..].iter().map(|_| "..".to_owned());
    let down = to[common..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::{refused, relative};
    use std::path::Path;

    #[test]
    fn names_that_cargo_or_the_host_refuse_are_refused() {
        for name in ["", "a b", "a.b", "1st", "-a", "core", "tidegate-sdk", &"a".repeat(65)] {
            assert!(refused(name).is_some(), "{name:?}");
        }
        for name in ["a", "shout", "shout-2", "my-SDK", "result", &"a".repeat(64)] {
            assert_eq!(refused(name), None, "{name:?}");
        }
    }

    #[test]
    fn the_sdk_is_named_from_the_plugins_folder() {
        let sdk = Path::new("/a/tidegate/sdk/rust");
        assert_eq!(relative(Path::new("/a/shout"), sdk), "../tidegate/sdk/rust");
        assert_eq!(relative(Path::new("/a/tidegate/plugins/shout"), sdk), "../../sdk/rust");
        assert_eq!(relative(Path::new("/b/shout"), sdk), "/a/tidegate/sdk/rust");
        assert_eq!(
            relative(Path::new("/a/b/shout"), Path::new("/a/c/../tidegate/sdk/rust")),
            "../../tidegate/sdk/rust"
        );
    }
}
