//! The file of limits that `cargo bench --bench instructions` measures against: whole, and meant.

#[path = "../../benches/cpu_per_connection/case.rs"]
#[allow(dead_code, reason = "the benchmarks use more of it")]
mod case;
#[path = "../../benches/instructions/limits.rs"]
mod limits;

use case::Case;

#[test]
fn every_case_has_a_limit_that_can_be_kept_and_means_something() {
    let cases = Case::ALL.into_iter().filter(|case| *case != Case::IdleMemory).map(Case::name);
    let limits: Vec<_> = limits::all().collect();
    assert_eq!(limits.iter().map(|(case, _)| *case).collect::<Vec<_>>(), cases.collect::<Vec<_>>());
    // Less than the cryptography alone, or twice what was ever counted, is no limit.
    assert!(limits.iter().all(|(_, limit)| (50_000..15_000_000).contains(limit)), "{limits:?}");
}
