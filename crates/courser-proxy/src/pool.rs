//! A virtual host's backends, and which is next. May not connect to them.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::resolve::Backend;

/// The backends of a virtual host, with the place of each worker in its round of them.
#[derive(Debug)]
pub struct Pool {
    backends: Box<[Backend]>,
    /// One for each worker; none where there is nothing to choose.
    cursors: Box<[Cursor]>,
}

/// A worker's place. Only its worker moves it, and no other place is on its cache line: it costs what a plain number
/// does, and needs no table of pools in each worker that a later generation of settings would have to renew.
#[derive(Debug)]
#[repr(align(64))]
struct Cursor(AtomicUsize);

impl Pool {
    /// Backends in configured order, for so many workers.
    pub fn new(backends: Vec<Backend>, workers: usize) -> Self {
        let has_choice = backends.len() > 1 || backends.iter().any(Backend::may_have_several_addresses);
        let random = RandomState::new();
        let start = |worker| match worker {
            // So one worker, the case that people look at, goes by the configured order.
            0 => 0,
            // Workers that began alike, or one apart, would meet the same backends at the same moment for good.
            worker => usize::try_from(random.hash_one(worker) >> 32).unwrap_or(0),
        };
        let cursors = if has_choice { workers } else { 0 };
        let cursors = (0..cursors).map(|worker| Cursor(AtomicUsize::new(start(worker)))).collect();
        Self { backends: backends.into(), cursors }
    }

    /// Where `worker`'s next connection may go: each backend once, the next one of the round first, with its
    /// number in configured order and the number of rounds before.
    pub(crate) fn next(&self, worker: u16) -> impl Iterator<Item = (usize, &Backend, usize)> {
        let (turn, count) = (self.advance(worker), self.backends.len());
        (0..count).map(move |step| {
            let index = (turn + step) % count;
            (index, &self.backends[index], turn / count)
        })
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Backend> {
        self.backends.get(index)
    }

    fn advance(&self, worker: u16) -> usize {
        let Some(Cursor(next)) = self.cursors.get(usize::from(worker)) else { return 0 };
        // No `fetch_add`, which would lock the bus: nothing else writes.
        let turn = next.load(Ordering::Relaxed);
        next.store(turn.wrapping_add(1), Ordering::Relaxed);
        turn
    }
}

#[cfg(test)]
mod tests {
    use courser_net::Address;

    use super::*;

    fn pool(backends: usize, workers: usize) -> Pool {
        let backend = |number| Backend::fixed(Address::Abstract(format!("{number}")));
        Pool::new((0..backends).map(backend).collect(), workers)
    }

    fn order(pool: &Pool, worker: u16) -> Vec<usize> {
        pool.next(worker).map(|(index, ..)| index).collect()
    }

    #[test]
    fn each_backend_has_its_turn_and_the_others_follow() {
        let pool = pool(3, 1);
        let orders: Vec<_> = (0..4).map(|_| order(&pool, 0)).collect();
        assert_eq!(orders, [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
    }

    #[test]
    fn how_often_a_backend_had_its_turn_is_counted_for_its_addresses() {
        let pool = pool(2, 1);
        let turns: Vec<_> =
            (0..6).map(|_| pool.next(0).map(|(index, _, before)| (index, before)).next()).collect();
        let expected = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)].map(Some);
        assert_eq!(turns, expected);
    }

    #[test]
    fn hosts_and_workers_do_not_move_one_another() {
        let (one, other) = (pool(2, 2), pool(2, 2));
        for turn in 0..10 {
            assert_eq!(order(&one, 0)[0], turn % 2);
            assert_eq!(order(&other, 0)[0], turn % 2);
            let _ = order(&other, 1);
        }
    }

    #[test]
    fn workers_begin_at_different_places() {
        let pool = pool(1000, 8);
        let firsts: std::collections::HashSet<_> = (0..8).map(|worker| order(&pool, worker)[0]).collect();
        assert!(firsts.len() >= 6, "of 8 starts among 1000, 7 alike in a million: {firsts:?}");
    }

    #[test]
    fn one_backend_needs_no_cursor() {
        let pool = pool(1, 64);
        assert!(pool.cursors.is_empty());
        assert_eq!([order(&pool, 0), order(&pool, 63)], [[0], [0]]);
        assert!(order(&Pool::new(Vec::new(), 1), 0).is_empty());
    }
}
