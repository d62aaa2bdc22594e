//! Which sequence numbers of a sender have been seen: each counts once, and late ones for as long as they are
//! remembered (RFC 4303, section 3.4.3; with whole words as in RFC 6479). May not shift its bits.

/// How far behind the highest number a late one may be.
pub(crate) const WINDOW: u64 = 1024;

/// A window's words: one more than it takes, so that the highest may stand anywhere in its word.
const WORDS: usize = (WINDOW / 64) as usize + 1;

/// The numbers seen of one sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplayWindow {
    words: [u64; WORDS],
    highest: u64,
    /// The first that came.
    first: Option<u64>,
    seen: u64,
}

impl ReplayWindow {
    /// A window in which all numbers up to this one have been seen.
    pub(crate) fn after(number: u64) -> Self {
        let mut window = Self { words: [u64::MAX; WORDS], highest: number, ..Self::default() };
        window.words[place(number / 64)] = u64::MAX >> (63 - number % 64);
        window
    }

    /// Whether it is beyond all that have been seen.
    pub(crate) fn is_ahead(&self, number: u64) -> bool {
        number > self.highest
    }

    /// Whether the number has been seen, or is too old to tell.
    pub(crate) fn has_seen(&self, number: u64) -> bool {
        let is_too_old = self.highest.saturating_sub(number) >= WINDOW;
        let is_marked = || self.words[place(number / 64)] & (1 << (number % 64)) != 0;
        is_too_old || (number <= self.highest && is_marked())
    }

    /// Whether the number is new, which it is then no longer. One that is too old to tell is not.
    pub(crate) fn accept(&mut self, number: u64) -> bool {
        if self.highest.saturating_sub(number) >= WINDOW {
            return false;
        }
        self.advance(number);
        let (word, bit) = (&mut self.words[place(number / 64)], 1 << (number % 64));
        let new = *word & bit == 0;
        *word |= bit;
        if new {
            self.seen += 1;
            self.first.get_or_insert(number);
        }
        new
    }

    /// How many numbers between the first that came and the highest have not come. Some may yet.
    pub(crate) fn missing(&self) -> u64 {
        let Some(first) = self.first else { return 0 };
        (self.highest.saturating_sub(first)).saturating_add(1).saturating_sub(self.seen)
    }

    /// Moves the window's head to `number` if that is ahead, and forgets what was in the words it enters.
    fn advance(&mut self, number: u64) {
        let entered = (self.highest / 64).saturating_add(1)..=number / 64;
        entered.take(WORDS).for_each(|word| self.words[place(word)] = 0);
        self.highest = self.highest.max(number);
    }
}

fn place(word: u64) -> usize {
    usize::try_from(word % WORDS as u64).expect("a remainder of a small number")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_before_the_beginning_has_been_seen() {
        for last in [0, 1, 63, 64, 65, 127, 5000, u64::MAX >> 1] {
            let mut window = ReplayWindow::after(last);
            assert!((last.saturating_sub(2000)..=last).all(|number| !window.accept(number)), "{last}");
            assert_eq!(window.missing(), 0);
            let late = [1, 3, 2, 70, 64, 63, 1500].map(|ahead| last + ahead);
            assert!(late.into_iter().all(|number| window.accept(number)), "{last}");
            assert!(!late.into_iter().any(|number| window.accept(number)), "{last}");
        }
    }

    #[test]
    fn each_number_counts_once_in_any_order() {
        let mut window = ReplayWindow::default();
        for number in [5, 3, 4, 1, 2, 0, 700, 64, 63] {
            assert!(window.accept(number), "{number}");
            assert!(!window.accept(number), "{number} again");
        }
    }

    #[test]
    fn a_number_is_too_old_at_the_windows_length() {
        for highest in [WINDOW, 1_000_000, 1_000_063, u64::MAX] {
            let mut window = ReplayWindow::default();
            assert!(window.accept(highest));
            assert!(!window.accept(highest - WINDOW), "{highest}");
            assert!(window.accept(highest - WINDOW + 1), "{highest}");
        }
    }

    #[test]
    fn counts_what_did_not_come_and_takes_back_what_came_late() {
        let mut window = ReplayWindow::default();
        assert_eq!(window.missing(), 0);
        assert!(window.accept(10) && window.accept(14));
        assert_eq!(window.missing(), 3);
        assert!(window.accept(12));
        assert_eq!(window.missing(), 2);
        assert!(window.accept(9), "before the first that came");
        assert!(window.accept(u64::MAX));
    }

    proptest! {
        /// Against a set that forgets nothing.
        #[test]
        fn does_what_a_set_does(steps in proptest::collection::vec((0_u64..3000, any::<bool>()), 1..400)) {
            let (mut window, mut seen, mut highest) = (ReplayWindow::default(), HashSet::new(), 0_u64);
            for (step, ahead) in steps {
                let number = if ahead { highest + step } else { highest.saturating_sub(step) };
                let expected = number + WINDOW > highest && seen.insert(number);
                highest = highest.max(number);
                prop_assert_eq!(window.has_seen(number), !expected);
                prop_assert_eq!(window.accept(number), expected);
            }
        }
    }
}
