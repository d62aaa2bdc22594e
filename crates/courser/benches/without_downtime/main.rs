//! Reloads and upgrades under load: what clients notice of them, and what they leave behind.
//!
//!     cargo bench -p courser --bench without_downtime -- --duration 1h
//!
//! Method. Open loops of the engine of `courser-bench` connect at a fixed rate, whatever the server does: full handshakes, TLS 1.3
//! by pre-shared key, TLS 1.2 by ticket and by session ID. Beside them curl, openssl and gnutls-cli connect once a second, and a
//! relay begins each second that lasts nearly as long as an old process may drain. Meanwhile another certificate and other
//! settings are loaded each second, and the program is replaced every ten. Memory is the proportional set size of all processes
//! of the service, once a second; the first minute is compared with the last one (of shorter runs, a fifth). Descriptors are those
//! of the serving process at rest, before the load and after it.
//!
//! With `--renew-every 10s` the certificate is ordered from Pebble (ACME) instead, and renewed that often.
//!
//! It fails if a connection or a handshake does, if fewer than 99 % of the sessions of a kind are resumed, if a reload or an
//! upgrade is refused, if a relay is cut, if fewer than half of the renewals come about that
//! were due, or if descriptors, processes or memory are left over.

#[path = "drill.rs"]
mod drill;

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use drill::{Options, run};

fn main() -> ExitCode {
    let Some(options) = options(env::args().skip(1).filter(|argument| argument != "--bench")) else {
        eprintln!(
            "usage: without_downtime [--duration 1h] [--rate CONNECTIONS_PER_SECOND_OF_A_KIND] [--upgrade-every 10s] \
             [--reload-every 1s] [--drain 8s] [--renew-every 10s]"
        );
        return ExitCode::from(2);
    };
    let report = run(&options);
    println!("{report}");
    let failures = report.failures();
    failures.iter().for_each(|failure| println!("FAILED: {failure}"));
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options::default();
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match &*name {
            "--duration" => options.duration = time(&value)?,
            "--rate" => options.rate = value.parse().ok()?,
            "--upgrade-every" => options.upgrade_every = time(&value)?,
            "--reload-every" => options.reload_every = time(&value)?,
            "--renew-every" => options.renew_every = Some(time(&value)?),
            "--drain" => options.drain = time(&value)?,
            _ => return None,
        }
    }
    Some(options)
}

/// `1h`, `90s`, `5m`.
fn time(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number.parse::<u64>().ok().map(|number| Duration::from_secs(number * seconds))
}
