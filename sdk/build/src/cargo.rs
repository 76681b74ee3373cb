//! Runs cargo for a guest and finds the module it made.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::toolchain::{TARGET, Toolchain};
use crate::{BuildError, files, fresh};

/// How guests are compiled where their own `[profile.release]` does not say otherwise: small, fast, with names for traps.
const PROFILE: [(&str, &str); 5] =
    [("opt-level", "3"), ("lto", "true"), ("panic", "abort"), ("codegen-units", "1"), ("strip", "debuginfo")];

/// Byte loops are several times faster with it, and every engine that runs components has it.
const SIMD: &str = "-Ctarget-feature=+simd128";

/// Settings of the surroundings (often of a cargo that runs us) which are not meant for guests.
const NOT_FOR_GUESTS: [&str; 8] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_TARGET_DIR",
    "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
];

/// Compiles the package and gives the path of its module.
pub(crate) fn compile(
    dir: &Path,
    target_dir: &Path,
    toolchain: &Toolchain,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, BuildError> {
    let mut command = command(dir, target_dir, toolchain, &manifest(&dir.join("Cargo.toml"))?)?;
    if dir.join("Cargo.lock").is_file() {
        command.arg("--locked");
    } else {
        progress(&format!("{} has no Cargo.lock: cargo writes one", dir.display()));
    }
    progress(&format!("building {} with {}", dir.display(), toolchain.name));
    let program = toolchain.cargo.display().to_string();
    // For cargo, packages of one name at the root of different workspaces are one: without this it would give us, as
    // fresh, what it made of another folder.
    command.arg("--").arg(format!("-Cmetadata={}", fresh::path_digest(dir)));
    let mut child = command.spawn().map_err(|source| BuildError::Start { program: program.clone(), source })?;
    let (messages, stderr) = listen(&mut child, progress);
    let status = child.wait().map_err(|source| BuildError::Start { program, source })?;
    if !status.success() {
        let stderr = with_folders(&stderr, dir);
        return Err(BuildError::Cargo { dir: dir.to_owned(), status: status.to_string(), stderr });
    }
    module(dir, &messages).ok_or_else(|| BuildError::NoModule { dir: dir.to_owned() })
}

/// Refuses a package that would compile for a minute and make no module.
pub(crate) fn check_crate_type(dir: &Path) -> Result<(), BuildError> {
    let manifest = manifest(&dir.join("Cargo.toml"))?;
    let lib = manifest.get("lib");
    // Cargo takes both spellings.
    let types = lib.and_then(|lib| lib.get("crate-type").or_else(|| lib.get("crate_type")));
    let types = types.and_then(toml::Value::as_array);
    if types.is_some_and(|types| types.iter().any(|one| one.as_str() == Some("cdylib"))) {
        return Ok(());
    }
    Err(BuildError::NoModule { dir: dir.to_owned() })
}

fn command(
    dir: &Path,
    target_dir: &Path,
    toolchain: &Toolchain,
    manifest: &toml::Table,
) -> Result<Command, BuildError> {
    let mut command = Command::new(&toolchain.cargo);
    command
        .args(["rustc", "--lib", "--release", "--target", TARGET])
        .args(["--message-format", "json-render-diagnostics", "--target-dir"])
        .arg(target_dir)
        .args(&toolchain.arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in NOT_FOR_GUESTS {
        command.env_remove(name);
    }
    for (key, value) in profile(manifest) {
        command.env(format!("CARGO_PROFILE_RELEASE_{}", key.to_uppercase().replace('-', "_")), value);
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", rustflags(dir)).envs(toolchain.environment.iter().cloned());
    Ok(command)
}

/// A component is given to others, and panic messages name source files: the folders of this machine become short names. The flags are
/// the same for all packages of a repository, which share what they compile.
fn rustflags(dir: &Path) -> OsString {
    let mut flags = OsString::from(SIMD);
    for (folder, name) in short_names(dir) {
        // Between the flags is a separator of cargo's, which a folder may not contain.
        if !folder.as_os_str().as_encoded_bytes().contains(&0x1f) {
            flags.push("\u{1f}--remap-path-prefix=");
            flags.push(folder);
            flags.push("=");
            flags.push(name);
        }
    }
    flags
}

/// Diagnostics of the compiler name files as components do: whoever reads them gets the folders back.
fn with_folders(text: &str, dir: &Path) -> String {
    short_names(dir).iter().fold(text.to_owned(), |text, (folder, name)| {
        let arrows = ["--> ", "::: "];
        arrows.iter().fold(text, |text, arrow| {
            text.replace(&format!("{arrow}{name}/"), &format!("{arrow}{}/", folder.display()))
        })
    })
}

/// The folders of this machine, and what stands for them in components. Of several that contain a file, the last counts.
fn short_names(dir: &Path) -> Vec<(PathBuf, &'static str)> {
    let home = std::env::home_dir();
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| home.as_ref().map(|home| home.join(".cargo")));
    let repository = dir.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(dir);
    let folders = [(home, "~"), (cargo_home, "/cargo"), (Some(repository.to_owned()), "/source")];
    // A prefix of everything, such as the root folder, names no machine.
    let is_folder = |folder: &PathBuf| folder.parent().is_some();
    folders.into_iter().filter_map(|(folder, name)| Some((folder.filter(is_folder)?, name))).collect()
}

fn manifest(path: &Path) -> Result<toml::Table, BuildError> {
    let text = String::from_utf8_lossy(&files::read(path)?).into_owned();
    text.parse()
        .map_err(|error: toml::de::Error| BuildError::BadManifest { path: path.to_owned(), problem: error.to_string() })
}

/// What of [`PROFILE`] the package does not say itself.
fn profile(manifest: &toml::Table) -> Vec<(&'static str, &'static str)> {
    let own = manifest.get("profile").and_then(|profiles| profiles.get("release"));
    PROFILE.into_iter().filter(|(key, _)| own.is_none_or(|own| own.get(key).is_none())).collect()
}

/// Reads both outputs to their end: cargo's messages, and the human-readable output, whose progress lines are passed
/// on.
fn listen(child: &mut Child, progress: &mut dyn FnMut(&str)) -> (String, String) {
    let stdout = child.stdout.take();
    let messages = std::thread::spawn(move || {
        let mut text = Vec::new();
        // A pipe that breaks ends the messages; the exit status tells the rest.
        let _ = stdout.map(|mut stdout| stdout.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut words = String::new();
    for line in
        child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).split(b'\n')).map_while(Result::ok)
    {
        let line = String::from_utf8_lossy(&line).into_owned();
        if is_progress(&line) {
            progress(line.trim());
        } else {
            words.push_str(&line);
            words.push('\n');
        }
    }
    (messages.join().unwrap_or_default(), words.trim_end().to_owned())
}

/// Whether a line of cargo's is a step of its work: a verb in its right-aligned first column.
fn is_progress(line: &str) -> bool {
    let verb = line.trim_start().split(' ').next().unwrap_or_default();
    line.starts_with(' ') && line.len() - line.trim_start().len() + verb.len() == 12
}

/// The module among cargo's messages: that of this package, not of a dependency.
fn module(dir: &Path, messages: &str) -> Option<PathBuf> {
    let manifest = dir.join("Cargo.toml");
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter(|message| message["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest))
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_name_files_that_exist() {
        let text = with_folders("error: x\n --> /source/d/src/lib.rs:1:16\n", Path::new("/nowhere/plugin"));
        assert_eq!(text, "error: x\n --> /nowhere/plugin/d/src/lib.rs:1:16\n");
    }

    #[test]
    fn steps_are_told_from_diagnostics() {
        assert!(is_progress("   Compiling serde v1.0.229"));
        assert!(is_progress("    Finished `release` profile [optimized] target(s) in 0.13s"));
        assert!(!is_progress("error[E0425]: cannot find value `x`"));
        assert!(!is_progress("  --> src/lib.rs:3:5"));
        assert!(!is_progress(""));
    }
}
