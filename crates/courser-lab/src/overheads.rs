//! What the protocol costs inside one process: both ends of TLS in memory, no network and no kernel in between.
//!
//! The experiment of SSLeay's `ssltest` (1997), with today's protocol: N connections, each of which sends B bytes that
//! come back, so that they are encrypted and decrypted twice; once with full handshakes alone, once resuming. The server
//! is the terminator's own end (session tickets, two per TLS 1.3 handshake), the client does all the work of a real one
//! and verifies the handshake's signature, though no chain. Key exchange is X25519. Or both ends are the system's
//! OpenSSL: then somebody else's figures stand beside ours, and what is retired can be measured once more.
//!
//! It differs from the original in two ways. The ends are told apart: each has its own processor time. And a resumed
//! connection's figure holds resumed connections alone, where the original's second column was one full handshake and
//! N-1 resumed ones: that is `(full + (N-1) resumed) / N` of ours.
//!
//! A connection that does not do what its figure says (resume or not, the suite, the bytes) fails the whole.

mod batch;
mod pair;
mod server;

use std::fmt;

use courser_stats::{ConfidenceInterval, confidence};
use courser_tls::{Failure, IdentityError, TlsConfigError, names};

use crate::primitives::median;
use batch::Spent;
use pair::InProcessPair;

/// Whose both ends are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Library {
    /// The terminator's own.
    #[default]
    Own,
    /// The system's OpenSSL, that most other terminators use. It has what is retired, too.
    OpenSsl,
}

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// With which library.
    pub library: Library,
    /// How many bytes each connection sends there and back; a row for each.
    pub bytes: Vec<usize>,
    /// Connections per figure, at least one.
    pub number: u32,
    /// Suites by name, IANA's or OpenSSL's; empty for the usual ones: all of TLS 1.3, and those of TLS 1.2 with forward
    /// secrecy and AES-128-GCM or ChaCha20-Poly1305.
    pub suites: Vec<String>,
    /// Keys of the server; empty for all that a suite is measured with.
    pub keys: Vec<Key>,
}

/// A suite that can be measured.
struct Suite {
    code: u16,
    /// By its code point.
    version: u16,
    /// The keys that can sign with it.
    keys: &'static [Key],
    /// Whether it is measured by default.
    is_usual: bool,
}

const SUITES: [Suite; 9] = [
    Suite { code: 0x1301, version: 0x0304, keys: &[Key::EcdsaP256, Key::Rsa2048], is_usual: true },
    Suite { code: 0x1302, version: 0x0304, keys: &[Key::EcdsaP256, Key::Rsa2048], is_usual: true },
    Suite { code: 0x1303, version: 0x0304, keys: &[Key::EcdsaP256, Key::Rsa2048], is_usual: true },
    Suite { code: 0xc02b, version: 0x0303, keys: &[Key::EcdsaP256], is_usual: true },
    Suite { code: 0xc02c, version: 0x0303, keys: &[Key::EcdsaP256], is_usual: false },
    Suite { code: 0xcca9, version: 0x0303, keys: &[Key::EcdsaP256], is_usual: true },
    Suite { code: 0xc02f, version: 0x0303, keys: &[Key::Rsa2048], is_usual: true },
    Suite { code: 0xc030, version: 0x0303, keys: &[Key::Rsa2048], is_usual: false },
    Suite { code: 0xcca8, version: 0x0303, keys: &[Key::Rsa2048], is_usual: true },
];

/// What OpenSSL still has of the tables of 1997, or next to them: the client encrypts to the server's key, TLS 1.0.
const RETIRED: [Suite; 2] = [
    Suite { code: 0x0001, version: 0x0301, keys: &[Key::Rsa512, Key::Rsa1024], is_usual: true },
    Suite { code: 0x002f, version: 0x0301, keys: &[Key::Rsa512, Key::Rsa1024], is_usual: true },
];

/// The server's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// ECDSA on P-256.
    EcdsaP256,
    /// RSA with a modulus of 2048 bits.
    Rsa2048,
    /// 1024 bits: OpenSSL alone.
    Rsa1024,
    /// 512 bits: OpenSSL alone.
    Rsa512,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EcdsaP256 => "P-256",
            Self::Rsa2048 => "RSA-2048",
            Self::Rsa1024 => "RSA-1024",
            Self::Rsa512 => "RSA-512",
        })
    }
}

/// What connections of one kind cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Suite.
    pub suite: &'static str,
    /// The server's key.
    pub key: Key,
    /// Bytes sent there and back.
    pub bytes: usize,
    /// A connection with a full handshake.
    pub full: Cost,
    /// A connection that resumes.
    pub resumed: Cost,
}

/// Processor time of one connection, from nothing to freed memory: the median over batches of a few connections, so that
/// a moment in which the machine was somewhere else does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The client's, microseconds.
    pub client_us: f64,
    /// The server's, microseconds.
    pub server_us: f64,
    /// 95 % interval of their sum; none of too few connections.
    pub interval: Option<ConfidenceInterval>,
}

impl Cost {
    /// Both ends, microseconds.
    pub fn total_us(&self) -> f64 {
        self.client_us + self.server_us
    }

    fn of(batches: &[Spent]) -> Self {
        let each = |of: fn(&Spent) -> f64| batches.iter().map(of).collect::<Vec<f64>>();
        Self {
            client_us: median(&each(Spent::client_us)),
            server_us: median(&each(Spent::server_us)),
            interval: confidence::median(&each(|spent| spent.client_us() + spent.server_us()), 1),
        }
    }
}

/// Measures each suite with each key that it can have and each number of bytes. `progress` is called with how many
/// figures are done, and of how many, before the first and after each.
///
/// # Errors
/// A suite that cannot be had, or a connection that did not do what was asked.
pub fn measure(options: &Options, mut progress: impl FnMut(usize, usize)) -> Result<Vec<Row>, Error> {
    let suites = chosen(options)?;
    let keys = |suite: &'static Suite| suite.keys.iter().map(move |&key| (suite, key));
    let is_asked = |(_, key): &(&Suite, Key)| options.keys.is_empty() || options.keys.contains(key);
    let kinds: Vec<(&Suite, Key)> = suites.into_iter().flat_map(keys).filter(is_asked).collect();
    let total = kinds.len() * options.bytes.len() * 2;
    let mut done = 0;
    progress(done, total);
    let mut rows = Vec::new();
    for (&Suite { code: suite, version, .. }, key) in kinds {
        let pair = InProcessPair::new(options.library, version, suite, key)?;
        for &bytes in &options.bytes {
            let mut cost = |resume| {
                let batches = pair.run(resume, bytes, options.number);
                done += 1;
                progress(done, total);
                batches.map(|batches| Cost::of(&batches)).map_err(|trouble| trouble.of(suite, key))
            };
            let (full, resumed) = (cost(false)?, cost(true)?);
            rows.push(Row { suite: name(suite), key, bytes, full, resumed });
        }
    }
    Ok(rows)
}

/// The suites that are measured by default, each with the keys that it is measured with.
pub fn usual(library: Library) -> impl Iterator<Item = (&'static str, &'static [Key])> {
    known(library).filter(|suite| suite.is_usual).map(|suite| (name(suite.code), suite.keys))
}

fn known(library: Library) -> impl Iterator<Item = &'static Suite> {
    let retired: &[Suite] = if library == Library::OpenSsl { &RETIRED } else { &[] };
    SUITES.iter().chain(retired)
}

/// The suites that are asked for by name; the usual ones without.
fn chosen(options: &Options) -> Result<Vec<&'static Suite>, Error> {
    let known = || known(options.library);
    if options.suites.is_empty() {
        return Ok(known().filter(|suite| suite.is_usual).collect());
    }
    let find = |wanted: &String| {
        let code = names::suite_code(wanted);
        known().find(|suite| Some(suite.code) == code).ok_or_else(|| Error::Suite(wanted.clone()))
    };
    options.suites.iter().map(find).collect()
}

fn name(suite: u16) -> &'static str {
    names::suite(suite).unwrap_or("unknown")
}

/// What is wrong with a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An end failed.
    Failed(Failure),
    /// It resumed, or did not, against what was asked; or the ends do not agree on that.
    Resumption {
        /// Whether it was to resume.
        asked: bool,
    },
    /// Another suite was negotiated, by code point.
    Suite(u16),
    /// What came back is not what was sent.
    Echo,
}

impl Trouble {
    fn of(self, suite: u16, key: Key) -> Error {
        Error::Connection { suite: name(suite), key, trouble: self }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => write!(f, "{failure}"),
            Self::Resumption { asked: true } => {
                f.write_str("a connection was to resume and made a full handshake")
            }
            Self::Resumption { asked: false } => {
                f.write_str("a connection was to make a full handshake and resumed")
            }
            Self::Suite(suite) => write!(f, "{} was negotiated", name(*suite)),
            Self::Echo => f.write_str("what came back is not what was sent"),
        }
    }
}

/// Why there are no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A suite that cannot be measured here, or is not known at all.
    Suite(String),
    /// The server has no key.
    Key(IdentityError),
    /// A library does not take a suite.
    Terms(TlsConfigError),
    /// A connection went wrong.
    Connection {
        /// Suite that was asked for.
        suite: &'static str,
        /// The server's key.
        key: Key,
        /// What went wrong.
        trouble: Trouble,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suite(wanted) => {
                let known: Vec<_> = SUITES.iter().map(|suite| name(suite.code)).collect();
                write!(f, "{wanted} cannot be measured in one process; choose from {}", known.join(", "))
            }
            Self::Key(error) => write!(f, "cannot make the server's key: {error}"),
            Self::Terms(error) => write!(f, "cannot set up TLS: {error}"),
            Self::Connection { suite, key, trouble } => write!(f, "{suite} with {key}: {trouble}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    #[cfg(feature = "openssl")]
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;

    fn options(suites: &[&str]) -> Options {
        let suites = suites.iter().map(|&name| name.to_owned()).collect();
        Options { library: Library::Own, bytes: vec![1, 40_000], number: 9, suites, keys: Vec::new() }
    }

    #[test]
    fn every_usual_suite_gives_its_rows() {
        let mut steps = Vec::new();
        let rows = measure(&options(&[]), |done, total| steps.push((done, total))).unwrap();
        assert_eq!(rows.len(), (3 * 2 + 4) * 2);
        assert_eq!(steps, (0..=40).map(|done| (done, 40)).collect::<Vec<_>>());
        let costs = rows.iter().flat_map(|row| [row.full, row.resumed]);
        assert!(costs.clone().all(|cost| cost.client_us > 0.0 && cost.server_us > 0.0), "{rows:#?}");
        assert_eq!(
            (rows[0].suite, rows[0].key, rows[0].bytes),
            ("TLS_AES_128_GCM_SHA256", Key::EcdsaP256, 1)
        );
        assert!(rows.iter().any(|row| row.key == Key::Rsa2048 && row.suite.starts_with("TLS_ECDHE_RSA_")));
    }

    #[cfg(feature = "openssl")]
    #[test]
    fn openssl_resumes_what_was_retired_and_what_is_of_today() {
        let rows = measure(&Options { library: Library::OpenSsl, ..options(&[]) }, |_, _| {}).unwrap();
        assert_eq!(rows.len(), (3 * 2 + 4 + 2 * 2) * 2);
        let oldest = rows.iter().filter(|row| row.suite == "TLS_RSA_WITH_NULL_MD5");
        assert_eq!(oldest.map(|row| row.key).collect::<HashSet<_>>(), [Key::Rsa512, Key::Rsa1024].into());
    }

    #[test]
    fn suites_go_by_either_name() {
        let rows = measure(&options(&["ECDHE-RSA-AES256-GCM-SHA384"]), |_, _| {}).unwrap();
        assert_eq!(rows[0].suite, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384");
        assert_eq!((rows.len(), rows[0].key), (2, Key::Rsa2048));
    }

    #[test]
    fn a_suite_that_cannot_be_had_is_named() {
        for wanted in ["AES128-SHA", "TLS_ROT13"] {
            let error = measure(&options(&["TLS_AES_128_GCM_SHA256", wanted]), |_, _| {}).unwrap_err();
            assert_eq!(error, Error::Suite(wanted.to_owned()));
            assert!(error.to_string().contains("choose from TLS_AES_128_GCM_SHA256, "), "{error}");
        }
    }

    #[test]
    fn a_cost_is_the_median_of_batches() {
        let spent = |connections, client, server| Spent {
            connections,
            client: Duration::from_micros(client),
            server: Duration::from_micros(server),
        };
        let cost = Cost::of(&[spent(8, 80, 160), spent(8, 88, 176), spent(2, 3000, 6000)]);
        assert_eq!((cost.client_us, cost.server_us, cost.total_us()), (11.0, 22.0, 33.0));
        assert_eq!(Cost::of(&[spent(8, 80, 160); 2]).interval, None);
        assert!(Cost::of(&[spent(8, 80, 160); 8]).interval.unwrap().contains(30.0));
    }
}
