//! Sizes and durations as people write them: a whole number and a unit.

use std::time::Duration;

/// A unit and how many of the smallest (bytes, milliseconds) it holds.
type Unit = (&'static str, u64);

const SIZES: &[Unit] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

const DURATIONS: &[Unit] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Why a quantity cannot be understood: what is wrong, and what to write instead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) message: String,
    pub(crate) help: String,
}

/// Bytes from `64MiB`. Letters' case does not count, so `64mib` is the same.
pub(crate) fn size(text: &str) -> Result<u64, Unreadable> {
    let (number, unit) = split(text).ok_or_else(|| not_a("size", text, "64MiB"))?;
    if let Some(factor) = factor(SIZES, unit, str::eq_ignore_ascii_case) {
        return times(number, factor).ok_or_else(|| too_large("size", text));
    }
    // `M` means 10^6 to some and 2^20 to others: nginx and HAProxy agree on the latter, dd and df do not.
    let letter = unit.to_ascii_uppercase();
    let help = match letter.as_str() {
        "" => format!("write the unit: `{number}B`, or for example `{number}MiB`"),
        "K" | "M" | "G" | "T" => format!(
            "write `{number}{letter}iB` for powers of 1024, `{number}{}B` for powers of 1000",
            if letter == "K" { "k" } else { &letter }
        ),
        _ => "units are B, kB, MB, GB, TB, KiB, MiB, GiB and TiB".to_owned(),
    };
    Err(Unreadable { message: unknown_unit("size", text, unit), help })
}

/// A duration from `30s`.
pub(crate) fn duration(text: &str) -> Result<Duration, Unreadable> {
    let (number, unit) = split(text).ok_or_else(|| not_a("duration", text, "30s"))?;
    if let Some(factor) = factor(DURATIONS, unit, str::eq) {
        return times(number, factor).map(Duration::from_millis).ok_or_else(|| too_large("duration", text));
    }
    let help = match unit {
        "" => format!("write the unit: `{number}s`"),
        _ => "units are ms, s, m, h and d".to_owned(),
    };
    Err(Unreadable { message: unknown_unit("duration", text, unit), help })
}

/// Digits, and whatever follows them but for spaces between; `None` without digits.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text[end..].trim_start()))
}

fn factor(units: &[Unit], unit: &str, same: fn(&str, &str) -> bool) -> Option<u64> {
    units.iter().find(|(name, _)| same(name, unit)).map(|(_, factor)| *factor)
}

fn times(number: &str, factor: u64) -> Option<u64> {
    number.parse::<u64>().ok()?.checked_mul(factor)
}

fn not_a(what: &str, text: &str, example: &str) -> Unreadable {
    let message = format!("`{text}` is not a {what}");
    Unreadable { message, help: format!("write a whole number and a unit, such as `{example}`") }
}

fn unknown_unit(what: &str, text: &str, unit: &str) -> String {
    if unit.is_empty() {
        format!("the {what} `{text}` has no unit")
    } else {
        format!("unknown unit `{unit}` in the {what} `{text}`")
    }
}

fn too_large(what: &str, text: &str) -> Unreadable {
    Unreadable {
        message: format!("the {what} `{text}` is too large"),
        help: "use a smaller number".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_count_in_both_systems() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("64 mb"), Ok(64_000_000));
        assert_eq!(size("7B"), Ok(7));
    }

    #[test]
    fn an_ambiguous_unit_offers_both_readings() {
        let help = size("64M").expect_err("ambiguous").help;
        assert!(help.contains("`64MiB`") && help.contains("`64MB`"), "{help}");
        assert!(size("1k").expect_err("ambiguous").help.contains("`1kB`"));
    }

    #[test]
    fn durations_have_five_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(duration("5").expect_err("no unit").help, "write the unit: `5s`");
        assert_eq!(duration("5M").expect_err("minutes or months").help, "units are ms, s, m, h and d");
        assert!(duration("-5s").is_err() && duration("1.5s").is_err() && duration("").is_err());
    }

    #[test]
    fn what_does_not_fit_is_said_to_be_too_large() {
        for text in ["99999999999999999999s", "18446744073709551615d"] {
            assert!(duration(text).expect_err("overflow").message.contains("too large"), "{text}");
        }
    }
}
