//! Experiments without a network: what libraries do, ours and the one that its rivals use, as the rows of
//! published tables; and beside them what the kernel takes for a connection over loopback.
//!
//! Nothing here starts a terminator, and no figure here is a server's. A row that a library cannot do says
//! why; none is left out.

mod algorithms;
mod handshakes;
mod kernel;
mod ours;
mod speed;

use std::collections::BTreeMap;
use std::time::Duration;

use courser_record::lab::{Era, Figure};

use algorithms::{EXCHANGES, KeyExchangeCost, SIGNATURES, Signature, THROUGHPUT, Throughput};
use ours::Ours;
use speed::Speed;

pub use handshakes::overheads;

/// How often all rows of [`overheads`] are measured.
pub const OVERHEADS_PASSES: u32 = 5;

/// The library that courser uses.
const OURS: &str = "aws-lc-rs";

/// The library that most others use, as its own program measures it.
const THEIRS: &str = "openssl";

/// The kernel, without any library.
const KERNEL: &str = "kernel";

/// What one library does with one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name within the suite: `aes-128-gcm`.
    pub case: String,
    /// As tables call it: published ones where they have it.
    pub title: String,
    /// Modern or historic.
    pub era: Era,
    /// `kind` says which table it belongs to: `throughput`, `signature` (seconds), `rate` (signatures a
    /// second), `exchange`, `connection`, `kernel` (seconds).
    pub dimensions: BTreeMap<String, String>,
    /// The library: `aws-lc-rs` or `openssl`; or `kernel`.
    pub target: String,
    /// A figure for each column; or why there are none.
    pub result: Result<Vec<Figure>, String>,
}

/// A library's version, as it says, and how it is measured.
pub fn library(name: &str) -> (String, String) {
    match name {
        OURS => (crate::primitives::library_version(), "linked into this program".to_owned()),
        KERNEL => (
            courser_machine::machine::read().kernel,
            "a server that makes the reads and writes of a connection over loopback, without TLS".to_owned(),
        ),
        _ => (
            speed::version(),
            "operations: its own program, `openssl speed`; connections: both ends in this process".to_owned(),
        ),
    }
}

/// Called with how many measurements are done, of how many, and what comes next.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize, &str);

/// Where a row stands.
struct RowLabel {
    case: String,
    title: String,
    era: Era,
    kind: &'static str,
}

impl RowLabel {
    fn row(&self, target: &str, result: Result<Vec<Figure>, String>) -> Row {
        Row {
            case: self.case.clone(),
            title: self.title.clone(),
            era: self.era,
            dimensions: BTreeMap::from([("kind".to_owned(), self.kind.to_owned())]),
            target: target.to_owned(),
            result,
        }
    }
}

/// How often all rows of [`primitives`] are measured.
pub const fn primitives_passes(quick: bool) -> u32 {
    if quick { 1 } else { 3 }
}

/// A pass over the bare operations: throughput by block size, signatures, key exchanges; and the kernel's floor. About two
/// minutes.
pub fn primitives(quick: bool, progress: Progress<'_>) -> Vec<Row> {
    let ours = Ours { time: Duration::from_millis(if quick { 100 } else { 200 }) };
    let mut speed = Speed::new(1);
    let total = 2 * (THROUGHPUT.len() + SIGNATURES.len() + EXCHANGES.len()) + kernel::COUNT;
    let mut done = 0;
    let mut next = |library: &str, title: &str| {
        progress(done, total, &format!("{title}, {library}"));
        done += 1;
    };
    let mut rows = Vec::new();
    for algorithm in &THROUGHPUT {
        next(OURS, algorithm.title);
        rows.push(throughput(algorithm).row(OURS, ours.throughput(algorithm)));
        next(THEIRS, algorithm.title);
        rows.push(throughput(algorithm).row(THEIRS, speed.throughput(algorithm)));
    }
    for algorithm in &SIGNATURES {
        next(OURS, algorithm.title);
        rows.extend(signature(algorithm, OURS, &ours.signature(algorithm)));
        next(THEIRS, algorithm.title);
        rows.extend(signature(algorithm, THEIRS, &speed.signature(algorithm)));
    }
    for algorithm in &EXCHANGES {
        next(OURS, algorithm.title);
        rows.push(exchange(algorithm).row(OURS, ours.exchange(algorithm)));
        next(THEIRS, algorithm.title);
        rows.push(exchange(algorithm).row(THEIRS, speed.exchange(algorithm)));
    }
    rows.extend(kernel::rows(|title| next(KERNEL, title)));
    progress(total, total, "");
    rows
}

fn throughput(algorithm: &Throughput) -> RowLabel {
    RowLabel {
        case: slug(algorithm.title),
        title: algorithm.title.to_owned(),
        era: algorithm.era,
        kind: "throughput",
    }
}

fn exchange(algorithm: &KeyExchangeCost) -> RowLabel {
    RowLabel {
        case: format!("exchange-{}", slug(algorithm.title)),
        title: algorithm.title.to_owned(),
        era: Era::Modern,
        kind: "exchange",
    }
}

/// Two rows of one measurement: published tables have seconds of the one time, and rates of the other.
fn signature(algorithm: &Signature, target: &str, us: &Result<Vec<Timed>, String>) -> [Row; 2] {
    let place = |prefix: &str, kind| RowLabel {
        case: format!("{prefix}{}", slug(algorithm.title)),
        title: algorithm.title.to_owned(),
        era: algorithm.era,
        kind,
    };
    let each = |of: fn(&Timed) -> Figure| {
        us.as_ref().map(|timed| timed.iter().map(of).collect()).map_err(Clone::clone)
    };
    [
        place("", "signature").row(target, each(Timed::seconds)),
        place("rate-", "rate").row(target, each(Timed::per_second)),
    ]
}

/// What one operation takes, microseconds.
#[derive(Clone, Debug, PartialEq)]
struct Timed {
    name: &'static str,
    us: f64,
    /// 95 % interval, where there is one.
    interval: Option<(f64, f64)>,
}

impl Timed {
    fn seconds(&self) -> Figure {
        self.figure("s", |us| us / 1e6)
    }

    fn per_second(&self) -> Figure {
        self.figure("operations/s", |us| 1e6 / us)
    }

    fn figure(&self, unit: &str, of: impl Fn(f64) -> f64) -> Figure {
        let ends = self.interval.map(|(low, high)| (of(low), of(high)));
        Figure {
            name: self.name.to_owned(),
            unit: unit.to_owned(),
            value: of(self.us),
            low: ends.map(|(one, other)| one.min(other)),
            high: ends.map(|(one, other)| one.max(other)),
        }
    }
}

fn slug(title: &str) -> String {
    title.to_lowercase().replace([' ', '_'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_rates_are_of_one_measurement() {
        let timed = Timed { name: "sign", us: 500.0, interval: Some((400.0, 625.0)) };
        let (seconds, rate) = (timed.seconds(), timed.per_second());
        assert_eq!((seconds.value, seconds.low, seconds.high), (0.0005, Some(0.0004), Some(0.000_625)));
        assert_eq!((rate.value, rate.low, rate.high), (2000.0, Some(1600.0), Some(2500.0)));
        let [first, second] = signature(&SIGNATURES[0], THEIRS, &Err("it is retired".into()));
        assert_eq!(first.result, Err("it is retired".into()));
        assert_eq!((&*first.case, &*second.case), ("rsa-512", "rate-rsa-512"));
    }

    #[test]
    fn no_two_cases_go_by_the_same_name() {
        let throughput = THROUGHPUT.iter().map(|one| throughput(one).case);
        let signatures = SIGNATURES.iter().map(|one| slug(one.title));
        let exchanges = EXCHANGES.iter().map(|one| exchange(one).case);
        let mut all: Vec<String> = throughput.chain(signatures).chain(exchanges).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
