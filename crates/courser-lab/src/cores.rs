//! Which core is whose: target, generator and origin apart where the machine has them.

use courser_record::lab::CoreRole;

/// The processors of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreMap {
    /// CPUs of the target.
    pub target: Vec<usize>,
    /// CPUs of the generator.
    pub generator: Vec<usize>,
    /// CPUs of the origin.
    pub origin: Vec<usize>,
}

/// CPUs that were named by hand; without, the map assigns them.
#[derive(Clone, Debug, Default)]
pub struct ByHand {
    /// Those of the target.
    pub target: Option<Vec<usize>>,
    /// Those of the generator.
    pub generator: Option<Vec<usize>>,
    /// Those of the origin.
    pub origin: Option<Vec<usize>>,
}

impl CoreMap {
    /// The last cores for the target, of the others one for the origin if there are two, the rest for the generator.
    ///
    /// # Errors
    /// When nothing is left for the generator.
    pub fn new(allowed: &[usize], count: usize, by_hand: &ByHand) -> Result<Self, String> {
        let target = match by_hand.target.clone() {
            Some(cpus) if cpus.len() < count => {
                return Err(format!("needs {count} cores for the target; it was given {}", cpus.len()));
            }
            Some(cpus) => cpus.into_iter().take(count).collect(),
            None if allowed.len() <= count => {
                return Err(format!(
                    "needs {count} cores for the target and one for generator and origin; this machine has {}",
                    allowed.len()
                ));
            }
            None => allowed[allowed.len() - count..].to_vec(),
        };
        let rest: Vec<usize> = allowed.iter().copied().filter(|cpu| !target.contains(cpu)).collect();
        let (origin, generator) = match rest.as_slice() {
            [] => return Err("nothing is left for the generator".into()),
            [one] => (vec![*one], vec![*one]),
            [first, others @ ..] => (vec![*first], others.to_vec()),
        };
        Ok(Self {
            target,
            generator: by_hand.generator.clone().unwrap_or(generator),
            origin: by_hand.origin.clone().unwrap_or(origin),
        })
    }

    /// Whether generator and origin have one core together: one event loop does the work of both then.
    pub fn is_shared(&self) -> bool {
        self.generator.len() == 1 && self.generator == self.origin
    }

    /// The map as a record has it.
    pub fn roles(&self, allowed: &[usize]) -> Vec<CoreRole> {
        let of = |cpu: &usize| {
            let roles = [("target", &self.target), ("generator", &self.generator), ("origin", &self.origin)];
            let here = roles.into_iter().filter(|(_, cpus)| cpus.contains(cpu));
            let mut roles: Vec<String> = here.map(|(role, _)| role.to_owned()).collect();
            roles.push("system".into());
            CoreRole { cpu: u32::try_from(*cpu).unwrap_or(u32::MAX), roles }
        };
        allowed.iter().map(of).collect()
    }

    /// What the map means for the figures.
    pub fn note(&self) -> String {
        let overlap = self.generator.iter().any(|cpu| self.origin.contains(cpu));
        let beside = if self.is_shared() {
            "Generator and origin share a core, and one event loop does the work of both. Where a cell names no share of \
             the target's core, they can make less than a fast target can take: then its rate is inconclusive and \
             computed from its processor time instead. "
        } else if overlap {
            "Generator and origin share cores: together they can make less than a fast target can take, and then its \
             rate is inconclusive and computed from its processor time instead. "
        } else {
            ""
        };
        format!(
            "{beside}All are on one machine, over loopback: whoever sends pays for the receiver's half of the kernel's \
             network stack as well, so kernel time is higher than across a network, and nothing is said about network \
             cards. Interrupts and the system may run on any of these cores."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cores_are_a_target_and_the_rest() {
        let map = CoreMap::new(&[0, 1], 1, &ByHand::default()).unwrap();
        assert_eq!((map.target, map.generator, map.origin), (vec![1], vec![0], vec![0]));
        assert!(CoreMap::new(&[0, 1], 2, &ByHand::default()).unwrap_err().contains("this machine has 2"));
    }

    #[test]
    fn more_cores_keep_the_origin_apart() {
        let map = CoreMap::new(&[0, 1, 2, 3, 4, 5], 2, &ByHand::default()).unwrap();
        assert_eq!((map.target, map.generator, map.origin), (vec![4, 5], vec![1, 2, 3], vec![0]));
    }

    #[test]
    fn what_is_named_by_hand_holds() {
        let by_hand = ByHand { target: Some(vec![0]), ..ByHand::default() };
        let map = CoreMap::new(&[0, 1, 2], 1, &by_hand).unwrap();
        assert_eq!((map.target, map.origin, map.generator), (vec![0], vec![1], vec![2]));
        assert!(CoreMap::new(&[0, 1, 2], 2, &by_hand).is_err());
    }
}
