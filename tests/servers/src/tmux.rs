//! tmux, which makes terminals that a test can type at and read.

use anyhow::Result;

use crate::apt;

const PACKAGE: &str = "tmux";

/// Installs `tmux` with the system's package manager where it is missing.
///
/// # Errors
/// It cannot be installed. The message says what to do.
pub fn ensure_tmux() -> Result<()> {
    apt::ensure_starts(PACKAGE, || apt::check_with(PACKAGE, PACKAGE, "-V"))
}
