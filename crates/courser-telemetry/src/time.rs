//! Wall-clock stamps, and durations as numbers.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Appends `at` as RFC 3339 in UTC with milliseconds, for example `2026-11-21T20:05:09.123Z`.
pub fn write_rfc3339(at: SystemTime, out: &mut String) {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let _ = write!(
        out,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{:03}Z",
        second % 60,
        since.subsec_millis()
    );
}

/// Whole microseconds. Without the 128 bits of [`Duration::as_micros`], since each connection needs several.
pub fn micros(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000).saturating_add(time.subsec_micros().into())
}

/// Year, month and day of the proleptic Gregorian calendar, `days` after 1970-01-01 (Hinnant, "chrono-compatible
/// low-level date algorithms", civil_from_days).
fn civil_date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era_day = shifted % 146_097;
    let era_year = (era_day - era_day / 1460 + era_day / 36_524 - era_day / 146_096) / 365;
    let year_day = era_day - (365 * era_year + era_year / 4 - era_year / 100);
    let month_from_march = (5 * year_day + 2) / 153;
    let day = year_day - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era_year + shifted / 146_097 * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_795_291_509, "2026-11-21T20:05:09.000Z"),
            (4_102_444_799, "2099-12-31T23:59:59.000Z"),
        ] {
            let mut out = String::new();
            write_rfc3339(UNIX_EPOCH + Duration::from_secs(seconds), &mut out);
            assert_eq!(out, text);
        }
    }
}
