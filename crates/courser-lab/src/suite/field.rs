//! One field of a suite's file: a value or several, and sizes in words.

use serde::Deserialize;

/// `x` or `[x, y]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "another type is wanted here, or an array of it (only text is in quotes)")]
pub(super) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T: Clone> OneOrMany<T> {
    pub(super) fn values(&self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one.clone()],
            Self::Many(many) => many.clone(),
        }
    }
}

/// Bytes of `4 KB`, `107 B`, `1 MB`.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, "B"));
    let factor = match unit {
        "B" => 1,
        "KB" => 1024,
        "MB" => 1024 * 1024,
        _ => return Err(format!("{text:?} is no size: write `107 B`, `4 KB` or `1 MB`")),
    };
    let number: usize =
        number.parse().map_err(|_| format!("{text:?} is no size: write `107 B` or `4 KB`"))?;
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too much"))
}
