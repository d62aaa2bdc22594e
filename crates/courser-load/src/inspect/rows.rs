//! An inspection as lines of a table: what, and how it is.

use courser_tls::names;
use courser_tls_client::ResumptionMethod;

use super::{
    ClientKind, EarlyData, Inspection, Negotiated, Order, PostQuantum, Resumption, Retry, Served, TimeOfBoth,
};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What was asked: `TLSv1.2 suites`.
    pub what: String,
    /// What was found; several values are separated by commas.
    pub found: String,
}

impl Inspection {
    /// All that was found, in reading order.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = vec![row("versions", list(&self.versions, |found| version(found.version)))];
        rows.extend(self.versions.iter().flat_map(of_version));
        rows.extend(self.retry.map(|retry| row("key share of another group", of_retry(retry))));
        rows.extend(self.certificates.iter().map(of_certificate));
        rows.push(row(
            "client certificate",
            if self.asks_certificate { "asked for" } else { "not asked for" },
        ));
        rows.push(row("application protocols", self.protocols_text()));
        let spoken = |spoken| if spoken { "spoken" } else { "agreed on, and not spoken" };
        rows.extend(self.http2.map(|http2| row("HTTP/2", spoken(http2))));
        rows.extend(self.resumptions.iter().map(of_resumption));
        rows.extend(
            self.tickets.map(|count| row("TLSv1.3 tickets", format!("{count} after a full handshake"))),
        );
        rows.extend(self.early_data.map(|found| row("early data", of_early_data(found))));
        match &self.post_quantum {
            Some(found) => rows.extend([
                row("X25519MLKEM768, bytes", of_bytes(found)),
                row("X25519MLKEM768, time", found.time.as_ref().map_or_else(too_few, of_time)),
            ]),
            None if self.accepts(X25519MLKEM768) => {}
            None => rows.push(row("X25519MLKEM768", "not accepted")),
        }
        rows
    }

    /// Whether a group is accepted in any version, by its code point.
    pub fn accepts(&self, group: u16) -> bool {
        self.versions.iter().any(|found| found.groups.contains(&group))
    }

    fn protocols_text(&self) -> String {
        if self.protocols.is_empty() {
            return "none".into();
        }
        list(&self.protocols, |name| String::from_utf8_lossy(name).into_owned())
    }
}

impl Negotiated {
    /// Name of the version, or its code point as `0x0304`.
    pub fn version_name(&self) -> String {
        version(self.version)
    }

    /// Names of the suites, or their code points, in the same order.
    pub fn suite_names(&self) -> Vec<String> {
        self.suites.iter().map(|code| suite(*code)).collect()
    }

    /// Names of the groups, or their code points, in the same order.
    pub fn group_names(&self) -> Vec<String> {
        self.groups.iter().map(|code| group(*code)).collect()
    }
}

impl Resumption {
    /// Name of the version, or its code point.
    pub fn version_name(&self) -> String {
        version(self.version)
    }

    /// `session ID`, `ticket` or `PSK`.
    pub fn kind_name(&self) -> &'static str {
        kind(self.by)
    }
}

fn of_version(found: &Negotiated) -> Vec<Row> {
    let name = version(found.version);
    let mut rows = vec![row(format!("{name} suites"), list(&found.suites, |code| suite(*code)))];
    rows.extend(found.order.map(|order| row(format!("{name} order"), of_order(order, found.chacha_on_wish))));
    if !found.groups.is_empty() {
        rows.push(row(format!("{name} groups"), list(&found.groups, |code| group(*code))));
    }
    rows.extend(found.prime_bits.map(|bits| row(format!("{name} finite field"), format!("{bits} bits"))));
    rows
}

fn of_order(order: Order, chacha_on_wish: bool) -> String {
    let whose = if order == Order::Server { "the server's" } else { "the client's" };
    let wish = if chacha_on_wish { ", but ChaCha20 for clients that put it first" } else { "" };
    format!("{whose}{wish}")
}

fn of_retry(retry: Retry) -> &'static str {
    match retry {
        Retry::TakesShare => "taken",
        Retry::AsksForBest => "answered with HelloRetryRequest: a round trip more",
    }
}

fn of_certificate(served: &Served) -> Row {
    let to = if served.to == ClientKind::Ecdsa { "ECDSA" } else { "RSA" };
    let leaf = &served.leaf;
    let found = format!(
        "{}, {}, {} names, {} in the chain of {} bytes, until {}",
        leaf.subject,
        leaf.key,
        leaf.names.len(),
        served.length,
        served.bytes,
        date(leaf.not_after),
    );
    row(format!("certificate for {to} clients"), found)
}

fn of_resumption(tried: &Resumption) -> Row {
    let Resumption { attempts, offered, resumed, .. } = tried;
    let what = format!("{} resumption by {}", version(tried.version), kind(tried.by));
    let found = match (resumed, offered) {
        (0, 0) => "nothing given to resume with".into(),
        _ => format!("{resumed} of {attempts}"),
    };
    row(what, found)
}

fn of_early_data(found: EarlyData) -> &'static str {
    match found {
        EarlyData::NotAllowed => "not allowed by its tickets",
        EarlyData::Refused => "allowed by its tickets, and thrown away",
        EarlyData::Accepted => "taken",
    }
}

fn of_bytes(found: &PostQuantum) -> String {
    let PostQuantum { hybrid, classical, .. } = found;
    format!(
        "ClientHello {} and ServerHello {}, with X25519 {} and {}: {} more, {:.0} % of the handshake's {}",
        hybrid.client_hello,
        hybrid.server_hello,
        classical.client_hello,
        classical.server_hello,
        found.more_bytes(),
        found.share_of_bytes() * 100.0,
        hybrid.all,
    )
}

fn of_time(found: &TimeOfBoth) -> String {
    let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let (TimeOfBoth { pairs, interval, .. }, (share, shares)) = (found, found.share());
    let medians = format!("{} ms, with X25519 {} ms", ms(found.hybrid), ms(found.classical));
    let range = format!("{} to {} ms", ms(interval.low), ms(interval.high));
    if !found.is_seen() {
        return format!("{medians}: no difference seen in {pairs} handshakes of each ({range})");
    }
    let (much, how) = (ms(found.longer.abs()), if found.longer < 0.0 { "less" } else { "more" });
    format!(
        "{medians}: {much} ms {how} ({range}), {:.0} % of the handshake ({:.0} to {:.0} %), {pairs} of each",
        share * 100.0,
        shares.low * 100.0,
        shares.high * 100.0,
    )
}

fn too_few() -> String {
    "too few handshakes came about".into()
}

fn kind(by: ResumptionMethod) -> &'static str {
    match by {
        ResumptionMethod::SessionId => "session ID",
        ResumptionMethod::Ticket => "ticket",
        ResumptionMethod::Psk => "PSK",
    }
}

fn row(what: impl Into<String>, found: impl Into<String>) -> Row {
    Row { what: what.into(), found: found.into() }
}

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn version(code: u16) -> String {
    named(names::version(code), code)
}

fn suite(code: u16) -> String {
    named(names::suite(code), code)
}

fn group(code: u16) -> String {
    named(names::group(code), code)
}

fn named(name: Option<&str>, code: u16) -> String {
    name.map_or_else(|| format!("0x{code:04x}"), str::to_owned)
}

/// The day of a time in Unix seconds, `2026-11-21`: Howard Hinnant's `civil_from_days`, in eras of 400 years that begin
/// in March.
fn date(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + next)
}

const X25519MLKEM768: u16 = 0x11ec;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (951_782_400, "2000-02-29"),
            (1_577_836_800, "2020-01-01"),
            (4_102_444_799, "2099-12-31"),
        ] {
            assert_eq!(date(seconds), day);
        }
    }
}
