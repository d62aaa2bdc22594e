//! Small systems of equations, and sums of products.

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(super) fn squares(values: &[f64]) -> f64 {
    dot(values, values)
}

/// The inverse of a positive definite matrix (Gauss and Jordan).
pub(super) fn inverse(mut left: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let all = left.len();
    let unit = |row: usize| (0..all).map(|column| f64::from(u8::from(row == column))).collect();
    let mut right: Vec<Vec<f64>> = (0..all).map(unit).collect();
    for pivot in 0..all {
        let by = left[pivot][pivot];
        left[pivot].iter_mut().chain(&mut right[pivot]).for_each(|value| *value /= by);
        let lines = (left[pivot].clone(), right[pivot].clone());
        for row in (0..all).filter(|row| *row != pivot) {
            let by = left[row][pivot];
            left[row].iter_mut().zip(&lines.0).for_each(|(value, of)| *value -= by * of);
            right[row].iter_mut().zip(&lines.1).for_each(|(value, of)| *value -= by * of);
        }
    }
    right
}

/// Solves equations; `None` where they do not have one solution.
pub(super) fn solve(mut left: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    const ZERO: f64 = 1e-6;

    let all = right.len();
    for pivot in 0..all {
        let best = (pivot..all).max_by(|a, b| left[*a][pivot].abs().total_cmp(&left[*b][pivot].abs()))?;
        left.swap(pivot, best);
        right.swap(pivot, best);
        let line = left[pivot].clone();
        if line[pivot].abs() < ZERO {
            return None;
        }
        for row in (0..all).filter(|row| *row != pivot) {
            let by = left[row][pivot] / line[pivot];
            left[row].iter_mut().zip(&line).for_each(|(value, of)| *value -= by * of);
            right[row] -= by * right[pivot];
        }
    }
    Some((0..all).map(|row| right[row] / left[row][row]).collect())
}
