//! Warnings of certificates and staples that come to their end: when a third of the lifetime is left, at a tenth, and when it
//! has ended. Not so many days before it: lifetimes are a year or six days, and who renews does so at a third.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use courser_telemetry::event::{Level, log};
use courser_tls::Identity;

use crate::certificates::CertificateEnd;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(600);

/// Lines of one look: of a hundred thousand certificates all may end at once.
const MOST_LINES: usize = 20;

/// How near its end something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Third,
    Tenth,
    Ended,
}

/// What ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Certificate,
    Staple,
}

/// Remembers which warnings were given: each is, once.
#[derive(Default)]
pub(crate) struct ExpiryWatch {
    looked: Option<Instant>,
    /// By kind, name, key and end: a renewed one is another one.
    warned: HashMap<(Kind, String, String, i64), Stage>,
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
            for (kind, not_before, not_after) in ends(certificate) {
                let Some(stage) = stage(not_before, not_after, now) else { continue };
                let (name, key) = (certificate.name().to_owned(), certificate.key().to_owned());
                let id = (kind, name, key, not_after);
                if self.warned.get(&id).is_none_or(|before| *before < stage) {
                    lines.push(line(certificate, kind, stage, not_after - now));
                }
                warned.insert(id, stage);
            }
        }
        self.warned = warned;
        lines
    }
}

/// The beginnings and ends of a certificate and of its staple.
fn ends(certificate: &CertificateEnd) -> impl Iterator<Item = (Kind, i64, i64)> {
    let staple =
        certificate.staple.as_ref().map(|staple| (Kind::Staple, staple.not_before, staple.not_after));
    let Identity { not_before, not_after, .. } = *certificate.identity;
    [(Kind::Certificate, not_before, not_after)].into_iter().chain(staple)
}

fn stage(not_before: i64, not_after: i64, now: i64) -> Option<Stage> {
    let lifetime = not_after.saturating_sub(not_before);
    match not_after.saturating_sub(now) {
        ..0 => Some(Stage::Ended),
        left if left.saturating_mul(10) < lifetime => Some(Stage::Tenth),
        left if left.saturating_mul(3) < lifetime => Some(Stage::Third),
        _ => None,
    }
}

fn line(certificate: &CertificateEnd, kind: Kind, stage: Stage, left: i64) -> (Level, String) {
    let (name, key, must_staple) = (certificate.name(), certificate.key(), certificate.identity.must_staple);
    let hours = left / 3600;
    let left = if hours < 48 { format!("{hours} h") } else { format!("{} days", hours / 24) };
    let what = match stage {
        Stage::Third => {
            format!("less than a third of its lifetime is left, {left}: it should be renewed by now")
        }
        Stage::Tenth => {
            format!("less than a tenth of its lifetime is left, {left}: its renewal does not work")
        }
        Stage::Ended => match (kind, must_staple) {
            (Kind::Certificate, _) => "it has expired: clients refuse it",
            (Kind::Staple, true) => {
                "it has expired and is not sent: clients refuse the certificate, which demands it"
            }
            (Kind::Staple, false) => "it has expired and is not sent",
        }
        .to_owned(),
    };
    let (is_minor, of) = match kind {
        Kind::Certificate => (stage == Stage::Third, "certificate"),
        Kind::Staple => (stage == Stage::Third || !must_staple, "staple of"),
    };
    let level = if is_minor { Level::Warning } else { Level::Error };
    (level, format!("{of} {name} ({key}): {what}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::certificates::Period;

    const DAY: i64 = 86_400;

    fn certificate(name: &str, not_after: i64) -> CertificateEnd {
        let mut identity =
            courser_tls::self_signed(&[name.to_owned()]).expect("the library makes certificates");
        (identity.not_before, identity.not_after) = (0, not_after);
        CertificateEnd { identity: Arc::new(identity), staple: None }
    }

    fn change(certificate: &mut CertificateEnd, change: impl FnOnce(&mut Identity)) {
        change(Arc::make_mut(&mut certificate.identity));
    }

    #[test]
    fn each_stage_is_said_once_and_a_renewal_is_a_certificate_of_its_own() {
        let (mut watch, mut said) = (ExpiryWatch::default(), Vec::new());
        let mut served = certificate("a.example", 90 * DAY);
        for day in [1, 59, 61, 62, 82, 83, 91, 92] {
            if day == 92 {
                change(&mut served, |identity| identity.not_after = 180 * DAY);
            }
            let lines = watch.warnings(std::slice::from_ref(&served), day * DAY);
            said.push(lines.first().map_or("", |(_, line)| line.split(": ").nth(1).unwrap()).to_owned());
        }
        let third = "less than a third of its lifetime is left, 29 days";
        let tenth = "less than a tenth of its lifetime is left, 8 days";
        assert_eq!(said, ["", "", third, "", tenth, "", "it has expired", ""]);
    }

    #[test]
    fn a_staple_has_stages_of_its_own_and_matters_most_where_it_is_demanded() {
        let (mut watch, mut served) = (ExpiryWatch::default(), certificate("a.example", 90 * DAY));
        served.staple = Some(Period { not_before: 0, not_after: 7 * DAY }.into());
        let said = |watch: &mut ExpiryWatch, served: &CertificateEnd, now| {
            watch.warnings(std::slice::from_ref(served), now)
        };
        assert_eq!(said(&mut watch, &served, 4 * DAY), []);
        let third = "staple of a.example (EC256): less than a third of its lifetime is left, 47 h: it should be renewed by now";
        assert_eq!(said(&mut watch, &served, 5 * DAY + 3600), [(Level::Warning, third.to_owned())]);
        let ended = "staple of a.example (EC256): it has expired and is not sent";
        assert_eq!(said(&mut watch, &served, 8 * DAY), [(Level::Warning, ended.to_owned())]);
        assert_eq!(said(&mut watch, &served, 9 * DAY), [], "it was said");
        change(&mut served, |identity| identity.must_staple = true);
        let lines = said(&mut ExpiryWatch::default(), &served, 8 * DAY);
        assert!(
            matches!(&lines[..], [(Level::Error, line)] if line.ends_with("which demands it")),
            "{lines:?}"
        );
    }

    #[test]
    fn six_days_are_a_lifetime_too() {
        assert_eq!(stage(0, 6 * DAY, 3 * DAY), None);
        assert_eq!(stage(0, 6 * DAY, 5 * DAY), Some(Stage::Third));
        assert_eq!(stage(0, 6 * DAY, 6 * DAY - DAY / 2), Some(Stage::Tenth));
    }
}
