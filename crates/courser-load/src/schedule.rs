//! When each connection or session is meant to start: fixed in advance, whatever the server does.
//!
//! Arrivals are numbered over all generators and threads together; each takes its own out of the same sequence, so
//! that two halves of a schedule make exactly the whole.

use std::time::Duration;

/// A stretch of time in which the offered rate changes evenly from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// How long it lasts.
    pub length: Duration,
    /// Arrivals per second at its start.
    pub from: f64,
    /// Arrivals per second at its end.
    pub to: f64,
}

impl Piece {
    /// A stretch at an even rate.
    pub fn even(rate: f64, length: Duration) -> Self {
        Self { length, from: rate, to: rate }
    }

    /// Arrivals in it.
    fn arrivals(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.length.as_secs_f64()
    }

    /// How long into the stretch the `n`-th arrival is: the root of n = from t + (to - from) t² / 2T.
    fn time_of(&self, n: f64) -> Duration {
        let slope = (self.to - self.from) / self.length.as_secs_f64();
        // This form of the root has no cancellation when the slope is small, and none when the rate starts at zero.
        let root = (self.from * self.from + 2.0 * slope * n).max(0.0).sqrt();
        let seconds = if root + self.from > 0.0 { 2.0 * n / (self.from + root) } else { 0.0 };
        Duration::from_secs_f64(seconds.max(0.0)).min(self.length)
    }
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly, as a metronome.
    Even,
    /// Independently of one another (a Poisson process), from this seed: as real clients are.
    Poisson(u64),
}

/// Which part of the arrivals is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Counted from 0.
    pub index: u64,
    /// Of how many.
    pub of: u64,
}

impl Share {
    /// All of them.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Part `index` of `of` parts of this part.
    pub fn part(self, index: u64, of: u64) -> Self {
        Self { index: self.index + self.of * index, of: self.of * of }
    }

    /// This part's share of a rate.
    pub fn of_rate(self, rate: f64) -> f64 {
        rate / self.of as f64
    }

    fn takes(self, arrival: u64) -> bool {
        arrival % self.of == self.index
    }

    /// How many of `total` evenly spread things this part gets.
    pub fn of_total(self, total: u64) -> u64 {
        total / self.of + u64::from(total % self.of > self.index)
    }
}

/// The intended start times of a share of the arrivals, in order, counted from the start of the run.
#[derive(Clone, Debug)]
pub struct Schedule {
    pieces: std::vec::IntoIter<Piece>,
    piece: Option<Piece>,
    /// When the current piece starts, and how many arrivals there are before it.
    begins: Duration,
    before: f64,
    arrival: u64,
    /// The position of the current arrival on the axis of arrivals.
    position: f64,
    random: Option<fastrand::Rng>,
    share: Share,
}

impl Schedule {
    /// The share's arrivals in these pieces, one after the other.
    pub fn new(pieces: Vec<Piece>, arrivals: Arrivals, share: Share) -> Self {
        let mut pieces = pieces.into_iter();
        let random = match arrivals {
            Arrivals::Even => None,
            Arrivals::Poisson(seed) => Some(fastrand::Rng::with_seed(seed)),
        };
        let piece = pieces.next();
        let mut schedule = Self {
            pieces,
            piece,
            begins: Duration::ZERO,
            before: 0.0,
            arrival: 0,
            position: 0.0,
            random,
            share,
        };
        // Half a gap before the first and after the last of an even schedule: a window has as many as its rate says.
        schedule.position = if schedule.random.is_some() { schedule.gap() } else { 0.5 };
        schedule
    }

    /// From one arrival to the next, in arrivals: 1, or exponentially distributed with mean 1.
    fn gap(&mut self) -> f64 {
        self.random.as_mut().map_or(1.0, |random| -(1.0 - random.f64()).ln())
    }

    /// When the current arrival is; `None` after the last piece.
    fn time(&mut self) -> Option<Duration> {
        loop {
            let piece = self.piece?;
            let within = self.position - self.before;
            if within <= piece.arrivals() {
                return Some(self.begins + piece.time_of(within));
            }
            self.before += piece.arrivals();
            self.begins += piece.length;
            self.piece = self.pieces.next();
        }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        loop {
            let time = self.time()?;
            let ours = self.share.takes(self.arrival);
            self.arrival += 1;
            self.position += self.gap();
            if ours {
                return Some(time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn times(pieces: &[Piece], arrivals: Arrivals, share: Share) -> Vec<Duration> {
        Schedule::new(pieces.to_vec(), arrivals, share).collect()
    }

    #[test]
    fn an_even_schedule_is_a_metronome() {
        let times = times(&[Piece::even(1000.0, 2 * SECOND)], Arrivals::Even, Share::WHOLE);
        assert_eq!(times.len(), 2000);
        assert!(times.iter().zip(0..).all(|(time, n)| time.as_micros().abs_diff(n * 1000 + 500) <= 1));
    }

    #[test]
    fn a_ramp_reaches_its_rate_and_gives_half_of_it_on_the_way() {
        let pieces = [Piece { length: 2 * SECOND, from: 0.0, to: 1000.0 }, Piece::even(1000.0, SECOND)];
        let times = times(&pieces, Arrivals::Even, Share::WHOLE);
        assert_eq!(times.len(), 2000);
        assert_eq!(times.iter().filter(|time| **time <= SECOND).count(), 250);
        assert!(times.is_sorted());
    }

    #[test]
    fn the_shares_of_generators_and_threads_make_the_whole() {
        let pieces = [Piece { length: SECOND, from: 50.0, to: 500.0 }, Piece::even(300.0, SECOND)];
        for arrivals in [Arrivals::Even, Arrivals::Poisson(7)] {
            let mut parts: Vec<_> = (0..3)
                .flat_map(|machine| (0..2).map(move |thread| Share { index: machine, of: 3 }.part(thread, 2)))
                .flat_map(|share| times(&pieces, arrivals, share))
                .collect();
            parts.sort();
            assert_eq!(parts, times(&pieces, arrivals, Share::WHOLE));
        }
        let clients: u64 = (0..5).map(|index| Share { index, of: 5 }.of_total(1003)).sum();
        assert_eq!(clients, 1003);
    }

    #[test]
    fn independent_arrivals_keep_the_rate_and_vary_as_they_should() {
        let times = times(&[Piece::even(1000.0, 20 * SECOND)], Arrivals::Poisson(1), Share::WHOLE);
        let per_100_ms = times.chunk_by(|a, b| a.as_millis() / 100 == b.as_millis() / 100).map(<[_]>::len);
        let counts: Vec<f64> =
            per_100_ms.map(|count| f64::from(u32::try_from(count).expect("few"))).collect();
        let mean = counts.iter().sum::<f64>() / 200.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 199.0;
        assert!((mean - 100.0).abs() < 3.0, "{mean}");
        // A Poisson process: the variance of a count is its mean. Three standard errors of a variance of 200 counts.
        assert!((variance / mean - 1.0).abs() < 0.3, "{variance}");
    }
}
