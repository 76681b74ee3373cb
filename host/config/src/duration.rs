//! Durations as files have them: a whole number and a unit.

use std::time::Duration;

/// A duration such as `250ms`, `1s`, `2m` or `3h`; `None`: the text is none.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    Some(Duration::from_millis(number.saturating_mul(millis)))
}
