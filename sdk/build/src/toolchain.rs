//! Finds a Rust toolchain that can compile for wasm. Each way is tried; none is guessed by the operating system.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::BuildError;

/// What guests are compiled for: a target without a system, so that no import but the contract's can appear.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// The environment variable that names the way: `sysroot`, `rustup`, `system`, or the folder of a toolchain.
pub const TOOLCHAIN_VARIABLE: &str = "TIDEGATE_WASM_TOOLCHAIN";

/// Debian's packages that can compile for wasm next to any other toolchain.
const DEBIAN_INSTALL: &str =
    "apt-get update && apt-get install -y --no-install-recommends rustc-web cargo-web rust-web-src";

/// A way to a toolchain, in the order in which they are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// The toolchain at hand (`cargo` and `rustc` on the path) has the target installed.
    Sysroot,
    /// The same after `rustup target add`, which downloads.
    Rustup,
    /// `/usr/bin/cargo` and `/usr/bin/rustc` of the system's packages, which bring the library as source.
    System,
    /// The toolchain in this folder (with `bin/cargo` and `bin/rustc`); tried only when named.
    At(PathBuf),
}

impl Way {
    /// The value of [`TOOLCHAIN_VARIABLE`].
    pub(crate) fn from_environment() -> Option<Self> {
        let value = std::env::var_os(TOOLCHAIN_VARIABLE).filter(|value| !value.is_empty())?;
        Some(match value.to_str() {
            Some("sysroot") => Self::Sysroot,
            Some("rustup") => Self::Rustup,
            Some("system") => Self::System,
            _ => Self::At(value.into()),
        })
    }

    fn find(&self, dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<Toolchain, String> {
        match self {
            Self::Sysroot => at_hand(dir),
            Self::Rustup => rustup(dir, progress),
            Self::System => folder(dir, Path::new("/usr"))
                .map_err(|why| format!("{why}; on Debian or Ubuntu install it with `{DEBIAN_INSTALL}` (as root)")),
            Self::At(path) => folder(dir, path),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysroot => f.write_str("sysroot"),
            Self::Rustup => f.write_str("rustup"),
            Self::System => f.write_str("system"),
            Self::At(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A toolchain, and the environment for cargo to compile for wasm with it.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// The toolchain's name in messages.
    pub(crate) name: String,
    /// The cargo to run.
    pub(crate) cargo: PathBuf,
    /// More arguments of `cargo build`.
    pub(crate) arguments: Vec<&'static str>,
    /// Environment variables that the toolchain needs in addition.
    pub(crate) environment: Vec<(String, String)>,
}

/// The first way that works, or the one that was asked for.
pub(crate) fn find(dir: &Path, way: Option<&Way>, progress: &mut dyn FnMut(&str)) -> Result<Toolchain, BuildError> {
    let all = [Way::Sysroot, Way::Rustup, Way::System];
    let ways = way.map_or(&all[..], std::slice::from_ref);
    let mut tried = Vec::new();
    for way in ways {
        match way.find(dir, progress) {
            Ok(toolchain) => return Ok(toolchain),
            Err(why) => tried.push(format!("{way}: {why}")),
        }
    }
    tried.push(match way {
        Some(_) => format!("only this way was allowed, by the caller or by {TOOLCHAIN_VARIABLE}"),
        None => format!("or set {TOOLCHAIN_VARIABLE} to the folder of a toolchain that has the target"),
    });
    Err(BuildError::NoToolchain { tried })
}

/// The toolchain on the path, where it has the target.
fn at_hand(dir: &Path) -> Result<Toolchain, String> {
    let rustc = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    let sysroot = sysroot(dir, &rustc)?;
    if !target_library(&sysroot).is_dir() {
        return Err(format!("the toolchain in {} has no library for it", sysroot.display()));
    }
    Ok(Toolchain {
        name: format!("the toolchain in {}", sysroot.display()),
        cargo: PathBuf::from("cargo"),
        arguments: Vec::new(),
        environment: Vec::new(),
    })
}

/// The toolchain on the path, after rustup has fetched the target.
fn rustup(dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<Toolchain, String> {
    progress(&format!("rustup target add {TARGET}"));
    run(dir, Path::new("rustup"), &["target", "add", TARGET])?;
    at_hand(dir)
}

/// The toolchain in a folder: with the target's library, or with the source to build it from.
fn folder(dir: &Path, folder: &Path) -> Result<Toolchain, String> {
    let [cargo, rustc] = ["cargo", "rustc"].map(|name| folder.join("bin").join(name));
    if let Some(missing) = [&cargo, &rustc].into_iter().find(|program| !program.is_file()) {
        return Err(format!("there is no {}", missing.display()));
    }
    let sysroot = sysroot(dir, &rustc)?;
    let name = format!("the toolchain in {}", folder.display());
    let mut environment = vec![("RUSTC".to_owned(), rustc.display().to_string())];
    if target_library(&sysroot).is_dir() {
        return Ok(Toolchain { name, cargo, arguments: Vec::new(), environment });
    }
    let source = sysroot.join("lib/rustlib/src/rust/library");
    if !source.is_dir() {
        return Err(format!("{} has neither the target's library nor its source", sysroot.display()));
    }
    let linker = linker(dir, &sysroot)?;
    environment.push(("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER".to_owned(), linker.display().to_string()));
    // A stable compiler builds its own library only with `RUSTC_BOOTSTRAP`.
    environment.push(("RUSTC_BOOTSTRAP".to_owned(), "1".to_owned()));
    let name = format!("{name}, building its library");
    Ok(Toolchain { name, cargo, arguments: vec!["-Zbuild-std=std,panic_abort"], environment })
}

/// A linker for wasm: `rust-lld` of this toolchain or of the one on the path, or `wasm-ld`.
fn linker(dir: &Path, sysroot: &Path) -> Result<PathBuf, String> {
    let at_hand = self::sysroot(dir, Path::new("rustc")).ok();
    let host_folders = [Some(sysroot.to_owned()), at_hand]
        .into_iter()
        .flatten()
        .filter_map(|sysroot| std::fs::read_dir(sysroot.join("lib/rustlib")).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path().join("bin").join("rust-lld")));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&on_path)
        .flat_map(|folder| ["rust-lld", "wasm-ld"].map(|name| folder.join(name)))
        .collect();
    host_folders.chain(on_path).find(|linker| linker.is_file()).ok_or_else(|| {
        "there is no linker for wasm (`rust-lld` or `wasm-ld`); on Debian: `apt-get install -y lld`".into()
    })
}

fn target_library(sysroot: &Path) -> PathBuf {
    sysroot.join("lib").join("rustlib").join(TARGET).join("lib")
}

fn sysroot(dir: &Path, rustc: &Path) -> Result<PathBuf, String> {
    run(dir, rustc, &["--print", "sysroot"]).map(|out| PathBuf::from(out.trim()))
}

/// Runs a program in the package's folder, where its toolchain file counts. An error is in one line.
fn run(dir: &Path, program: &Path, arguments: &[&str]) -> Result<String, String> {
    let name = program.display();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(dir)
        .output()
        .map_err(|error| format!("cannot run `{name}`: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").trim();
        return Err(format!("`{name} {}` failed ({}): {last}", arguments.join(" "), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
