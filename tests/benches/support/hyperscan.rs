//! Hyperscan in its streaming mode as a contender: a C program next to the benches, built where the C compiler and the
//! library's header are installed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::peer::{Peer, compile};
use super::scratch;

/// Installs what the program needs on Debian.
const INSTALL: &str = "apt-get install gcc libhyperscan-dev";

/// Builds the program.
///
/// # Errors
/// The C compiler or the library is missing: what is missing, and what installs it.
pub(crate) fn program() -> Result<PathBuf, String> {
    compile("hyperscan", &[OsStr::new("-lhs")]).map_err(|why| format!("{why}; `{INSTALL}` installs it"))
}

/// Compiles the patterns in a process of its own, whose work is to scan the text once; `bytes` is the length of a delta.
///
/// # Errors
/// The process ends early, as with a pattern that Hyperscan does not know.
pub(crate) fn start(program: &Path, patterns: &[String], text: &str, bytes: usize) -> Result<Peer, String> {
    let (list, words) = (scratch().join("hyperscan-patterns"), scratch().join("hyperscan-text"));
    std::fs::write(&list, patterns.join("\n")).unwrap();
    std::fs::write(&words, text).unwrap();
    Peer::start(Command::new(program).arg(list).arg(words).arg(bytes.to_string()))
}
