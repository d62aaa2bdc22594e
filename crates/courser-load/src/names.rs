//! Which server name a client asks for: one, each of a list in turn, or by popularity.

use courser_tls_client::ServerName;

/// How a name is picked for a client.
#[derive(Clone, Debug)]
pub enum Pick {
    /// Each in turn.
    InTurn,
    /// By Zipf's law: the n-th name n^-s times as often as the first (Breslau et al., INFOCOM 1999: s is 0.6 to 0.8 for
    /// the web). Holds the sums of the weights up to each name.
    Zipf(Vec<f64>),
}

/// The names in use.
pub struct Names {
    names: Vec<ServerName>,
    pick: Pick,
}

impl Names {
    /// The names in turn.
    ///
    /// # Panics
    /// When there is none.
    pub fn in_turn(names: Vec<ServerName>) -> Self {
        assert!(!names.is_empty(), "a client needs a name to ask for");
        Self { names, pick: Pick::InTurn }
    }

    /// The names by Zipf's law with this exponent, the first the most popular.
    ///
    /// # Panics
    /// When there is none.
    pub fn zipf(names: Vec<ServerName>, exponent: f64) -> Self {
        let weights =
            (1..=u32::try_from(names.len()).unwrap_or(u32::MAX)).map(|n| f64::from(n).powf(-exponent));
        let sums = weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self { pick: Pick::Zipf(sums.collect()), ..Self::in_turn(names) }
    }

    /// The name of the `turn`-th client.
    pub fn pick(&self, turn: u64, random: &mut fastrand::Rng) -> &ServerName {
        let index = match &self.pick {
            Pick::InTurn => usize::try_from(turn).unwrap_or(0) % self.names.len(),
            Pick::Zipf(sums) => {
                let at = random.f64() * sums.last().copied().unwrap_or(0.0);
                sums.partition_point(|sum| *sum <= at).min(self.names.len() - 1)
            }
        };
        &self.names[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<ServerName> {
        (0..count).map(|n| ServerName::parse(&format!("n{n}.example")).expect("a name")).collect()
    }

    #[test]
    fn the_second_of_zipfs_names_comes_half_as_often_as_the_first() {
        let names = Names::zipf(names(100), 1.0);
        let mut random = fastrand::Rng::with_seed(1);
        let mut seen = [0_u32; 2];
        for turn in 0..20_000 {
            let name = names.pick(turn, &mut random);
            seen.iter_mut()
                .enumerate()
                .filter(|(n, _)| std::ptr::eq(name, &names.names[*n]))
                .for_each(|(_, s)| *s += 1);
        }
        let ratio = f64::from(seen[1]) / f64::from(seen[0]);
        assert!((ratio - 0.5).abs() < 0.05, "{seen:?}");
    }
}
