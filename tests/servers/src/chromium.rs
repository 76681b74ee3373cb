//! Chromium, in which tests open pages.

use std::path::PathBuf;

use anyhow::Result;

use crate::apt;

/// Names another browser of this kind.
const VARIABLE: &str = "CHROMIUM";
const PACKAGE: &str = "chromium";
const PROGRAM: &str = "/usr/bin/chromium";

/// Installs Chromium with the system's package manager where it is missing, and returns the program: that of `CHROMIUM` in the environment if
/// there is one.
///
/// # Errors
/// It cannot be installed. The message says what to do.
pub fn ensure_chromium() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(VARIABLE) {
        return Ok(program.into());
    }
    apt::ensure_installed(PACKAGE, PROGRAM)?;
    Ok(PROGRAM.into())
}
