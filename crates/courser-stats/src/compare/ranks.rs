//! Wilcoxon's signed ranks: how few of the pairwise means may lie on one side of the truth.

use crate::number::length;

/// Means of all pairs of values, each with itself included, in order (Walsh averages).
pub(super) fn pairwise_means(values: &[f64]) -> Vec<f64> {
    let with_all_before = |(index, left): (usize, &f64)| {
        values[..=index].iter().map(|right| f64::midpoint(*left, *right)).collect()
    };
    let mut means: Vec<f64> = values.iter().enumerate().flat_map::<Vec<f64>, _>(with_all_before).collect();
    means.sort_by(f64::total_cmp);
    means
}

/// The middle of values in order: of the pairwise means, the estimate of Hodges and Lehmann.
pub(super) fn middle(ordered: &[f64]) -> f64 {
    let count = ordered.len();
    f64::midpoint(ordered[(count - 1) / 2], ordered[count / 2])
}

/// The largest `c` for which the `c`-th pairwise mean from either end gives an interval that misses the truth with
/// probability `error` at most; `None` where even the outermost ones miss it more often.
pub(super) fn critical(count: usize, error: f64) -> Option<usize> {
    let below = cumulative(count).iter().take_while(|below| 2.0 * **below <= error).count();
    (below > 0).then_some(below)
}

/// How often the interval from the `c`-th pairwise means misses the truth.
pub(super) fn level(count: usize, critical: usize) -> f64 {
    2.0 * cumulative(count)[critical - 1]
}

/// The probability that the sum of the positive ranks is at most 0, 1, 2, … when each sign is a fair coin.
fn cumulative(count: usize) -> Vec<f64> {
    let most = count * (count + 1) / 2;
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    for rank in 1..=count {
        for sum in (rank..=most).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let all = (length(count) * std::f64::consts::LN_2).exp();
    ways.iter()
        .scan(0.0, |sum, way| {
            *sum += way / all;
            Some(*sum)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Wilcoxon's table, two-sided: at 5 % T <= 0 for 6, <= 8 for 10, <= 52 for 20; at 1 % <= 37 for 20.
        assert_eq!(critical(5, 0.05), None);
        assert_eq!(critical(6, 0.05), Some(1));
        assert_eq!(critical(10, 0.05), Some(9));
        assert_eq!(critical(20, 0.05), Some(53));
        assert_eq!(critical(20, 0.01), Some(38));
    }

    #[test]
    fn the_level_of_a_critical_value_is_kept() {
        assert!((level(6, 1) - 0.031_25).abs() < 1e-12);
        assert!(level(20, 53) <= 0.05 && level(20, 54) > 0.05);
    }

    #[test]
    fn one_wild_value_hardly_moves_the_middle() {
        let mut values: Vec<f64> = (0..20_u32).map(|value| f64::from(value) / 10.0).collect();
        let before = middle(&pairwise_means(&values));
        values[3] = 1e6;
        assert!((middle(&pairwise_means(&values)) - before).abs() < 0.15);
    }
}
