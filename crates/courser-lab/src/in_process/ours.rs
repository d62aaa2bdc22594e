//! The library that courser uses, timed by ourselves.

use std::time::Duration;

use crate::primitives::{self, Family};
use courser_record::lab::Figure;

use super::Timed;
use super::algorithms::{KeyExchangeCost, SIZES, Signature, Throughput};

pub(super) struct Ours {
    /// For each figure.
    pub(super) time: Duration,
}

impl Ours {
    /// A figure for each size: 1000s of bytes a second.
    pub(super) fn throughput(&self, algorithm: &Throughput) -> Result<Vec<Figure>, String> {
        let Some(name) = algorithm.ours else {
            return Err(format!("aws-lc-rs offers no {}", algorithm.title));
        };
        let family = if algorithm.is_aead { Family::Cipher } else { Family::Digest };
        SIZES
            .iter()
            .map(|&size| self.one(name, family, Some(size)).map(|figure| thousands(&figure, size)))
            .collect()
    }

    /// Signing and verifying.
    pub(super) fn signature(&self, algorithm: &Signature) -> Result<Vec<Timed>, String> {
        let Some(name) = algorithm.ours else {
            return Err(format!("{}: the library takes no RSA key under 2048 bits", algorithm.title));
        };
        let both = [("sign", Family::Sign), ("verify", Family::Verify)];
        both.into_iter().map(|(column, family)| Ok(timed(column, &self.one(name, family, None)?))).collect()
    }

    /// Secrets a second.
    pub(super) fn exchange(&self, algorithm: &KeyExchangeCost) -> Result<Vec<Figure>, String> {
        let figure = self.one(algorithm.ours, Family::KeyExchange, None)?;
        Ok(vec![timed("agree", &figure).per_second()])
    }

    fn one(&self, name: &str, family: Family, bytes: Option<usize>) -> Result<primitives::Figure, String> {
        let measured = primitives::measure_one(name, family, bytes, self.time);
        let measured =
            measured.ok_or_else(|| format!("{name} is not among the operations that are timed"))?;
        measured.map_err(|broken| broken.to_string())
    }
}

fn timed(name: &'static str, figure: &primitives::Figure) -> Timed {
    Timed { name, us: figure.us, interval: Some((figure.interval.low, figure.interval.high)) }
}

fn thousands(figure: &primitives::Figure, size: usize) -> Figure {
    let of = |us: f64| size as f64 * 1e3 / us;
    Figure {
        name: size.to_string(),
        unit: "1000 bytes/s".to_owned(),
        value: of(figure.us),
        low: Some(of(figure.interval.high)),
        high: Some(of(figure.interval.low)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::algorithms::{EXCHANGES, SIGNATURES, THROUGHPUT};
    use super::*;

    #[test]
    fn every_algorithm_is_timed_or_said_to_be_missing() {
        let ours = Ours { time: Duration::ZERO };
        for algorithm in &THROUGHPUT {
            let figures = ours.throughput(algorithm);
            assert_eq!(figures.is_ok(), algorithm.ours.is_some(), "{}: {figures:?}", algorithm.title);
            let columns = figures.iter().flatten().map(|figure| &*figure.name).collect::<Vec<_>>();
            assert!(columns.is_empty() || columns == ["8", "64", "256", "1024", "8192"], "{columns:?}");
        }
        for algorithm in &SIGNATURES {
            assert_eq!(ours.signature(algorithm).is_ok(), algorithm.ours.is_some(), "{}", algorithm.title);
        }
        for algorithm in &EXCHANGES {
            assert_eq!(ours.exchange(algorithm).map(|figures| figures.len()), Ok(1), "{}", algorithm.title);
        }
    }
}
