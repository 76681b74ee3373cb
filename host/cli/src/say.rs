//! Words, and lines of the host.

pub(crate) use crate::screen::{block, diagnostic, note};

/// A number of things.
pub(crate) fn count(number: impl Into<u64>, one: &str, many: &str) -> String {
    let number = number.into();
    format!("{number} {}", if number == 1 { one } else { many })
}
