//! The least that a connection can cost a server: the bare cryptographic operations that its mix of
//! handshakes and bytes needs, each timed on this machine with the library that courser uses, and the reads and writes that
//! carry them, timed without TLS.
//!
//! It is a limit to look at and no forecast: parsing, timers and logs are not in it, and a library that does an operation in
//! less time than ours can go below it. How many of which operation: `operations.rs`; which reads and writes: `exchanges.rs`.

mod exchanges;
pub(crate) mod floor;
mod operations;

use std::collections::HashMap;
use std::time::Duration;

use crate::primitives::{self, Family};
use courser_record::lab::{Limit, LimitPart};
pub(crate) use exchanges::Exchanges;
use floor::Cores;
use operations::{Operation, Step};

/// For one operation: with less, what else runs on the machine shows in the figure.
const TIME: Duration = Duration::from_millis(100);

/// The sizes that a line is drawn through: a cipher's cost for anything between.
const ENDS: [usize; 2] = [8, 16_384];

/// What a case asks of a server, for each connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Needs {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The certificate's key: `RSA-2048`, `P-256`.
    pub key: String,
    /// Key exchange group: `X25519`, `P-256`; `None` when the client encrypts to the server's RSA key.
    pub group: Option<String>,
    /// Cipher suite, IANA name.
    pub suite: String,
    /// Share of full handshakes, 0 to 1; the others resume.
    pub full: f64,
    /// Whether sessions come back as tickets that the server opens, and not as an ID.
    pub tickets: bool,
    /// Bytes from the client, of one connection.
    pub bytes_in: u64,
    /// Bytes to the client.
    pub bytes_out: u64,
    /// Whether the way to the backend is encrypted too.
    pub reencrypted: bool,
}

/// What operations take here. Each is timed when it is first needed, once.
#[derive(Debug, Default)]
pub struct Limits {
    known: HashMap<(String, Family, Option<usize>), f64>,
    floors: HashMap<Exchanges, f64>,
}

/// How an operation is timed, and how a connection without TLS: microseconds.
struct Timers<T, F> {
    operation: T,
    connection: F,
}

impl Limits {
    /// The least processor time of a connection, with server and clients on these cores.
    ///
    /// # Errors
    /// What cannot be timed, and why.
    pub(crate) fn of(&mut self, needs: &Needs, cores: Cores) -> Result<Limit, String> {
        let connection = |exchanges: &Exchanges| floor::measure(exchanges, cores).map(|floor| floor.us);
        self.with(needs, &Timers { operation: time, connection })
    }

    fn with<T, F>(&mut self, needs: &Needs, timers: &Timers<T, F>) -> Result<Limit, String>
    where
        T: Fn(&Step) -> Result<f64, String>,
        F: Fn(&Exchanges) -> Result<f64, String>,
    {
        let mut parts = Vec::new();
        for Operation { step, bytes, times } in operations::of(needs)? {
            let us = match bytes {
                None => self.known(&step, &timers.operation)?,
                Some(bytes) => self.between(&step, bytes, &timers.operation)?,
            };
            parts.push(LimitPart { name: step.to_string(), times, us });
        }
        let mut floor = Vec::new();
        for (name, is_full, times) in [("full", true, needs.full), ("resumed", false, 1.0 - needs.full)] {
            if times > 0.0 {
                let us = self.floor(Exchanges::of(needs, is_full), &timers.connection)?;
                floor.push(LimitPart { name: format!("reads and writes of a {name} connection"), times, us });
            }
        }
        let us_per_connection = LimitPart::sum(&parts) + LimitPart::sum(&floor);
        Ok(Limit { us_per_connection, parts, floor })
    }

    fn floor(
        &mut self,
        exchanges: Exchanges,
        time: &impl Fn(&Exchanges) -> Result<f64, String>,
    ) -> Result<f64, String> {
        if let Some(us) = self.floors.get(&exchanges) {
            return Ok(*us);
        }
        let us = time(&exchanges)?;
        self.floors.insert(exchanges, us);
        Ok(us)
    }

    /// What an operation on so many bytes takes, on the line through its ends.
    fn between(
        &mut self,
        step: &Step,
        bytes: f64,
        time: &impl Fn(&Step) -> Result<f64, String>,
    ) -> Result<f64, String> {
        let [short, long] = ENDS;
        let least = self.known(&step.at(short), time)?;
        let most = self.known(&step.at(long), time)?;
        let (short, long) = (short as f64, long as f64);
        Ok(least + (most - least).max(0.0) * (bytes - short).max(0.0) / (long - short))
    }

    fn known(&mut self, step: &Step, time: &impl Fn(&Step) -> Result<f64, String>) -> Result<f64, String> {
        let key = (step.name.clone(), step.family, step.bytes);
        if let Some(us) = self.known.get(&key) {
            return Ok(*us);
        }
        let us = time(step)?;
        self.known.insert(key, us);
        Ok(us)
    }
}

/// Microseconds of one, by the clock.
fn time(step: &Step) -> Result<f64, String> {
    let timed = primitives::measure_one(&step.name, step.family, step.bytes, TIME);
    let known = timed.ok_or_else(|| format!("{step} is none of the operations that can be timed here"))?;
    known.map(|figure| figure.us).map_err(|broken| broken.to_string())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn needs() -> Needs {
        Needs {
            version: "1.3".into(),
            key: "RSA-2048".into(),
            group: Some("X25519".into()),
            suite: "TLS_AES_128_GCM_SHA256".into(),
            full: 1.0,
            tickets: true,
            bytes_in: 0,
            bytes_out: 0,
            reencrypted: false,
        }
    }

    /// A signature takes 500 us, a step of a key exchange 30, a byte a thousandth.
    fn paper(step: &Step) -> Result<f64, String> {
        let by_length = |bytes: usize| bytes as f64 / 1000.0;
        Ok(match step.family {
            Family::Sign => 500.0,
            Family::KeyExchange => 30.0,
            _ => step.bytes.map_or(0.0, by_length),
        })
    }

    /// Reads and writes take nothing.
    fn free(_: &Exchanges) -> Result<f64, String> {
        Ok(0.0)
    }

    fn limit(needs: &Needs) -> f64 {
        let timers = Timers { operation: paper, connection: free };
        Limits::default().with(needs, &timers).unwrap().us_per_connection
    }

    #[test]
    fn reads_and_writes_are_a_part_by_the_mix_of_connections() {
        let connection =
            |exchanges: &Exchanges| Ok(if exchanges.handshake[0][1] > 500 { 40.0 } else { 20.0 });
        let mixed = Needs { full: 0.25, ..needs() };
        let timers = Timers { operation: paper, connection };
        let with = Limits::default().with(&mixed, &timers).unwrap();
        assert!((with.us_per_connection - limit(&mixed) - 25.0).abs() < 1e-9, "{with:#?}");
        assert!((with.cryptography_us() - limit(&mixed)).abs() < 1e-9);
        let times: Vec<f64> = with.floor.iter().map(|part| part.times).collect();
        assert_eq!(times, [0.25, 0.75]);
        assert_eq!(Limits::default().with(&needs(), &timers).unwrap().floor.len(), 1, "none resumes");
    }

    #[test]
    fn the_parts_add_up() {
        let timers = Timers { operation: paper, connection: free };
        let limit = Limits::default().with(&needs(), &timers).unwrap();
        let sum = limit.cryptography_us();
        assert!((sum - limit.us_per_connection).abs() < 1e-9);
        assert!(sum > 560.0 && sum < 575.0, "{limit:#?}");
    }

    #[test]
    fn resumption_saves_the_signature_and_tls_1_2_the_key_exchange_too() {
        let resumed = Needs { full: 0.0, ..needs() };
        assert!((60.0..70.0).contains(&limit(&resumed)), "{}", limit(&resumed));
        let older = Needs { version: "1.2".into(), ..resumed };
        assert!(limit(&older) < 10.0, "{}", limit(&older));
        let mixed = Needs { full: 0.25, ..needs() };
        assert!((180.0..200.0).contains(&limit(&mixed)), "{}", limit(&mixed));
    }

    #[test]
    fn bytes_cost_once_more_when_they_are_encrypted_again() {
        let extra = |reencrypted| {
            let with = Needs { bytes_out: 1_000_000, reencrypted, ..needs() };
            limit(&with) - limit(&Needs { reencrypted, ..needs() })
        };
        assert!((990.0..1010.0).contains(&extra(false)), "{}", extra(false));
        assert!((extra(true) / extra(false) - 2.0).abs() < 0.02, "{}", extra(true));
    }

    #[test]
    fn each_operation_is_timed_once() {
        let count = std::cell::Cell::new(0);
        let time = |step: &Step| {
            count.set(count.get() + 1);
            paper(step)
        };
        let floors = std::cell::Cell::new(0);
        let connection = |_: &Exchanges| {
            floors.set(floors.get() + 1);
            Ok(1.0)
        };
        let (mut limits, timers) = (Limits::default(), Timers { operation: time, connection });
        limits.with(&needs(), &timers).unwrap();
        let first = count.get();
        limits.with(&Needs { tickets: false, bytes_out: 9, ..needs() }, &timers).unwrap();
        assert_eq!((count.get(), floors.get()), (first, 2), "an answer is read and written too");
        limits.with(&Needs { bytes_out: 9, ..needs() }, &timers).unwrap();
        assert_eq!(floors.get(), 2);
    }

    #[test]
    fn every_operation_of_a_modern_case_is_known_to_the_library() {
        for (version, suite) in
            [("1.3", "TLS_AES_256_GCM_SHA384"), ("1.2", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")]
        {
            let group =
                Some("X25519MLKEM768".to_owned()).filter(|_| version == "1.3").or(Some("P-256".into()));
            let asked = Needs {
                version: version.into(),
                suite: suite.into(),
                key: "P-384".into(),
                group,
                full: 0.5,
                bytes_in: 100,
                bytes_out: 100,
                reencrypted: true,
                ..needs()
            };
            for Operation { step, bytes, .. } in operations::of(&asked).unwrap() {
                let step = if bytes.is_some() { step.at(ENDS[1]) } else { step };
                let timed = primitives::measure_one(&step.name, step.family, step.bytes, Duration::ZERO);
                assert!(timed.is_some_and(|timed| timed.is_ok()), "{step}");
            }
        }
    }
}
