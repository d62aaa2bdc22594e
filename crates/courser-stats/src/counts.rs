//! How often each kind of thing was seen.

use std::collections::BTreeMap;
use std::collections::btree_map::Iter;

/// Counts by kind, in the kinds' order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts<K: Ord>(BTreeMap<K, u64>);

impl<K: Ord> Default for Counts<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Counts<K> {
    /// Counts `times` more of `kind`.
    pub fn add(&mut self, kind: K, times: u64) {
        *self.0.entry(kind).or_default() += times;
    }

    /// How many of `kind`.
    pub fn get(&self, kind: &K) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// How many of all kinds.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the counts of another run, thread or machine.
    pub fn merge(&mut self, other: Self) {
        for (kind, times) in other.0 {
            self.add(kind, times);
        }
    }

    /// Kinds and their counts, in order.
    pub fn iter(&self) -> Iter<'_, K, u64> {
        self.0.iter()
    }
}

impl<K: Ord> FromIterator<(K, u64)> for Counts<K> {
    fn from_iter<I: IntoIterator<Item = (K, u64)>>(pairs: I) -> Self {
        let mut counts = Self::default();
        for (kind, times) in pairs {
            counts.add(kind, times);
        }
        counts
    }
}

impl<'c, K: Ord> IntoIterator for &'c Counts<K> {
    type Item = (&'c K, &'c u64);
    type IntoIter = Iter<'c, K, u64>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_counts_are_the_sum_of_both() {
        let mut left: Counts<&str> = [("full", 3), ("resumed", 1)].into_iter().collect();
        left.merge([("resumed", 4), ("retried", 2)].into_iter().collect());
        assert_eq!(
            left.iter().map(|(k, n)| (*k, *n)).collect::<Vec<_>>(),
            [("full", 3), ("resumed", 5), ("retried", 2)]
        );
        assert_eq!((left.total(), left.get(&"none")), (10, 0));
    }
}
