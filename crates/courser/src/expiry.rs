//! Warnings of certificates that come to their end: when a third of the lifetime is left, at a tenth, and when it has ended. Not
//! so many days before it: lifetimes are a year or six days, and who renews does so at a third.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use courser_telemetry::event::{Level, log};

use crate::certificates::CertificateEnd;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(600);

/// Lines of one look: of a hundred thousand certificates all may end at once.
const MOST_LINES: usize = 20;

/// How near its end a certificate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Third,
    Tenth,
    Ended,
}

/// Remembers which warnings were given: each is, once.
#[derive(Default)]
pub(crate) struct ExpiryWatch {
    looked: Option<Instant>,
    /// By name, key and end: a renewed one is another one.
    warned: HashMap<(String, String, i64), Stage>,
}

impl ExpiryWatch {
    /// Logs what is new since the last look, if a look is due.
    pub(crate) fn look(&mut self, certificates: &[CertificateEnd], now: Instant, unix_now: i64) {
        if self.looked.is_some_and(|looked| now.duration_since(looked) < LOOK) {
            return;
        }
        self.looked = Some(now);
        let lines = self.warnings(certificates, unix_now);
        for (level, line) in lines.iter().take(MOST_LINES) {
            log(*level, line);
        }
        if let more @ 1.. = lines.len().saturating_sub(MOST_LINES) {
            log(Level::Warning, format_args!("certificates: {more} more end soon: see `courser status`"));
        }
    }

    fn warnings(&mut self, certificates: &[CertificateEnd], now: i64) -> Vec<(Level, String)> {
        let mut warned = HashMap::new();
        let mut lines = Vec::new();
        for certificate in certificates {
            let Some(stage) = stage(certificate, now) else { continue };
            let CertificateEnd { name, key, not_after, .. } = certificate;
            let id = (name.clone(), key.clone(), *not_after);
            if self.warned.get(&id).is_none_or(|before| *before < stage) {
                lines.push(line(certificate, stage, now));
            }
            warned.insert(id, stage);
        }
        self.warned = warned;
        lines
    }
}

fn stage(certificate: &CertificateEnd, now: i64) -> Option<Stage> {
    let lifetime = certificate.not_after.saturating_sub(certificate.not_before);
    match certificate.not_after.saturating_sub(now) {
        ..0 => Some(Stage::Ended),
        left if left.saturating_mul(10) < lifetime => Some(Stage::Tenth),
        left if left.saturating_mul(3) < lifetime => Some(Stage::Third),
        _ => None,
    }
}

fn line(certificate: &CertificateEnd, stage: Stage, now: i64) -> (Level, String) {
    let CertificateEnd { name, key, not_after, .. } = certificate;
    let hours = (not_after - now) / 3600;
    let left = if hours < 48 { format!("{hours} h") } else { format!("{} days", hours / 24) };
    let what = match stage {
        Stage::Third => {
            format!("less than a third of its lifetime is left, {left}: it should be renewed by now")
        }
        Stage::Tenth => {
            format!("less than a tenth of its lifetime is left, {left}: its renewal does not work")
        }
        Stage::Ended => "it has expired: clients refuse it".to_owned(),
    };
    let level = if stage == Stage::Third { Level::Warning } else { Level::Error };
    (level, format!("certificate {name} ({key}): {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn certificate(name: &str, not_after: i64) -> CertificateEnd {
        CertificateEnd { name: name.to_owned(), key: "EC256".to_owned(), not_before: 0, not_after }
    }

    #[test]
    fn each_stage_is_said_once_and_a_renewal_is_a_certificate_of_its_own() {
        let (mut watch, mut said) = (ExpiryWatch::default(), Vec::new());
        let mut served = certificate("a.example", 90 * DAY);
        for day in [1, 59, 61, 62, 82, 83, 91, 92] {
            if day == 92 {
                served.not_after = 180 * DAY;
            }
            let lines = watch.warnings(std::slice::from_ref(&served), day * DAY);
            said.push(lines.first().map_or("", |(_, line)| line.split(": ").nth(1).unwrap()).to_owned());
        }
        let third = "less than a third of its lifetime is left, 29 days";
        let tenth = "less than a tenth of its lifetime is left, 8 days";
        assert_eq!(said, ["", "", third, "", tenth, "", "it has expired", ""]);
    }

    #[test]
    fn six_days_are_a_lifetime_too() {
        let served = certificate("b.example", 6 * DAY);
        assert_eq!(stage(&served, 3 * DAY), None);
        assert_eq!(stage(&served, 5 * DAY), Some(Stage::Third));
        assert_eq!(stage(&served, 6 * DAY - DAY / 2), Some(Stage::Tenth));
    }
}
