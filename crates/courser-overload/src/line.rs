//! The line of clients that wait for their handshake to begin, and of handshakes that have begun.
//!
//! In peace it is first come, first served. In overload the newest is next: who has waited long leaves soon, and work for who
//! has left is lost (as "adaptive LIFO" in B. Maurer, "Fail at Scale", ACM Queue, 2015).

use std::collections::VecDeque;
use std::time::Duration;

/// Which clients come first in overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Has been here before the overload: half of the turns, if they need so many.
    Known,
    /// Everyone else.
    Other,
    /// Of a network that takes more than its share: when no one else waits.
    Limited,
}

/// The line. Times are since any fixed instant.
#[derive(Debug)]
pub struct Line<T> {
    begun: VecDeque<T>,
    known: VecDeque<Entry<T>>,
    others: VecDeque<Entry<T>>,
    limited: VecDeque<Entry<T>>,
    is_turn_of_known: bool,
}

#[derive(Debug)]
struct Entry<T> {
    since: Duration,
    waiter: T,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        let (begun, is_turn_of_known) = (VecDeque::new(), true);
        Self {
            begun,
            known: VecDeque::new(),
            others: VecDeque::new(),
            limited: VecDeque::new(),
            is_turn_of_known,
        }
    }
}

impl<T> Line<T> {
    /// A handshake that has begun: what it has cost is lost unless it goes on, so it comes before all others.
    pub fn push_begun(&mut self, waiter: T) {
        self.begun.push_back(waiter);
    }

    /// A client whose handshake may begin; it waits since `since`.
    pub fn push(&mut self, waiter: T, class: Class, since: Duration) {
        self.of(class).push_back(Entry { since, waiter });
    }

    /// Who is next.
    pub fn pop(&mut self, is_overload: bool) -> Option<T> {
        if let Some(begun) = self.begun.pop_front() {
            return Some(begun);
        }
        let entry = if is_overload { self.newest() } else { self.oldest_class()?.pop_front() };
        entry.map(|entry| entry.waiter)
    }

    /// The client that waits longest, if that is longer than `patience`.
    pub fn pop_expired(&mut self, now: Duration, patience: Duration) -> Option<T> {
        let class = self.oldest_class()?;
        let has_expired = class.front().is_some_and(|entry| now.saturating_sub(entry.since) > patience);
        if has_expired { class.pop_front().map(|entry| entry.waiter) } else { None }
    }

    /// How long the longest has waited whose handshake has not begun.
    pub fn longest_wait(&self, now: Duration) -> Duration {
        let fronts = [&self.known, &self.others, &self.limited].into_iter().filter_map(VecDeque::front);
        fronts.map(|entry| now.saturating_sub(entry.since)).max().unwrap_or_default()
    }

    /// Clients that have waited for less than `age`.
    pub fn younger_than(&self, now: Duration, age: Duration) -> usize {
        let young = |entry: &&Entry<T>| now.saturating_sub(entry.since) < age;
        let classes = [&self.known, &self.others, &self.limited];
        classes.into_iter().map(|class| class.iter().rev().take_while(young).count()).sum()
    }

    /// Clients whose handshake has not begun.
    pub fn waiting(&self) -> usize {
        self.known.len() + self.others.len() + self.limited.len()
    }

    /// Whether no one waits.
    pub fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.waiting() == 0
    }

    fn newest(&mut self) -> Option<Entry<T>> {
        if !self.known.is_empty() && !self.others.is_empty() {
            self.is_turn_of_known = !self.is_turn_of_known;
        }
        let (first, second) = if self.is_turn_of_known {
            (&mut self.known, &mut self.others)
        } else {
            (&mut self.others, &mut self.known)
        };
        first.pop_back().or_else(|| second.pop_back()).or_else(|| self.limited.pop_back())
    }

    fn oldest_class(&mut self) -> Option<&mut VecDeque<Entry<T>>> {
        let classes = [&mut self.known, &mut self.others, &mut self.limited].into_iter();
        let waiting = classes.filter(|class| !class.is_empty());
        waiting.min_by_key(|class| class.front().map(|entry| entry.since))
    }

    fn of(&mut self, class: Class) -> &mut VecDeque<Entry<T>> {
        match class {
            Class::Known => &mut self.known,
            Class::Other => &mut self.others,
            Class::Limited => &mut self.limited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn line(entries: &[(&'static str, Class)]) -> Line<&'static str> {
        let mut line = Line::default();
        for ((waiter, class), since) in entries.iter().zip(1..) {
            line.push(*waiter, *class, MS * since);
        }
        line
    }

    #[test]
    fn in_peace_the_first_to_come_is_the_first_to_be_served_whoever_it_is() {
        let mut line =
            line(&[("a", Class::Other), ("b", Class::Known), ("c", Class::Limited), ("d", Class::Other)]);
        line.push_begun("begun");
        let served: Vec<_> = std::iter::from_fn(|| line.pop(false)).collect();
        assert_eq!(served, ["begun", "a", "b", "c", "d"]);
    }

    #[test]
    fn in_overload_the_newest_are_served_known_and_others_in_turn_and_limited_last() {
        use Class::{Known, Limited, Other};
        let entries = [("k1", Known), ("k2", Known), ("o1", Other), ("o2", Other), ("o3", Other)];
        let mut line = line(&[&entries[..], &[("l", Limited)]].concat());
        let served: Vec<_> = std::iter::from_fn(|| line.pop(true)).collect();
        assert_eq!(served, ["o3", "k2", "o2", "k1", "o1", "l"]);
        assert!(line.is_empty());
    }

    #[test]
    fn who_has_waited_too_long_is_taken_out_the_oldest_first() {
        let mut line = line(&[("a", Class::Known), ("b", Class::Other), ("c", Class::Other)]);
        let now = MS * 12;
        assert_eq!(
            (line.longest_wait(now), line.younger_than(now, MS * 10), line.waiting()),
            (MS * 11, 1, 3)
        );
        assert_eq!(line.pop_expired(now, MS * 9), Some("a"));
        assert_eq!(line.pop_expired(now, MS * 9), Some("b"));
        assert_eq!(line.pop_expired(now, MS * 9), None);
        assert_eq!(line.waiting(), 1);
    }
}
