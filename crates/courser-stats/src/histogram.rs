//! Durations by frequency: an HdrHistogram, to three digits, from 1 ns to an hour.

use std::time::Duration;

use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

use crate::number::float;

/// Longest duration that differs from longer ones, nanoseconds: one hour.
const LONGEST: u64 = 3_600_000_000_000;

/// How many significant digits are kept.
const DIGITS: u8 = 3;

/// Durations, counted in buckets of at most 0.1 % of their value. Its memory is bounded whatever is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    inner: hdrhistogram::Histogram<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        let mut inner = hdrhistogram::Histogram::new(DIGITS).expect("three digits are among those allowed");
        inner.auto(true); // memory grows with the range that is seen
        Self { inner }
    }
}

impl Histogram {
    /// Counts one duration; one beyond an hour counts as an hour.
    pub fn record(&mut self, duration: Duration) {
        self.record_many(duration, 1);
    }

    /// Counts one duration `times` times.
    pub fn record_many(&mut self, duration: Duration, times: u64) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(LONGEST).clamp(1, LONGEST);
        self.inner.record_n(nanoseconds, times).expect("the range grows up to an hour");
    }

    /// How many durations there are.
    pub fn count(&self) -> u64 {
        self.inner.len()
    }

    /// The duration that a `fraction` (0 to 1) of all do not exceed; `None` of an empty histogram. It makes no
    /// promise about having seen enough: see [`Self::supports`].
    pub fn quantile(&self, fraction: f64) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.inner.value_at_quantile(fraction)))
    }

    /// Whether there are the 10/(1-p) samples that a quantile needs before anybody may quote it.
    pub fn supports(&self, fraction: f64) -> bool {
        // Half a sample of tolerance: 1 - 0.999 is a little less than 0.001.
        float(self.count()) + 0.5 >= 10.0 / (1.0 - fraction)
    }

    /// The highest of the usual quantiles up to `most` that the samples support, and which it is: what a judgement may rest on.
    /// `None` of fewer than 20 samples, which do not support a median.
    pub fn estimable(&self, most: f64) -> Option<(f64, Duration)> {
        let usual = [0.999, 0.99, 0.9, 0.5].into_iter().filter(|fraction| *fraction <= most);
        let fraction = usual.into_iter().find(|fraction| self.supports(*fraction))?;
        Some((fraction, self.quantile(fraction)?))
    }

    /// How long all durations together exceed `limit`.
    pub fn beyond(&self, limit: Duration) -> Duration {
        let one = |(value, count): (Duration, u64)| value.saturating_sub(limit).as_secs_f64() * float(count);
        Duration::from_secs_f64(self.buckets().map(one).sum())
    }

    /// Mean; `None` of an empty histogram.
    pub fn mean(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_secs_f64(self.inner.mean() / 1e9))
    }

    /// Longest; `None` of an empty histogram.
    pub fn max(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.inner.max()))
    }

    /// Buckets that hold something: their value and count, shortest first.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.inner.iter_recorded().map(|bucket| {
            (Duration::from_nanos(bucket.value_iterated_to()), bucket.count_since_last_iteration())
        })
    }

    /// Adds the durations of another histogram, exactly.
    pub fn merge(&mut self, other: &Self) {
        self.inner.add(&other.inner).expect("the range grows up to an hour");
    }

    /// HdrHistogram's V2 encoding, uncompressed, in nanoseconds: what other tools read and merge.
    pub fn to_v2(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.inner, &mut bytes).expect("a vector takes every byte");
        bytes
    }

    /// Reads HdrHistogram's V2 encoding; `None` when it is none.
    pub fn from_v2(bytes: &[u8]) -> Option<Self> {
        let mut inner: hdrhistogram::Histogram<u64> = Deserializer::new().deserialize(&mut &*bytes).ok()?;
        inner.auto(true);
        Some(Self { inner })
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
    fn quantiles_are_within_a_tenth_of_a_percent() {
        let histogram = of(1..=10_000);
        let median = histogram.quantile(0.5).expect("not empty").as_secs_f64();
        assert!((median / 5.0 - 1.0).abs() < 0.001, "{median}");
        assert_eq!(of([]).quantile(0.5), None);
    }

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        assert!(of(0..1000).supports(0.99));
        assert!(!of(0..999).supports(0.99));
        assert!(of(0..10_000).supports(0.999));
    }

    #[test]
    fn what_may_be_judged_depends_on_the_number_of_samples() {
        let quantile = |count| of(0..count).estimable(0.99).map(|(fraction, _)| fraction);
        assert_eq!(
            [19, 20, 99, 100, 999, 1000, 20_000].map(quantile),
            [None, Some(0.5), Some(0.5), Some(0.9), Some(0.9), Some(0.99), Some(0.99)]
        );
        assert_eq!(of([10, 40, 70]).beyond(Duration::from_millis(30)).as_millis(), 50);
    }

    #[test]
    fn merging_and_encoding_lose_nothing() {
        let (mut low, high) = (of(0..500), of(500..1000));
        low.merge(&high);
        assert_eq!(low, of(0..1000));
        let read = Histogram::from_v2(&low.to_v2()).expect("its own encoding");
        assert_eq!(read.buckets().collect::<Vec<_>>(), low.buckets().collect::<Vec<_>>());
        assert_eq!(Histogram::from_v2(b"nonsense"), None);
    }

    #[test]
    fn what_exceeds_an_hour_counts_as_an_hour() {
        let histogram = of([7_200_000]);
        assert!(histogram.max().expect("not empty") >= Duration::from_secs(3600));
    }
}
