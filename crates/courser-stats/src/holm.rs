//! Several tests at once.

use crate::number::length;

/// The p of each of several tests, corrected for there being several (Holm, Scandinavian Journal of Statistics 6, 1979), in
/// the order given: calling those significant that are at most 0.05 is wrong for any of them in at most 5 of 100 cases.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|left, right| p[*left].total_cmp(&p[*right]));
    let mut corrected = vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max(p[index] * length(p.len() - rank)).min(1.0);
        corrected[index] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_is_less_strict_than_bonferroni_and_keeps_the_order() {
        let corrected = holm(&[0.04, 0.01, 0.03, 0.9]);
        let expected = [0.09, 0.04, 0.09, 0.9];
        assert!(
            corrected.iter().zip(expected).all(|(seen, due)| (seen - due).abs() < 1e-12),
            "{corrected:?}"
        );
    }
}
