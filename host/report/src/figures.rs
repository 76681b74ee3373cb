//! Numbers and times as a person reads them in a report; those of sentences are in `record`.

use record::figures::date;
pub(crate) use record::figures::{count, of, took, took_ms};

/// Writes a time as `2026-11-23 07:51:11 UTC`.
pub(crate) fn utc(ms: u64) -> String {
    let seconds = ms / 1000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Writes the time of a day as `07:51:11`.
pub(crate) fn clock(ms: u64) -> String {
    let seconds = ms / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// Writes a count that the provider may not have given.
pub(crate) fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), count)
}

/// Writes an amount of US dollars.
pub(crate) fn dollars(amount: f64) -> String {
    format!("${amount:.4}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_420_271_000), "2026-11-23 07:51:11 UTC");
        assert!(utc(u64::MAX).ends_with("UTC"), "no overflow");
    }
}
