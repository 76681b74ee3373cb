//! The name under which a turn's spans are known.

/// The target of all spans of a turn, for filters and exporters: no log line has it.
pub const SPANS: &str = "tidegate::turn";
