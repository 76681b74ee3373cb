//! Times as the protocol has them: ISO 8601, in UTC.

use record::figures::date;

const DAY: u64 = 86_400;

/// A time in milliseconds since 1970-01-01 UTC, to the second.
pub(super) fn iso(ms: u64) -> String {
    let seconds = ms / 1000;
    let ((year, month, day), time) = (date(seconds / DAY), seconds % DAY);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3600, time / 60 % 60, time % 60)
}

#[cfg(test)]
mod tests {
    use super::iso;

    #[test]
    fn times_are_dates() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso(ms), expected);
        }
    }
}
