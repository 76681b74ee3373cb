//! Numbers and times as a person reads them.

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

/// The date of a day since 1970-01-01: Howard Hinnant's `civil_from_days`, for days that are not negative.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// Writes a duration in the unit that fits it: `12 µs`, `3.4 ms`, `1.2 s`, `2 min 5 s`, `1 h 3 min`.
pub(crate) fn took(us: f64) -> String {
    let (ms, seconds) = (us / 1000.0, us / 1_000_000.0);
    match seconds {
        _ if us < 999.5 => format!("{us:.0} µs"),
        _ if ms < 9.95 => format!("{ms:.1} ms"),
        _ if ms < 999.5 => format!("{ms:.0} ms"),
        _ if seconds < 59.95 => format!("{seconds:.1} s"),
        _ if seconds < 3599.5 => {
            let seconds = seconds.round() as u64;
            format!("{} min {} s", seconds / 60, seconds % 60)
        }
        _ => {
            let minutes = (seconds / 60.0).round() as u64;
            format!("{} h {} min", minutes / 60, minutes % 60)
        }
    }
}

/// Writes a duration of whole milliseconds.
pub(crate) fn took_ms(ms: u64) -> String {
    if ms == 0 { "0 ms".to_owned() } else { took(ms as f64 * 1000.0) }
}

/// Writes a count with separators: `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a count that the provider may not have given.
pub(crate) fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), count)
}

/// Writes a count with its noun, in the singular or the plural.
pub(crate) fn of(number: u64, one: &str, more: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { more })
}

/// Writes an amount of US dollars.
pub(crate) fn dollars(amount: f64) -> String {
    format!("${amount:.4}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_are_readable() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_420_271_000), "2026-11-23 07:51:11 UTC");
        assert!(utc(u64::MAX).ends_with("UTC"), "no overflow");
        let durations = [0.0, 999.0, 1500.0, 12_000.0, 999_700.0, 61_000_000.0, 3_700_000_000.0].map(took);
        assert_eq!(durations, ["0 µs", "999 µs", "1.5 ms", "12 ms", "1.0 s", "1 min 1 s", "1 h 2 min"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
