//! Values of flags: rates, sizes, times, lists.

use std::time::{Duration, SystemTime};

use courser_lab::share::ShareChoice;

/// A list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cpus(pub(crate) Vec<usize>);

/// A rate per second: `2000`, `2.5k`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1000.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate * factor),
        _ => Err("a rate is a number above 0, like 2000 or 2.5k".into()),
    }
}

/// A share as percent: `3%`, `0.5 %`, `3`.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim();
    match number.parse::<f64>() {
        Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(percent / 100.0),
        _ => Err("a limit is a percentage, like 3%".into()),
    }
}

/// A share of its cores that a server is held to: `0.5`, `off`, `auto`.
pub(crate) fn server_share(text: &str) -> Result<ShareChoice, String> {
    match text.parse::<f64>() {
        _ if text == "auto" => Ok(ShareChoice::Auto),
        _ if text == "off" => Ok(ShareChoice::Off),
        Ok(share) if (0.01..1.0).contains(&share) => Ok(ShareChoice::Of(share)),
        _ => Err("a share of a core is a number from 0.01 to below 1, like 0.5; or off".into()),
    }
}

/// A share in words.
pub(crate) fn format_percent(share: f64) -> String {
    format!("{} %", share * 100.0)
}

/// A size in bytes: `1024`, `20k` (times 1024), `1m`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let lower = text.to_ascii_lowercase();
    let (number, shift) = match lower.strip_suffix('k') {
        Some(number) => (number, 10),
        None => lower.strip_suffix('m').map_or((lower.as_str(), 0), |number| (number, 20)),
    };
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "a size is a number of bytes, like 1024, 20k or 1m".into())
}

/// A time: `10s`, `500ms`, `1m 30s`, `0`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text).map_err(|why| format!("{why}; write 10s, 500ms or 1m"))
}

/// A moment: RFC 3339, or `+30s`: the next multiple of 30 seconds, so that generators started within them agree.
pub(crate) fn moment(text: &str) -> Result<SystemTime, String> {
    match text.strip_prefix('+') {
        Some(step) => next_multiple(duration(step)?, SystemTime::now()),
        None => humantime::parse_rfc3339_weak(text)
            .map_err(|why| format!("{why}; write 2026-01-31T12:00:00Z or +30s")),
    }
}

fn next_multiple(step: Duration, now: SystemTime) -> Result<SystemTime, String> {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).map_err(|why| why.to_string())?;
    let step_ns = step.as_nanos();
    if step_ns == 0 {
        return Ok(now);
    }
    let next = (since.as_nanos() / step_ns + 1) * step_ns;
    u64::try_from(next)
        .map(|next| SystemTime::UNIX_EPOCH + Duration::from_nanos(next))
        .map_err(|_| "that is centuries away".into())
}

/// A share: `2/5`.
pub(crate) fn share(text: &str) -> Result<(u64, u64), String> {
    let parse = || {
        let (k, n) = text.split_once('/')?;
        let (k, n) = (k.parse::<u64>().ok()?, n.parse::<u64>().ok()?);
        (1..=n).contains(&k).then_some((k, n))
    };
    parse().ok_or_else(|| "a share is K/N with K from 1 to N, like 2/5".into())
}

/// CPUs: `1`, `0,2-3`.
pub(crate) fn cpu_list(text: &str) -> Result<Cpus, String> {
    let parse = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        (first <= last && last < 1024).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(parse).collect();
    ranges
        .map(|ranges| Cpus(ranges.into_iter().flatten().collect()))
        .ok_or_else(|| "CPUs are listed like 1 or 0,2-3".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_multiply() {
        assert_eq!((rate("2.5k"), size("20k"), size("1M")), (Ok(2500.0), Ok(20 * 1024), Ok(1 << 20)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(cpu_list("0,2-3"), Ok(Cpus(vec![0, 2, 3])));
        assert_eq!(share("2/5"), Ok((2, 5)));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(["0", "-1", "inf", "x", ""].iter().all(|text| rate(text).is_err()));
        assert!(["6/5", "0/5", "1", "a/b"].iter().all(|text| share(text).is_err()));
        assert!(["3-1", "", "a", "1-"].iter().all(|text| cpu_list(text).is_err()));
        assert!(size("99999999999999999999m").is_err() && duration("ten").is_err());
    }

    #[test]
    fn generators_that_start_within_the_step_agree() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let step = Duration::from_secs(30);
        assert_eq!(next_multiple(step, at(61)), Ok(at(90)));
        assert_eq!(next_multiple(step, at(89)), Ok(at(90)));
    }
}
