//! Text to limits: each error knows its column.

use std::fmt;
use std::time::Duration;

use super::limit::Limit;
use super::threshold::Threshold;

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Where, in characters from 1.
    pub column: usize,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    NoLimit,
    UnknownMeasure(String),
    Sign { measure: String, example: &'static str, sign: char },
    NoNumber(String),
    NoTimeUnit,
    UnknownTimeUnit(String),
    NoPercentSign,
    NoRateUnit { share: bool },
    NoShare,
    TooLong,
}

/// Longest time that a limit may name: what a histogram tells apart.
const LONGEST: Duration = Duration::from_secs(3600);

/// Reads limits with commas between them; there is at least one.
pub(super) fn limits(text: &str) -> Result<Vec<Limit>, RuleError> {
    let mut start = 0;
    text.split(',')
        .map(|part| {
            let limit = Part { text: part, start }.limit();
            start += part.chars().count() + 1;
            limit
        })
        .collect()
}

/// Reads one threshold.
pub(super) fn threshold(text: &str) -> Result<Threshold, RuleError> {
    Part { text, start: 0 }.threshold()
}

/// A part of the rule, and how many characters stand before it.
#[derive(Clone, Copy)]
struct Part<'t> {
    text: &'t str,
    start: usize,
}

impl<'t> Part<'t> {
    fn limit(self) -> Result<Limit, RuleError> {
        let (measure, rest) = self.measure()?;
        match measure.text {
            "avg" => Ok(Limit::Mean(rest.sign(measure, '<', "avg<100ms")?.time()?)),
            "max" => Ok(Limit::Max(rest.sign(measure, '<', "max<3s")?.time()?)),
            "loss" => Ok(Limit::Loss { percent: rest.sign(measure, '<', "loss<0.1%")?.share()? }),
            "rate" => Ok(Limit::Rate { percent: rest.sign(measure, '>', "rate>95%")?.share()? }),
            _ => {
                let percent = measure.percentile()?;
                let time = rest.sign(measure, '<', "p99<100ms")?.time()?;
                Ok(Limit::Percentile { percent, time })
            }
        }
    }

    fn threshold(self) -> Result<Threshold, RuleError> {
        let (measure, rest) = self.measure()?;
        match measure.text {
            "avg" => Ok(Threshold::Mean(rest.sign(measure, '>', "avg>100ms")?.time()?)),
            "max" => Ok(Threshold::Max(rest.sign(measure, '>', "max>3s")?.time()?)),
            "loss" => Ok(Threshold::Loss { percent: rest.sign(measure, '>', "loss>0.1%")?.share()? }),
            "rate" => {
                let least = rest.sign(measure, '<', "rate<95%")?;
                match least.number()? {
                    (rate, unit) if unit.text == "/s" => Ok(Threshold::Rate(rate)),
                    (_, unit) if unit.text == "%" => Ok(Threshold::Share { percent: least.share()? }),
                    (_, unit) => Err(unit.error(Problem::NoRateUnit { share: true })),
                }
            }
            "handshakes" => match rest.sign(measure, '<', "handshakes<500/s")?.number()? {
                (rate, unit) if unit.text == "/s" => Ok(Threshold::Handshakes(rate)),
                (_, unit) => Err(unit.error(Problem::NoRateUnit { share: false })),
            },
            _ => {
                let percent = measure.percentile()?;
                let time = rest.sign(measure, '>', "p99>50ms")?.time()?;
                Ok(Threshold::Percentile { percent, time })
            }
        }
    }

    /// The name at the front, and what follows it.
    fn measure(self) -> Result<(Self, Self), RuleError> {
        let part = self.trimmed();
        if part.text.is_empty() {
            return Err(part.error(Problem::NoLimit));
        }
        let end = part.text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(part.text.len());
        let (measure, rest) = part.split(end);
        Ok((measure, rest.trimmed()))
    }

    fn percentile(self) -> Result<f64, RuleError> {
        percentile(self.text).ok_or_else(|| self.error(Problem::UnknownMeasure(self.text.to_owned())))
    }

    /// What follows the sign that this measure needs.
    fn sign(self, measure: Self, sign: char, example: &'static str) -> Result<Self, RuleError> {
        if !self.text.starts_with(sign) {
            let measure = measure.text.to_owned();
            return Err(self.error(Problem::Sign { measure, example, sign }));
        }
        Ok(self.split(1).1.trimmed())
    }

    fn time(self) -> Result<Duration, RuleError> {
        let (number, unit) = self.number()?;
        let seconds = match unit.text {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "" => return Err(unit.error(Problem::NoTimeUnit)),
            other => return Err(unit.error(Problem::UnknownTimeUnit(other.to_owned()))),
        };
        // To whole nanoseconds, so that what is written is what was read.
        let time = Duration::try_from_secs_f64(number * seconds).ok().filter(|time| *time <= LONGEST);
        time.filter(|time| !time.is_zero()).ok_or_else(|| self.error(Problem::TooLong))
    }

    fn share(self) -> Result<f64, RuleError> {
        let (percent, unit) = self.number()?;
        if unit.text != "%" {
            return Err(unit.error(Problem::NoPercentSign));
        }
        if percent >= 100.0 {
            return Err(self.error(Problem::NoShare));
        }
        Ok(percent)
    }

    /// A number above zero, and what follows it.
    fn number(self) -> Result<(f64, Self), RuleError> {
        let digits = self.text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.text.len());
        let (number, unit) = self.split(digits);
        match number.text.parse::<f64>() {
            Ok(value) if value > 0.0 => Ok((value, unit.trimmed())),
            _ => {
                let word = self.text.trim_end_matches(['%']).to_owned();
                Err(self.error(Problem::NoNumber(word)))
            }
        }
    }

    fn split(self, at: usize) -> (Self, Self) {
        let (before, after) = self.text.split_at(at);
        let start = self.start + before.chars().count();
        (Self { text: before, ..self }, Self { text: after, start })
    }

    fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        let skipped = self.text.chars().count() - text.chars().count();
        Self { text: text.trim_end(), start: self.start + skipped }
    }

    fn error(self, problem: Problem) -> RuleError {
        RuleError { column: self.start + 1, problem }
    }
}

/// The percent in `p99.9`: from 50 up to 99.999, beyond which no run has the samples.
fn percentile(name: &str) -> Option<f64> {
    let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
    (50.0..=99.999).contains(&percent).then_some(percent)
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule, column {}: {}", self.column, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLimit => f.write_str(
                "a limit is missing; limits are such as avg<100ms, p99.9<1s, max<3s, loss<0.1%, rate>95%",
            ),
            Self::UnknownMeasure(name) => {
                write!(f, "no measure is called `{name}`; known are avg, p50 to p99.999, max, loss, rate")
            }
            Self::Sign { measure, example, sign } => {
                write!(f, "`{measure}` needs `{sign}` here, as in {example}")
            }
            Self::NoNumber(word) => write!(f, "`{word}` is no number above zero"),
            Self::NoTimeUnit => f.write_str("a time needs its unit: us, ms or s"),
            Self::UnknownTimeUnit(unit) => {
                write!(f, "no unit of time is called `{unit}`; known are us, ms, s")
            }
            Self::NoPercentSign => f.write_str("a share needs `%`"),
            Self::NoRateUnit { share: true } => f.write_str("a rate needs `/s` or `%`"),
            Self::NoRateUnit { share: false } => f.write_str("a rate needs `/s`"),
            Self::NoShare => f.write_str("a share lies between 0% and 100%, both excluded"),
            Self::TooLong => f.write_str("a time lies between a nanosecond and an hour"),
        }
    }
}
