//! Counts, durations and dates as a person reads them.

/// Writes a duration in the unit that fits it: `12 µs`, `3.4 ms`, `1.2 s`, `2 min 5 s`, `1 h 3 min`.
pub fn took(us: f64) -> String {
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
pub fn took_ms(ms: u64) -> String {
    if ms == 0 { "0 ms".to_owned() } else { took(ms as f64 * 1000.0) }
}

/// Writes a count with separators: `12,345`.
pub fn count(number: u64) -> String {
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

/// Writes a count with its noun, in the singular or the plural.
pub fn of(number: u64, one: &str, more: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { more })
}

/// Returns year, month and day of a day in UTC, counted since 1970-01-01: Howard Hinnant's `civil_from_days`, for days that are not negative.
pub fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // March is month 0, so that a leap day is the last of its year.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_counts_are_readable() {
        let durations = [0.0, 999.0, 1500.0, 12_000.0, 999_700.0, 61_000_000.0, 3_700_000_000.0].map(took);
        assert_eq!(durations, ["0 µs", "999 µs", "1.5 ms", "12 ms", "1.0 s", "1 min 1 s", "1 h 2 min"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let dates = [0, 11_015, 11_016, 11_017, 20_088, 20_818, 47_541].map(date);
        let expected =
            [(1970, 1, 1), (2000, 2, 28), (2000, 2, 29), (2000, 3, 1), (2024, 12, 31), (2026, 12, 31), (2100, 3, 1)];
        assert_eq!(dates, expected);
    }
}
