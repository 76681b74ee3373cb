//! Builds a Rust extension from its folder into a component: finds a toolchain that can compile to wasm, runs cargo,
//! encodes the result, and does nothing where nothing has changed.
//!
//! An author needs Rust and nothing else; no WASI, adapter or cargo plug-in takes part. It loads and runs no component.
//!
//! ```no_run
//! use tidegate_build::{Options, build};
//!
//! let built = build("plugins/redact-secrets".as_ref(), &Options::default(), &mut |line| eprintln!("{line}"))?;
//! println!("{} ({} bytes)", built.component.display(), built.bytes.len());
//! # Ok::<(), tidegate_build::BuildError>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cargo;
mod encode;
mod error;
mod files;
mod fresh;
mod scaffold;
mod toolchain;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

pub use error::BuildError;
pub use scaffold::{RECORDING, ScaffoldError, create_plugin};
pub use toolchain::{TARGET, TOOLCHAIN_VARIABLE, Way};

/// How to build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder for everything made on the way; give all guests one, they share what they have in common. `None`:
    /// `target/guests` of the workspace around the plugin's folder, else `tidegate/guests` in the user's cache folder.
    pub target_dir: Option<PathBuf>,
    /// Where to take the wasm target from. `None`: as [`TOOLCHAIN_VARIABLE`] sets, or each [`Way`] in order.
    pub way: Option<Way>,
}

/// A component, built.
#[derive(Clone)]
pub struct Built {
    /// The component's file, under the target folder. Its name stays the same from build to build.
    pub component: PathBuf,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// SHA-256 of the bytes, in lower-case hex.
    pub digest: String,
    /// Nothing had changed since it was built: no toolchain was asked.
    pub fresh: bool,
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Built")
            .field("component", &self.component)
            .field("bytes", &self.bytes.len())
            .field("digest", &self.digest)
            .field("fresh", &self.fresh)
            .finish()
    }
}

/// The default file name of the component, next to a manifest with a `[build]` table.
pub const COMPONENT_FILE: &str = "component.wasm";

impl Built {
    /// Puts the component next to its manifest, where hosts look for it; if it is there already, only its
    /// modification time is updated, so that it does not look older than its source. Returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn place_beside_manifest(&self, plugin_dir: &Path) -> Result<PathBuf, BuildError> {
        let place = files::package_dir(plugin_dir)?.join(COMPONENT_FILE);
        if files::read(&place).ok().as_deref() != Some(self.bytes.as_slice()) {
            files::write(&place, &self.bytes)?;
        } else {
            files::touch(&place)?;
        }
        Ok(place)
    }
}

/// Builds the extension whose `Cargo.toml` is in `plugin_dir`, if it or anything it is made of has changed.
///
/// What it is made of: every file that cargo compiled in, path dependencies included, their manifests, the lock file and
/// the toolchain file. A build script that reads other files has to be run by hand. `progress` gets human-readable
/// lines. Any number of threads and processes may build in one target folder; they wait for one another.
///
/// # Errors
/// There is no package in the folder, no toolchain for wasm, the package does not compile or is not an extension, or
/// a file cannot be read or written. The message names the cause, with cargo's output if cargo failed.
pub fn build(plugin_dir: &Path, options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Built, BuildError> {
    let dir = files::package_dir(plugin_dir)?;
    let target_dir = match &options.target_dir {
        Some(given) => files::absolute(given)?,
        None => files::default_target_dir(&dir),
    };
    let way = options.way.clone().or_else(Way::from_environment);
    let place = fresh::Place::new(&dir, &target_dir, way.as_ref());
    if let Some((bytes, digest)) = place.fresh() {
        return Ok(Built { component: place.component, bytes, digest, fresh: true });
    }

    // One build at a time in a target folder: what cargo leaves there is named after the package alone, so another package
    // of that name could put its module in the place of ours before we have read it.
    let _lock = files::lock(&target_dir, progress)?;
    if let Some((bytes, digest)) = place.fresh() {
        return Ok(Built { component: place.component, bytes, digest, fresh: true });
    }
    let began = SystemTime::now();
    cargo::check_crate_type(&dir)?;
    let toolchain = toolchain::find(&dir, way.as_ref(), progress)?;
    let module = cargo::compile(&dir, &target_dir, &toolchain, progress)?;
    let bytes = encode::component(&dir, &files::read(&module)?)?;
    let digest = place.store(&bytes, &module, began)?;
    Ok(Built { component: place.component, bytes, digest, fresh: false })
}

/// A subcommand of cargo (`check`, `build`) for the wasm target, started in a folder: for crates that are not
/// extensions.
///
/// # Errors
/// There is no toolchain for wasm; the message lists each attempt.
pub fn wasm_cargo(dir: &Path, subcommand: &str, progress: &mut dyn FnMut(&str)) -> Result<Command, BuildError> {
    let toolchain = toolchain::find(dir, Way::from_environment().as_ref(), progress)?;
    let mut command = Command::new(&toolchain.cargo);
    command.arg(subcommand).args(["--target", TARGET]).args(&toolchain.arguments);
    command.envs(toolchain.environment).current_dir(dir);
    Ok(command)
}
