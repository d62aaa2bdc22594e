//! What one block says about a figure, and what kind of figure that is.

/// What a block says about a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BlockValue {
    /// This.
    Value { value: f64, kind: Kind, spread: Option<Spread> },
    /// The true one is at least this high, for a reason: the generator was the limit.
    AtLeast(f64, String),
    /// There is one, but it says nothing about the target.
    Inconclusive(String),
    /// It is not known.
    Absent,
}

impl BlockValue {
    /// A measured value, where it is known and a number.
    pub(super) fn measured(value: Option<f64>) -> Self {
        Self::of_kind(value, Kind::Measured)
    }

    pub(super) fn of_kind(value: Option<f64>, kind: Kind) -> Self {
        let finite = value.filter(|value| value.is_finite());
        finite.map_or(Self::Absent, |value| Self::Value { value, kind, spread: None })
    }

    /// A rate of a window that is inconclusive: a bound where the generator was the limit and nothing else was wrong, since a
    /// faster one could only have made more of it.
    pub(super) fn bounded(value: Option<f64>, reason: String) -> Self {
        match value.filter(|value| is_client_bound(&reason) && value.is_finite() && *value > 0.0) {
            Some(value) => Self::AtLeast(value, reason),
            None => Self::Inconclusive(reason),
        }
    }

    pub(super) fn known(&self) -> Option<(f64, Kind)> {
        match self {
            Self::Value { value, kind, .. } => Some((*value, *kind)),
            _ => None,
        }
    }
}

/// Whether nothing was wrong but that the generator was the limit.
pub(super) fn is_client_bound(reason: &str) -> bool {
    reason.split("; ").all(|part| part.starts_with("client-bound"))
}

/// How far a figure may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Lower end.
    pub low: f64,
    /// Upper end; of no meaning where the figure is a lower bound.
    pub high: f64,
    /// Whether it is a 95 % interval; of too few blocks for one it is what they range over.
    pub is_interval: bool,
}

/// What kind of figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It was measured.
    Measured,
    /// It was computed from processor time: shown with `≈`.
    Computed,
    /// Most of what was attempted failed, and cost processor time too: shown with `†`.
    MostFailed,
    /// The true one is at least as high: nothing was seen to fail above it, or the generator was the limit. Shown with `≥`.
    AtLeast,
}

impl Kind {
    /// What stands in front of the figure.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Measured => "",
            Self::Computed => "≈ ",
            Self::MostFailed => "† ",
            Self::AtLeast => "≥ ",
        }
    }
}
