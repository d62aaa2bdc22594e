//! Numbers as people read them: three significant digits, a unit, a dash for what is not known.

use courser_stats::number::{float, whole};

/// What stands for a figure that is not known.
pub const UNKNOWN: &str = "-";

/// A count with its thousands apart: `12,345`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number without a unit, its thousands apart: `0.0123`, `12.5`, `1,980`, `-`.
pub fn number(value: Option<f64>) -> String {
    value.map_or(UNKNOWN.to_owned(), |value| match value {
        value if (999.5..1e15).contains(&value) => count(whole(value.round())),
        value => significant(value),
    })
}

/// A rate per second: `1980/s`.
pub fn rate(rate: Option<f64>) -> String {
    rate.map_or(UNKNOWN.to_owned(), |rate| format!("{}/s", significant(rate)))
}

/// Microseconds in the unit that suits them: `85.3 us`, `20.1 ms`, `1.25 s`.
pub fn time(us: Option<f64>) -> String {
    us.map_or(UNKNOWN.to_owned(), |us| match us {
        us if us < 999.5 => format!("{} us", significant(us)),
        us if us < 999_500.0 => format!("{} ms", significant(us / 1e3)),
        us => format!("{} s", significant(us / 1e6)),
    })
}

/// Whole microseconds, as [`time`].
pub fn duration(us: u64) -> String {
    time(Some(float(us)))
}

/// Bytes in the unit that suits them: `64 B`, `1.17 KiB`.
pub fn bytes(bytes: Option<f64>) -> String {
    bytes.map_or(UNKNOWN.to_owned(), |bytes| match bytes {
        bytes if bytes < 1023.5 => format!("{} B", significant(bytes)),
        bytes if bytes < 1_048_064.0 => format!("{} KiB", significant(bytes / 1024.0)),
        bytes if bytes < 1_073_217_536.0 => format!("{} MiB", significant(bytes / 1_048_576.0)),
        bytes => format!("{} GiB", significant(bytes / 1_073_741_824.0)),
    })
}

/// A share of 0 to 1 as percent: `12.5 %`.
pub fn percent(share: Option<f64>) -> String {
    share.map_or(UNKNOWN.to_owned(), |share| format!("{} %", significant(share * 100.0)))
}

/// A part of a whole; `None` of nothing.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}

/// Three significant digits, but all of a whole number's: `0.0123`, `1.25`, `20.0`, `1980`. What is whole to begin with
/// has no point: `20`.
fn significant(value: f64) -> String {
    let places = match value.abs() {
        whole if whole.fract() == 0.0 => 0,
        value if value < 0.01 => 4,
        value if value < 0.1 => 3,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let times = [0.0, 5.25, 85.27, 999.7, 20_140.0, 999_700.0, 1_250_000.0].map(|us| time(Some(us)));
        assert_eq!(times, ["0 us", "5.25 us", "85.3 us", "1.00 ms", "20.1 ms", "1.00 s", "1.25 s"]);
        assert_eq!([64.0, 1200.0, 3.2e7].map(|size| bytes(Some(size))), ["64 B", "1.17 KiB", "30.5 MiB"]);
        assert_eq!([0.125, 0.0005, 1.0].map(|part| percent(Some(part))), ["12.5 %", "0.050 %", "100 %"]);
        assert_eq!(rate(Some(1980.4)), "1980/s");
        assert_eq!(
            [0.0123, 12.5, 999.7, 12_345.6].map(|value| number(Some(value))),
            ["0.012", "12.5", "1,000", "12,346"]
        );
        assert_eq!([rate(None), time(None), bytes(None), percent(share(1, 0))], [UNKNOWN; 4]);
    }
}
