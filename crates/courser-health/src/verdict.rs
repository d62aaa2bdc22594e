//! From the results of checks to up and down.

/// How many results in a row it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    up: u32,
    down: u32,
    /// `None` before the first result, which decides alone: who has just started knows nothing better.
    is_up: Option<bool>,
    /// Results in a row against what `is_up` says.
    against: u32,
}

impl Verdict {
    /// Up after so many successes, and down after so many failures.
    pub(crate) fn new(up: u32, down: u32) -> Self {
        Self { up, down, is_up: None, against: 0 }
    }

    /// Takes a result. Returns whether the server is up by this check, and after how many results in a row that has changed.
    pub(crate) fn observe(&mut self, passed: bool) -> (bool, u32) {
        let is_up = self.is_up.unwrap_or(passed);
        self.is_up = Some(is_up);
        if passed == is_up {
            self.against = 0;
            return (is_up, 1);
        }
        self.against += 1;
        let enough = if passed { self.up } else { self.down };
        if self.against < enough {
            return (is_up, self.against);
        }
        self.against = 0;
        self.is_up = Some(passed);
        (passed, enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(results: &str) -> String {
        let mut verdict = Verdict::new(2, 3);
        let state = |result: char| if verdict.observe(result == '+').0 { 'u' } else { 'd' };
        results.chars().map(state).collect()
    }

    #[test]
    fn the_first_result_decides_and_then_it_takes_two_or_three_in_a_row() {
        assert_eq!(states("+--+--+---"), "uuuuuuuuud");
        assert_eq!(states("-+-++"), "ddddu");
        assert_eq!(states("--"), "dd");
    }
}
