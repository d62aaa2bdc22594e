//! Both ends of TLS in one process: the experiment of SSLeay's `ssltest` (1997), as its table had it.

use crate::overheads::{self, Cost, Key, Library, Options};
use courser_record::lab::{Era, Figure};

use super::{OURS, Progress, Row, RowLabel, THEIRS, slug};

/// Bytes there and back: the columns of 1997.
const BYTES: [usize; 4] = [1, 1024, 10_240, 102_400];

/// Connections behind a figure of 1997.
const CONNECTIONS: f64 = 1000.0;

/// The rows of 1997: what they were, and why neither library has them.
const RETIRED: [(&str, &str, &str); 7] = [
    ("SSLv2 RC4-MD5", NO_SSL, "SSLv2 is not in OpenSSL since 1.1.0"),
    ("SSLv3 NULL-MD5", NO_SSL, NO_SSLV3),
    ("SSLv3 RC4-MD5", NO_SSL, NO_SSLV3),
    ("SSLv3 RC4-MD5, RSA-1024", NO_SSL, NO_SSLV3),
    ("SSLv3 RC4-SHA", NO_SSL, NO_SSLV3),
    ("SSLv3 DES-CBC-SHA", NO_SSL, NO_SSLV3),
    ("SSLv3 DES-CBC3-SHA", NO_SSL, NO_SSLV3),
];

const NO_SSL: &str = "the library speaks TLS 1.2 and 1.3 alone, and takes no RSA key under 2048 bits";

const NO_SSLV3: &str =
    "distributions build OpenSSL without SSLv3, and without RC4 and DES in TLS: TLS 1.0 stands beside it";

/// A pass: user seconds for 1000 connections, each with so many bytes there and back, with full handshakes, and with one full
/// handshake and 999 resumed ones. Half a minute, two minutes when not `quick`.
pub fn overheads(quick: bool, progress: Progress<'_>) -> Vec<Row> {
    let kinds = kinds();
    let total = 2 * kinds.len();
    let mut rows = Vec::new();
    for kind in &kinds {
        for (target, library) in [(OURS, Library::Own), (THEIRS, Library::OpenSsl)] {
            progress(rows.len(), total, &format!("{}, {target}", kind.suite));
            let measured = measure(library, kind, quick);
            rows.push(row(kind, target, measured));
        }
    }
    progress(total, total, "");
    rows.extend(RETIRED.iter().flat_map(retired));
    rows
}

/// A row of the table: OpenSSL has all.
struct Kind {
    suite: &'static str,
    key: Key,
}

fn kinds() -> Vec<Kind> {
    let each =
        |(suite, keys): (&'static str, &'static [Key])| keys.iter().map(move |&key| Kind { suite, key });
    overheads::usual(Library::OpenSsl).flat_map(each).collect()
}

/// A figure with full handshakes and one with one, for each number of bytes.
fn measure(library: Library, kind: &Kind, quick: bool) -> Result<Vec<Figure>, String> {
    if library == Library::Own && kind.is_retired() {
        return Err(NO_SSL.to_owned());
    }
    let options = Options {
        library,
        bytes: BYTES.to_vec(),
        number: if quick { 40 } else { 200 },
        suites: vec![kind.suite.to_owned()],
        keys: vec![kind.key],
    };
    let rows = overheads::measure(&options, |_, _| {}).map_err(|why| why.to_string())?;
    Ok(rows.iter().flat_map(figures).collect())
}

impl Kind {
    /// The client encrypts to the server's key.
    fn is_retired(&self) -> bool {
        self.suite.starts_with("TLS_RSA_WITH_")
    }

    /// `TLS 1.3 AES128-GCM-SHA256, RSA-2048`.
    fn title(&self) -> String {
        let (version, name) = match self.suite.split_once("_WITH_") {
            Some((_, name)) if self.is_retired() => ("TLS 1.0", name),
            Some((_, name)) => ("TLS 1.2", name),
            None => ("TLS 1.3", self.suite.trim_start_matches("TLS_")),
        };
        format!("{version} {}, {}", name.replace("AES_", "AES").replace('_', "-"), self.key)
    }
}

/// Both figures of a number of bytes.
fn figures(row: &overheads::Row) -> [Figure; 2] {
    let bytes = row.bytes;
    let reused = mixed(&row.full, &row.resumed);
    [
        figure(format!("{bytes} B each"), row.full.total_us(), row.full.interval.map(|of| (of.low, of.high))),
        figure(format!("{bytes} B reused"), reused, None),
    ]
}

/// Of 1000 connections the first makes a full handshake.
fn mixed(full: &Cost, resumed: &Cost) -> f64 {
    (full.total_us() + (CONNECTIONS - 1.0) * resumed.total_us()) / CONNECTIONS
}

/// From microseconds of one connection to seconds of 1000.
fn figure(name: String, us: f64, interval: Option<(f64, f64)>) -> Figure {
    let of = |us: f64| us * CONNECTIONS / 1e6;
    Figure {
        name,
        unit: "s per 1000 connections".to_owned(),
        value: of(us),
        low: interval.map(|(low, _)| of(low)),
        high: interval.map(|(_, high)| of(high)),
    }
}

fn retired((title, ours, theirs): &(&str, &str, &str)) -> [Row; 2] {
    [(OURS, ours), (THEIRS, theirs)]
        .map(|(target, why)| place(title, Era::Historic).row(target, Err((*why).to_owned())))
}

fn row(kind: &Kind, target: &str, result: Result<Vec<Figure>, String>) -> Row {
    let era = if kind.is_retired() { Era::Historic } else { Era::Modern };
    let mut row = place(&kind.title(), era).row(target, result);
    row.dimensions.insert("key".to_owned(), kind.key.to_string());
    row
}

fn place(title: &str, era: Era) -> RowLabel {
    let case = slug(&title.replace(", ", "-").replace('.', ""));
    RowLabel { case, title: title.to_owned(), era, kind: "connection" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(us: f64) -> Cost {
        Cost { client_us: us / 2.0, server_us: us / 2.0, interval: None }
    }

    #[test]
    fn figures_are_in_the_units_of_1997() {
        let row = overheads::Row {
            suite: "TLS_AES_128_GCM_SHA256",
            key: Key::Rsa2048,
            bytes: 1024,
            full: cost(1100.0),
            resumed: cost(100.0),
        };
        let [each, reused] = figures(&row);
        assert_eq!((&*each.name, &*reused.name), ("1024 B each", "1024 B reused"));
        assert!(
            (each.value - 1.1).abs() < 1e-9 && (reused.value - 0.101).abs() < 1e-9,
            "{each:?} {reused:?}"
        );
    }

    #[test]
    fn suites_are_titled_by_version() {
        let title = |suite, key| Kind { suite, key }.title();
        assert_eq!(title("TLS_RSA_WITH_NULL_MD5", Key::Rsa512), "TLS 1.0 NULL-MD5, RSA-512");
        let older = title("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", Key::Rsa2048);
        assert_eq!(older, "TLS 1.2 CHACHA20-POLY1305-SHA256, RSA-2048");
        let row = row(&Kind { suite: "TLS_AES_128_GCM_SHA256", key: Key::EcdsaP256 }, OURS, Ok(Vec::new()));
        assert_eq!((&*row.case, row.era), ("tls-13-aes128-gcm-sha256-p-256", Era::Modern));
    }

    #[test]
    fn each_library_has_a_figure_for_each_column_or_a_reason() {
        let kind = Kind { suite: "TLS_RSA_WITH_AES_128_CBC_SHA", key: Key::Rsa512 };
        assert_eq!(measure(Library::Own, &kind, true), Err(NO_SSL.to_owned()));
        match measure(Library::OpenSsl, &kind, true) {
            Ok(figures) => assert_eq!(figures.len(), 2 * BYTES.len()),
            Err(why) => assert!(!cfg!(feature = "openssl") && why.contains("openssl"), "{why}"),
        }
    }
}
