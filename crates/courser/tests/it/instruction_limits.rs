//! The file of limits that `cargo bench --bench instructions` measures against: whole, and meant.

#[path = "../../benches/cpu_per_connection/case.rs"]
#[allow(dead_code, reason = "the benchmarks use more of it")]
mod case;
#[path = "../../benches/instructions/limits.rs"]
mod limits;

use case::Case;

#[test]
fn every_case_has_a_limit_that_can_be_kept_and_means_something() {
    let cases: Vec<_> = Case::ALL.into_iter().filter(|case| case.is_counted()).collect();
    let limits: Vec<_> = limits::all().collect();
    assert!(limits.iter().map(|(case, _)| *case).eq(cases.iter().map(|case| case.name())), "{limits:?}");
    for (case, (_, limit)) in cases.iter().zip(&limits) {
        // Less than the cryptography alone, or twice what was ever counted, is no limit.
        let meant = if case.mebibytes().is_some() { 5_000_000..160_000_000 } else { 50_000..15_000_000 };
        assert!(meant.contains(limit), "{}: {limit}", case.name());
    }
}
