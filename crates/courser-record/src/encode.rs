//! Counts and histograms as JSON.
//!
//! A histogram is the base64 of HdrHistogram's V2 encoding in nanoseconds, uncompressed, which other tools read and
//! merge; beside it stands a summary for people and for `jq`. The summary is derived: reading looks at the encoding
//! alone.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use courser_stats::{Counts, Histogram};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most that a count may be: the integers that every JSON reader keeps (RFC 7493, section 2.2).
pub(crate) const MOST: u64 = (1 << 53) - 1;

/// The most times that a record may name: each may take a quarter of a megabyte once it is unpacked.
const MOST_TIMES: usize = 64;

/// What a histogram says in short, in microseconds. A percentile p without the 10/(1-p) samples it needs is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// How many durations there are.
    pub count: u64,
    /// Mean.
    pub mean_us: Option<f64>,
    /// Median.
    pub p50_us: Option<f64>,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p99_9_us: Option<f64>,
    /// Longest.
    pub max_us: Option<f64>,
}

impl From<&Histogram> for Summary {
    fn from(histogram: &Histogram) -> Self {
        let supported = |fraction: f64| {
            histogram.quantile(fraction).filter(|_| histogram.supports(fraction)).map(microseconds)
        };
        Self {
            count: histogram.count(),
            mean_us: histogram.mean().map(microseconds),
            p50_us: supported(0.5),
            p90_us: supported(0.9),
            p99_us: supported(0.99),
            p99_9_us: supported(0.999),
            max_us: histogram.max().map(microseconds),
        }
    }
}

/// To the nanosecond, which is all that a histogram knows.
fn microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// A histogram as small as it is on disk, for the many that a run has: one per second.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    summary: Summary,
    v2: Vec<u8>,
}

impl Packed {
    /// What it says in short.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The histogram itself.
    pub fn unpack(&self) -> Histogram {
        decode(&self.v2).expect("it was a histogram when it was packed")
    }
}

impl From<&Histogram> for Packed {
    fn from(histogram: &Histogram) -> Self {
        Self { summary: histogram.into(), v2: histogram.to_v2() }
    }
}

impl Default for Packed {
    fn default() -> Self {
        (&Histogram::default()).into()
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Encoded::new(self.summary, &self.v2).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let v2 = Bytes::deserialize(deserializer)?.0;
        let histogram = decode(&v2).ok_or_else(|| D::Error::custom(NO_HISTOGRAM))?;
        Ok(Self { summary: (&histogram).into(), v2 })
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Packed {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Encoded::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Encoded::json_schema(generator)
    }
}

/// A histogram: a summary for people, and the whole of it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Encoded {
    /// In short.
    #[serde(flatten)]
    summary: Summary,
    /// Nanoseconds, three digits: base64 of HdrHistogram's V2 encoding, uncompressed.
    hdr_v2: String,
}

impl Encoded {
    fn new(summary: Summary, v2: &[u8]) -> Self {
        Self { summary, hdr_v2: STANDARD.encode(v2) }
    }
}

/// The part of [`Encoded`] that counts.
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Read {
            hdr_v2: String,
        }
        let read = Read::deserialize(deserializer)?;
        STANDARD.decode(read.hdr_v2).map(Self).map_err(|_| D::Error::custom(NO_HISTOGRAM))
    }
}

const NO_HISTOGRAM: &str =
    "hdr_v2 is not the base64 of a histogram (HdrHistogram V2, uncompressed, nanoseconds, three digits)";

/// What stands before the counts: cookie, their length, offset, digits, lowest, highest, ratio.
const HEADER: usize = 40;

/// HdrHistogram V2, uncompressed, with counts of one byte and more.
const COOKIE: u32 = 0x1c84_9313;

/// Reads what [`Histogram::to_v2`] wrote. Everything else is refused before the library sees it: it believes lengths,
/// ranges and runs of zeros, and takes memory for them.
fn decode(v2: &[u8]) -> Option<Histogram> {
    let word = |at: usize| v2.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    let long = |at: usize| v2.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
    let counts = v2.get(HEADER..)?;
    let ours = word(0)? == COOKIE
        && usize::try_from(word(4)?).ok()? == counts.len()
        && word(12)? == 3
        && long(16)? == 1
        && (2..=1 << 42).contains(&long(24)?); // an hour is less than 2^42 ns
    // A number of nine bytes is none that we count to, and one of them breaks the library's arithmetic.
    let small = counts.split(|byte| byte & 0x80 == 0).all(|run| run.len() < 8);
    let histogram = (ours && small).then(|| Histogram::from_v2(v2))??;
    (histogram.count() <= MOST).then_some(histogram)
}

/// [`Counts`] as an object: kinds and how often.
pub(crate) mod counts {
    use super::{BTreeMap, Counts, DeserializeOwned, Deserializer, Error, MOST, Serialize, Serializer};
    use serde::Deserialize;

    pub(crate) fn serialize<K: Ord + Serialize, S: Serializer>(
        counts: &Counts<K>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(counts)
    }

    pub(crate) fn deserialize<'de, K: Ord + DeserializeOwned, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Counts<K>, D::Error> {
        let read = BTreeMap::<K, u64>::deserialize(deserializer)?;
        let total = read.values().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        if total.is_none_or(|total| total > MOST) {
            return Err(D::Error::custom("counts of more than 2^53 - 1"));
        }
        Ok(read.into_iter().collect())
    }
}

/// Histograms by name as an object.
pub(crate) mod times {
    use super::{
        BTreeMap, Bytes, Deserializer, Encoded, Error, Histogram, MOST_TIMES, NO_HISTOGRAM, Serializer,
        decode,
    };
    use serde::Deserialize;

    pub(crate) fn serialize<S: Serializer>(
        times: &BTreeMap<String, Histogram>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let encoded = times.iter().map(|(name, time)| (name, Encoded::new(time.into(), &time.to_v2())));
        serializer.collect_map(encoded)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, Histogram>, D::Error> {
        let read = BTreeMap::<String, Bytes>::deserialize(deserializer)?;
        if read.len() > MOST_TIMES {
            return Err(D::Error::custom("more times than any record has"));
        }
        let histogram = |bytes: Bytes| decode(&bytes.0).ok_or_else(|| D::Error::custom(NO_HISTOGRAM));
        read.into_iter().map(|(name, bytes)| Ok((name, histogram(bytes)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(milliseconds: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        milliseconds.into_iter().for_each(|ms| histogram.record(Duration::from_millis(ms)));
        histogram
    }

    #[test]
    fn a_histogram_comes_back_whole() {
        for histogram in [of([]), of([1]), of(1..=5000), of([7_200_000])] {
            let packed = Packed::from(&histogram);
            let text = serde_json::to_string(&packed).unwrap();
            let read: Packed = serde_json::from_str(&text).unwrap();
            assert_eq!(read, packed);
            assert_eq!(read.unpack().to_v2(), histogram.to_v2());
        }
    }

    #[test]
    fn a_summary_says_no_percentile_that_it_has_not_seen() {
        let summary = Summary::from(&of(1..=150));
        assert_eq!((summary.count, summary.p99_us, summary.p99_9_us), (150, None, None));
        assert!((summary.p90_us.unwrap() / 135_000.0 - 1.0).abs() < 0.001);
        assert_eq!(Summary::from(&of([])), Summary::default());
    }

    #[test]
    fn what_the_library_would_believe_is_refused() {
        let good = of(1..=100).to_v2();
        assert!(decode(&good).is_some());
        let with = |at: usize, bytes: &[u8]| {
            let mut bad = good.clone();
            bad.splice(at..at + bytes.len(), bytes.iter().copied());
            bad
        };
        assert_eq!(decode(&good[..good.len() - 1]), None, "cut");
        assert_eq!(decode(&with(4, &[0xff; 4])), None, "four gigabytes to come");
        assert_eq!(decode(&with(15, &[5])), None, "five digits");
        assert_eq!(decode(&with(24, &[0x7f])), None, "centuries");
        assert_eq!(decode(&with(HEADER, &[0xff; 9])), None, "the negative number that has no positive");
        assert_eq!(decode(b""), None);
    }

    proptest::proptest! {
        /// A header as it should be, so that the library comes to see the counts.
        #[test]
        fn any_counts_are_read_or_refused(counts: Vec<u8>, high in 2..=1_u64 << 42) {
            let mut v2 = of([]).to_v2();
            v2.truncate(HEADER);
            v2[4..8].copy_from_slice(&u32::try_from(counts.len()).unwrap().to_be_bytes());
            v2[24..32].copy_from_slice(&high.to_be_bytes());
            v2.extend(&counts);
            if let Some(histogram) = decode(&v2) {
                let again = decode(&histogram.to_v2()).unwrap();
                proptest::prop_assert_eq!(Summary::from(&again), Summary::from(&histogram));
                Histogram::default().merge(&histogram);
            }
        }
    }

    #[test]
    fn counts_that_cannot_be_added_up_are_refused() {
        let read = |text: &str| counts::deserialize::<u32, _>(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read(r#"{"1": 2, "0": 5}"#).unwrap().total(), 7);
        assert!(read(r#"{"1": 9007199254740991, "0": 1}"#).is_err());
        assert!(read(r#"{"1": -1}"#).is_err());
    }
}
