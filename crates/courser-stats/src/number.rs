//! Numbers from one type to another, where rounding is of no account.

/// A count; those beyond 2^53, which no run comes near, are rounded.
pub fn float(count: u64) -> f64 {
    count as f64
}

/// The length of a slice, or an index into it; those beyond 2^53, which no memory holds, are rounded.
pub fn length(count: usize) -> f64 {
    count as f64
}

/// A value without its fraction; 0 of those below zero and of NaN, the highest of those beyond the type.
#[expect(clippy::cast_possible_truncation, reason = "it saturates, which is what callers want")]
pub fn whole(value: f64) -> u64 {
    value as u64
}

/// As [`whole`], for a length or an index.
#[expect(clippy::cast_possible_truncation, reason = "it saturates, which is what callers want")]
pub fn index(value: f64) -> usize {
    value as usize
}
