//! Extism as a contender: its library from its Python package, a guest with its own kit, and a C program that calls it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::guests::root;
use super::peer::{Peer, compile};
use super::{json_files, scratch};

/// The program and the guest, both built.
pub(crate) struct Extism {
    program: PathBuf,
    guest: PathBuf,
}

impl Extism {
    /// Installs the library and builds the program and the guest.
    ///
    /// # Errors
    /// One of them cannot be had on this machine: which, and why.
    pub(crate) fn prepare() -> Result<Self, String> {
        let library = tidegate_servers::extism_library().map_err(|error| format!("{error:#}"))?;
        let program = compile("extism", &[library.as_os_str()])?;
        Ok(Self { program, guest: guest()? })
    }

    /// Starts a process whose work is one call of the guest's function, which answers `input` with `answer`.
    ///
    /// # Errors
    /// The guest does not load, or answers something else.
    pub(crate) fn start(&self, function: &str, input: &str, answer: &str) -> Result<Peer, String> {
        let (given, wanted) = json_files("extism", input, answer);
        Peer::start(Command::new(&self.program).arg(&self.guest).arg(function).args([given, wanted]))
    }
}

/// Builds the guest with the flags that extensions of ours are built with.
fn guest() -> Result<PathBuf, String> {
    let (folder, target) = (root().join("tests/benches/extism-guest"), scratch().join("extism-guest"));
    let mut cargo = tidegate_build::wasm_cargo(&folder, "build", &mut |_| {}).map_err(|error| error.to_string())?;
    cargo.args(["--release", "--locked", "--target-dir"]).arg(&target).stdout(Stdio::null());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+simd128");
    let status = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the guest does not build ({status})"));
    }
    Ok(target.join(tidegate_build::TARGET).join("release/extism_guest.wasm"))
}
