//! Words, and lines to standard output and standard error, either of which may be gone: a closed pipe, a full disk.

use std::fmt::Display;
use std::io::{Write, stderr};

/// A line on standard error. Where that is gone, there is nowhere left to say so, and the work goes on.
pub(crate) fn note(line: impl Display) {
    let _gone = writeln!(stderr(), "{line}");
}

/// A number of things.
pub(crate) fn count(number: impl Into<u64>, one: &str, many: &str) -> String {
    let number = number.into();
    format!("{number} {}", if number == 1 { one } else { many })
}
