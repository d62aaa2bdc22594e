//! What a run must not show: `p99>50ms`, `loss>0.1%`, `rate<1000/s`. Limits from the other side, judged by what was seen.

use std::fmt;
use std::time::Duration;

use super::Observation;
use super::limit::{Seen, Time};
use crate::number::{float, whole};

/// One condition under which a run fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// `avg>TIME`: the mean response time.
    Mean(Duration),
    /// `p99>TIME`: the response time that `percent` of the successes do not exceed.
    Percentile {
        /// Which percentile.
        percent: f64,
        /// What it must not exceed.
        time: Duration,
    },
    /// `max>TIME`: the longest response time.
    Max(Duration),
    /// `loss>PERCENT%`: failures among the attempts.
    Loss {
        /// What they must not exceed.
        percent: f64,
    },
    /// `rate<PERCENT%`: what was completed in the window, of the attempts that were scheduled in it.
    Share {
        /// What it must not fall below.
        percent: f64,
    },
    /// `rate<NUMBER/s`: what was completed in the window, a second.
    Rate(f64),
    /// `handshakes<NUMBER/s`: handshakes a second.
    Handshakes(f64),
}

/// What a run says of a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossed {
    /// It is not crossed.
    No,
    /// It is.
    Yes(Seen),
    /// A percentile is not known: so many more samples are needed.
    Unknown {
        /// How many.
        more: u64,
    },
}

impl Threshold {
    /// Judges what was seen, and how many `handshakes` a second were done.
    pub fn check(&self, observation: &Observation<'_>, handshakes: f64) -> Crossed {
        let response = observation.response;
        let longer = |seen: Option<Duration>, than: Duration| match seen {
            None => Crossed::Yes(Seen::Nothing),
            Some(seen) if seen > than => Crossed::Yes(Seen::Time(seen)),
            Some(_) => Crossed::No,
        };
        let percent = |of: f64, all: f64| if all > 0.0 { 100.0 * of / all } else { 0.0 };
        let below = |seen: f64, least: f64| {
            if seen < least { Crossed::Yes(Seen::PerSecond(seen)) } else { Crossed::No }
        };
        match *self {
            Self::Mean(time) => longer(response.mean(), time),
            Self::Max(time) => longer(response.max(), time),
            Self::Percentile { percent, time } => {
                let needed = whole((1000.0 / (100.0 - percent) - 0.01).ceil());
                match response.count() {
                    0 => Crossed::Yes(Seen::Nothing),
                    count if count < needed => Crossed::Unknown { more: needed - count },
                    _ => longer(response.quantile(percent / 100.0), time),
                }
            }
            Self::Loss { percent: most } => {
                let seen = percent(float(observation.failed), float(observation.attempted));
                if seen > most { Crossed::Yes(Seen::Percent(seen)) } else { Crossed::No }
            }
            Self::Share { percent: least } => {
                let seen = percent(observation.achieved, observation.offered);
                if seen < least { Crossed::Yes(Seen::Percent(seen)) } else { Crossed::No }
            }
            Self::Rate(least) => below(observation.achieved, least),
            Self::Handshakes(least) => below(handshakes, least),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Mean(time) => write!(f, "avg>{}", Time(time)),
            Self::Percentile { percent, time } => write!(f, "p{percent}>{}", Time(time)),
            Self::Max(time) => write!(f, "max>{}", Time(time)),
            Self::Loss { percent } => write!(f, "loss>{percent}%"),
            Self::Share { percent } => write!(f, "rate<{percent}%"),
            Self::Rate(rate) => write!(f, "rate<{rate}/s"),
            Self::Handshakes(rate) => write!(f, "handshakes<{rate}/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    const ALL: [&str; 8] = [
        "avg>100ms",
        "p99>50ms",
        "p99.9>1500us",
        "max>3s",
        "loss>0.1%",
        "rate<95%",
        "rate<1000/s",
        "handshakes<500/s",
    ];

    /// A second of so many successes of `ms` milliseconds, and failures.
    fn crossed(text: &str, (ms, succeeded, failed): (u64, u64, u64)) -> Crossed {
        let mut response = Histogram::default();
        response.record_many(Duration::from_millis(ms), succeeded);
        let observation = Observation {
            attempted: succeeded + failed,
            succeeded,
            failed,
            offered: float(succeeded + failed),
            achieved: float(succeeded),
            response: &response,
        };
        text.parse::<Threshold>().unwrap().check(&observation, float(succeeded) / 2.0)
    }

    #[test]
    fn each_is_written_as_it_is_read() {
        for text in ALL {
            assert_eq!(text.parse::<Threshold>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn none_is_crossed_by_a_good_run_and_all_are_by_a_bad_one() {
        for text in ALL {
            assert_eq!(crossed(text, (1, 20_000, 0)), Crossed::No, "{text}");
            assert!(
                matches!(crossed(text, (5000, 900, 100)), Crossed::Yes(_)) || text.contains("p99"),
                "{text}"
            );
            assert!(matches!(crossed(text, (1, 0, 100)), Crossed::Yes(_)), "{text}: no answer at all");
        }
        let Crossed::Yes(seen) = crossed("loss>0.1%", (1, 999, 2)) else { panic!() };
        assert_eq!(seen.to_string(), "0.2%");
        let Crossed::Yes(seen) = crossed("handshakes<500/s", (1, 800, 0)) else { panic!() };
        assert_eq!(seen.to_string(), "400/s");
    }

    #[test]
    fn a_percentile_without_its_samples_is_not_judged() {
        assert_eq!(crossed("p99>50ms", (900, 990, 0)), Crossed::Unknown { more: 10 });
        assert!(matches!(crossed("p99>50ms", (900, 1000, 0)), Crossed::Yes(Seen::Time(_))));
    }

    #[test]
    fn the_wrong_sign_or_unit_is_refused_at_its_place() {
        for (text, expected) in [
            ("p99<50ms", "column 4: `p99` needs `>` here, as in p99>50ms"),
            ("rate>95%", "column 5: `rate` needs `<` here, as in rate<95%"),
            ("rate<95", "column 8: a rate needs `/s` or `%`"),
            ("handshakes<5%", "column 13: a rate needs `/s`"),
            ("los>1%", "column 1: no measure is called `los`"),
            ("avg>1s,loss>1%", "column 6: no unit of time is called `s,loss>1%`"),
            ("bernat", "column 1: no measure is called `bernat`"),
            ("", "column 1: a limit is missing"),
        ] {
            let why = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
