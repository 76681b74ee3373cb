//! Power `log`: lines for the operator. Always granted. A guest has no other way to speak: `println!` goes nowhere.
//!
//! At most 4 KiB of a line are kept, and 64 lines of one callback; what is cut or dropped is counted, and the count logged.

use std::fmt::Display;

use crate::host;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Every step, for tracing.
    Trace,
    /// Details for debugging.
    Debug,
    /// What happened in normal operation.
    Info,
    /// Something is not as it should be.
    Warn,
    /// Something failed that the operator should know.
    Error,
}

/// Writes a line with named values.
pub fn write(level: Level, message: impl Display, fields: &[(&str, &str)]) {
    host::log(level, &message.to_string(), fields);
}

/// Writes a line at level trace: `log::trace(format_args!("saw {n}"))`.
pub fn trace(message: impl Display) {
    write(Level::Trace, message, &[]);
}

/// Writes a line at level debug.
pub fn debug(message: impl Display) {
    write(Level::Debug, message, &[]);
}

/// Writes a line at level info.
pub fn info(message: impl Display) {
    write(Level::Info, message, &[]);
}

/// Writes that something is not as it should be.
pub fn warn(message: impl Display) {
    write(Level::Warn, message, &[]);
}

/// Writes that something failed.
pub fn error(message: impl Display) {
    write(Level::Error, message, &[]);
}
