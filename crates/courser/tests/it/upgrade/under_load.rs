//! The benchmark of reloads and upgrades under load, for some seconds.

use std::time::Duration;

use self::drill::Options;

#[path = "../../../benches/without_downtime/drill.rs"]
mod drill;

#[test]
fn clients_notice_neither_reloads_nor_upgrades() {
    let report = drill::run(&Options {
        duration: Duration::from_secs(20),
        rate: 10.0,
        reload_every: Duration::from_millis(500),
        upgrade_every: Duration::from_secs(3),
        drain: Duration::from_secs(4),
        renew_every: None,
    });
    let failures = report.failures();
    assert!(failures.is_empty(), "{}\n{report}", failures.join("\n"));
}
