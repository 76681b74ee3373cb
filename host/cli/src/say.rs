//! Lines to standard output and standard error, either of which may be gone: a closed pipe, a full disk.

use std::fmt::Display;
use std::io::{Write, stderr};

/// A line on standard error. Where that is gone, there is nowhere left to say so, and the work goes on.
pub(crate) fn note(line: impl Display) {
    let _gone = writeln!(stderr(), "{line}");
}
