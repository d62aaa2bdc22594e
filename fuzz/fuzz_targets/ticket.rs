//! Any bytes as a session ticket: never a panic, and never opened, since nobody else has the key.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use courser_session::{EpochLength, FleetKeys, Lifespan, PolicyHash, Ticketer, UnixSeconds};
use libfuzzer_sys::fuzz_target;

const NOW: UnixSeconds = UnixSeconds(1_800_000_000);

fuzz_target!(|bytes: &[u8]| {
    let lifetime = Duration::from_secs(7200);
    let keys = FleetKeys::alone(EpochLength::DEFAULT, lifetime, NOW).expect("in range");
    let ticketer = Ticketer::new(Arc::new(keys));
    let policy = PolicyHash::builder("fuzz", "fuzz").finish();
    assert!(ticketer.open(&policy, bytes, NOW).is_err());
    // With the ticket's own head, so that the key is found and the sealed part is reached.
    let ticket = ticketer.seal(&policy, Lifespan::new(NOW, lifetime), bytes, [0; 12], NOW).expect("it lives");
    assert_eq!(ticketer.open(&policy, &ticket, NOW).expect("it is ours").state, bytes);
    let mut grafted = ticket[..29].to_vec();
    grafted.extend_from_slice(bytes);
    assert!(ticketer.open(&policy, &grafted, NOW).is_err());
});
